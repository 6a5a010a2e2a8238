"""Data frames of predictions, one row per sample and one column per class; pandas, Polars and the like.

They are recognised by what they offer, so that none of these packages is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical.errors import DtypeError, ShapeError
from veridical.predictions.arrays import Array, index_of, is_missing
from veridical.predictions.classes import columns_of_classes
from veridical.predictions.contents import Contents
from veridical.predictions.sample_ids import check_sample_ids


def frame_of(s: int, frame: Any, class_names: Sequence[str] | None) -> Contents:
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
    return Contents(values, class_names=classes, sample_ids=ids, where=where)


def _column_of(frame: Any, name: Any, where: str) -> Array:
    """The numbers of a column, NaN where they are missing: nullable types are objects in an array."""
    entries = np.asarray(frame[name]).tolist()
    if not all(is_missing(entry) or isinstance(entry, (bool, int, float)) for entry in entries):
        raise DtypeError(
            f"column {str(name)!r} of {where} does not hold numbers; give a data frame of scores, one column per class."
        )
    return np.asarray([math.nan if is_missing(entry) else float(entry) for entry in entries])
