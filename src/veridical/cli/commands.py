"""The commands of ``veridical``.

Each is a module of its name, whose ``command`` calls one public function; it is imported when the command is used, so
that ``--help`` answers at once.
"""

from __future__ import annotations

import importlib
import warnings

import click

from veridical._names import nearest_name
from veridical._version import __version__
from veridical.cli import INTERRUPTED, print_message, with_options
from veridical.errors import VeridicalWarning, shown

#: Command name -> one line of help.
COMMANDS = {
    "demo": "Run the main job on the ensemble that ships with the package.",
    "evaluate": "How well calibrated is an ensemble, as it is?",
    "calibrate": "Fit a calibrator and show how much it improves calibration.",
    "export": "Write a saved calibrator as an ONNX model (needs the onnx extra).",
    "apply": "Calibrate new predictions with a saved calibrator.",
    "threshold": "From which confidence on to answer, with a guaranteed error rate.",
    "compare": "Which calibrator is best here?  All of them on random halves.",
    "jury": "Whom to believe: the consensus of jurors who vote, with few known answers or none.",
    "report": "Write an HTML report: the verdict in words, then the evidence.",
    "inspect": "What is in a file of predictions, or in a saved calibrator?",
    "compile": "Compile the kernels ahead of time, as for a container image.",
    "methods": "All combiners, calibrators and metrics, by name.",
    "reproduce": "The paper's tables and figures from any ensemble's predictions.",
    "train": "Train a deep or snapshot ensemble (needs the torch extra).",
    "predict": "Write an ensemble's predictions from its checkpoints (needs the torch extra).",
}


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a sentence, without the line of code that issued it."""
    print_message(with_options(f"Note: {message}"))


def _import_plugins(ctx: click.Context, param: click.Parameter, modules: tuple[str, ...]) -> None:
    if modules:
        plugins = importlib.import_module("veridical.evaluation.plugins")
        for module in dict.fromkeys(modules):
            plugins.import_plugin(module)


def _plugin_option() -> click.Option:
    """--plugin, which every command has; it is read first, as other options may name what it registers."""
    return click.Option(
        ["--plugin"],
        multiple=True,
        metavar="MODULE",
        is_eager=True,
        expose_value=False,
        callback=_import_plugins,
        help="Import a module that registers calibrators or combiners of your own; can be given several times.",
    )


class _Commands(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"veridical.cli.{cmd_name}")
        command: click.Command = module.command
        if not any(option.name == "plugin" for option in command.params):
            command.params.append(_plugin_option())
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for; the nearest name is suggested for an unknown one."""
        if args and args[0] not in COMMANDS and args[0][:1].isalnum():
            close = nearest_name(args[0], COMMANDS)
            question = f" Did you mean {close!r}?" if close else " 'veridical --help' lists the commands."
            ctx.fail(f"No such command {shown(args[0])}.{question}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            # They are notes of the program; Python's options (-W error) are about warnings to programmers.
            warnings.simplefilter("default", VeridicalWarning)
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:  # click would print a line of its own
                ctx.exit(INTERRUPTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="veridical")
def program() -> None:
    """Calibrated probabilities from an ensemble's disagreeing predictions."""
