"""Walk-forward evaluation: methods are fitted on the past and scored on the next period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from veridical._names import natural_order
from veridical._progress import Progress
from veridical.errors import ParameterError, ShapeError
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.methods import Method
from veridical.evaluation.outcomes import Indices, Outcome
from veridical.metrics.sample import Sample
from veridical.predictions import Predictions
from veridical.predictions.arrays import as_array
from veridical.predictions.sample_ids import check_groups
from veridical.predictions.validation import Array

#: Periods with fewer samples before them are fitted on and not scored.
_LEAST_PAST = 30


def periods_of(predictions: Predictions, walk_forward: Any) -> Array | None:
    """(N,) the period of each sample; None if evaluation is not walk-forward.

    ``walk_forward`` is False, True for the groups, or one period per sample.
    """
    if walk_forward is None or walk_forward is False:
        return None
    if walk_forward is True:
        if predictions.groups is None:
            raise ParameterError(
                "walk_forward=True takes the groups as periods, and the predictions have no groups; give one period "
                "per sample."
            )
        return predictions.groups
    periods = as_array(walk_forward, "walk_forward", "give one period per sample")
    if periods.shape != (predictions.n_samples,):
        raise ShapeError(
            f"walk_forward has shape {periods.shape}; give one period per sample, shape ({predictions.n_samples},)."
        )
    if periods.dtype.kind not in "iufM":  # texts and objects
        return check_groups(periods, periods.shape)
    missing = np.flatnonzero(periods != periods)  # NaN and NaT
    if missing.size:
        raise ParameterError(f"walk_forward has no period for sample {missing[0]}; give one per sample.")
    return periods


def period_splits(periods: Array) -> list[Split]:
    """For each period that has a past: the samples before it, and its own.

    Numbers are in numerical order; texts in natural order, so that 2024-2 is before 2024-10.
    """
    different, period_of = np.unique(periods, return_inverse=True)
    names = different.tolist()
    order = sorted(range(len(names)), key=lambda k: natural_order(names[k]) if isinstance(names[k], str) else names[k])
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    ranks = rank[period_of.reshape(-1)]
    splits = []
    for k in range(1, len(order)):
        past = np.flatnonzero(ranks < k)
        if len(past) >= _LEAST_PAST:
            splits.append(Split(past, np.flatnonzero(ranks == k)))
    if not splits:
        raise ShapeError(
            f"walk-forward evaluation needs at least {_LEAST_PAST} labelled samples before the last period, and there "
            f"are {len(periods)} in {len(order)} period{'s' * (len(order) != 1)}; give more, or evaluate without it."
        )
    return splits


def scored_samples(splits: Sequence[Split]) -> Indices:
    """All samples that some split scores, in the order of the splits."""
    return np.concatenate([split.scored_on for split in splits if split.scored_on is not None])


def run_periods(
    engine: Engine, method: Method, splits: Sequence[Split], random_state: int, progress: Progress | None = None
) -> Outcome:
    """One method, fitted anew before each period, and its outcomes on all of them."""
    outcomes = [
        engine.run_one(method, split, Shared(), random_state=random_state, progress=progress) for split in splits
    ]
    stated = Sample.joined([outcome.stated for outcome in outcomes])
    vectors = Sample.joined([outcome.vectors for outcome in outcomes])
    if engine.groups is not None:
        stated.group = vectors.group = engine.groups[scored_samples(splits)]
    return replace(
        outcomes[-1],
        prediction=np.concatenate([outcome.prediction for outcome in outcomes]),
        vector_labels=np.concatenate([outcome.vector_labels for outcome in outcomes]),
        stated=stated,
        vectors=vectors,
    )
