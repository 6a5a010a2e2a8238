"""The registry of formats: a suffix, what reads and writes it, what it needs.

Adding a format is adding a file and an entry here; the command line, the messages and the tests follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from veridical.errors import FileFormatError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Contents
from veridical.predictions.files.csv_files import read_csv, write_csv
from veridical.predictions.files.npy import read_npy, write_npy
from veridical.predictions.files.npz import read_npz, write_npz
from veridical.predictions.files.parquet import read_parquet, write_parquet
from veridical.predictions.files.torch_files import read_torch
from veridical.predictions.files.zarr_files import read_zarr, write_zarr
from veridical.predictions.validation import Kind


@dataclass(frozen=True)
class Format:
    """How files of a suffix are read and written; ``extra`` is what must be installed for it.

    ``keeps_kind`` says whether the file itself tells probabilities from logits.
    """

    read: Callable[[Path, Kind | None], Contents]
    write: Callable[[Predictions, Path], None] | None = None
    extra: str | None = None
    keeps_kind: bool = True


#: Suffix -> format.
FORMATS = {
    ".npz": Format(read_npz, write_npz),
    ".npy": Format(read_npy, write_npy, keeps_kind=False),
    ".csv": Format(read_csv, write_csv),
    ".parquet": Format(read_parquet, write_parquet, "parquet"),
    ".pt": Format(read_torch, None, "torch"),
    ".pth": Format(read_torch, None, "torch"),
    ".zarr": Format(read_zarr, write_zarr, "zarr"),
}

_PICKLES = (".pkl", ".pickle", ".pk", ".p", ".joblib", ".dill")


def format_of(path: Path) -> Format:
    """The format that a file's suffix says."""
    suffix = path.suffix.lower()
    if suffix in FORMATS:
        return FORMATS[suffix]
    if suffix in _PICKLES:
        raise FileFormatError(
            f"{path} is a pickle, which can run programs and is never loaded; convert it where it comes from: "
            'numpy.savez("predictions.npz", logits=array, labels=labels).'
        )
    said = f"has the suffix {suffix!r}" if suffix else "has no suffix"
    raise FileFormatError(f"{path} {said}; predictions come as {', '.join(FORMATS)}, or as a directory of such files.")
