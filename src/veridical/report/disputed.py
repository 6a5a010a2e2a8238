"""The samples on which the sources disagree most."""

from __future__ import annotations

import numpy as np

from veridical.combine import Combined
from veridical.evaluation.curves import HV_ROUNDING
from veridical.predictions import Predictions
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import Array
from veridical.report.data import DisputedSample

#: How many samples are listed: the most disputed of all, and some of every class so that each can be looked at.
_MOST_DISPUTED, _MOST_LISTED, _PER_CLASS = 100, 300, 10


def disputed_samples(predictions: Predictions, hv: Array, mean: Combined) -> tuple[DisputedSample, ...]:
    """The samples with the largest HV, of all and of each predicted class; the largest first."""
    order = np.argsort(-hv, kind="stable")
    order = order[hv[order] > HV_ROUNDING]
    chosen = _listed(order, mean.prediction[order], predictions.n_classes)
    return tuple(
        DisputedSample(
            sample=int(n),
            hv=float(hv[n]),
            prediction=int(mean.prediction[n]),
            confidence=float(mean.probs[n].max()),
            label=_label(predictions, n),
            votes=votes,
            sample_id=None if predictions.sample_ids is None else predictions.sample_ids[n].item(),
        )
        for n, votes in zip(chosen, _votes(predictions, chosen), strict=True)
    )


def _label(predictions: Predictions, n: int) -> int | None:
    label = UNKNOWN if predictions.labels is None else int(predictions.labels[n])
    return None if label == UNKNOWN else label


def _listed(order: Array, predicted: Array, n_classes: int) -> Array:
    """The first of ``order``, and the first of every predicted class up to the limit."""
    remaining = _MOST_LISTED - _MOST_DISPUTED
    per_class = min(max(remaining // n_classes, 1), _PER_CLASS)
    seen = np.zeros(n_classes, dtype=np.int64)
    kept = []
    for position, (sample, label) in enumerate(zip(order, predicted, strict=True)):
        if position < _MOST_DISPUTED or seen[label] < per_class:
            kept.append(sample)
        seen[label] += 1
        if len(kept) == _MOST_LISTED:
            break
    return np.asarray(kept, dtype=np.int64)


def _votes(predictions: Predictions, samples: Array) -> list[tuple[tuple[int, int], ...]]:
    """Which labels the sources name for each sample, and how many name them."""
    values = predictions.select(samples=samples).values.astype(np.float64)
    present: Array = np.logical_not(np.isnan(values).any(axis=2))
    named = np.nan_to_num(values, nan=0.0).argmax(axis=2)
    votes = []
    for n in range(len(samples)):
        labels, counts = np.unique(named[present[:, n], n], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        votes.append(tuple((int(labels[k]), int(counts[k])) for k in order))
    return votes
