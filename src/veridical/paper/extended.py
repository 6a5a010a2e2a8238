"""Extended tables: noise floors, intervals, and which differences are real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from veridical.evaluation.differences import Differences
from veridical.paper.tables import PairedDifference, Row, Value, with_values
from veridical.predictions.validation import check_type

_FLOOR_NOTE = "Floor: what perfectly calibrated predictions with these confidences would score."
_PAIRS_NOTE = (
    "A difference is called real where its interval leaves out zero.  Pairs are judged one by one at 95%: of pairs "
    "that are equal but for chance, about one in twenty is called different."
)
BOOTSTRAP_NOTE = f"{_FLOOR_NOTE}  Intervals are 95%, by the bootstrap over samples.  {_PAIRS_NOTE}"
HALVES_NOTE = (
    f"{_FLOOR_NOTE}  Intervals are 95%, from the spread over the random halves, corrected for their overlap.  "
    f"{_PAIRS_NOTE}"
)


@dataclass(frozen=True)
class Extended:
    """How precisely floors and intervals are computed.

    Attributes
    ----------
    n_resamples : int
        Bootstrap resamples of an interval.
    n_draws : int
        Draws of outcomes of a noise floor.
    random_state : int

    Examples
    --------
    >>> from veridical import paper
    >>> paper.Extended(n_resamples=100).n_resamples
    100
    """

    n_resamples: int = 400
    n_draws: int = 40
    random_state: int = 0

    def summary_options(self) -> dict[str, Any]:
        """The options of a summary that has noise floors."""
        return {"floors": True, "n_draws": self.n_draws, "random_state": self.random_state}


def check_extended(extended: Any) -> Extended | None:
    """``extended`` if it is of that class, or None."""
    return None if extended is None else check_type(extended, Extended, "extended", "veridical.paper.Extended")


def with_intervals(rows: Sequence[Row], differences: Differences) -> list[Row]:
    """The rows of one group with their intervals."""

    def with_interval(row: Row, metric: str, value: Value) -> Value:
        low, high = differences.intervals[row.method, metric]
        return replace(value, low=low, high=high)

    return with_values(rows, with_interval)


def pairs_of(rows: Sequence[Row], differences: Differences) -> list[PairedDifference]:
    """All pairs of methods of one group, under the names that its table prints."""
    first = rows[0]
    shown = {row.method: row.shown_method for row in rows}
    return [
        PairedDifference(
            **{**asdict(pair), "a": shown[pair.a], "b": shown[pair.b]}, name=first.name, sources=first.sources
        )
        for pair in differences.pairs
    ]
