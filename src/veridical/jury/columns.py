"""Columns of a long table of votes, from a CSV file, a Parquet file or a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import FileFormatError, LabelError, ParameterError, ShapeError, shown
from veridical.predictions.files.contents import check_distinct
from veridical.predictions.files.formats import format_with, suffixes_with
from veridical.predictions.sample_ids import as_id
from veridical.predictions.votes import CONFIDENCE as CONFIDENCE
from veridical.predictions.votes import ITEM as ITEM
from veridical.predictions.votes import LABEL as LABEL
from veridical.predictions.votes import SOURCE as SOURCE

#: What the labels of known answers may be called.
GOLD = (*LABEL, "gold", "truth")
#: Names that count only where no other column has the meaning: a table may also number its rows.
_WEAK: dict[tuple[str, ...], tuple[str, ...]] = {ITEM: ("id",)}
RESERVED = (*ITEM, *_WEAK[ITEM], *SOURCE, *LABEL, *CONFIDENCE)

#: Types whose values are equal only where their texts are: objects of others may do anything when they are compared.
_SHARED = frozenset({int, str, np.int32, np.int64, np.str_})

Columns = Mapping[str, Sequence[Any]]


def read_columns(path: Path) -> dict[str, list[str]]:
    """All columns of a table of votes, by name."""
    return _read(path, "a table of votes", "one row per vote, with the columns item, source and label")


def read_gold_columns(path: Path) -> dict[str, list[str]]:
    """All columns of a table of known answers, by name."""
    return _read(path, "a table of gold labels", "one row per known answer, with the columns item and label")


def _read(path: Path, what: str, rows: str) -> dict[str, list[str]]:
    format = format_with("read_table", path)
    if format is None:
        suffixes = " or ".join(suffixes_with("read_table"))
        raise FileFormatError(f"{path} has the suffix {path.suffix!r}; {what} is a {suffixes}.")
    columns: dict[str, list[str]] = format.read_table(path, lambda names: ([], names)).text
    if not columns or not len(next(iter(columns.values()))):
        raise FileFormatError(f"{path} has no rows; write {rows}.")
    return columns


def columns_of_frame(frame: Any) -> dict[str, list[Any]]:
    """The columns of a pandas DataFrame."""
    check_distinct(list(map(str, frame.columns)), "the data frame")
    return {str(name): frame[name].tolist() for name in frame.columns}


def column(columns: Columns, names: tuple[str, ...], where: str) -> Sequence[Any]:
    """The column that goes by one of the names."""
    present = [name for name in columns if name.lower() in names]
    weak = _WEAK.get(names, ())
    present = present or [name for name in columns if name.lower() in weak]
    if len(present) == 1:
        return columns[present[0]]
    if present:
        raise FileFormatError(f"{where} has the columns {' and '.join(present)}, which mean the same; keep one.")
    raise FileFormatError(
        f"{where} has no column {names[0]} (columns: {', '.join(columns)[:200]}); call it {one_of((*names, *weak))}."
    )


def one_of(names: Sequence[str]) -> str:
    """The names in words."""
    return f"{', '.join(names[:-1])} or {names[-1]}"


def answers_of(columns: Columns, where: str) -> dict[str, str]:
    """Item -> answer, of a table of known answers; an item without a label has none."""
    check_lengths(columns, where)
    ids, labels = (as_ids(column(columns, names, where)) for names in (ITEM, GOLD))
    answers: dict[str, str] = {}
    for row, (item, label) in enumerate(zip(ids, labels, strict=True)):
        if not item:
            raise LabelError(f"row {row + 1} of {where} has no item; name it, or leave the row out.")
        if label and answers.setdefault(item, label) != label:
            raise LabelError(f"{where} has two answers to item {item}, {answers[item]!r} and {label!r}; keep one.")
    if ids and not answers:
        items = f"{len(ids)} items, all" if len(ids) > 1 else "1 item,"
        raise LabelError(f"{where} has {items} without an answer; fill in some, or leave the table out.")
    return answers


def check_lengths(columns: Columns, where: str) -> None:
    """Raise if columns, as of a dictionary, have different lengths."""
    for name, entries in columns.items():
        if not isinstance(entries, Sized):
            raise ParameterError(f"column {name} of {where} is {shown(entries)}; give a list, one entry per row.")
    lengths = {name: len(entries) for name, entries in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ShapeError(f"the columns of {where} have different lengths ({listed}); give one entry per row in each.")


def has_column(columns: Columns, names: Sequence[str]) -> bool:
    """Whether a column goes by one of the names."""
    return any(name.lower() in names for name in columns)


def as_ids(values: Iterable[Any]) -> list[str]:
    """:func:`as_id` of each; equal values share one text, since a table names an item once for each vote on it.

    Examples
    --------
    >>> as_ids([7, 7.0, " q1 "])
    ['7', '7', 'q1']
    """
    texts: dict[tuple[type, Any], str] = {}

    def text_of(value: Any) -> str:
        if type(value) not in _SHARED:
            return as_id(value)
        key = type(value), value
        if key not in texts:
            texts[key] = as_id(value)
        return texts[key]

    return [text_of(value) for value in values]
