"""Tables 2 to 4: post-hoc calibration over random halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veridical._parallel import run_blocks
from veridical._progress import Progress, check_progress
from veridical.calibrate import PAPER_SETTING, calibrators
from veridical.evaluation.comparison import run_halves
from veridical.evaluation.differences import differences_over_halves
from veridical.evaluation.methods import Method, resolve_method
from veridical.evaluation.outcomes import Outcome
from veridical.metrics.registry import SUMMARY_METRICS
from veridical.metrics.table import Summary, summary_of
from veridical.paper.ensembles import Ensemble, check_ensembles, check_sources
from veridical.paper.extended import HALVES_NOTE, Extended, check_extended, pairs_of, with_intervals
from veridical.paper.published import published_sources
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published
from veridical.predictions.validation import check_flag, check_integer, check_seed


@dataclass(frozen=True)
class _Layout:
    """Columns and title of a table, and where the paper prints its figures."""

    metrics: tuple[str, ...]
    title: str
    published_in: tuple[str, ...]


_LAYOUTS = {
    "table2": _Layout(("ece", "ece_kde"), "Post-hoc calibration", ("2",)),
    "table3": _Layout(("ece", "ece_kde"), "The four variants of direct optimisation", ("3",)),
    "table4": _Layout(("ks_error",), "KS error of every method", ("4",)),
}
_OPTIMISED = ("opt-hist", "opt-kde", "ptde-hist", "ptde-kde")
_TEMPERATURES_NOTE = (
    "TS and temperature are both temperature scaling: TS by squared error, as the authors of ETS do and the paper "
    "after them, temperature by likelihood."
)


def posthoc_sources(ensemble: Ensemble, sources: Sequence[int] | None) -> list[int]:
    """The numbers that are asked for; else those of the paper, as far as there are so many sources; else all."""
    check_ensembles([ensemble])
    n_sources = ensemble.predictions.n_sources
    name = ensemble.name
    published = published_sources(name.dataset, name.architecture, name.ensemble, ("2", "3", "4"))
    return check_sources(sources, ensemble, [n for n in published if n <= n_sources] or [n_sources])


def _method(label: str, calibrator: str, literal_batch: int | None, **parameters: Any) -> Method:
    if literal_batch is not None and calibrator in _OPTIMISED:
        parameters |= {**PAPER_SETTING, "batch_size": literal_batch}
        if calibrator.startswith("ptde"):
            parameters["hv_scale"] = "raw"
    return replace(resolve_method(calibrator, parameters), name=label, title=label)


def paper_batch(n_samples: int) -> int:
    """The paper's batches: 1,000 of CIFAR's test set of 10,000, and 10,000 of ImageNet's of 50,000."""
    return 10_000 if n_samples >= 50_000 else 1_000


def table_methods(table: str, *, extended: bool = False, literal_batch: int | None = None) -> tuple[Method, ...]:
    """The methods of a table, in the paper's order.

    Parameters
    ----------
    table : {"table2", "table3", "table4"}
    extended : bool
        Also everything else that is registered.
    literal_batch : int, optional
        The paper's own setting of the optimised methods (one batch of so many samples per epoch, 70 and 5 epochs,
        raw HV) instead of this library's.
    """
    baselines = [
        _method("DE", "identity", literal_batch),
        _method("TS", "temperature", literal_batch, loss="mse"),  # the ETS authors' convention, which the paper follows
        _method("ETS", "ets", literal_batch),
        _method("IRM", "irm", literal_batch),
    ]
    optimised = [_method(name, name, literal_batch) for name in _OPTIMISED]
    chosen = {
        "table2": [*baselines, _method("pTDE", "ptde-kde", literal_batch)],
        "table3": optimised,
        "table4": [*baselines, _method("Spline", "spline", literal_batch), *optimised],
    }[table]
    if extended:
        shown = {method.calibrator for method in chosen if not method.parameters or method.calibrator in _OPTIMISED}
        chosen += [_method(name, name, None) for name in calibrators() if name not in shown]
    return tuple(chosen)


