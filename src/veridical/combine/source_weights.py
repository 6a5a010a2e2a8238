"""Weights of sources that a caller passes to truth discovery."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.errors import ParameterError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, as_numbers


def check_source_weights(source_weights: Any, predictions: Predictions) -> Array:
    """(S,) finite numbers of at least zero in the precision of results; one each where there are none."""
    if source_weights is None:
        return np.ones(predictions.n_sources, predictions.result_dtype)
    weights = as_numbers(source_weights, "source_weights")
    if weights.shape != (predictions.n_sources,):
        raise ShapeError(
            f"source_weights has shape {weights.shape}; give one weight per source, shape ({predictions.n_sources},)."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise ParameterError(
            f"the weight of {predictions.source_name(int(wrong[0]))} is {weights[wrong[0]]:g}; weights are finite and "
            "at least 0."
        )
    if not weights.any():
        raise ParameterError("all source weights are 0; at least one must be positive.")
    return np.ascontiguousarray(weights, predictions.result_dtype)
