"""What a file format can hold, what its readers return, and how the kind of scores is determined."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import FileFormatError, ParameterError, shown
from veridical.predictions.classes import texts_of_labels
from veridical.predictions.container import Predictions
from veridical.predictions.sample_ids import image_of_samples
from veridical.predictions.validation import (
    INPUT_KINDS,
    Array,
    InputKind,
    check_choice,
    check_names,
    check_type,
    entries_of,
)

#: Arrays beside the scores in a .npz, .pt or .zarr.
BESIDE_SCORES = ("labels", "source_names", "class_names", "sample_ids", "groups", "sample_shape")


@dataclass(frozen=True)
class Request:
    """What the caller says about files of predictions; the parameters of :func:`veridical.load`."""

    kind: InputKind | None = None
    group_column: str | None = None
    class_columns: Sequence[str] | None = None
    sources_axis: int | None = None
    class_axis: int | None = None
    renormalize: bool = False
    #: Of files that declare none.
    default_kind: InputKind = "probs"

    def __post_init__(self) -> None:
        if self.kind is not None:
            check_choice(self.kind, INPUT_KINDS, "kind")
        if self.group_column is not None:
            check_type(self.group_column, str, "group_column", "the name of a column")
        if self.class_columns is not None:
            names = list(map(str, entries_of(self.class_columns, "class_columns is")))
            object.__setattr__(self, "class_columns", check_names(names, len(names), "class"))


@dataclass(frozen=True)
class Format:
    """A file format: its suffixes, and a function for everything that its files can hold.

    To add one, write a module with such an object, and an entry in ``formats.py``.
    """

    suffixes: tuple[str, ...]
    #: Predictions: (path, Request) -> Contents, and (Predictions, path).
    read: Any = None
    write: Any = None
    #: One label per sample: path -> array or LabelTable.
    read_labels: Any = None
    #: Columns, for votes and calibrated predictions: a ReadTable, and (path, types, blocks of columns).
    read_table: Any = None
    write_table: Any = None
    #: Named arrays, for calibrated predictions: (mapping, path).
    write_arrays: Any = None
    #: For blocks, an array that is read in parts and everything beside it: (path, kind) -> (array, Contents).
    open_array: Any = None
    #: Whether the file itself distinguishes probabilities from logits.
    keeps_kind: bool = True
    #: Whether it is a table, or an archive with arrays, for ``Request.group_column``.
    has_columns: bool = False
    #: Whether it keeps the shape of images.
    keeps_images: bool = True
    is_directory: bool = False
    #: The extra to install.
    extra: str | None = None


#: Of the names of all columns, those of the columns to read as numbers and as text.
Choose = Callable[[list[str]], tuple[Sequence[str], Sequence[str]]]


@dataclass
class Columns:
    """Columns of a table: numbers (R, n) in one array, and texts by name ("" if empty)."""

    names: list[str]
    numbers: Array
    text: dict[str, list[str]]
    #: Whether the name may be the entry of the first row: files of one column often have no header.
    first_row: bool = False


#: Reads the columns of a file that a function chooses.
ReadTable = Callable[[Path, Choose], Columns]


def check_distinct(names: Sequence[str], where: object) -> None:
    """Refuse two columns of one name."""
    repeated, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise FileFormatError(f"{where} has two columns called {repeated!r}; give each column its own name.")


def declared_kind(path: str | os.PathLike[str]) -> InputKind | None:
    """The kind that a file's name declares, as in ``logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy``."""
    name = Path(path).name
    return next((kind for kind in INPUT_KINDS if re.match(rf"{kind}([_.-]|$)", name)), None)


def settle_kind(requested: InputKind | None, declared: InputKind | None, where: object) -> InputKind | None:
    """The kind that the caller requested or the file declares; they must not contradict each other."""
    if {requested, declared} == {"binary", "probs"}:  # one column of probabilities
        return "binary"
    if requested is not None and declared is not None and requested != declared:
        raise ParameterError(f"kind={shown(requested)} contradicts {where}, which holds {declared!r}; leave kind out.")
    return requested or declared


def choose_scores(names: Collection[str], kind: InputKind | None, path: Path) -> str:
    """The name of the array with the scores: that of its kind."""
    present = [name for name in INPUT_KINDS if name in names]
    if kind in present:
        return str(kind)
    if len(present) == 1:
        return present[0]
    if present:
        raise ParameterError(f"{path} holds {' and '.join(present)}; choose one, as in kind={present[0]!r}.")
    others = [name for name in names if name not in BESIDE_SCORES]
    if kind is not None and len(others) == 1:
        return others[0]
    raise FileFormatError(
        f"{path} has no array called {', '.join(INPUT_KINDS[:-1])} or {INPUT_KINDS[-1]} (its arrays: "
        f"{', '.join(sorted(others)) or 'none'}); name the scores by their kind, or pass kind= for a single array."
    )


def kind_of_name(name: str) -> InputKind | None:
    """The kind that an array's name declares, or None."""
    return next((kind for kind in INPUT_KINDS if kind == name), None)


def beside_scores(predictions: Predictions) -> dict[str, Any]:
    """What a .npz or .zarr stores beside the scores: ``BESIDE_SCORES`` without those that say nothing."""
    is_dense = len(predictions.sample_shape) > 1
    groups = predictions.groups
    images = image_of_samples(predictions.sample_shape)
    if groups is not None and images is not None and np.array_equal(groups, images):
        groups = None  # a reader numbers the images again
    labels: Array | None = None
    if predictions.labels is not None:
        labels = np.asarray(texts_of_labels(predictions.labels, predictions.n_classes, predictions.class_names))
    entries = {
        "labels": labels,
        "source_names": predictions.source_names,
        "class_names": predictions.class_names,
        "sample_ids": predictions.sample_ids,
        "groups": groups,
        "sample_shape": predictions.sample_shape if is_dense else None,
    }
    return {name: entry for name, entry in entries.items() if entry is not None}
