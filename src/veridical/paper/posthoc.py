"""Tables 2 to 4: post-hoc calibration over random halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical._progress import Progress, no_progress
from veridical.paper.extended import HALVES_NOTE, Extended, judge_by_halves
from veridical.paper.halves import Halves
from veridical.paper.inputs import Ensemble, check_sources
from veridical.paper.methods import Method, paper_batch, table_methods
from veridical.paper.published import published_sources
from veridical.paper.scores import COLUMNS, Scores
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published

#: Table -> what it measures; its rows' titles; where the paper's figures for it stand.
_TABLES = {
    "table2": (("ece", "ece_kde"), "Post-hoc calibration", ("2",)),
    "table3": (("ece", "ece_kde"), "The four variants of direct optimisation", ("3",)),
    "table4": (("ks_error",), "KS error of every method", ("4",)),
}
_TEMPERATURES_NOTE = (
    "TS and temperature are both temperature scaling: TS by squared error, as the authors of ETS do and the paper "
    "after them, temperature by likelihood."
)


def posthoc_sources(ensemble: Ensemble, sources: Sequence[int] | None) -> list[int]:
    """As asked; else those the paper uses for this ensemble, as far as they are there; else all."""
    there = ensemble.predictions.n_sources
    if sources:
        return check_sources(sources, ensemble)
    name = ensemble.name
    known = published_sources(name.dataset, name.architecture, name.ensemble, ("2", "3", "4"))
    return [n for n in known if n <= there] or [there]


def posthoc_rows(
    ensemble: Ensemble, n_sources: int, methods: Sequence[Method], results: list[list[Scores]], metrics: Sequence[str]
) -> list[Row]:
    """One row per method: mean and standard deviation (with n - 1, none of infinite figures) over the splits."""
    rows = []
    for j, method in enumerate(methods):
        measured = [split[j].metrics(metrics) for split in results]
        values = {}
        for metric in metrics:
            drawn = np.array([figures[metric] for figures in measured])
            has_spread = len(drawn) > 1 and np.isfinite(drawn).all()
            values[metric] = Value(float(drawn.mean()), float(drawn.std(ddof=1)) if has_spread else None)
        rows.append(Row(ensemble.name, n_sources, method.label, values))
    return rows


def posthoc_tables(
    tables: Sequence[str],
    ensembles: Sequence[Ensemble],
    *,
    sources: Sequence[int] | None = None,
    n_splits: int = 5,
    seed: int = 0,
    literal: bool = False,
    extended: Extended | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[Table]:
    """Several of Tables 2 to 4 from the same fits; the parameters are those of :func:`table2`."""
    rows: dict[str, list[Row]] = {table: [] for table in tables}
    pairs: dict[str, list[PairedDifference]] = {table: [] for table in tables}
    report = progress or no_progress
    for done, ensemble in enumerate(ensembles):
        batch = paper_batch(ensemble.predictions.n_samples) if literal else None
        wanted = {table: table_methods(table, literal_batch=batch, extended=extended is not None) for table in tables}
        fitted = {method.key: method for methods in wanted.values() for method in methods}
        for n in posthoc_sources(ensemble, sources):
            what = f"{ensemble.name}, {n} sources: {len(fitted)} methods on {n_splits} random halves"
            report(done, len(ensembles), what)
            splits = Halves(ensemble.first(n), n_splits, seed).run(list(fitted.values()), n_threads)
            by_key = [dict(zip(fitted, scores, strict=True)) for scores in splits]
            for table, methods in wanted.items():
                results = [[scores[method.key] for method in methods] for scores in by_key]
                found = posthoc_rows(ensemble, n, methods, results, _columns(table, extended))
                if extended is not None:
                    found, compared = judge_by_halves(found, results, extended)
                    pairs[table] += compared
                rows[table] += found
    settings = {"splits": n_splits, "seed": seed, "setting": "paper" if literal else "library"}
    return [
        Table(
            table,
            f"{_TABLES[table][1]}: mean and standard deviation over {n_splits} random halves",
            _columns(table, extended),
            tuple(with_best_marked(with_published(rows[table], _TABLES[table][2], lambda method: method))),
            settings,
            _notes(rows[table], extended),
            tuple(pairs[table]),
        )
        for table in tables
    ]


def _columns(table: str, extended: Extended | None) -> tuple[str, ...]:
    return COLUMNS if extended is not None and table == "table2" else _TABLES[table][0]


def _notes(rows: Sequence[Row], extended: Extended | None) -> tuple[str, ...]:
    """What has to be said under a table of these rows."""
    two_temperatures = {"TS", "temperature"} <= {row.method for row in rows}
    return (() if extended is None else (HALVES_NOTE,)) + ((_TEMPERATURES_NOTE,) if two_temperatures else ())


def table2(ensembles: Sequence[Ensemble], **options: Any) -> Table:
    """Table 2: DE, TS, ETS, IRM and pTDE, fitted on one random half and evaluated on the other.

    Parameters
    ----------
    ensembles : sequence of Ensemble
        From :func:`veridical.paper.open_ensembles`.
    sources : sequence of int, optional
        How many of the first sources to use: by default those of the paper where it has this ensemble, else all.
    n_splits : int
        Random halves; the paper makes 5.
    seed : int
        Decides the halves, and whatever is random in a calibrator.
    literal : bool
        The optimised methods in the paper's own setting (see :data:`veridical.calibrate.PAPER_SETTING`, with raw HV)
        instead of this library's.
    extended : Extended, optional
        Add all registered calibrators, all of the paper's metrics, noise floors, intervals and paired comparisons.
    n_threads : int, optional
        Results do not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each ensemble and number of sources.

    Returns
    -------
    Table
        Means and standard deviations (with n - 1) over the halves.

    References
    ----------
    Ma, Huang, Xian, Gao, Xu: Improving Uncertainty Calibration of Deep Neural Networks via Truth Discovery and
    Geometric Optimization.  UAI 2021.  Section 5.2.

    Examples
    --------
    >>> from veridical import paper
    >>> table = paper.table2(paper.open_ensembles(), sources=[5], n_splits=2)
    >>> table.row("pTDE").values["ece"].mean < table.row("DE").values["ece"].mean
    True
    """
    return posthoc_tables(["table2"], ensembles, **options)[0]


def table3(ensembles: Sequence[Ensemble], **options: Any) -> Table:
    """Table 3: opt-hist, opt-kde, ptde-hist and ptde-kde.

    Parameters, results and reference are those of :func:`table2`.

    Examples
    --------
    >>> from veridical import paper
    >>> table = paper.table3(paper.open_ensembles(), sources=[5], n_splits=1)
    >>> [row.method for row in table.rows]
    ['opt-hist', 'opt-kde', 'ptde-hist', 'ptde-kde']
    """
    return posthoc_tables(["table3"], ensembles, **options)[0]


def table4(ensembles: Sequence[Ensemble], **options: Any) -> Table:
    """Table 4: the KS error of every method, Spline included.

    Parameters, results and reference are those of :func:`table2`.

    Examples
    --------
    >>> from veridical import paper
    >>> table = paper.table4(paper.open_ensembles(), sources=[5], n_splits=1)
    >>> table.metrics, len(table.rows)
    (('ks_error',), 9)
    """
    return posthoc_tables(["table4"], ensembles, **options)[0]
