"""Logits and log-probabilities of a few samples as probabilities: twin of :mod:`veridical._kernels.softmax`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def probabilities_of(scores: Array, are_logits: bool) -> Array:
    """Softmax over the last axis, or the exponential, in float64.

    A row of NaN stays one: the source is absent.  A row of logits of which some are not finite becomes
    (0, NaN, NaN, ...), which is neither absent nor a distribution.
    """
    values = scores.astype(np.float64)
    if not are_logits:
        with np.errstate(over="ignore"):  # what is infinite does not sum to one, and is named then
            return np.exp(values, out=values)
    finite = np.isfinite(values)
    if not finite.all():
        invalid = ~finite.all(axis=-1)
        absent = np.isnan(values).all(axis=-1)
        values[invalid] = np.nan
        values[invalid & ~absent, 0] = 0.0
    values -= np.maximum.reduce(values, -1, keepdims=True)
    np.exp(values, out=values)
    values /= np.add.reduce(values, -1, keepdims=True)
    if not finite.all():
        values[invalid & ~absent, 0] = 0.0
    return values
