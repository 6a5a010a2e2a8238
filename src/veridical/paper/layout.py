"""A table as lines of text cells: the one layout that terminal, Markdown, LaTeX and HTML share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from veridical.metrics.registry import METRICS
from veridical.paper.tables import Row, Table, Value, column_title, decimals


@dataclass(frozen=True)
class Cell:
    """A number as text.

    Attributes
    ----------
    text : str
        Empty where there is no number.
    spread : str
        Standard deviation, or empty.
    best : bool
    """

    text: str = ""
    spread: str = ""
    best: bool = False


@dataclass(frozen=True)
class Line:
    """One line: a method's figures, or those below them (the paper's figures, floors, intervals).

    Attributes
    ----------
    row : Row
    label : str
        The method, or what the figures are.
    cells : tuple of Cell
    is_main : bool
        Whether these are the method's own figures.
    """

    row: Row
    label: str
    cells: tuple[Cell, ...]
    is_main: bool


def number(metric: str, value: float | None, *, signed: bool = False) -> str:
    """A figure as the paper prints it: percent for errors and accuracy, and its number of decimals."""
    if value is None:
        return ""
    if not signed or not math.isfinite(value):
        return METRICS[metric].number(value, decimals(metric))
    text = f"{METRICS[metric].scaled(value):+.{decimals(metric)}f}"
    # A difference that is printed as zero has no sign.
    return text.lstrip("+-") if float(text) == 0 else text


def _own(metric: str, value: Value) -> Cell:
    return Cell(number(metric, value.mean), number(metric, value.std), value.best)


def _published(metric: str, value: Value) -> Cell:
    published = value.published
    return Cell() if published is None else Cell(number(metric, published.mean), number(metric, published.std))


def _interval(metric: str, value: Value) -> Cell:
    if value.low is None or value.high is None:
        return Cell()
    return Cell(f"{number(metric, value.low)} to {number(metric, value.high)}")


_BELOW: tuple[tuple[str, Callable[[str, Value], Cell]], ...] = (
    ("paper", _published),
    ("difference", lambda metric, value: Cell(number(metric, value.difference, signed=True))),
    ("floor", lambda metric, value: Cell(number(metric, value.floor))),
    ("95%", _interval),
)


def lines_of(table: Table, row: Row) -> Iterator[Line]:
    """A row's own figures, then the lines below them."""
    values = [(metric, row.values[metric]) for metric in table.metrics]
    yield Line(row, row.shown_method, tuple(_own(metric, value) for metric, value in values), True)
    for label, make_cell in _BELOW:
        cells = tuple(make_cell(metric, value) for metric, value in values)
        if any(cell.text for cell in cells):
            yield Line(row, label, cells, False)


def headings(table: Table) -> list[tuple[str, str]]:
    """(title, arrow in the direction of better values) of each column."""
    return [(column_title(metric), "↓" if METRICS[metric].lower_is_better else "↑") for metric in table.metrics]


@dataclass(frozen=True)
class Verdict:
    """The methods that a method is really better than.

    Attributes
    ----------
    ensemble : str
    sources : int
    metric : str
        The heading of its column.
    method : str
    beats : tuple of str
    """

    ensemble: str
    sources: int
    metric: str
    method: str
    beats: tuple[str, ...]


def verdicts(table: Table) -> list[Verdict]:
    """Methods that really are better than others, by their paired comparisons."""
    beaten_by: dict[tuple[str, int, str, str], list[str]] = {}
    for pair in table.comparisons:
        if pair.better is not None:
            beaten = pair.b if pair.better == pair.a else pair.a
            beaten_by.setdefault((str(pair.name), pair.sources, pair.metric, pair.better), []).append(beaten)
    return [
        Verdict(ensemble, sources, column_title(metric), method, tuple(beats))
        for (ensemble, sources, metric, method), beats in beaten_by.items()
    ]


def verdict_title(table: Table) -> str:
    """How many differences are real."""
    real = sum(pair.better is not None for pair in table.comparisons)
    return f"Real differences: {real} of {len(table.comparisons)} pairs"
