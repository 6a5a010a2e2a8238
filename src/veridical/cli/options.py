"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from veridical.errors import ParameterError
from veridical.predictions import Predictions
from veridical.predictions.validation import INPUT_KINDS, InputKind

if TYPE_CHECKING:
    from veridical.blocks import BlockedPredictions

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option_group(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Several options as one decorator, in the order of ``--help``."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _one_or_several(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> str | tuple[str, ...]:
    """One path, or several: one file per source, as from a pattern that the shell has replaced by the files."""
    return value[0] if len(value) == 1 else value


def split_names(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise ParameterError(f"{param.opts[0]} is empty; give names with commas between, or leave it out.")
    return names


#: How the labels of votes are read.
vote_options = (
    click.option("--normalize", is_flag=True, help="Votes: labels that differ by case, spaces or final dots are one."),
    click.option(
        "--abstain",
        callback=split_names,
        metavar="WORD,WORD,...",
        help="Votes: labels that are abstentions, beside blank ones, n/a, nan, none and null.",
    ),
)

#: PRED and how to read it; :func:`read` takes the values.
prediction_options = option_group(
    click.argument("pred", nargs=-1, required=True, type=click.Path(), callback=_one_or_several),
    click.option("--labels", "-y", type=click.Path(), help="File of labels, if the predictions have none inside."),
    click.option(
        "--kind",
        type=click.Choice([*INPUT_KINDS, "labels"]),
        help="What the numbers are, if the file declares nothing; labels: a table of votes (item, source, label).",
    ),
    click.option("--sources-axis", type=click.IntRange(0, 2), help="Axis of the sources in an array; default 0."),
    click.option(
        "--groups",
        "group_column",
        metavar="COLUMN",
        help="Column (.npz: array) with groups of samples that stay together; default group.",
    ),
    click.option("--class-axis", type=int, help="Axis of the classes in an array; default the last."),
    click.option(
        "--class-columns",
        callback=split_names,
        metavar="NAME,NAME,...",
        help="Columns of a table with the classes; default: all but those with another meaning.",
    ),
    click.option("--renormalize", is_flag=True, help="Divide each row of probabilities by its sum."),
    *vote_options,
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


def methods_option(help_text: str) -> Callable[[_Command], _Command]:
    """--methods: a list of names, or None."""
    return click.option(
        "--methods",
        "-m",
        callback=split_names,
        metavar="NAME,NAME,...",
        shell_complete=_complete_method,
        help=f"{help_text}  See 'veridical methods'.",
    )


#: Multiples of a byte.
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number of bytes, as in 512M or 2G."""
    if value is None:
        return None
    text = value.strip().upper().removesuffix("B").removesuffix("I")
    number, unit = (text[:-1], text[-1:]) if text[-1:].isalpha() else (text, "")
    if unit not in _UNITS or not number.replace(".", "", 1).isdecimal():
        raise ParameterError(f"--block-memory is {value!r}; give a size such as 512M or 2G.")
    return int(float(number) * _UNITS[unit])


#: How predictions larger than memory are worked on; :func:`read_in_blocks` takes the value.
block_option = click.option(
    "--block-memory",
    callback=_parse_size,
    metavar="SIZE",
    help="Work on a .npy or .zarr in blocks, with so much memory (such as 512M).  Default: 256M for predictions of "
    "more than 2 GB; smaller ones are loaded whole.",
)


#: How many worker processes; :func:`workers_client` takes the value.
workers_option = click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Work on blocks in N processes (needs the cluster extra).",
)


@contextmanager
def workers_client(workers: int | None) -> Iterator[Any]:
    """A Dask client of so many local processes, or None."""
    if workers is None:
        yield None
        return
    from veridical.blocks.on_dask import local_client

    with local_client(workers) as client:
        yield client


def read_in_blocks(
    pred: str | tuple[str, ...],
    labels: str | None,
    block_memory: int | None,
    workers: int | None = None,
    default_kind: InputKind | None = None,
    **options: Any,
) -> Predictions | BlockedPredictions:
    """The predictions of a command's options, in blocks if that is asked for or they are large."""
    from veridical.blocks.opening import is_large
    from veridical.blocks.opening import open as open_in_blocks

    if not isinstance(pred, str):
        if block_memory is not None or workers is not None:
            raise ParameterError("one .npy or .zarr of all sources is read in blocks, and there are several files.")
    elif block_memory is not None or workers is not None or (options["kind"] != "labels" and is_large(pred)):
        kind: Any = options.pop("kind")
        sources_axis = options.pop("sources_axis")
        if any(value not in (None, False) for value in options.values()):
            raise ParameterError(
                "predictions that are read in blocks have no --class-axis, no --groups column, no columns of a table "
                "and no --renormalize."
            )
        memory: dict[str, Any] = {} if block_memory is None else {"block_memory": block_memory}
        kinds = {"kind": kind, "default_kind": default_kind}
        return open_in_blocks(pred, labels, sources_axis=sources_axis, **kinds, **memory)
    return read(pred, labels, default_kind=default_kind, **options)


#: What a command says that shows the calibration of single sources.
VOTES_NOTE = (
    "Note: votes have no probabilities of their own, so that confidence and calibration of a single source mean "
    "nothing; look at its accuracy, and at the combinations."
)


def read(
    pred: str | tuple[str, ...], labels: str | None, *, default_kind: InputKind | None = None, **options: Any
) -> Predictions:
    """The predictions of a command's options; ``default_kind`` is that of files that declare none."""
    from veridical.predictions.files.contents import Request
    from veridical.predictions.files.loading import read_predictions

    of_votes = {"normalize": options.pop("normalize"), "abstain": options.pop("abstain") or ()}
    if options["kind"] == "labels":
        from veridical.jury import load_votes

        if not isinstance(pred, str):
            raise ParameterError("votes are in one table (item, source, label), and there are several files.")
        if any(value not in (None, False, "labels") for value in options.values()):
            raise ParameterError(
                "a table of votes names its sources, has no axes, no groups, no columns of classes and no sums; leave "
                "--sources-axis, --class-axis, --groups, --class-columns, --renormalize and --walk-forward out."
            )
        return load_votes(pred, labels, **of_votes)
    if any(of_votes.values()):
        raise ParameterError("--normalize and --abstain are about votes; give --kind labels, too, or leave them out.")
    return read_predictions(pred, labels, Request(**options, default_kind=default_kind or "probs"))
