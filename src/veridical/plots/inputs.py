"""What figures accept: arrays, or results that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.errors import ParameterError
from veridical.predictions.classes import UNKNOWN


def outcomes_and_probs(y_true: Any, probs: Any) -> tuple[Any, Any]:
    """Labels (or booleans) and distributions (or confidences), from arrays or from results.

    Samples of a result whose label is not known are left out.
    """
    if probs is None:
        if getattr(y_true, "labels", None) is None or not hasattr(y_true, "probs"):
            raise ParameterError(
                f"probs is missing and {type(y_true).__name__} does not hold labels and distributions; give labels "
                "and probabilities of shape (samples, classes)."
            )
        known = np.asarray(y_true.labels) != UNKNOWN
        return y_true.labels[known], y_true.probs[known]
    return y_true, getattr(probs, "probs", probs)
