"""Votes as predictions: a source that names a class puts all probability on it."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np

from veridical.errors import LabelError, ParameterError, ShapeError, shown
from veridical.predictions.arrays import Array, as_array, is_whole_number
from veridical.predictions.validation import check_names

#: What the columns of a table of votes may be called.
ITEM = ("item", "sample", "task", "question")
SOURCE = ("source", "juror", "worker", "annotator", "model", "judge")
LABEL = ("label", "vote", "answer")
CONFIDENCE = ("confidence",)

#: More numbers than this are not made of votes: they are mostly absent where there are so many.
_MOST_NUMBERS = 1 << 29


def vectors_of_votes(
    values: Any, class_names: Sequence[str] | None, sources_axis: int
) -> tuple[Array, Sequence[str] | None]:
    """(S, N, L) float32 with one in the place of each vote, rows of NaN where there is none, and the classes' names.

    ``values`` has shape (S, N): places of classes, -1 for no vote; or names of classes, "" or None for no vote.
    """
    array = as_array(values, "the votes", "give one label per source and sample, shape (sources, samples)")
    class_names = check_names(class_names, len(class_names) if isinstance(class_names, Sized) else 2, "class")
    if not is_whole_number(sources_axis) or sources_axis not in (0, 1):
        raise ParameterError(
            f"sources_axis is {shown(sources_axis)}; votes have shape (sources, samples), or 1 for the other."
        )
    if array.ndim != 2 or not array.shape[0]:
        raise ShapeError(f"the votes have shape {array.shape}; give one label per source and sample, shape (S, N).")
    array = array if sources_axis == 0 else array.T
    if array.dtype.kind in "USO":
        array, class_names = _places(array, class_names)
    if array.dtype.kind not in "iu":
        raise LabelError(f"the votes have dtype {array.dtype}; give integers, with -1 where a source has no vote.")
    n_classes = max(int(array.max(initial=0)) + 1, 2) if class_names is None else len(class_names)
    wrong = np.argwhere((array < -1) | (array >= n_classes))
    if wrong.size:
        s, n = wrong[0].tolist()
        raise LabelError(
            f"source {s}, sample {n}: the vote is {array[s, n]}; classes go from 0 to {n_classes - 1}, and -1 stands "
            "for no vote."
        )
    if array.size * n_classes > _MOST_NUMBERS:
        raise ShapeError(
            f"{array.shape[0]} sources, {array.shape[1]} samples and {n_classes} classes are too many for vectors; "
            "veridical.judge takes votes as they are."
        )
    probs = np.full((*array.shape, n_classes), np.nan, np.float32)
    probs[array >= 0] = np.eye(n_classes, dtype=np.float32)[array[array >= 0]]
    return probs, class_names


def _places(array: Array, class_names: Sequence[str] | None) -> tuple[Array, list[str]]:
    texts = np.array([["" if cell is None else str(cell).strip() for cell in row] for row in array.tolist()])
    names = sorted({*texts.ravel().tolist()} - {""}) if class_names is None else [*class_names]
    if len(names) < 2:
        raise LabelError(f"the votes name {len(names)} class; give all classes as class_names.")
    places = {name: l for l, name in enumerate(names)} | {"": -1}
    unknown = [(s, n) for s, row in enumerate(texts) for n, text in enumerate(row) if text not in places]
    if unknown:
        s, n = unknown[0]
        raise LabelError(
            f"source {s}, sample {n}: the vote is {str(texts[s, n])!r}, and the classes are {', '.join(names)[:200]}."
        )
    return np.array([[places[text] for text in row] for row in texts.tolist()], np.int64), names


def is_header_of_votes(names: Sequence[str]) -> bool:
    """Whether a table with these columns has votes and no scores: an item, a source, a label, and nothing else.

    The names are those of :func:`veridical.judge`; a table with sample and source may have scores in the third.
    """
    columns = {name.lower() for name in names}
    has_all = all(columns & set(known) for known in (ITEM, SOURCE, LABEL))
    return (
        has_all
        and columns <= {*ITEM, *SOURCE, *LABEL, *CONFIDENCE}
        and not {"sample", "source"} < columns - {*LABEL[:1]}
    )
