"""``veridical reproduce``: the paper's tables and figures from any ensemble's predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from veridical._names import printable
from veridical._progress import Progress
from veridical.errors import ParameterError

_FORMATS = ("terminal", "markdown", "csv", "latex", "json")
_KINDS = ("probs", "logits", "log_probs")


def _numbers(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """``10,20,30`` as numbers."""
    if value is None:
        return None
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise ParameterError(
            f"--sources is {value!r}; give whole numbers with commas between, as in 10,20,30."
        ) from None


def _options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


_DATA = _options(
    click.argument("predictions", nargs=-1, type=click.Path()),
    click.option(
        "--labels", multiple=True, type=click.Path(), help="Labels apart from the predictions: once, or once per file."
    ),
    click.option("--kind", type=click.Choice(_KINDS), help="What the numbers are, where the file does not say."),
    click.option("--sources-axis", type=click.IntRange(0, 2), help="Where the sources are in an array; 0 by default."),
    click.option("--threads", type=click.IntRange(1), help="Default: all cores.  Results do not depend on it."),
    click.option("--quiet", is_flag=True, help="No progress on stderr."),
)
_SOURCES = click.option("--sources", metavar="N,N,...", callback=_numbers, help="Use the first N sources.")
_UPDATES = click.option("--updates", type=click.IntRange(1), help="Also truth discovery with exactly so many updates.")
_HALVES = _options(
    click.option("--splits", type=click.IntRange(1), default=5, show_default=True, help="Random halves."),
    click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Decides the halves."),
    click.option("--paper-setting", is_flag=True, help="opt and pTDE as the paper sets them, not this library."),
)
_EXTENDED = click.option(
    "--extended", is_flag=True, help="All calibrators, noise floors, intervals, and which differences are real."
)
_TEXT = _options(
    click.option("--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True),
    click.option("--out", type=click.Path(dir_okay=False), help="Write to a file instead of the terminal."),
)


@click.group("reproduce")
def command() -> None:
    """The paper's tables and figures from any ensemble's predictions.

    Without PREDICTIONS, the ensemble that ships with the package is used.  Several files give several groups of rows.
    Files named like the authors' (logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy) get the paper's own numbers
    beside ours.

    \b
    veridical reproduce table1
    veridical reproduce table2 logits.npy --labels labels.npy --format latex
    veridical reproduce all run1.npz run2.npz --out DIR
    """


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress]:
    """A bar on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=printable(what))


def _open(given: dict[str, Any]) -> list[Any]:
    """The ensembles to work with; none of their files may be the output."""
    from veridical._outputs import check_outputs
    from veridical.paper import open_ensembles

    ensembles = open_ensembles(
        given["predictions"], labels=given["labels"], kind=given["kind"], sources_axis=given["sources_axis"]
    )
    inputs = [file for ensemble in ensembles for file in ensemble.predictions.files]
    check_outputs({"--out": given["out"]}, [*inputs, *given["labels"]])
    return ensembles


def _print_table(table: Any, form: str, out: str | None) -> None:
    from veridical._atomic import write_atomically
    from veridical.paper import format_table

    text = format_table(table, form)
    if out is None:
        sys.stdout.write("\n".join(map(printable, text.split("\n"))))
    else:
        write_atomically(out, text.encode())


def _extended(wanted: bool, seed: int = 0) -> Any:
    from veridical.paper import Extended

    return Extended(seed=seed) if wanted else None


@command.command("table1")
@_DATA
@_SOURCES
@_UPDATES
@_EXTENDED
@_TEXT
def table1_command(**given: Any) -> None:
    """DE, TDE and aTDE by number of sources (Tables 1, A1 to A4).

    By default in ten steps up to all the sources there are.
    """
    from veridical.paper import table1

    with _progress(given["quiet"]) as progress:
        ensembles = _open(given)
        table = table1(
            ensembles,
            sources=given["sources"],
            updates=given["updates"],
            extended=_extended(given["extended"]),
            n_threads=given["threads"],
            progress=progress,
        )
    _print_table(table, given["form"], given["out"])


