"""The registry of formats: for each suffix its reader, its writer and the extra that it needs.

To add a format, add a module and an entry here; the command line, the messages and the tests follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from veridical.errors import FileFormatError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Contents
from veridical.predictions.files.format_csv import read_csv, write_csv
from veridical.predictions.files.format_npy import read_npy, write_npy
from veridical.predictions.files.format_npz import read_npz, write_npz
from veridical.predictions.files.format_parquet import read_parquet, write_parquet
from veridical.predictions.files.format_torch import read_torch
from veridical.predictions.files.format_zarr import read_zarr, write_zarr


@dataclass(frozen=True)
class Format:
    """How files with a suffix are read and written; ``extra`` names the extra to install.

    ``read`` takes a path and the requested kind, if any; where ``has_columns``, also the name of the column with
    groups.  ``keeps_kind`` is False if the file itself cannot distinguish probabilities from logits.
    """

    read: Callable[..., Contents]
    write: Callable[[Predictions, Path], None] | None = None
    extra: str | None = None
    keeps_kind: bool = True
    has_columns: bool = False


#: Suffix -> format.
FORMATS = {
    ".npz": Format(read_npz, write_npz, has_columns=True),
    ".npy": Format(read_npy, write_npy, keeps_kind=False),
    ".csv": Format(read_csv, write_csv, has_columns=True),
    ".parquet": Format(read_parquet, write_parquet, "parquet", has_columns=True),
    ".pt": Format(read_torch, None, "torch"),
    ".pth": Format(read_torch, None, "torch"),
    ".zarr": Format(read_zarr, write_zarr, "zarr"),
}

_PICKLES = (".pkl", ".pickle", ".pk", ".p", ".joblib", ".dill")


def format_of(path: Path) -> Format:
    """The format of a file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix in FORMATS:
        return FORMATS[suffix]
    if suffix in _PICKLES:
        raise FileFormatError(
            f"{path} is a pickle, which can run programs and is never loaded; convert it where it comes from: "
            'numpy.savez("predictions.npz", logits=array, labels=labels).'
        )
    problem = f"has the suffix {suffix!r}" if suffix else "has no suffix"
    raise FileFormatError(
        f"{path} {problem}; predictions come as {', '.join(FORMATS)}, or as a directory of such files."
    )
