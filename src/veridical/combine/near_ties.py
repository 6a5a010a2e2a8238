"""The label of the mean where several classes tie, or nearly do, and single precision cannot tell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from veridical.predictions import Predictions
from veridical.predictions.validation import Array

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def mean_labels(predictions: Predictions, samples: npt.NDArray[np.intp]) -> Labels:
    """Labels of the mean by its definition, for logits and log-probabilities.

    Probabilities are computed in float64 and added up in the order of the sources; ties go to the lowest index.
    Exponentials are summed from the smallest to the largest, so that the same logits in another order give the same
    probabilities, and classes that tie exactly do so here.
    """
    total: Floats = np.zeros((len(samples), predictions.n_classes))
    n_present = np.zeros((len(samples), 1))
    for source in predictions:
        scores = np.asarray(source[samples], dtype=np.float64)
        absent = np.isnan(scores[:, :1])
        probs = _softmax(scores) if predictions.kind == "logits" else np.exp(scores)
        total += np.where(absent, 0.0, probs)
        n_present += ~absent
    labels: Labels = (total / n_present).argmax(axis=1)
    return labels


def _softmax(scores: Array) -> Floats:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    probs: Floats = exponentials / np.sort(exponentials, axis=1).sum(axis=1, keepdims=True)
    return probs
