"""Labels in every form that users have them in, as indices of classes; -1 where a label is not known.

Whole numbers, names of classes, booleans for two classes, and labels with ids, which are joined by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import (
    AmbiguousInputWarning,
    FileFormatError,
    InvalidInputError,
    LabelError,
    UnmatchedIdWarning,
    shown,
    warn_caller,
)
from veridical.predictions.arrays import Array, as_array, index_of, is_frame, is_whole_number
from veridical.predictions.classes import UNKNOWN, ClassIndices, class_indices, is_whole, value_of

#: With fewer labels per class some classes have none by chance.
_LABELS_PER_CLASS = 10
#: What to say where labels are needed.
LABELS_NEEDED = "this needs labels and the predictions have none; give them as labels=, one integer per sample."


@dataclass(frozen=True)
class LabelTable:
    """Labels with the ids of their samples."""

    ids: Sequence[Any]
    labels: Any
    #: What to call it in a message.
    where: str = "labels"
    #: With ids and labels the other way round, where their columns have names that do not tell which is which.
    swapped: LabelTable | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Samples:
    """What labels are needed for: the samples and their classes."""

    shape: tuple[int, ...]
    ids: Array | None
    n_classes: int
    class_names: Sequence[str] | None

    @property
    def n_samples(self) -> int:
        return int(np.prod(self.shape))


def resolve_labels(labels: Any, samples: Samples) -> npt.NDArray[np.int64]:
    """(N,) indices of classes, or -1 where a label is not known: blank, None, NaN or -1."""
    if isinstance(labels, ClassIndices):
        return class_indices(_one_each(labels.indices, samples), samples.n_classes, None)
    if is_frame(labels):
        raise LabelError("labels are a data frame; give one of its columns, for example frame['label'].")
    table = _as_table(labels, samples)
    if table is not None and table.swapped is not None:
        table = _with_matching_ids(table, table.swapped, samples)
    array = _array_of(labels if table is None else table.labels)
    is_joined = table is not None and (isinstance(labels, Mapping) or not _is_in_order(table, samples))
    array = array if is_joined else _one_each(array, samples)
    indices = class_indices(array, samples.n_classes, samples.class_names)
    _warn_of_signs(array, indices, samples.n_classes)
    return _join(table, indices, samples) if table is not None and is_joined else indices


def _one_each(labels: Array, samples: Samples) -> Array:
    """One label per sample, or per pixel, on one axis."""
    if len(samples.shape) > 1 and labels.shape == samples.shape:
        labels = labels.reshape(-1)
    if labels.ndim != 1:
        raise LabelError(
            f"labels have shape {labels.shape}; give one integer per sample, shape {_listed(samples.shape)}."
        )
    if labels.shape[0] != samples.n_samples:
        raise LabelError(
            f"there are {labels.shape[0]} labels for {samples.n_samples} samples; give one label per sample."
        )
    return labels


def _warn_of_signs(labels: Array, indices: npt.NDArray[np.int64], n_classes: int) -> None:
    """Warn of labels of two classes that are -1 and 1, of which -1 is read as not known."""
    if n_classes != 2 or not labels.size or (indices.min(), indices.max()) != (UNKNOWN, 1) or not indices.all():
        return
    if set(map(value_of, set(labels.tolist()))) == {-1, 1}:
        warn_caller(
            "the labels of two classes are -1 and 1, and -1 is read as a label that is not known; if it is a class, "
            "give 0 and 1: (labels > 0).astype(int).",
            AmbiguousInputWarning,
        )


def _with_matching_ids(table: LabelTable, swapped: LabelTable, samples: Samples) -> LabelTable:
    """Of two columns, the one that has ids of the samples holds the ids."""
    known = set() if samples.ids is None else set(map(str, samples.ids.tolist()))
    first, second = (sum(str(entry) in known for entry in way.ids) for way in (table, swapped))
    if first == second:
        raise FileFormatError(
            f"{table.where} has columns {', '.join(table.columns)[:200]}; name the one with the labels: label."
        )
    return table if first > second else replace(swapped, where=table.where)


def _array_of(labels: Any) -> Array:
    try:
        return as_array(labels, "labels", "give one integer per sample")
    except InvalidInputError as error:
        raise LabelError(str(error)) from None


def _listed(shape: tuple[int, ...]) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else str(shape)


def _as_table(labels: Any, samples: Samples) -> LabelTable | None:
    """Labels with ids: a table from a file, a mapping, or a series with an index that is more than a count."""
    if isinstance(labels, LabelTable):
        return labels
    if isinstance(labels, Mapping):
        return LabelTable(list(labels), _objects(list(labels.values())))
    index = _index_for(labels, samples.ids)
    if samples.ids is None:
        if index is not None and sorted(map(str, index)) == sorted(map(str, range(samples.n_samples))):
            warn_caller(
                "the index of labels is in another order than 0, 1, 2, ..., and the predictions have no sample ids to "
                "join it with: labels are taken in their own order.",
                UnmatchedIdWarning,
            )
        return None
    return None if index is None else LabelTable(list(index), np.asarray(labels), "the index of labels")


def _index_for(labels: Any, ids: Array | None) -> Any:
    """The index of labels, if they have one; an index that counts is one only where it has all the ids."""
    index = index_of(labels)
    if index is None and ids is not None and ids.dtype.kind == "i" and not callable(getattr(labels, "index", len)):
        return range(len(labels)) if ((ids >= 0) & (ids < len(labels))).all() else None
    return index


def warn_of_order(labels: Any, ids: Any, order: str, where: str, label_file: Path | None = None) -> None:
    """Warn of labels without ids for samples that were put into an ``order``, or of a file of them for ids."""
    ids = None if ids is None else np.asarray(ids)
    if labels is None or isinstance(labels, (LabelTable, Mapping)) or _index_for(labels, ids) is not None:
        return
    if order:
        warn_caller(
            f"the samples of {where} are in the order of {order}, and {label_file or 'labels'} have no ids: they are "
            "taken in that order; give labels with ids, as in {id: label}.",
            UnmatchedIdWarning,
        )
    elif label_file is not None and ids is not None:
        warn_caller(
            f"{label_file} has no ids and the samples have: its labels are taken in the order of the samples.",
            UnmatchedIdWarning,
        )


def warn_of_unnamed_classes(labels: Array | None, class_names: Sequence[str] | None, kind: str, where: str) -> None:
    """Warn of few columns of logits that no label names, of which nothing else shows that they are classes."""
    if kind != "logits" or class_names is None or labels is None:
        return
    n_classes = len(class_names)
    named = np.unique(labels)
    unnamed = [name for l, name in enumerate(class_names) if l not in named]
    if (labels != UNKNOWN).sum() >= _LABELS_PER_CLASS * n_classes and 0 < len(unnamed) <= n_classes / 3:
        warn_caller(
            f"{where}: no label names the classes {', '.join(unnamed)}, which are columns of the table; if they are "
            "not classes, choose the columns of classes with class_columns=, and in data frames with class_names=.",
            AmbiguousInputWarning,
        )


def _objects(entries: list[Any]) -> Array:
    result = np.empty(len(entries), object)
    result[:] = entries
    return result


def _is_in_order(table: LabelTable, samples: Samples) -> bool:
    """Whether labels with ids belong to samples without by position: their ids are names, or ascending numbers.

    Samples without ids are numbered from 0, so that labels with some of these numbers are joined.
    """
    if samples.ids is not None:
        return False
    numbers = [_as_number(entry) for entry in table.ids]
    if None not in numbers:
        if all(0 <= number < samples.n_samples for number in numbers):  # type: ignore[operator]
            return False
        if any(after <= before for before, after in pairwise(numbers)):  # type: ignore[operator]
            raise LabelError(
                f"{table.where}: the ids are not in ascending order, and the predictions have no sample ids to join "
                "them with; give the predictions ids, or write the labels in the order of the samples."
            )
    if len(numbers) != samples.n_samples:
        raise LabelError(
            f"{table.where}: there are {len(numbers):,} labels with ids for {samples.n_samples:,} samples without; "
            "give the predictions sample ids to join them with, or one label per sample."
        )
    return True


def _as_number(entry: Any) -> int | None:
    """An id as a whole number, if it is one."""
    if isinstance(entry, str):
        return int(entry) if is_whole(entry.strip()) else None
    return int(entry) if is_whole_number(entry) else None


def _join(table: LabelTable, indices: npt.NDArray[np.int64], samples: Samples) -> npt.NDArray[np.int64]:
    """The labels of a table in the order of the samples; what does not match is counted and named."""
    ids: list[Any] = list(range(samples.n_samples)) if samples.ids is None else samples.ids.tolist()
    has_numbers = samples.ids is None or samples.ids.dtype.kind == "i"
    keys = [_as_number(entry) if has_numbers else str(entry) for entry in table.ids]
    place_of = {entry: n for n, entry in enumerate(ids)}
    result = np.full(len(ids), UNKNOWN, np.int64)
    extra, contradicted = [], []
    for key, entry, label in zip(keys, table.ids, indices.tolist(), strict=True):
        n = place_of.get(key)
        if n is None:
            extra.append(entry)
        elif label != UNKNOWN:
            if result[n] not in (UNKNOWN, label):
                contradicted.append(entry)
            result[n] = label
    missing = sorted(place_of[entry] for entry in place_of.keys() - set(keys))
    if contradicted:
        raise LabelError(
            f"{table.where}: {_count(len(contradicted), 'sample has', 'samples have')} two different labels, the first "
            f"is {shown(contradicted[0])}; keep one."
        )
    if ids and len(missing) == len(ids):
        raise LabelError(
            f"{table.where}: none of the {len(keys):,} ids (such as {shown(table.ids[0]) if keys else 'none'}) is the "
            f"id of a sample (such as {shown(ids[0])}); use the same ids."
        )
    if missing or extra:
        problems = []
        if missing:
            problems.append(
                f"{_count(len(missing), 'sample has', 'samples have')} no label ({shown(ids[missing[0]])}, ...)"
            )
        if extra:
            problems.append(
                f"{_count(len(extra), 'label belongs', 'labels belong')} to no sample ({shown(extra[0])}, ...)"
            )
        warn_caller(f"{table.where}: {' and '.join(problems)}.", UnmatchedIdWarning)
    return result


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
