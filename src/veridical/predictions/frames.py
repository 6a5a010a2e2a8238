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
from veridical.predictions.sample_ids import check_sample_ids, places_of


@dataclass
class Frame:
    """The numbers of a data frame (N, L), the names of its columns, and its index unless that only counts."""

    where: str
    values: Array
    columns: list[str]
    index: Array | None


def is_frame(values: Any) -> bool:
    """Whether it is a data frame: a table with named columns that converts itself to an array."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def index_of(values: Any) -> Any:
    """The index of a data frame or a series, if it has one that is more than a count; lists have a method so called."""
    index = getattr(values, "index", None)
    return None if callable(index) or type(index).__name__ == "RangeIndex" else index


def frame_of(s: int, frame: Any) -> Frame:
    """The content of source ``s``, a data frame of numbers."""
    where = f"source {s}"
    columns = [str(name) for name in frame.columns]
    values = np.asarray(frame.to_numpy())
    if values.dtype.kind not in "fiub":
        values = np.stack([_column_of(frame, name, where) for name in frame.columns], axis=1)
    index = index_of(frame)
    if index is None:
        return Frame(where, values, columns, None)
    return Frame(where, values, columns, check_sample_ids(list(index), len(values), f"the index of {where}"))


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
    if set(order) != set(frames[0].columns) and _count_only(frames[0].columns):
        order = frames[0].columns  # columns without names are in the order of ``class_names``
    for frame in frames:
        if len(set(frame.columns)) < len(frame.columns):
            raise ShapeError(f"{frame.where} has two columns of one name; give each class its own column.")
        missing = [name for name in order if name not in set(frame.columns)]
        extra = [name for name in frame.columns if name not in set(order)]
        if missing or extra:
            problem = f"no column {missing[0]!r}" if missing else f"a column {extra[0]!r} that others lack"
            raise ShapeError(f"{frame.where} has {problem}; all sources must have one column per class.")
        if frame.columns != order:
            place_of = {name: place for place, name in enumerate(frame.columns)}
            frame.values, frame.columns = frame.values[:, [place_of[name] for name in order]], list(order)
    return None if _count_only(order) else list(order)


def _count_only(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2, ...: places, not names."""
    return all(name == str(place) for place, name in enumerate(names))


def matching_rows(frames: Sequence[Frame]) -> Array | None:
    """Put the rows of all frames into the order of the first one's index; that index, if there is one."""
    first = frames[0]
    for frame in frames:
        if len(frame.values) != len(first.values):
            raise ShapeError(
                f"{frame.where} has {len(frame.values)} rows and {first.where} has {len(first.values)}; all sources "
                "must predict the same samples."
            )
        if (frame.index is None) != (first.index is None):
            with_index = frame.where if first.index is None else first.where
            raise ShapeError(f"{with_index} has an index with names and others have none; give all the same index.")
        if first.index is not None and frame.index is not None and not np.array_equal(frame.index, first.index):
            places = places_of(first.index, frame.index, first.where, frame.where)
            frame.values, frame.index = frame.values[places], first.index
    return first.index
