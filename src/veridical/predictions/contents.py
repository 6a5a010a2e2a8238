"""The content of an input, in whatever form it came, and sources brought into one order of classes and samples.

Data frames, of pandas, Polars and the like, are recognised by what they offer, so that none of these is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import DtypeError, InvalidInputError, LabelError, ShapeError
from veridical.predictions.arrays import Array, index_of, is_missing
from veridical.predictions.classes import UNKNOWN, ClassIndices, columns_of_classes, order_of_columns
from veridical.predictions.labels import Samples, resolve_labels
from veridical.predictions.sample_ids import check_sample_ids, places_of
from veridical.predictions.validation import InputKind


@dataclass
class Contents:
    """Scores, and what their input says about them."""

    #: (S, N, L), or one array (N, L) per source; of one source among others (N, L).
    values: Any
    labels: Any = None
    kind: InputKind | None = None
    source_names: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    sample_ids: Any = None
    groups: Any = None
    #: (N,), or (N, H, W) where samples are the pixels of images; its product is the number of samples.
    sample_shape: tuple[int, ...] | None = None
    #: Of a table: how far from one the sums of its rows may be by the digits they are written with.
    rounding: float = 0.0
    #: What samples are in the order of, where it is neither that of all rows nor of ascending ids, for a message.
    order: str = ""
    is_table: bool = False
    #: All files that were read; empty if it is only the one that the reader was called with.
    files: tuple[Path, ...] = ()
    #: What a source among others is called in messages.
    where: str = ""


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


def match_classes(sources: Sequence[Contents], wanted: Sequence[str] | None = None) -> Sequence[str] | None:
    """Put the columns of all sources, and their labels, into one order, by default that of the first with names."""
    wanted = next((source.class_names for source in sources if source.class_names), None) if wanted is None else wanted
    if wanted is None:
        return None
    for source in sources:
        names, n_classes = source.class_names, source.values.shape[-1]
        if names is None and n_classes != len(wanted):
            continue  # its shape differs from that of others
        order = order_of_columns(names, wanted, source.where)
        if source.labels is not None:
            samples = Samples((len(source.values),), None, n_classes, names or wanted)
            indices = resolve_labels(source.labels, samples)
            source.labels = indices if order is None else np.append(np.argsort(order), UNKNOWN)[indices]
        if order is not None:
            source.values = source.values[:, order]
    return wanted


def match_samples(sources: Sequence[Contents], error: type[InvalidInputError] = ShapeError) -> Array | None:
    """Put the samples of all sources into the order of the first, by their ids; its ids, if it has some.

    Samples without ids are numbered from 0.
    """
    first = sources[0]
    if any(source.sample_ids is not None for source in sources):
        ids = _ids_or_count(first)
        for source in sources[1:]:
            others = _ids_or_count(source)
            if not np.array_equal(others, ids):
                places = places_of(ids, others, first.where, source.where, error)
                if not (ids[1:] > ids[:-1]).all():
                    first.order = first.order or f"{first.where}, and other sources are joined to it by id"
                for name in ("values", "labels", "groups"):
                    entries = getattr(source, name)
                    setattr(source, name, None if entries is None else np.asarray(entries)[places])
    for source in sources:
        if source.values.shape != first.values.shape:
            raise ShapeError(
                f"{source.where} has shape {source.values.shape} and {first.where} has shape {first.values.shape}; all "
                "sources must predict the same samples and classes."
            )
    return None if first.sample_ids is None else np.asarray(first.sample_ids)


def _ids_or_count(source: Contents) -> Array:
    return np.arange(len(source.values)) if source.sample_ids is None else np.asarray(source.sample_ids)


def common_labels(sources: Sequence[Contents], class_names: Sequence[str] | None) -> Any:
    """The labels that sources have, which must agree; places of classes where these have names."""
    labelled = [source for source in sources if source.labels is not None]
    for source in labelled:
        if not np.array_equal(source.labels, labelled[0].labels):
            raise LabelError(
                f"{source.where} has labels that differ from those in {labelled[0].where}; all sources need the same "
                "samples."
            )
    labels = labelled[0].labels if labelled else None
    return labels if class_names is None or labels is None else ClassIndices(np.asarray(labels))
