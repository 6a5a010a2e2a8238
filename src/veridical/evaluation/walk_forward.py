"""Walk-forward evaluation: methods are fitted on the past and scored on the next period."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from veridical._progress import Progress
from veridical.errors import ParameterError, ShapeError, shown
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.methods import Method
from veridical.evaluation.outcomes import Indices, Outcome
from veridical.metrics.sample import Sample
from veridical.predictions import Predictions
from veridical.predictions.arrays import as_array
from veridical.predictions.sample_ids import check_groups
from veridical.predictions.validation import Array, check_choice

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


PeriodOrder = Literal["value", "appearance"]
PERIOD_ORDERS: tuple[PeriodOrder, ...] = ("value", "appearance")

_DAY = r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})"
_TIME = r"[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d+))?"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?"
#: Periods whose order an error lists.
_MOST_LISTED = 6


def _day(text: str) -> date:
    return date(*map(int, re.split("[-/]", text)))


def _instant(match: re.Match[str]) -> tuple[datetime, Decimal]:
    """A day or an instant, in UTC where it has a time zone; the fraction of its second is exact."""
    year, month, day, time, fraction, *zone = match.groups()
    clock = time or "00:00"
    instant = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}T{clock}{''.join(zone)}")
    return (instant.astimezone(UTC) if zone else instant), Decimal(f"0.{fraction or 0}")


def _month(match: re.Match[str]) -> date:
    return date(int(match[1]), int(match[2]), 1)


def _week(match: re.Match[str]) -> date:
    return date.fromisocalendar(int(match[1]), int(match[2]), 1)


#: Forms of a period and what they are ordered by; all periods must have one form.  Forms whose order depends on a
#: country or a language (03/01/2024, Mar) are not among them.
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Any]], ...] = tuple(
    (re.compile(pattern, re.ASCII), key)
    for pattern, key in (
        (_NUMBER, lambda match: Decimal(match[0])),
        (f"{_DAY}(?:{_TIME})?", _instant),
        (f"{_DAY}{_TIME} ?{_ZONE}", _instant),
        (f"({_DAY})/({_DAY})", lambda match: (_day(match[1]), _day(match[5]))),  # a period of pandas, as its text
        (r"(\d{4})[-/](\d{1,2})", _month),
        (r"(\d{4})[- ]?Q([1-4])", lambda match: (int(match[1]), int(match[2]))),
        (r"Q([1-4])[- /]?(\d{4})", lambda match: (int(match[2]), int(match[1]))),
        (r"(\d{4})[- ]?W(\d{1,2})", _week),
    )
)
#: One word and a number, as in "week 9"; the word must be the same in all periods.
_NUMBERED = re.compile(r"([A-Za-z][A-Za-z _-]*)(\d+)", re.ASCII)


def ranks_of_periods(periods: Array, order: PeriodOrder) -> Indices:
    """(N,) the place of each sample's period in time, from 0.

    By value these are numbers, dates, or texts of one form: ISO dates and times, months (2024-01), weeks (2024-W05),
    quarters (2024Q1), numbers, or one word and a number (week 9).
    """
    if periods.dtype.kind in "iufM":
        missing = np.flatnonzero(periods != periods)  # NaN and NaT
        if missing.size:
            raise ParameterError(f"walk_forward has no period for sample {missing[0]}; give one per sample.")
    else:
        checked = check_groups(periods, periods.shape)
        assert checked is not None
        periods = checked
    different, first, period_of = np.unique(periods, return_index=True, return_inverse=True)
    keys = different.tolist()
    if order == "appearance":
        keys = first.tolist()
    elif different.dtype.kind == "U":
        keys = _keys_of(keys)
        if keys is None:
            raise _without_order(different.tolist(), first)
    rank_of = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.asarray([rank_of[key] for key in keys], np.intp)[period_of.reshape(-1)]


def _keys_of(texts: list[str]) -> list[Any] | None:
    """Sort keys of the texts, or None if they have no form in common."""
    for pattern, key in _FORMS:
        matches = [pattern.fullmatch(text.strip()) for text in texts]
        if all(matches):
            try:
                return [key(match) for match in matches if match is not None]
            except (ValueError, OverflowError):  # there is no 30th of February
                return None
    numbered = [_NUMBERED.fullmatch(text.strip()) for text in texts]
    if all(numbered) and len({match[1] for match in numbered if match is not None}) == 1:
        return [Decimal(match[2]) for match in numbered if match is not None]
    return None


def _without_order(texts: list[str], first: Indices) -> ParameterError:
    """The error for periods that are ordered in no way that is known; texts are in alphabetical order."""
    appearing = [texts[place] for place in np.argsort(first, kind="stable")]
    by_text, by_appearance = (
        ", ".join([shown(text)[1:-1] for text in listed[:_MOST_LISTED]] + ["..."] * (len(listed) > _MOST_LISTED))
        for listed in (texts, appearing)
    )
    return ParameterError(
        f"walk_forward: the order in time of the periods is not known (as texts: {by_text}; as they first appear: "
        f'{by_appearance}). Pass period_order="appearance" for the latter, or write '
        "periods of one form: numbers, 2024-01-31, 2024-01, 2024-W05 or 2024Q1."
    )
