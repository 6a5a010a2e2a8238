"""Tables as data: frozen rows of numbers, which formats only print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from veridical.metrics.registry import METRICS
from veridical.paper.names import EnsembleName
from veridical.paper.published import Published, published_value

#: How the paper heads its columns, where that differs from the metrics' own titles.
_PAPER_TITLES = {"brier": "MSE", "accuracy": "ACC"}
#: Decimals that the paper prints; what it prints in percent has two.
_DECIMALS = {"nll": 3, "brier": 3}
#: Methods that do the same by other ways differ by what is lost in adding up (some 1e-14 of figures of up to 100), on
#: every resample alike; no figure is ever printed with so many digits that this could be a difference.
_ROUNDING = 1e-9


def column_title(metric: str) -> str:
    """A column's heading, as the paper has it."""
    return _PAPER_TITLES.get(metric, METRICS[metric].title)


def decimals(metric: str) -> int:
    """How many decimals a column has."""
    return _DECIMALS.get(metric, 2)


def in_paper_units(metric: str, value: float) -> float:
    """A metric's value as tables print it: percent where the paper does."""
    return 100 * value if METRICS[metric].in_percent else value


def is_better(metric: str, a: float, b: float) -> bool:
    """Whether ``a`` is a better value than ``b``."""
    return a < b if METRICS[metric].lower_is_better else a > b


@dataclass(frozen=True)
class Value:
    """One cell, in the paper's units.

    Attributes
    ----------
    mean : float
    std : float or None
        Over random halves.
    best : bool
        Whether no other method of its group is better, at the printed precision.
    published : Published or None
        What the paper has in this cell.
    floor : float or None
        What a perfectly calibrated model would get.
    low, high : float or None
        Bootstrap interval.
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
class PairedDifference:
    """Two methods on the same samples, by one metric.

    Attributes
    ----------
    name : EnsembleName
    sources : int
    metric, a, b : str
    difference : float
        a minus b, in the paper's units.
    low, high : float
        Its 95% interval.
    """

    name: EnsembleName
    sources: int
    metric: str
    a: str
    b: str
    difference: float
    low: float
    high: float

    @property
    def better(self) -> str | None:
        """The method that is really better, or None where the interval holds zero, up to rounding, or is undefined."""
        if self.low > _ROUNDING or self.high < -_ROUNDING:
            return self.a if is_better(self.metric, self.difference, 0.0) else self.b
        return None


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
        What decided the numbers: splits, seed, updates.
    notes : tuple of str
        Sentences to print under it.
    comparisons : tuple of PairedDifference
        Each pair of methods of a group, where asked for.
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
        found: dict[tuple[EnsembleName, int], list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.group, []).append(row)
        return list(found.values())

    def row(self, method: str, sources: int | None = None) -> Row:
        """The first row of a method, with so many sources where given."""
        return next(r for r in self.rows if r.method == method and sources in (None, r.sources))

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        stored = asdict(self)
        for row, entry in zip(self.rows, stored["rows"], strict=True):
            for metric, value in row.values.items():
                entry["values"][metric]["difference"] = value.difference
        for pair, entry in zip(self.comparisons, stored["comparisons"], strict=True):
            entry["better"] = pair.better
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Table:
        """The table that :meth:`to_dict` wrote."""
        rows = tuple(
            Row(
                EnsembleName(**entry["name"]),
                entry["sources"],
                entry["method"],
                {metric: _stored_value(value) for metric, value in entry["values"].items()},
            )
            for entry in stored["rows"]
        )
        return cls(
            stored["name"],
            stored["title"],
            tuple(stored["metrics"]),
            rows,
            stored["settings"],
            tuple(stored["notes"]),
            tuple(_stored_pair(entry) for entry in stored["comparisons"]),
        )


def joined(tables: Sequence[Table]) -> Table:
    """The same table of several ensembles as one."""
    return replace(
        tables[0],
        rows=tuple(row for table in tables for row in table.rows),
        comparisons=tuple(pair for table in tables for pair in table.comparisons),
    )


def _stored_value(entry: Mapping[str, Any]) -> Value:
    figures = {key: value for key, value in entry.items() if key not in ("difference", "published")}
    known = entry["published"]
    return Value(**figures, published=None if known is None else Published(**known))


def _stored_pair(entry: Mapping[str, Any]) -> PairedDifference:
    figures = {key: value for key, value in entry.items() if key not in ("name", "better")}
    return PairedDifference(EnsembleName(**entry["name"]), **figures)


def with_published(rows: Iterable[Row], tables: tuple[str, ...], as_paper: Callable[[str], str]) -> list[Row]:
    """The rows with the paper's own figures beside ours, where it has them; ``as_paper`` translates methods."""
    return [
        replace(
            row,
            values={
                metric: replace(
                    value,
                    published=published_value(
                        row.name.dataset,
                        row.name.architecture,
                        row.name.ensemble,
                        row.sources,
                        as_paper(row.method),
                        metric,
                        tables,
                    ),
                )
                for metric, value in row.values.items()
            },
        )
        for row in rows
    ]


def with_best_marked(rows: Iterable[Row]) -> list[Row]:
    """The rows with the best value of each group and metric marked; values that print alike are equally good."""
    listed = list(rows)
    best: dict[tuple[Any, str], float] = {}
    for row in listed:
        for metric, value in row.values.items():
            shown = round(value.mean, decimals(metric))
            key = (row.group, metric)
            if key not in best or is_better(metric, shown, best[key]):
                best[key] = shown
    return [
        replace(
            row,
            values={
                metric: replace(value, best=round(value.mean, decimals(metric)) == best[row.group, metric])
                for metric, value in row.values.items()
            },
        )
        for row in listed
    ]
