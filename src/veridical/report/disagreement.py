"""Where the sources disagree: HV over all samples, and the samples that they argue about most."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.stats

from veridical.combine import Combined
from veridical.predictions import Predictions
from veridical.predictions.validation import Array
from veridical.report.data import Disagreement, DisputedSample

_COLUMNS, _ROWS = 40, 32
#: The mean of equal numbers differs from them by rounding; HV up to this is no disagreement.
_ROUNDING = 1e-9
#: The few samples with the largest HV would stretch the axis; they are counted in its last row.
_SHOWN_QUANTILE = 0.995
#: How many samples are listed: the most disputed of all, and some of every class so that each can be looked at.
_MOST_DISPUTED, _MOST_LISTED, _PER_CLASS = 100, 300, 10


def disagreement_of(hv: Array, score: Array, right: Array | None) -> Disagreement:
    """HV against the winning score, on a grid."""
    quantile = float(np.quantile(hv, _SHOWN_QUANTILE))
    top = quantile if quantile > _ROUNDING else 1.0
    score_edges = np.linspace(min(float(score.min()), 0.99), 1.0, _COLUMNS + 1)
    hv_edges = np.linspace(0.0, top, _ROWS + 1)
    column = np.clip(np.searchsorted(score_edges, score, side="right") - 1, 0, _COLUMNS - 1)
    row = np.clip(np.searchsorted(hv_edges, hv, side="right") - 1, 0, _ROWS - 1)
    right = np.ones(len(hv), dtype=bool) if right is None else right
    grids = [
        np.bincount(row[side] * _COLUMNS + column[side], minlength=_ROWS * _COLUMNS).reshape(_ROWS, _COLUMNS)
        for side in (right, ~right)
    ]
    inside = [hv[column == c] for c in range(_COLUMNS)]
    return Disagreement(
        score_edges=tuple(score_edges.tolist()),
        hv_edges=tuple(hv_edges.tolist()),
        right=tuple(tuple(line) for line in grids[0].tolist()),
        wrong=tuple(tuple(line) for line in grids[1].tolist()),
        median=tuple(float(np.median(values)) if len(values) else float("nan") for values in inside),
        correlation=_rank_correlation(hv, score),
    )


def _rank_correlation(hv: Array, score: Array) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.ConstantInputWarning)  # the answer, NaN, says the same
        return float(scipy.stats.spearmanr(hv, score).statistic) if len(hv) > 1 else float("nan")


def disputed_samples(given: Predictions, hv: Array, mean: Combined) -> tuple[DisputedSample, ...]:
    """The samples with the largest HV, of all and of each predicted class; the largest first."""
    order = np.argsort(-hv, kind="stable")
    order = order[hv[order] > _ROUNDING]
    chosen = _listed(order, mean.prediction[order], given.n_classes)
    votes = _votes(given, chosen)
    return tuple(
        DisputedSample(
            sample=int(n),
            hv=float(hv[n]),
            prediction=int(mean.prediction[n]),
            confidence=float(mean.probs[n].max()),
            label=None if given.labels is None else int(given.labels[n]),
            votes=found,
        )
        for n, found in zip(chosen, votes, strict=True)
    )


def _listed(order: Array, predicted: Array, n_classes: int) -> Array:
    """The first of ``order``, and the first of every predicted class as far as there is room."""
    room = _MOST_LISTED - _MOST_DISPUTED
    per_class = min(max(room // n_classes, 1), _PER_CLASS)
    seen = np.zeros(n_classes, dtype=np.int64)
    kept = []
    for position, (sample, label) in enumerate(zip(order, predicted, strict=True)):
        if position < _MOST_DISPUTED or seen[label] < per_class:
            kept.append(sample)
        seen[label] += 1
        if len(kept) == _MOST_LISTED:
            break
    return np.asarray(kept, dtype=np.int64)


def _votes(given: Predictions, samples: Array) -> list[tuple[tuple[int, int], ...]]:
    """Which labels the sources name for each sample, and how many name them."""
    values = given.select(samples=samples).values.astype(np.float64)
    present: Array = np.logical_not(np.isnan(values).any(axis=2))
    named = np.nan_to_num(values, nan=0.0).argmax(axis=2)
    found = []
    for n in range(len(samples)):
        labels, counts = np.unique(named[present[:, n], n], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        found.append(tuple((int(labels[k]), int(counts[k])) for k in order))
    return found
