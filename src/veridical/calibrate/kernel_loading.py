"""Loading the compiled kernels before the first request, so that they answer for small inputs, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator


def load_kernels_for(calibrator: Calibrator) -> None:
    """Leave inputs of all sizes to the kernels from now on, and predict for one sample, which loads them."""
    vars(calibrator)["small_inputs_compiled"] = True  # of this calibrator; its class leaves them to NumPy
    kind = calibrator.kind
    if calibrator.combiner_.name != "mean" or calibrator.kind_of_arrays != kind or kind == "binary":
        return  # small inputs of these go the ordinary way
    n_classes, axis = calibrator.n_classes_, calibrator.sources_axis
    probs = np.full((calibrator.n_sources_, 1, n_classes), 0.4 / (n_classes - 1))
    probs[:, :, 0] = 0.6
    scores = np.moveaxis(probs if kind == "probs" else np.log(probs), 0, axis)
    for dtype in (np.float32, np.float64):
        calibrator.predict_all(scores.astype(dtype))
