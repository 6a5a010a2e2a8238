"""Distributions from a calibrated confidence of the predicted label."""

from __future__ import annotations

import numpy as np

from veridical._numpy_kernels import kernel_for
from veridical.combine.combined import Combined, Floats
from veridical.combine.in_memory import over_rows
from veridical.combine.projection import LABEL_MARGIN
from veridical.predictions.validation import Array


def top_label_vectors(combined: Combined, confidence: Floats, n_threads: int | None = None) -> Array:
    """Distributions in which the predicted label has ``confidence`` and the others share the rest as they did.

    With v the combined confidence, the other classes are multiplied by (1 - w) / (1 - v), or share 1 - w
    equally where v = 1; then the predicted label is made the strict argmax.
    """
    probs = combined.probs.copy()
    # A confidence of exactly one would leave nothing for the other classes, and an infinite loss where one is right.
    confidence = np.minimum(confidence, 1.0 - LABEL_MARGIN)
    replace_confidence = kernel_for(
        probs, "full_vectors", "replace_confidence", compiled=combined.options.small_inputs_compiled
    )

    def work(part: slice) -> None:
        replace_confidence(probs[part], combined.prediction[part], confidence[part], LABEL_MARGIN)

    over_rows(work, probs, n_threads)
    return probs
