"""What every command that reads predictions takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from veridical.predictions import Predictions
from veridical.predictions.validation import KINDS

_Command = TypeVar("_Command", bound=Callable[..., Any])


def prediction_options(command: _Command) -> _Command:
    """PRED, and how to read it."""
    for option in (
        click.option(
            "--sources-axis", type=click.IntRange(0, 2), help="Axis of the sources in an array; 0 unless told."
        ),
        click.option("--kind", type=click.Choice(KINDS), help="What the numbers are, where the file does not say."),
        click.option(
            "--labels", "-y", type=click.Path(), help="File with the labels, where the predictions have none inside."
        ),
        click.argument("pred", type=click.Path()),
    ):
        command = option(command)
    return command


def complete_methods(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What a shell may complete a method's name to, also after the last comma of a list."""
    from veridical.calibrate import calibrators
    from veridical.evaluation.methods import COMBINERS, MEMBERS

    before, comma, begun = incomplete.rpartition(",")
    combiners = (MEMBERS, *COMBINERS) if param.name == "methods" else ()
    return [f"{before}{comma}{name}" for name in (*combiners, *calibrators()) if name.startswith(begun)]


def read(pred: str, labels: str | None, kind: Any, sources_axis: int | None) -> Predictions:
    """The predictions that a command was pointed at."""
    from veridical.predictions.files import load

    return load(pred, labels=labels, kind=kind, sources_axis=sources_axis)
