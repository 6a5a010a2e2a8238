"""Everything at once: all tables and figures of some ensembles, and a page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from veridical._atomic import storage_errors, write_atomically
from veridical._outputs import check_outputs, check_report_target
from veridical._progress import Progress, no_progress
from veridical.paper.extended import Extended
from veridical.paper.figure_data import (
    BinsBeforeAfter,
    DisagreementByScore,
    bins_before_after,
    disagreement_by_score,
)
from veridical.paper.figures import FIGURE_FORMATS, draw_figure2, draw_figure3, draw_figure_a, figure_bytes
from veridical.paper.formats import FORMATS, SUFFIXES
from veridical.paper.inputs import Ensemble, open_ensembles
from veridical.paper.page import render_page
from veridical.paper.posthoc import posthoc_tables
from veridical.paper.resume import FinishedParts, identity_of
from veridical.paper.sweep import table1
from veridical.paper.tables import Table, joined
from veridical.predictions.validation import Kind

_POSTHOC = ("table2", "table3", "table4")
_FIGURES = ("figure2", "figure3", "figureA")
#: The number of updates that the authors' program makes.
AUTHORS_UPDATES = 6


@dataclass(frozen=True)
class Settings:
    """What decides the numbers of a whole run.

    Attributes
    ----------
    sources : tuple of int, or None
        For Table 1 and Figure 2; the others follow the paper, or use as many of them as there are sources.
    updates : int or None
        Rows of truth discovery with exactly so many updates, beside the paper's stopping rule.
    n_splits, seed : int
    literal : bool
        The paper's own setting of the optimised methods.
    extended : Extended or None
    """

    sources: tuple[int, ...] | None = None
    updates: int | None = AUTHORS_UPDATES
    n_splits: int = 5
    seed: int = 0
    literal: bool = False
    extended: Extended | None = None


def reproduce_all(
    paths: Sequence[str | Path] = (),
    out: str | Path = "reproduction",
    *,
    labels: Sequence[str | Path] = (),
    kind: Kind | None = None,
    sources_axis: int | None = None,
    settings: Settings | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """All tables in all formats, all figures, and an ``index.html`` that shows them.

    Finished steps are kept in the directory until the run is complete: an interrupted run, started again with the
    same arguments, continues where it stopped, with the same result.

    Parameters
    ----------
    paths, labels, kind, sources_axis
        As in :func:`veridical.paper.open_ensembles`; the shipped ensemble where there are no paths.
    out : path
        A directory; made where it does not exist.
    settings : Settings, optional
    n_threads : int, optional
        Results do not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step and at the end.

    Returns
    -------
    Path
        Of the page.
    """
    settings, directory = settings or Settings(), Path(out)
    ensembles = open_ensembles(paths, labels=labels, kind=kind, sources_axis=sources_axis)
    check_outputs(_outputs_in(directory), [*labels, *(file for it in ensembles for file in it.predictions.files)])
    page = check_report_target(directory / "index.html")
    circumstances = {
        "data": [identity_of(path) for path in (*paths, *labels)],
        "reading": [kind, sources_axis],
        "settings": asdict(settings),
    }
    with storage_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    parts = FinishedParts(directory, circumstances)
    report = progress or no_progress
    steps = [(k, *step) for k, ensemble in enumerate(ensembles) for step in _steps(ensemble, settings, n_threads)]
    total = len(steps) + 1
    results: dict[str, list[Any]] = {}
    for done, (k, what, compute) in enumerate(steps):
        before = " (done before)" if parts.has([k, what]) else ""
        report(done, total, f"{ensembles[k].name}: {what}{before}")
        results.setdefault(what, []).append(parts.get([k, what], compute))
    report(len(steps), total, "write tables and draw figures")
    tables = _write_tables(directory, results)
    _write_figures(directory, tables[0], results)
    write_atomically(page, render_page(ensembles, tables, asdict(settings)).encode())
    parts.discard()
    report(total, total, "done")
    return page


def _outputs_in(directory: Path) -> dict[str, Path]:
    """Every file that a run writes."""
    tables = (f"{name}{suffix}" for name in ("table1", *_POSTHOC) for suffix in SUFFIXES.values())
    figures = (f"{name}.{form}" for name in _FIGURES for form in FIGURE_FORMATS)
    return {f"the output {name}:": directory / name for name in (*tables, *figures, "index.html")}


def _steps(
    ensemble: Ensemble, settings: Settings, n_threads: int | None
) -> list[tuple[str, Callable[[], list[dict[str, Any]]]]]:
    """What is computed of an ensemble, each step ready for JSON."""

    def sweep() -> list[dict[str, Any]]:
        table = table1(
            [ensemble],
            sources=settings.sources,
            updates=settings.updates,
            extended=settings.extended,
            n_threads=n_threads,
        )
        return [table.to_dict()]

    def posthoc() -> list[dict[str, Any]]:
        tables = posthoc_tables(
            _POSTHOC,
            [ensemble],
            n_splits=settings.n_splits,
            seed=settings.seed,
            literal=settings.literal,
            extended=settings.extended,
            n_threads=n_threads,
        )
        return [table.to_dict() for table in tables]

    def bins() -> list[dict[str, Any]]:
        return [panel.to_dict() for panel in bins_before_after(ensemble, seed=settings.seed, n_threads=n_threads)]

    def disagreement() -> list[dict[str, Any]]:
        return [panel.to_dict() for panel in disagreement_by_score(ensemble, n_threads=n_threads)]

    return [
        ("DE, TDE and aTDE by number of sources", sweep),
        ("post-hoc calibration on random halves", posthoc),
        ("bins before and after", bins),
        ("HV against winning score", disagreement),
    ]


def _write_tables(directory: Path, results: dict[str, list[Any]]) -> list[Table]:
    """Tables 1 to 4 in every format."""
    swept, posthoc = list(results.values())[:2]
    by_table = list(zip(*posthoc, strict=True))
    tables = [
        joined([Table.from_dict(stored) for stored in group]) for group in ([stored for (stored,) in swept], *by_table)
    ]
    for table in tables:
        for form, write in FORMATS.items():
            write_atomically(directory / f"{table.name}{SUFFIXES[form]}", write(table).encode())
    return tables


def _write_figures(directory: Path, sweep: Table, results: dict[str, list[Any]]) -> None:
    bins, disagreement = list(results.values())[2:]
    figures = (
        draw_figure2(sweep),
        draw_figure3([BinsBeforeAfter.from_dict(panel) for panels in bins for panel in panels]),
        draw_figure_a([DisagreementByScore.from_dict(panel) for panels in disagreement for panel in panels]),
    )
    for name, figure in zip(_FIGURES, figures, strict=True):
        for form in FIGURE_FORMATS:
            write_atomically(directory / f"{name}.{form}", figure_bytes(figure, form))
