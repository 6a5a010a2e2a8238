"""The label of the mean where several classes tie, or nearly do, and single precision cannot tell."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from veridical.predictions import Predictions

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

#: Scores that are looked at together: large enough to keep NumPy busy, small beside the predictions.
_NUMBERS_AT_ONCE = 1 << 20


def mean_labels(predictions: Predictions, samples: npt.NDArray[np.intp]) -> Labels:
    """Labels of the mean by its definition, for logits and log-probabilities.

    Probabilities are computed in float64 and added up in the order of the sources; ties go to the lowest index.
    Exponentials are summed from the smallest to the largest, so that the same logits in another order give the same
    probabilities, and classes that tie exactly do so here.
    """
    at_once = max(1, _NUMBERS_AT_ONCE // (predictions.n_sources * predictions.n_classes))
    labels: Labels = np.empty(len(samples), np.int64)
    for first in range(0, len(samples), at_once):
        block = slice(first, first + at_once)
        scores: Floats = np.stack([source[samples[block]] for source in predictions]).astype(np.float64)
        labels[block] = _labels_of_scores(scores, are_logits=predictions.kind == "logits")
    return labels


def _labels_of_scores(scores: Floats, *, are_logits: bool) -> Labels:
    absent = np.isnan(scores[..., 0])
    probs = np.where(absent[..., None], 0.0, _softmax(scores) if are_logits else np.exp(scores))
    total: Floats = np.zeros(probs.shape[1:])
    for of_source in probs:  # one after the other: np.sum may add in another order
        total += of_source
    labels: Labels = (total / (~absent).sum(axis=0)[:, None]).argmax(axis=1)
    return labels


def _softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probs: Floats = exponentials / np.sort(exponentials, axis=-1).sum(axis=-1, keepdims=True)
    return probs
