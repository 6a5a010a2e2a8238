"""Weights of sources that a caller passes to truth discovery."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.errors import ParameterError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, as_numbers

#: A source counts as at most so many; what counts as less than one in so many counts as none.  Sums, products with
#: distances and quotients of such numbers are far from the ends of float32.
LARGEST_WEIGHT = 1e30


def check_source_weights(source_weights: Any, predictions: Predictions) -> Array:
    """(S,) numbers from 0 to 1e30 in the precision of results; one each where there are none."""
    if source_weights is None:
        return np.ones(predictions.n_sources, predictions.result_dtype)
    weights = as_numbers(source_weights, "source_weights")
    if weights.shape != (predictions.n_sources,):
        raise ShapeError(
            f"source_weights has shape {weights.shape}; give one weight per source, shape ({predictions.n_sources},)."
        )
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if wrong.size:
        raise ParameterError(
            f"the weight of {predictions.source_name(int(wrong[0]))} is {weights[wrong[0]]:g}; a weight is how many "
            f"sources it counts as, from 0 to {LARGEST_WEIGHT:g}."
        )
    counts = weights >= 1 / LARGEST_WEIGHT
    if not counts.any():
        raise ParameterError(f"all source weights are 0 or less than {1 / LARGEST_WEIGHT:g}; at least one must count.")
    return np.ascontiguousarray(np.where(counts, weights, 0), predictions.result_dtype)
