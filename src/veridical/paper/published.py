"""The numbers that the paper prints, all tables of them, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from veridical.metrics.registry import METRICS

_FILE = "published.json"
#: Where a figure stands in several tables, the one with more columns comes first.
_ORDER = ("A1", "A2", "A3", "A4", "1", "2", "3", "4")


@dataclass(frozen=True)
class Published:
    """One printed figure.

    Attributes
    ----------
    mean : float
        Calibration errors and accuracy as fractions; the paper prints them in percent.
    std : float or None
        Standard deviation over the five random halves, where the paper gives it.
    table : str
        The table it stands in: "1" to "4", "A1" to "A4".

    Examples
    --------
    >>> from veridical import paper
    >>> paper.published_groups()[0].values["ece"]["DE"].mean
    0.025
    """

    mean: float
    std: float | None
    table: str


@dataclass(frozen=True)
class PublishedGroup:
    """The methods that the paper compares on one ensemble, with which of them it marks as best.

    Attributes
    ----------
    table, dataset, architecture, ensemble : str
        ``ensemble`` is "deep" or "snapshot".
    sources : int
    values : mapping metric -> mapping method -> Published
    best : mapping metric -> tuple of methods
        What the paper prints in bold (Tables 1 to 4) or underlined (A1 to A4).
    best_other : mapping metric -> tuple of methods
        What Table 2 underlines: the best without the paper's own method.

    Examples
    --------
    >>> from veridical import paper
    >>> paper.published_groups()[0].table
    '1'
    """

    table: str
    dataset: str
    architecture: str
    ensemble: str
    sources: int
    values: Mapping[str, Mapping[str, Published]]
    best: Mapping[str, tuple[str, ...]]
    best_other: Mapping[str, tuple[str, ...]]


@cache
def published_groups() -> tuple[PublishedGroup, ...]:
    """Every comparison that the paper's tables make, in the order of the tables.

    Returns
    -------
    tuple of PublishedGroup

    References
    ----------
    Ma, Huang, Xian, Gao, Xu: Improving Uncertainty Calibration of Deep Neural Networks via Truth Discovery and
    Geometric Optimization.  UAI 2021.

    Examples
    --------
    >>> from veridical.paper import published_groups
    >>> first = published_groups()[0]
    >>> first.dataset, first.architecture, first.sources, first.values["ece"]["aTDE"].mean
    ('CIFAR100', 'PreResNet110', 50, 0.0192)
    """
    stored = json.loads(files("veridical.paper").joinpath(_FILE).read_text(encoding="utf-8"))
    return tuple(_group(entry) for entry in stored["groups"])


def _group(entry: dict[str, Any]) -> PublishedGroup:
    table, methods, metrics = entry["table"], entry["methods"], entry["metrics"]
    values = {}
    for metric, figures in metrics.items():
        spread = figures.get("std", [None] * len(methods))
        columns = zip(methods, figures["mean"], spread, strict=True)
        values[metric] = {
            method: Published(_as_fraction(metric, mean), None if std is None else _as_fraction(metric, std), table)
            for method, mean, std in columns
        }
    return PublishedGroup(
        table,
        entry["dataset"],
        entry["architecture"],
        entry["ensemble"],
        entry["sources"],
        values,
        {metric: tuple(figures["best"]) for metric, figures in metrics.items()},
        {metric: tuple(figures["best_other"]) for metric, figures in metrics.items() if "best_other" in figures},
    )


def _as_fraction(metric: str, printed: float) -> float:
    return printed / 100 if METRICS[metric].in_percent else printed


@cache
def _by_ensemble() -> dict[tuple[str, str, str], list[PublishedGroup]]:
    groups: dict[tuple[str, str, str], list[PublishedGroup]] = {}
    for group in sorted(published_groups(), key=lambda group: _ORDER.index(group.table)):
        groups.setdefault((group.dataset, group.architecture, group.ensemble), []).append(group)
    return groups


def published_sources(dataset: str, architecture: str, ensemble: str, tables: tuple[str, ...]) -> list[int]:
    """The numbers of sources that the paper uses for an ensemble in some of its tables, ascending."""
    groups = _by_ensemble().get((dataset, architecture, ensemble), ())
    return sorted({group.sources for group in groups if group.table in tables})


def published_value(
    dataset: str, architecture: str, ensemble: str, sources: int, method: str, metric: str, tables: tuple[str, ...]
) -> Published | None:
    """The figure that the paper prints for this, or None."""
    for group in _by_ensemble().get((dataset, architecture, ensemble), ()):
        if group.table in tables and group.sources == sources and method in group.values.get(metric, {}):
            return group.values[metric][method]
    return None
