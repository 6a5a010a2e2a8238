"""The ``veridical`` program: argument parsing only; each command calls one public function.

A command lives in a module of its name and is imported when it is asked for, so that ``--help`` answers at once.
"""

from __future__ import annotations

import importlib
import sys
import warnings

import click

from veridical._version import __version__
from veridical.errors import VeridicalError

#: Command name -> one line of help.  The module ``veridical.cli.<name>`` holds it as ``command``.
COMMANDS = {
    "demo": "Run the main job on the ensemble that ships with the package.",
    "evaluate": "How well calibrated is an ensemble, as it is?",
    "calibrate": "Fit a calibrator and show what it is worth.",
    "apply": "Calibrate new predictions with a saved calibrator.",
    "compare": "Which calibrator is best here?  All of them on random halves.",
    "report": "Write an HTML report: the verdict in words, then the evidence.",
    "inspect": "What is in a file of predictions, or in a saved calibrator?",
    "methods": "All combiners, calibrators and metrics, by name.",
    "reproduce": "The paper's tables and figures from any ensemble's predictions.",
    "train": "Train a deep or snapshot ensemble (needs the torch extra).",
    "predict": "Write an ensemble's predictions from its checkpoints (needs the torch extra).",
}


def _note(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a sentence for people, without the line of code it comes from."""
    click.echo(f"Note: {message}", err=True)


class _Commands(click.Group):
    """A group whose commands are imported on use, and whose bad input ends with one sentence and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"veridical.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            try:
                return super().invoke(ctx)
            except VeridicalError as error:
                click.echo(f"Error: {error}", err=True)
                sys.exit(2)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="veridical")
def main() -> None:
    """Calibrated probabilities from an ensemble's disagreeing predictions."""
