"""Walk-forward evaluation: methods are fitted on the past and scored on the next period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from veridical._progress import Progress
from veridical.errors import ParameterError, ShapeError
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.methods import Method
from veridical.evaluation.outcomes import Indices, Outcome
from veridical.evaluation.periods import PERIOD_ORDERS, PeriodOrder, ranks_of_periods
from veridical.metrics.sample import Sample
from veridical.predictions import Predictions
from veridical.predictions.arrays import as_array
from veridical.predictions.validation import check_choice

#: Periods with fewer samples before them are fitted on and not scored.
_LEAST_PAST = 30


def periods_of(predictions: Predictions, walk_forward: Any, period_order: PeriodOrder = "value") -> Indices | None:
    """(N,) the place in time of each sample's period; None if evaluation is not walk-forward.

    ``walk_forward`` is False, True for the groups, or one period per sample.
    """
    check_choice(period_order, PERIOD_ORDERS, "period_order")
    if walk_forward is None or walk_forward is False:
        if period_order != "value":
            raise ParameterError("period_order is the order of the periods of walk_forward, which is missing.")
        return None
    if walk_forward is True:
        if predictions.groups is None:
            raise ParameterError(
                "walk_forward=True takes the groups as periods, and the predictions have no groups; give one period "
                "per sample."
            )
        return ranks_of_periods(predictions.groups, period_order)
    codes = _codes_of_ordered(walk_forward)
    periods = as_array(walk_forward if codes is None else codes, "walk_forward", "give one period per sample")
    if periods.shape != (predictions.n_samples,):
        raise ShapeError(
            f"walk_forward has shape {periods.shape}; give one period per sample, shape ({predictions.n_samples},)."
        )
    return ranks_of_periods(periods, period_order)


def _codes_of_ordered(periods: Any) -> Any:
    """The ranks of an ordered categorical of pandas, whose order is declared, NaN where it is missing; else None."""
    if getattr(getattr(periods, "dtype", None), "ordered", None) is not True:
        return None
    codes = np.asarray(getattr(periods, "cat", periods).codes, np.float64)
    return np.where(codes < 0, np.nan, codes)


def period_splits(periods: Indices) -> list[Split]:
    """For each period that has a past, by their places in time: the samples before it, and its own."""
    order, ranks = np.unique(periods, return_inverse=True)
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
