"""``veridical reproduce``: the paper's tables and figures from any ensemble's predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from veridical._progress import Progress
from veridical.cli.options import method_option, option_group, seed_option
from veridical.cli.output import Output, output_options
from veridical.errors import ParameterError
from veridical.predictions.validation import KINDS

_FORMATS = ("terminal", "markdown", "csv", "latex", "json")


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


def _kind_of_probabilities(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value == "labels":
        raise ParameterError(
            "the paper's tables and figures are of probabilities, and votes have none; use 'veridical jury', or "
            "'veridical evaluate --kind labels'."
        )
    return value


_DATA = option_group(
    click.argument("predictions", nargs=-1, type=click.Path()),
    click.option(
        "--labels", "-y", multiple=True, type=click.Path(), help="File of labels: once for all, or once per file."
    ),
    click.option(
        "--kind",
        type=click.Choice([*KINDS, "labels"]),
        callback=_kind_of_probabilities,
        help="What the numbers are, if the file does not declare it; not votes (labels), which have no probabilities.",
    ),
    click.option("--sources-axis", type=click.IntRange(0, 2), help="Axis of the sources in an array; default 0."),
    click.option("--threads", type=click.IntRange(1), help="Default: all cores.  Results do not depend on it."),
)
_SOURCES = click.option("--sources", metavar="N,N,...", callback=_numbers, help="Use the first N sources.")
_UPDATES = click.option("--updates", type=click.IntRange(1), help="Also truth discovery with exactly so many updates.")
_HALVES = option_group(
    click.option("--splits", type=click.IntRange(1), default=5, show_default=True, help="Number of random halves."),
    seed_option,
    click.option("--paper-setting", is_flag=True, help="opt and pTDE as the paper sets them, not this library."),
)
_EXTENDED = click.option(
    "--extended", is_flag=True, help="All calibrators, noise floors, intervals, and which differences are real."
)
_TEXT = option_group(
    click.option("--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True),
    click.option("--out", "-o", type=click.Path(dir_okay=False), help="Write to a file instead of stdout."),
    output_options,
)
_FIGURE_FILE = option_group(
    click.option("--out", "-o", type=click.Path(dir_okay=False), help="A .svg, .png or .pdf file; by default .svg."),
    output_options,
)


@click.group("reproduce")
def command() -> None:
    """The paper's tables and figures from any ensemble's predictions.

    Without PREDICTIONS, the ensemble that ships with the package is used.  Several files give several groups of rows.
    Files named like the authors' (logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy) get the paper's own numbers
    beside ours.

    \b
    Examples:
      veridical reproduce table1
      veridical reproduce table2 logits.npy --labels labels.npy --format latex
      veridical reproduce all run1.npz run2.npz --out DIR
    """


def _open(options: dict[str, Any]) -> list[Any]:
    """The ensembles of the options; --out may not be one of their files."""
    from veridical._outputs import check_outputs
    from veridical.paper import open_ensembles

    ensembles = open_ensembles(
        options["predictions"], labels=options["labels"], kind=options["kind"], sources_axis=options["sources_axis"]
    )
    inputs = [file for ensemble in ensembles for file in ensemble.predictions.files]
    check_outputs({"--out": options["out"]}, [*inputs, *options["labels"]])
    return ensembles


def _parameters(options: dict[str, Any]) -> dict[str, Any]:
    """The options that decide numbers, as the functions of veridical.paper call them."""
    from veridical.paper import Extended

    names = {"splits": "n_splits", "seed": "random_state", "paper_setting": "literal", "threads": "n_threads"}
    passed = ("sources", "updates", "method", *names)
    parameters = {names.get(name, name): options[name] for name in passed if name in options}
    if options.get("extended"):
        parameters["extended"] = Extended(random_state=options.get("seed", 0))
    return parameters


def _add_table(name: str, summary: str, *more: Callable[..., Any]) -> None:
    """A command that prints a table, or writes it to a file."""

    @command.command(name, help=summary, short_help=summary.partition("\n")[0])
    @option_group(_DATA, _SOURCES, *more, _EXTENDED, _TEXT)
    def table_command(output: Output, **options: Any) -> None:
        from veridical import paper
        from veridical._atomic import write_atomically

        with output.progress() as progress:
            table = getattr(paper, name)(_open(options), progress=progress, **_parameters(options))
        text, out = paper.format_table(table, options["form"]), options["out"]
        if out is None:
            output.lines(text)
        else:
            write_atomically(out, text.encode())
            output.wrote(out)
        output.json(table, out=out)


_add_table(
    "table1",
    "DE, TDE and aTDE by number of sources (Tables 1, A1 to A4).\n\nBy default in ten steps up to all sources.",
    _UPDATES,
)
_add_table("table2", "DE, TS, ETS, IRM and pTDE over random halves, mean and standard deviation.", _HALVES)
_add_table("table3", "opt-hist, opt-kde, ptde-hist and ptde-kde over random halves.", _HALVES)
_add_table("table4", "KS error of every method, Spline included, over random halves.", _HALVES)


@command.command("figure2")
@option_group(_DATA, _SOURCES, _UPDATES, _FIGURE_FILE)
def figure2_command(output: Output, **options: Any) -> None:
    """Each metric of DE, TDE and aTDE by number of sources."""
    from veridical.paper import draw_figure2, table1

    def compute(ensembles: list[Any], progress: Progress | None) -> Any:
        return table1(ensembles, progress=progress, **_parameters(options))

    _draw("figure2", compute, draw_figure2, lambda table: {"table": table.to_dict()}, output, options)


@command.command("figure3")
@option_group(
    _DATA, _SOURCES, method_option("opt-hist", "The calibrator between before and after."), seed_option, _FIGURE_FILE
)
def figure3_command(output: Output, **options: Any) -> None:
    """Confidence against accuracy in fixed bins, before and after calibration, coloured by bin count."""
    from veridical.paper import bins_before_after, draw_figure3

    _draw_panels(
        "figure3", f"bins before and after {options['method']}", bins_before_after, draw_figure3, output, options
    )


@command.command("figureA")
@option_group(_DATA, _SOURCES, _FIGURE_FILE)
def figure_a_command(output: Output, **options: Any) -> None:
    """HV against confidence (Figures A1 to A3)."""
    from veridical.paper import disagreement_by_score, draw_figure_a

    _draw_panels("figureA", "HV against confidence", disagreement_by_score, draw_figure_a, output, options)


def _draw_panels(
    name: str,
    what: str,
    make: Callable[..., list[Any]],
    draw: Callable[[Any], Any],
    output: Output,
    options: dict[str, Any],
) -> None:
    """Draw a figure of the panels that ``make`` returns for each ensemble."""
    from veridical._progress import check_progress
    from veridical.paper.reproduction import panels_of

    def compute(ensembles: list[Any], progress: Progress | None) -> list[Any]:
        return panels_of(ensembles, partial(make, **_parameters(options)), what, check_progress(progress))

    def describe(panels: list[Any]) -> dict[str, Any]:
        return {"panels": [asdict(panel) for panel in panels]}

    _draw(name, compute, draw, describe, output, options)


def _draw(
    name: str,
    compute: Callable[[list[Any], Progress | None], Any],
    draw: Callable[[Any], Any],
    describe: Callable[[Any], dict[str, Any]],
    output: Output,
    options: dict[str, Any],
) -> None:
    """Compute numbers, draw them to a file, and print where it is, or the numbers as JSON."""
    from veridical.evaluation.evaluating import SCHEMA
    from veridical.paper import save_figure
    from veridical.paper.figures import figure_path

    path = figure_path(options["out"] or f"{name}.svg")
    with output.progress() as progress:
        numbers = compute(_open(options), progress)
        save_figure(draw(numbers), path)
    output.wrote(path)
    if output.as_json:
        output.json({"schema": SCHEMA, "type": "figure", "out": str(path), **describe(numbers)})


@command.command("all")
@option_group(
    _DATA,
    click.option(
        "--sources", metavar="N,N,...", callback=_numbers, help="The first N sources, in Table 1 and Figure 2."
    ),
    click.option("--updates", type=click.IntRange(1), default=6, show_default=True, help="Rows with so many updates."),
    _HALVES,
    _EXTENDED,
    click.option(
        "--out", "-o", type=click.Path(file_okay=False), default="reproduction", show_default=True, help="A directory."
    ),
    output_options,
)
def all_command(output: Output, **options: Any) -> None:
    """All tables and figures, and an index.html that shows them."""
    from veridical.evaluation.evaluating import SCHEMA
    from veridical.paper import Settings, reproduce_all

    parameters = _parameters(options)
    n_threads = parameters.pop("n_threads")
    settings = Settings(**parameters)
    data = {name: options[name] for name in ("labels", "kind", "sources_axis")}
    with output.progress() as progress:
        page = reproduce_all(
            options["predictions"],
            options["out"],
            settings=settings,
            n_threads=n_threads,
            progress=progress,
            **data,
        )
    output.wrote(page)
    output.json({"schema": SCHEMA, "type": "reproduction", "out": str(page), "settings": asdict(settings)})
