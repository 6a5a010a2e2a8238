"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from veridical.errors import ParameterError
from veridical.predictions import Predictions
from veridical.predictions.validation import KINDS

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option_group(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Several options as one decorator, in the order of ``--help``."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


#: PRED and how to read it; :func:`read` takes the values.
prediction_options = option_group(
    click.argument("pred", type=click.Path()),
    click.option("--labels", "-y", type=click.Path(), help="File of labels, if the predictions have none inside."),
    click.option(
        "--kind",
        type=click.Choice([*KINDS, "labels"]),
        help="What the numbers are, if the file does not declare it; labels: a table of votes (item, source, label).",
    ),
    click.option("--sources-axis", type=click.IntRange(0, 2), help="Axis of the sources in an array; default 0."),
)

output_options = option_group(
    click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on stdout."),
    click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors (and JSON, with --json)."),
)

seed_option = click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")

data_option = click.option(
    "--data",
    type=click.Path(),
    default="data",
    show_default=True,
    envvar="VERIDICAL_DATA",
    show_envvar=True,
    help="Directory of the data set's files (npz: the file).",
)

verify_option = click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Compare with published checksums."
)

device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")


def precision_option(default: str) -> Callable[[_Command], _Command]:
    """--precision."""
    choices = click.Choice(["auto", "float32", "bfloat16"])
    return click.option("--precision", type=choices, default=default, show_default=True)


def _complete_method(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of methods for the shell's completion, also after the last comma of a list."""
    from veridical.calibrate import calibrators
    from veridical.combine import label_free_combiners
    from veridical.evaluation.methods import MEMBERS

    before, comma, start = incomplete.rpartition(",")
    combiners = (MEMBERS, *label_free_combiners()) if param.name == "methods" else ()
    return [f"{before}{comma}{name}" for name in (*combiners, *calibrators()) if name.startswith(start)]


def method_option(default: str, help_text: str) -> Callable[[_Command], _Command]:
    """--method: one calibrator."""
    return click.option(
        "--method", "-m", default=default, show_default=True, shell_complete=_complete_method, help=help_text
    )


def _split_names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise ParameterError("--methods is empty; give names with commas between, or leave it out.")
    return names


def methods_option(help_text: str) -> Callable[[_Command], _Command]:
    """--methods: a list of names, or None."""
    return click.option(
        "--methods",
        "-m",
        callback=_split_names,
        metavar="NAME,NAME,...",
        shell_complete=_complete_method,
        help=f"{help_text}  See 'veridical methods'.",
    )


def read(pred: str, labels: str | None, kind: Any, sources_axis: int | None) -> Predictions:
    """The predictions of a command's options."""
    from veridical.predictions.files import load

    if kind == "labels":
        from veridical.jury import load_votes

        return load_votes(pred, labels)
    return load(pred, labels=labels, kind=kind, sources_axis=sources_axis)
