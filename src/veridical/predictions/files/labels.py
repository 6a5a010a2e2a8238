"""Labels that stand apart from the predictions, and labels that are names of classes."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import CorruptFileError, FileFormatError, LabelError
from veridical.predictions.files.contents import check_is_file, reading
from veridical.predictions.files.npy import map_npy
from veridical.predictions.files.npz import NpzArrays
from veridical.predictions.safe_pickle import load_plain_pickle
from veridical.predictions.validation import Array

#: What labels are called in a table, an archive or a dictionary; of the two sorts of CIFAR-100 people mean the fine.
_NAMES = ("label", "labels", "fine_labels", "targets")


def load_labels(labels: Any, class_names: Sequence[str] | None) -> Array | None:
    """Labels from a file, or as given; names of classes are replaced by their places."""
    if labels is None:
        return None
    if isinstance(labels, (str, os.PathLike)):
        return resolve_names(read_labels(Path(labels)), class_names)
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise LabelError(f"labels cannot be made into one array ({error}); give one integer per sample.") from None
    return resolve_names(array, class_names)


def resolve_names(labels: Array, class_names: Sequence[str] | None) -> Array:
    """Labels that are names of classes as places in ``class_names``; others as they are."""
    if labels.dtype.kind not in "US" or labels.ndim != 1 or not labels.size:
        return labels
    names = [label.decode("utf-8", "replace") if isinstance(label, bytes) else label for label in labels.tolist()]
    if class_names is None:
        raise LabelError(
            f"labels are names ({names[0]!r}, ...), and the predictions do not say what their classes are called; give "
            "integers, or predictions with class_names."
        )
    places = {name: l for l, name in enumerate(class_names)}
    unknown = next((n for n, name in enumerate(names) if name not in places), None)
    if unknown is not None:
        known = ", ".join(list(places)[:10]) + (", ..." if len(places) > 10 else "")
        raise LabelError(f"the label of sample {unknown} is {names[unknown]!r}, and the classes are: {known}.")
    return np.asarray([places[name] for name in names], np.int64)


def labels_from_text(texts: Sequence[str]) -> Array:
    """Whole numbers as integers; anything else as names."""
    try:
        numbers = np.asarray([int(text) if text.lstrip("+-").isdecimal() else float(text) for text in texts])
    except (ValueError, OverflowError):
        return np.asarray(texts, dtype=str)
    is_whole = numbers.dtype.kind in "iu" or (numbers.dtype.kind == "f" and bool(np.all(numbers == np.floor(numbers))))
    if not is_whole or not numbers.size or np.abs(numbers).max() >= 2**62:
        return np.asarray(texts, dtype=str)
    return numbers.astype(np.int64)


def read_labels(path: Path) -> Array:
    """One label per sample from a file of any format in ``READERS``."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"{path} has the suffix {path.suffix}; labels come as {', '.join(filter(None, READERS))}, or a pickle "
            "without suffix as published with CIFAR."
        )
    check_is_file(path, "a file of labels")
    with reading(path, "labels"):
        labels = np.asarray(reader(path))
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iufSU":
        raise LabelError(
            f"{path} holds labels of shape {labels.shape} and dtype {labels.dtype}; write one integer per sample."
        )
    return labels


def _from_txt(path: Path) -> Array:
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    if "" in lines:
        raise LabelError(f"line {lines.index('') + 1} of {path} is empty; write one label per line.")
    return labels_from_text(lines)


def _from_csv(path: Path) -> Array:
    """The column called label, or the only column, with or without a name."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file, strict=True) if row]
    header = [name.strip() for name in rows[0]] if rows else []
    named = [place for place, name in enumerate(header) if name.lower() in _NAMES]
    if len(named) != 1 and len(header) != 1:
        raise FileFormatError(f"{path} has columns {', '.join(header)[:200]}; call one of them label.")
    uneven = next((line for line, row in enumerate(rows) if len(row) != len(header)), None)
    if uneven is not None:
        raise CorruptFileError(f"row {uneven + 1} of {path} has {len(rows[uneven])} entries, not {len(header)}.")
    has_name = bool(named) or not header[0].lstrip("+-").isdecimal()
    return labels_from_text([row[named[0] if named else 0].strip() for row in rows[has_name:]])


def _from_json(path: Path) -> Any:
    return _named(json.loads(path.read_text(encoding="utf-8-sig")), path)


def _from_pickle(path: Path) -> Any:
    """Only plain values are read: a pickle that asks for more is refused before anything runs."""
    return _named(load_plain_pickle(path), path)


def _from_torch(path: Path) -> Any:
    from veridical.predictions.files.torch_files import load_tensors

    return _named(load_tensors(path), path)


def _from_cifar(path: Path) -> Array:
    from veridical.predictions.files.cifar_batches import read_batch

    return read_batch(path)[0]


def _from_parquet(path: Path) -> Array:
    from veridical.predictions.files.parquet import read_text_column

    return labels_from_text(read_text_column(path, _NAMES))


def _from_npz(path: Path) -> Array:
    with NpzArrays(path) as arrays:
        return np.asarray(arrays[_choose(arrays.names, path)])


def _named(content: Any, path: Path) -> Any:
    """Labels as such, or under their name in a dictionary."""
    if not isinstance(content, dict):
        return content
    content = {key.decode("latin-1") if isinstance(key, bytes) else str(key): value for key, value in content.items()}
    return content[_choose(list(content), path)]


def _choose(names: Sequence[str], path: Path) -> str:
    found = [name for name in names if name in _NAMES]
    if len(found) != 1 and len(names) != 1:
        raise FileFormatError(
            f"{path} holds {', '.join(names)[:200] or 'nothing'}; call what holds the labels: labels."
        )
    return found[0] if found else names[0]


#: Suffix -> what reads labels from such a file.
READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": map_npy,
    ".npz": _from_npz,
    ".txt": _from_txt,
    ".csv": _from_csv,
    ".json": _from_json,
    ".parquet": _from_parquet,
    ".pt": _from_torch,
    ".pth": _from_torch,
    ".pk": _from_pickle,
    ".pkl": _from_pickle,
    ".pickle": _from_pickle,
    "": _from_pickle,
    ".bin": _from_cifar,
}