def _posthoc_command(name: str, summary: str) -> None:
    @command.command(name, help=summary, short_help=summary)
    @_DATA
    @_SOURCES
    @_HALVES
    @_EXTENDED
    @_TEXT
    def posthoc_command(**given: Any) -> None:
        from veridical import paper

        with _progress(given["quiet"]) as progress:
            ensembles = _open(given)
            table = getattr(paper, name)(
                ensembles,
                sources=given["sources"],
                n_splits=given["splits"],
                seed=given["seed"],
                literal=given["paper_setting"],
                extended=_extended(given["extended"], given["seed"]),
                n_threads=given["threads"],
                progress=progress,
            )
        _print_table(table, given["form"], given["out"])


_posthoc_command("table2", "DE, TS, ETS, IRM and pTDE over random halves, mean and standard deviation.")
_posthoc_command("table3", "opt-hist, opt-kde, ptde-hist and ptde-kde over random halves.")
_posthoc_command("table4", "KS error of every method, Spline included, over random halves.")


def _figure_file(name: str, out: str | None) -> Path:
    path = Path(out or f"{name}.svg")
    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise ParameterError(f"--out is {str(path)!r}; figures are written as .svg, .png or .pdf.")
    return path


_FIGURE_OUT = click.option("--out", type=click.Path(dir_okay=False), help="A .svg, .png or .pdf file; by default .svg.")


@command.command("figure2")
@_DATA
@_SOURCES
@_UPDATES
@_FIGURE_OUT
def figure2_command(**given: Any) -> None:
    """Each metric of DE, TDE and aTDE by number of sources."""
    from veridical.paper import draw_figure2, save_figure, table1

    path = _figure_file("figure2", given["out"])
    with _progress(given["quiet"]) as progress:
        ensembles = _open(given)
        table = table1(
            ensembles,
            sources=given["sources"],
            updates=given["updates"],
            n_threads=given["threads"],
            progress=progress,
        )
        save_figure(draw_figure2(table), path)
    click.echo(path)


@command.command("figure3")
@_DATA
@_SOURCES
@click.option("--method", default="opt-hist", show_default=True, help="The calibrator between before and after.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Decides the halves.")
@_FIGURE_OUT
def figure3_command(**given: Any) -> None:
    """Confidence against accuracy in fixed bins, before and after calibration, coloured by bin count."""
    from veridical.paper import bins_before_after, draw_figure3

    find = partial(bins_before_after, method=given["method"], seed=given["seed"])
    _draw("figure3", f"bins before and after {given['method']}", find, draw_figure3, given)


@command.command("figureA")
@_DATA
@_SOURCES
@_FIGURE_OUT
def figure_a_command(**given: Any) -> None:
    """HV against winning score (Figures A1 to A3)."""
    from veridical.paper import disagreement_by_score, draw_figure_a

    _draw("figureA", "HV against winning score", disagreement_by_score, draw_figure_a, given)


def _draw(
    name: str, what: str, find: Callable[..., list[Any]], draw: Callable[[Any], Any], given: dict[str, Any]
) -> None:
    """A figure of panels that ``find`` makes of each ensemble."""
    from veridical.paper import save_figure

    path = _figure_file(name, given["out"])
    with _progress(given["quiet"]) as progress:
        panels = []
        ensembles = _open(given)
        for done, ensemble in enumerate(ensembles):
            progress(done, len(ensembles), f"{ensemble.name}: {what}")
            panels += find(ensemble, sources=given["sources"], n_threads=given["threads"])
        save_figure(draw(panels), path)
    click.echo(path)


@command.command("all")
@_DATA
@click.option("--sources", metavar="N,N,...", callback=_numbers, help="The first N sources, in Table 1 and Figure 2.")
@click.option("--updates", type=click.IntRange(1), default=6, show_default=True, help="Rows with so many updates.")
@_HALVES
@_EXTENDED
@click.option("--out", type=click.Path(file_okay=False), default="reproduction", show_default=True, help="A directory.")
def all_command(**given: Any) -> None:
    """All tables and figures, and an index.html that shows them.

    Interrupted, it continues where it stopped when the same command is run again.
    """
    from veridical.paper import Settings, reproduce_all

    settings = Settings(
        sources=given["sources"],
        updates=given["updates"],
        n_splits=given["splits"],
        seed=given["seed"],
        literal=given["paper_setting"],
        extended=_extended(given["extended"], given["seed"]),
    )
    with _progress(given["quiet"]) as progress:
        page = reproduce_all(
            given["predictions"],
            given["out"],
            labels=given["labels"],
            kind=given["kind"],
            sources_axis=given["sources_axis"],
            settings=settings,
            n_threads=given["threads"],
            progress=progress,
        )
    click.echo(page)
