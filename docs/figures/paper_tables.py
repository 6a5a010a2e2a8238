"""The paper's tables beside ours: its published numbers, and the same protocol on the shipped ensemble."""

from __future__ import annotations

from typing import Any

import veridical as vd
from veridical import paper

METHODS_1, METHODS_2 = ("DE", "TDE", "aTDE"), ("DE", "TS", "ETS", "IRM", "pTDE")


def cell(mean: float, std: float | None) -> list[float | None]:
    """Percent, two digits, as both tables print them."""
    return [round(100 * mean, 2), None if std is None else round(100 * std, 2)]


def ours(table: paper.Table, methods: tuple[str, ...], metric: str) -> list[list[Any]]:
    """Rows (sources, values by method) of one of our tables."""
    rows: dict[int, dict[str, list[float | None]]] = {}
    for row in table.rows:
        value = row.values[metric]
        rows.setdefault(row.sources, {})[row.method] = cell(value.mean, value.std)
    return [[sources, [values[method] for method in methods]] for sources, values in sorted(rows.items())]


def published(number: str, methods: tuple[str, ...], metric: str) -> list[list[Any]]:
    """Rows (ensemble, sources, values by method) of one of the paper's tables."""
    rows = []
    for group in paper.published_groups():
        if group.table == number and metric in group.values and all(m in group.values[metric] for m in methods):
            values = [cell(group.values[metric][m].mean, group.values[metric][m].std) for m in methods]
            rows.append([f"{group.dataset}, {group.architecture}, {group.ensemble}", group.sources, values])
    return rows


def compute() -> dict[str, Any]:
    """ECE in Tables 1 and 2."""
    ensembles = paper.open_ensembles([])
    table1 = paper.table1(ensembles, sources=[10, 20])
    table2 = paper.table2(ensembles)
    assert vd.load_demo().n_sources == 20
    return {
        "ours_1": ours(table1, METHODS_1, "ece"),
        "paper_1": published("1", METHODS_1, "ece"),
        "ours_2": ours(table2, METHODS_2, "ece"),
        "paper_2": published("2", METHODS_2, "ece"),
    }


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """Both tables."""
    return {f"-{k}": _table(numbers, k, methods) for k, methods in ((1, METHODS_1), (2, METHODS_2))}


def _table(numbers: dict[str, Any], number: int, methods: tuple[str, ...]) -> str:
    lines = ["| ensemble | S | " + " | ".join(methods) + " |", "|---|---:|" + "---:|" * len(methods)]
    shipped = [["**here:** CIFAR10, ResNet8, deep", *row] for row in numbers[f"ours_{number}"]]
    for name, sources, values in [*shipped, *numbers[f"paper_{number}"]]:
        cells = [f"{mean:.2f}" + ("" if std is None else f" ± {std:.2f}") for mean, std in values]
        lines.append(f"| {name} | {sources} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
