"""The table of file formats: the command line, the messages and the tests follow it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from veridical.errors import FileFormatError, LabelError
from veridical.predictions.arrays import check_texts
from veridical.predictions.files.contents import Format
from veridical.predictions.files.file_checks import check_is_file, reading
from veridical.predictions.files.format_csv import CSV
from veridical.predictions.files.format_npy import NPY
from veridical.predictions.files.format_npz import NPZ
from veridical.predictions.files.format_parquet import PARQUET
from veridical.predictions.files.format_torch import TORCH
from veridical.predictions.files.format_zarr import ZARR
from veridical.predictions.files.labels import BATCH, JSON, PICKLE, TXT
from veridical.predictions.labels import LabelTable
from veridical.predictions.validation import Array

#: Suffix -> format.  To add one, add a module and an entry here.
FORMATS: dict[str, Format] = {
    suffix: format
    for format in (NPZ, NPY, CSV, PARQUET, TORCH, ZARR, TXT, JSON, PICKLE, BATCH)
    for suffix in format.suffixes
}

_PICKLES = (".pkl", ".pickle", ".pk", ".p", ".joblib", ".dill")


def suffixes_with(capability: str) -> list[str]:
    """The suffixes of formats that have a function for something, such as "write"."""
    return [suffix for suffix, format in FORMATS.items() if getattr(format, capability)]


def format_with(capability: str, path: Path) -> Format | None:
    """The format of a file, if it has a function for something."""
    format = FORMATS.get(path.suffix.lower())
    return format if getattr(format, capability, None) else None


def format_of(path: Path) -> Format:
    """The format of a file of predictions, by its suffix."""
    format, suffix = format_with("read", path), path.suffix.lower()
    if format is not None:
        return format
    if suffix in _PICKLES:
        raise FileFormatError(
            f"{path} is a pickle, which can run programs and is never loaded; convert it where it comes from: "
            'numpy.savez("predictions.npz", logits=array, labels=labels).'
        )
    problem = f"has the suffix {suffix!r}" if suffix else "has no suffix"
    raise FileFormatError(
        f"{path} {problem}; predictions come as {', '.join(suffixes_with('read'))}, or as a directory of such files."
    )


def read_labels(path: Path) -> Array | LabelTable:
    """One label per sample, with ids where the file has some."""
    format = format_with("read_labels", path)
    if format is None:
        suffixes = ", ".join(filter(None, suffixes_with("read_labels")))
        raise FileFormatError(
            f"{path} has the suffix {path.suffix}; labels come as {suffixes}, or a file without suffix as published "
            "with CIFAR."
        )
    check_is_file(path, "a file of labels")
    with reading(path, "labels"):
        content = format.read_labels(path)
        table = content if isinstance(content, LabelTable) else None
        listed = content if table is None else table.labels
        check_texts(listed, f"the labels in {path}")
        labels = np.asarray(listed)
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iufbSUO" or _holds_lists(labels):
        raise LabelError(
            f"{path} holds labels of shape {labels.shape} and dtype {labels.dtype}; write one integer per sample."
        )
    return labels if table is None else replace(table, labels=labels, where=str(path))


def _holds_lists(labels: Array) -> bool:
    """Whether labels are Python objects other than numbers, texts and None."""
    plain = (str, bytes, int, float, type(None))
    return labels.dtype.kind == "O" and not all(isinstance(entry, plain) for entry in labels.tolist())