def posthoc_tables(
    tables: Sequence[str],
    ensembles: Sequence[Ensemble],
    *,
    sources: Sequence[int] | None = None,
    n_splits: int = 5,
    random_state: int = 0,
    literal: bool = False,
    extended: Extended | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> list[Table]:
    """Several of Tables 2 to 4 from the same fits; the parameters are those of :func:`table2`."""
    ensembles, extended = check_ensembles(ensembles), check_extended(extended)
    check_integer(n_splits, "n_splits", 1)
    check_seed(random_state)
    check_flag(literal, "literal")
    rows: dict[str, list[Row]] = {table: [] for table in tables}
    pairs: dict[str, list[PairedDifference]] = {table: [] for table in tables}
    report = check_progress(progress)
    metrics = [metric for metric in SUMMARY_METRICS if any(metric in _columns(table, extended) for table in tables)]
    for done, ensemble in enumerate(ensembles):
        batch = paper_batch(ensemble.predictions.n_samples) if literal else None
        methods = {table: table_methods(table, literal_batch=batch, extended=extended is not None) for table in tables}
        distinct = {_key(method): method for chosen in methods.values() for method in chosen}
        for n in posthoc_sources(ensemble, sources):
            what = f"{ensemble.name}, {n} sources: {len(distinct)} methods on {n_splits} random halves"
            report(done, len(ensembles), what)
            splits = run_halves(ensemble.engine(n, n_threads), list(distinct.values()), n_splits, random_state)
            summaries = _summarise(splits, metrics, extended, n_threads)
            by_key = dict(zip(distinct, zip(*summaries, strict=True), strict=True))
            for table, chosen in methods.items():
                by_method = {method.name: by_key[_key(method)] for method in chosen}
                group, compared = _group(ensemble, n, by_method, _columns(table, extended), extended)
                rows[table] += group
                pairs[table] += compared
    settings = {"splits": n_splits, "random_state": random_state, "setting": "paper" if literal else "library"}
    return [
        Table(
            table,
            f"{_LAYOUTS[table].title}: mean and standard deviation over {n_splits} random halves",
            _columns(table, extended),
            tuple(with_best_marked(with_published(rows[table], _LAYOUTS[table].published_in, lambda method: method))),
            settings,
            _notes(rows[table], extended),
            tuple(pairs[table]),
        )
        for table in tables
    ]


def _key(method: Method) -> tuple[str | None, str]:
    """Equal for methods that compute the same under different names."""
    return method.calibrator, repr(sorted(method.parameters.items()))


def _columns(table: str, extended: Extended | None) -> tuple[str, ...]:
    return tuple(SUMMARY_METRICS) if extended is not None and table == "table2" else _LAYOUTS[table].metrics


def _summarise(
    splits: list[list[Outcome]], metrics: Sequence[str], extended: Extended | None, n_threads: int | None
) -> list[list[Summary]]:
    """Figures of the confidences that methods state, one list per split."""
    options: dict[str, Any] = {"floors": False} if extended is None else extended.summary_options()
    samples = [outcome.stated for split in splits for outcome in split]
    flat = run_blocks(lambda sample: summary_of(sample, metrics=metrics, **options), samples, n_threads)
    n_methods = len(splits[0])
    return [flat[first : first + n_methods] for first in range(0, len(flat), n_methods)]


def _group(
    ensemble: Ensemble,
    n_sources: int,
    summaries: Mapping[str, Sequence[Summary]],
    metrics: Sequence[str],
    extended: Extended | None,
) -> tuple[list[Row], list[PairedDifference]]:
    """One row per method from its summaries, one per split; in extended tables all pairs of methods."""
    values = {
        method: {metric: [summary[metric].value for summary in per_split] for metric in metrics}
        for method, per_split in summaries.items()
    }

    def over_splits(method: str, metric: str) -> Value:
        return value_over_splits(values[method][metric], [summary[metric].floor for summary in summaries[method]])

    rows = [
        Row(ensemble.name, n_sources, method, {metric: over_splits(method, metric) for metric in metrics})
        for method in values
    ]
    if extended is None or len(next(iter(summaries.values()))) == 1:
        return rows, []
    differences = differences_over_halves(values)
    return with_intervals(rows, differences), pairs_of(rows, differences)


def value_over_splits(drawn: Sequence[float], floors: Sequence[float | None]) -> Value:
    """Mean and standard deviation over the splits (with n - 1; none of infinite figures), and the mean floor."""
    has_spread = len(drawn) > 1 and np.isfinite(drawn).all()
    known = [floor for floor in floors if floor is not None]
    return Value(
        float(np.mean(drawn)),
        float(np.std(drawn, ddof=1)) if has_spread else None,
        floor=float(np.mean(known)) if known else None,
    )


def _notes(rows: Sequence[Row], extended: Extended | None) -> tuple[str, ...]:
    """The sentences under a table of these rows."""
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
    random_state : int
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
