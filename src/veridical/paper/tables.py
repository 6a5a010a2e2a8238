"""Tables as data: frozen rows of numbers, which formats print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from veridical.evaluation.differences import Difference
from veridical.evaluation.evaluating import SCHEMA
from veridical.metrics.registry import METRICS
from veridical.paper.ensembles import EnsembleName
from veridical.paper.published import Published, published_value

#: How the paper heads its columns, where that differs from the metrics' own titles.
_PAPER_TITLES = {"brier": "MSE", "accuracy": "ACC"}
#: Decimals that the paper prints; what it prints in percent has two.
_DECIMALS = {"nll": 3, "brier": 3}


def column_title(metric: str) -> str:
    """A column's heading, as the paper has it."""
    return _PAPER_TITLES.get(metric, METRICS[metric].title)


def decimals(metric: str) -> int:
    """How many decimals a column has."""
    return _DECIMALS.get(metric, 2)


@dataclass(frozen=True)
class Value:
    """One cell; calibration errors and accuracy are fractions.

    Attributes
    ----------
    mean : float
    std : float or None
        Over random halves.
    best : bool
        Whether no method of its group is better, at the printed precision.
    published : Published or None
        What the paper has in this cell.
    floor : float or None
        What a perfectly calibrated model would get.
    low, high : float or None
        Bootstrap interval.

    Examples
    --------
    >>> from veridical import paper
    >>> paper.table1(paper.open_ensembles(), sources=[2]).rows[0].values["accuracy"].std is None
    True
    """

    mean: float
    std: float | None = None
    best: bool = False
    published: Published | None = None
    floor: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.published is None else self.mean - self.published.mean


@dataclass(frozen=True)
class Row:
    """One method on one ensemble.

    Attributes
    ----------
    name : EnsembleName
    sources : int
    method : str
        As the paper calls it; the mean is always "DE" here and printed as "SE" for snapshot ensembles.
    values : mapping metric -> Value

    Examples
    --------
    >>> from veridical import paper
    >>> row = paper.table1(paper.open_ensembles(), sources=[2]).rows[0]
    >>> row.method, row.sources
    ('DE', 2)
    """

    name: EnsembleName
    sources: int
    method: str
    values: Mapping[str, Value]

    @property
    def group(self) -> tuple[EnsembleName, int]:
        """Rows of one group compete for the best value."""
        return self.name, self.sources

    @property
    def shown_method(self) -> str:
        """The method as tables print it."""
        return self.name.mean_method if self.method == "DE" else self.method


@dataclass(frozen=True)
class PairedDifference(Difference):
    """Two methods on the same samples, by one metric.

    Attributes
    ----------
    metric, a, b : str
        The two methods and what they are compared by.
    difference : float
        a minus b.
    low, high : float
        Its interval, at 95%.
    name : EnsembleName
    sources : int

    Examples
    --------
    >>> from veridical import paper
    >>> options = paper.Extended(n_resamples=20, n_draws=2)
    >>> table = paper.table1(paper.open_ensembles(), sources=[3], extended=options)
    >>> sorted({difference.metric for difference in table.comparisons})[0]
    'accuracy'
    """

    name: EnsembleName
    sources: int


@dataclass(frozen=True)
class Table:
    """A table of the paper, computed anew.

    Attributes
    ----------
    name : str
        "table1" to "table4".
    title : str
    metrics : tuple of str
        Its columns.
    rows : tuple of Row
    settings : mapping
        What decided the numbers: splits, random_state, updates.
    notes : tuple of str
        Sentences to print under it.
    comparisons : tuple of PairedDifference
        Every pair of methods of a group, in extended tables.

    Examples
    --------
    >>> from veridical import paper
    >>> table = paper.table1(paper.open_ensembles([]), sources=[2])
    >>> [row.method for row in table.rows]
    ['DE', 'TDE', 'aTDE']
    """

    name: str
    title: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    comparisons: tuple[PairedDifference, ...] = ()

    def groups(self) -> list[list[Row]]:
        """Rows that belong together, in order."""
        groups: dict[tuple[EnsembleName, int], list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.group, []).append(row)
        return list(groups.values())

    def row(self, method: str, sources: int | None = None) -> Row:
        """The first row of a method, or its first row with so many sources."""
        return next(r for r in self.rows if r.method == method and sources in (None, r.sources))

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; calibration errors and accuracy are fractions."""
        content = asdict(self)
        for row, entry in zip(self.rows, content["rows"], strict=True):
            for metric, value in row.values.items():
                entry["values"][metric]["difference"] = value.difference
        for pair, entry in zip(self.comparisons, content["comparisons"], strict=True):
            entry["better"] = pair.better
        return {"schema": SCHEMA, "type": "table", "unit": "fraction", **content}


def with_values(rows: Iterable[Row], change: Callable[[Row, str, Value], Value]) -> list[Row]:
    """The rows with each value replaced by ``change(row, metric, value)``."""
    return [
        replace(row, values={metric: change(row, metric, value) for metric, value in row.values.items()})
        for row in rows
    ]


def with_published(rows: Iterable[Row], tables: tuple[str, ...], as_paper: Callable[[str], str]) -> list[Row]:
    """The rows with the paper's own figures beside ours, where it has them; ``as_paper`` translates methods."""

    def published(row: Row, metric: str, value: Value) -> Value:
        name = row.name.dataset, row.name.architecture, row.name.ensemble
        return replace(value, published=published_value(*name, row.sources, as_paper(row.method), metric, tables))

    return with_values(rows, published)


def with_best_marked(rows: Iterable[Row]) -> list[Row]:
    """The rows with the best value of each group and metric marked; values that print alike are equally good."""
    listed = list(rows)
    printed: dict[tuple[Any, str], list[float]] = {}
    for row in listed:
        for metric, value in row.values.items():
            printed.setdefault((row.group, metric), []).append(_as_printed(metric, value.mean))
    best = {key: METRICS[key[1]].best(values) for key, values in printed.items()}
    return with_values(
        listed,
        lambda row, metric, value: replace(value, best=_as_printed(metric, value.mean) == best[row.group, metric]),
    )


def _as_printed(metric: str, value: float) -> float:
    return round(METRICS[metric].scaled(value), decimals(metric))
