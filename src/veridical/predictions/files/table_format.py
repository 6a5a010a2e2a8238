"""Formats that hold tables: what they read is shared, and they write columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import DtypeError, ParameterError, ShapeError
from veridical.predictions.classes import UNKNOWN, is_class_column, texts_of_labels
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Format, ReadTable
from veridical.predictions.files.file_checks import check_writable_names
from veridical.predictions.files.labels import labels_of_table
from veridical.predictions.files.tables import PRECISIONS, read_predictions
from veridical.predictions.validation import Array

_ROWS_AT_ONCE = 4096


def table_format(
    suffix: str,
    read_table: ReadTable,
    write_table: Callable[..., None],
    *,
    unwritable: str,
    keeps_types: bool,
    extra: str | None = None,
) -> Format:
    """A format that holds tables.

    Parameters
    ----------
    suffix : str
    read_table : callable
        The columns that a function chooses by their names.
    write_table : callable
        Writes to a path blocks of columns of the types in a mapping: str, int or a dtype.
    unwritable : str
        Pattern of names that the format would change.
    keeps_types : bool
        Whether numbers keep their precision; if not, a column says it.
    extra : str, optional
        What to install.
    """
    return Format(
        (suffix,),
        read=partial(read_predictions, read_table),
        write=partial(_write_predictions, write_table, unwritable, keeps_types),
        read_labels=partial(labels_of_table, read_table),
        read_table=read_table,
        write_table=write_table,
        has_columns=True,
        keeps_images=False,
        extra=extra,
    )


def _write_predictions(
    write_table: Callable[..., None], unwritable: str, keeps_types: bool, predictions: Predictions, path: Path
) -> None:
    """Write the long form, a block of a source at a time."""
    classes = _columns_to_write(predictions)
    check_writable_names(predictions, unwritable, path.suffix.lower(), ".zarr")
    columns = _columns_of_samples(predictions)
    dtype = predictions.dtype.newbyteorder("=")
    constants: dict[str, str] = {"kind": predictions.kind}
    if not keeps_types and dtype.name in PRECISIONS[:-1]:
        constants["dtype"] = dtype.name
    ids, *others = ((name, type_of(entries)) for name, entries in columns.items())
    types: dict[str, Any] = dict([ids, ("source", str if predictions.source_names else int), *others])
    types |= {**dict.fromkeys(constants, str), **dict.fromkeys(classes, dtype)}

    def blocks() -> Iterator[list[Any]]:
        for source, rows, scores in _rows_to_write(predictions):
            own, *rest = (entries[rows.start : rows.stop] for entries in columns.values())
            same = ([entry] * len(rows) for entry in (source, *constants.values()))
            yield [own, next(same), *rest, *same, *scores.T]

    write_table(path, types, blocks())


def type_of(entries: Any) -> Any:
    """The type of a column: the dtype of an array; str or int for a list, in which None is empty."""
    if isinstance(entries, np.ndarray):
        return entries.dtype
    return str if any(isinstance(entry, str) for entry in entries) else int


def _columns_to_write(predictions: Predictions) -> list[str]:
    """Names of the class columns; a class must not have the name of a column with a meaning."""
    names = list(predictions.class_names or map(str, range(predictions.n_classes)))
    check_class_columns(names)
    if predictions.dtype.kind == "f" and predictions.dtype.itemsize > 8:
        raise DtypeError(f"{predictions.dtype} does not fit into a table; convert the scores to float64.")
    if predictions.n_samples == 0:
        raise ShapeError("there are no samples, and a table has its shape from them; save a .npz.")
    return names


def check_class_columns(names: Sequence[str], also: Sequence[str] = ()) -> None:
    """Refuse classes that would not be read as classes again."""
    taken = next((name for name in names if name in (*also, "") or not is_class_column(name)), None)
    if taken is not None:
        raise ParameterError(f"a class is called {taken!r}, which a table cannot hold; rename it or save a .npz.")


def _columns_of_samples(predictions: Predictions) -> dict[str, list[Any]]:
    """The columns that say something about samples: their ids, labels (None where they are not known) and groups."""
    ids = range(predictions.n_samples) if predictions.sample_ids is None else predictions.sample_ids.tolist()
    columns: dict[str, list[Any]] = {"sample": list(ids)}
    if predictions.labels is not None:
        labels = texts_of_labels(predictions.labels, predictions.n_classes, predictions.class_names)
        columns["label"] = [None if label in (UNKNOWN, "") else label for label in labels]
    if predictions.groups is not None:
        columns["group"] = predictions.groups.tolist()
    return columns


def _rows_to_write(predictions: Predictions) -> Iterator[tuple[Any, range, Array]]:
    """(source name, samples, scores) in blocks of one source, so that memory holds one block."""
    names = predictions.source_names or range(predictions.n_sources)
    for name, source in zip(names, predictions, strict=True):
        for start in range(0, predictions.n_samples, _ROWS_AT_ONCE):
            block = range(start, min(start + _ROWS_AT_ONCE, predictions.n_samples))
            yield name, block, np.asarray(source[block.start : block.stop], predictions.dtype.newbyteorder("="))
