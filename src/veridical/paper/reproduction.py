"""All tables and figures of some ensembles, and a page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from markupsafe import Markup

from veridical._atomic import as_path, storage_errors, write_atomically
from veridical._outputs import check_outputs, check_report_target
from veridical._progress import Progress, check_progress
from veridical._tables import html_table
from veridical._templates import html_template
from veridical._version import __version__
from veridical.paper.by_sources import table1
from veridical.paper.ensembles import Ensemble, open_ensembles
from veridical.paper.extended import Extended
from veridical.paper.figures import draw_figure2, draw_figure3, draw_figure_a, figure_bytes
from veridical.paper.formats import FORMATS, SUFFIXES, as_table, verdict_table
from veridical.paper.panels import bins_before_after, disagreement_by_score
from veridical.paper.posthoc import posthoc_tables
from veridical.paper.tables import Table
from veridical.plots.style import FIGURE_FORMATS
from veridical.predictions.validation import Kind, check_type

Panel = TypeVar("Panel")

_POSTHOC = ("table2", "table3", "table4")
#: File -> its title and caption on the page.
_FIGURES = {
    "figure2": ("Figure 2", "Each metric by number of sources.  Crosses are the paper's own figures."),
    "figure3": (
        "Figure 3",
        "Accuracy in bins of confidence on an evaluation half, before and after calibration; colours count samples.",
    ),
    "figureA": (
        "Figures A1 to A3",
        "The sources' disagreement (HV) against the confidence, and, where the confidence is the same, among right and "
        "wrong predictions.",
    ),
}
#: The number of updates that the authors' program makes.
AUTHORS_UPDATES = 6
#: Steps for every ensemble: two kinds of tables, two kinds of figures.
_STAGES = 4


@dataclass(frozen=True)
class Settings:
    """Parameters of a whole run.

    Attributes
    ----------
    sources : tuple of int, or None
        For Table 1 and Figure 2; the others follow the paper, or use all sources.
    updates : int or None
        Rows of truth discovery with exactly so many updates, beside the paper's stopping rule.
    n_splits, random_state : int
    literal : bool
        The paper's own setting of the optimised methods.
    extended : Extended or None

    Examples
    --------
    >>> from veridical import paper
    >>> paper.Settings(n_splits=2).n_splits
    2
    """

    sources: tuple[int, ...] | None = None
    updates: int | None = AUTHORS_UPDATES
    n_splits: int = 5
    random_state: int = 0
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

    Files are written when everything is computed and drawn: an interrupted run leaves none.

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

    Examples
    --------
    >>> import veridical as vd
    >>> from veridical import paper
    >>> _ = vd.save(vd.load_demo().select(sources=slice(2), samples=slice(400)), "small.npz")
    >>> paper.reproduce_all(["small.npz"], "reproduction").name
    'index.html'
    """
    settings = (
        Settings() if settings is None else check_type(settings, Settings, "settings", "veridical.paper.Settings")
    )
    directory = as_path(out)
    ensembles = open_ensembles(paths, labels=labels, kind=kind, sources_axis=sources_axis)
    inputs = [*labels, *(file for ensemble in ensembles for file in ensemble.predictions.files)]
    check_outputs({f"the output {name}:": directory / name for name in _output_names()}, inputs)
    page = check_report_target(directory / "index.html")
    contents = _contents(ensembles, settings, n_threads, check_progress(progress))
    with storage_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(directory / name, content)
    return page


def _output_names() -> list[str]:
    tables = [f"{name}{suffix}" for name in ("table1", *_POSTHOC) for suffix in SUFFIXES.values()]
    return [*tables, *(f"{name}.{form}" for name in _FIGURES for form in FIGURE_FORMATS), "index.html"]


def _contents(
    ensembles: Sequence[Ensemble], settings: Settings, n_threads: int | None, report: Progress
) -> dict[str, bytes]:
    """Name of every file -> its content, the page last."""
    n = len(ensembles)
    total = _STAGES * n + 1

    def report_stage(stage: int) -> Progress:
        return lambda done, _, what: report(stage * n + done, total, what)

    tables = [
        table1(
            ensembles,
            sources=settings.sources,
            updates=settings.updates,
            extended=settings.extended,
            n_threads=n_threads,
            progress=report_stage(0),
        ),
        *posthoc_tables(
            _POSTHOC,
            ensembles,
            n_splits=settings.n_splits,
            random_state=settings.random_state,
            literal=settings.literal,
            extended=settings.extended,
            n_threads=n_threads,
            progress=report_stage(1),
        ),
    ]
    make_bins = partial(bins_before_after, random_state=settings.random_state, n_threads=n_threads)
    bins = panels_of(ensembles, make_bins, "bins before and after", report_stage(2))
    make_disagreement = partial(disagreement_by_score, n_threads=n_threads)
    disagreement = panels_of(ensembles, make_disagreement, "HV against confidence", report_stage(3))
    report(total - 1, total, "tables and figures")
    contents = {
        f"{table.name}{SUFFIXES[form]}": write(table).encode() for table in tables for form, write in FORMATS.items()
    }
    figures = (draw_figure2(tables[0]), draw_figure3(bins), draw_figure_a(disagreement))
    for name, figure in zip(_FIGURES, figures, strict=True):
        contents |= {f"{name}.{form}": figure_bytes(figure, form) for form in FIGURE_FORMATS}
    contents["index.html"] = _render_page(ensembles, tables, asdict(settings)).encode()
    report(total, total, "done")
    return contents


def panels_of(
    ensembles: Sequence[Ensemble], make: Callable[[Ensemble], list[Panel]], what: str, report: Progress
) -> list[Panel]:
    """The panels of a figure that ``make`` returns for each ensemble, in one list."""
    panels: list[Panel] = []
    for done, ensemble in enumerate(ensembles):
        report(done, len(ensembles), f"{ensemble.name}: {what}")
        panels += make(ensemble)
    return panels


def _render_page(ensembles: Sequence[Ensemble], tables: Sequence[Table], settings: Mapping[str, Any]) -> str:
    """``index.html``: tables in place, figures beside it, links to every file.  Names of files are text in it."""
    return html_template(files("veridical.paper"), "index.html.j2").render(
        version=__version__,
        ensembles=[(str(ensemble.name), repr(ensemble.predictions)) for ensemble in ensembles],
        tables=[_on_page(table) for table in tables],
        suffixes=list(SUFFIXES.values()),
        figures=[(name, title, text) for name, (title, text) in _FIGURES.items()],
        figure_formats=FIGURE_FORMATS,
        settings={key: value for key, value in settings.items() if value is not None},
    )


def _on_page(table: Table) -> dict[str, Any]:
    """A table and its comparisons as HTML."""
    numbers, verdicts = as_table(table), verdict_table(table)
    return {
        "table": table,
        "number": table.name.removeprefix("table"),
        "html": Markup(html_table(numbers.part(range(2, len(numbers.columns))))),
        "verdicts": verdicts,
        "verdicts_html": Markup(html_table(replace(verdicts, caption=""))),
    }
