"""``.csv``: tables as text, with the standard library."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import atomic_file
from veridical.errors import CorruptFileError, FileFormatError
from veridical.predictions.classes import value_of
from veridical.predictions.files.contents import Choose, Columns, check_distinct
from veridical.predictions.files.file_checks import check_is_file, reading, wrong_content
from veridical.predictions.files.table_format import table_format

_WHAT = "a .csv table"
#: Spaces around a name are layout, a carriage return ends a line, and halves of surrogate pairs have no encoding.
_UNWRITABLE = r"^\s|\s$|[\r\0\ud800-\udfff]"
#: Beginnings of cells that spreadsheets take for formulas.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def read_table(path: Path, choose: Choose) -> Columns:
    """The chosen columns; an empty number is NaN."""
    check_is_file(path, _WHAT)
    numbers = array("d")
    same: dict[str, str] = {}  # one object for each different text
    with reading(path, _WHAT), _open(path) as (names, rows):
        check_distinct(names, path)
        of_numbers, of_text = choose(names)
        place_of = {name: place for place, name in enumerate(names)}
        score_columns = _entries([place_of[name] for name in of_numbers])
        text: dict[str, list[str]] = {name: [] for name in of_text}
        text_columns = [(place_of[name], column) for name, column in text.items()]
        for line_number, row in rows:
            scores = score_columns(row)
            try:
                numbers.extend(map(float, scores))
            except ValueError:
                del numbers[len(numbers) // len(scores) * len(scores) :]
                numbers.extend(_numbers(scores, of_numbers, f"line {line_number} of {path}"))
            for place, column in text_columns:
                column.append(same.setdefault(row[place], row[place]).strip())
    shape = (-1, len(of_numbers)) if of_numbers else (0, 0)
    return Columns(names, np.frombuffer(numbers).reshape(shape), text, first_row=len(names) == 1)


def _entries(places: list[int]) -> Any:
    """A function that takes these entries of a row."""
    if not places:
        return lambda row: ()
    first, *rest = places  # with one place itemgetter would give the entry itself
    return itemgetter(first, *rest) if rest else lambda row: (row[first],)


@contextmanager
def _open(path: Path) -> Iterator[tuple[list[str], Iterator[tuple[int, list[str]]]]]:
    """The column names of a table in UTF-8, and an iterator over (line number, row).

    Empty lines are passed over; in a table of one column they are empty cells, but for those at its end.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            names = [name.strip() for name in next(lines, [])]

            def rows() -> Iterator[tuple[int, list[str]]]:
                n_empty = 0
                for row in lines:
                    if not row:
                        n_empty += len(names) == 1
                        continue
                    if len(row) != len(names):
                        raise CorruptFileError(
                            f"line {lines.line_num} of {path} has {len(row)} entries, and there are {len(names)} "
                            "columns; it may be truncated: write it again."
                        )
                    if n_empty:
                        yield from [(lines.line_num, [""])] * n_empty
                        n_empty = 0
                    yield lines.line_num, row

            yield names, rows()
    except (UnicodeDecodeError, csv.Error) as error:
        raise wrong_content(path, f"{_WHAT} in UTF-8 ({str(error)[:100]})") from error


def _numbers(scores: Sequence[str], classes: Sequence[str], where: str) -> list[float]:
    """Numbers of a row in which some entries are empty or not numbers."""
    result = []
    for name, text in zip(classes, scores, strict=True):
        try:
            result.append(float(text or "nan"))
        except ValueError:
            raise FileFormatError(
                f"{where}: {text[:40]!r} in column {name!r} is not a number; only sample, source, label, group, "
                "kind and dtype hold text; choose the columns of classes with class_columns=."
            ) from None
    return result


def write_table(
    path: Path, types: Mapping[str, Any], blocks: Iterable[Sequence[Any]], *, for_spreadsheets: bool = False
) -> None:
    """Write blocks of columns; numbers have as many digits as reading them back exactly needs.

    For spreadsheets, an apostrophe is put before texts that they would take for formulas.
    """
    guarded = _guarded if for_spreadsheets else list
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(guarded(types))
        for block in blocks:
            texts = zip(types.values(), block, strict=True)
            columns = [guarded(column) if kind is str else _texts(column) for kind, column in texts]
            writer.writerows(zip(*columns, strict=True))
        text.flush()
        text.detach()


def _texts(column: Any) -> Any:
    """Numbers as they are written: Python has the shortest text of a float64, NumPy that of any precision."""
    if not isinstance(column, np.ndarray):
        return column
    return column.tolist() if column.dtype == np.float64 else column.astype(str).tolist()


def _guarded(column: Iterable[str | None]) -> list[str | None]:
    """Texts with an apostrophe before those that spreadsheets take for formulas; numbers are none."""
    return [f"'{text}" if text and text.startswith(_FORMULA) and value_of(text) is None else text for text in column]


CSV = table_format(".csv", read_table, write_table, unwritable=_UNWRITABLE, keeps_types=False)
