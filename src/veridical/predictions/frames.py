"""Data frames of predictions, one row per sample and one column per class; pandas, Polars and the like.

They are recognised by what they offer, so that none of these packages is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veridical.errors import DtypeError, ShapeError
from veridical.predictions.arrays import Array, is_missing
from veridical.predictions.classes import columns_of_classes, is_counting, order_of_columns
from veridical.predictions.sample_ids import check_sample_ids, places_of


@dataclass
class Frame:
    """The numbers of a data frame (N, L), the names of its columns, and its index unless it only counts."""

    where: str
    values: Array
    columns: list[str]
    index: Array | None


def is_frame(values: Any) -> bool:
    """Whether it is a data frame: a table with named columns that converts itself to an array."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def index_of(values: Any) -> Any:
    """The index of a data frame or a series, unless it only counts from 0; lists have a method so called."""
    index = getattr(values, "index", None)
    if index is None or callable(index):
        return None
    return None if _counts(np.asarray(index)) else index


def _counts(ids: Array) -> bool:
    """Whether ids are 0, 1, 2, ...: places, and no ids."""
    return ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(len(ids)))


def frame_of(s: int, frame: Any, class_names: Sequence[str] | None) -> Frame:
    """The classes of source ``s``, a data frame: its columns, those of ``class_names`` if it has more than these."""
    where = f"source {s}"
    columns = [str(name) for name in frame.columns]
    if len(set(columns)) < len(columns):
        raise ShapeError(f"{where} has two columns of one name; give each class its own column.")
    chosen = set(class_names or ())
    if chosen and chosen < set(columns):
        classes = [name for name in columns if name in chosen]
    else:
        classes = columns_of_classes(columns, where)
    if len(classes) < len(columns):
        kept = set(classes)
        frame = frame[[name for name in frame.columns if str(name) in kept]]
    values = np.asarray(frame.to_numpy())
    if values.dtype.kind not in "fiub":
        values = np.stack([_column_of(frame, name, where) for name in frame.columns], axis=1)
    index = index_of(frame)
    ids = None if index is None else check_sample_ids(list(index), len(values), f"the index of {where}")
    return Frame(where, values, classes, ids)


def _column_of(frame: Any, name: Any, where: str) -> Array:
    """The numbers of a column, NaN where they are missing: nullable types are objects in an array."""
    entries = np.asarray(frame[name]).tolist()
    if not all(is_missing(entry) or isinstance(entry, (bool, int, float)) for entry in entries):
        raise DtypeError(
            f"column {str(name)!r} of {where} does not hold numbers; give a data frame of scores, one column per class."
        )
    return np.asarray([math.nan if is_missing(entry) else float(entry) for entry in entries])


def matching_columns(frames: Sequence[Frame], class_names: Sequence[str] | None) -> list[str] | None:
    """Put the columns of all frames into one order, that of ``class_names`` or of the first; the names, if any."""
    order = list(class_names) if class_names is not None else frames[0].columns
    if set(order) != set(frames[0].columns) and is_counting(frames[0].columns):
        order = frames[0].columns  # columns without names are in the order of ``class_names``
    for frame in frames:
        places = order_of_columns(frame.columns, order, frame.where)
        if places is not None:
            frame.values = frame.values[:, places]
    return None if is_counting(order) else list(order)


def matching_rows(frames: Sequence[Frame]) -> Array | None:
    """Put the rows of all frames into the order of the first one's index; that index, if there is one.

    Frames whose index counts, or that have none, are numbered from 0.
    """
    first, *others = frames
    ids = [np.arange(len(frame.values)) if frame.index is None else frame.index for frame in frames]
    for frame, own in zip(others, ids[1:], strict=True):
        if len(own) != len(ids[0]):
            raise ShapeError(
                f"{frame.where} has {len(own)} rows and {first.where} has {len(ids[0])}; all sources must predict the "
                "same samples."
            )
        if not np.array_equal(own, ids[0]):
            frame.values = frame.values[places_of(ids[0], own, first.where, frame.where)]
    return first.index
