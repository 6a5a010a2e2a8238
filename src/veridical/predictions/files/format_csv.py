"""``.csv``: tables as text, with the standard library."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from veridical._atomic import atomic_file
from veridical.errors import FileFormatError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Contents
from veridical.predictions.files.csv_rows import open_csv
from veridical.predictions.files.file_checks import check_is_file, check_writable_names, reading
from veridical.predictions.files.tables import (
    RESERVED,
    Table,
    check_header,
    columns_of_samples,
    columns_to_write,
    contents_of,
    rows_to_write,
    standard_names,
)
from veridical.predictions.validation import InputKind

_WHAT = "a .csv table"
#: Spaces around a name are layout, a carriage return ends a line, and halves of surrogate pairs have no encoding.
_UNWRITABLE = r"^\s|\s$|[\r\0\ud800-\udfff]"


def read_csv(path: Path, kind: InputKind | None, group_column: str | None = None) -> Contents:
    """Scores and labels of a ``.csv`` in long form or of one source; ``group_column`` holds the groups."""
    check_is_file(path, _WHAT)
    with reading(path, _WHAT):
        return contents_of(_read_table(path, group_column), kind)


def _read_table(path: Path, group_column: str | None) -> Table:
    numbers = array("d")
    same: dict[str, str] = {}  # one object for each different text
    with open_csv(path) as (names, rows):
        check_header(names, path)
        places = {column: place for place, column in enumerate(names)}
        place_of = {name: places[column] for column, name in standard_names(names, group_column, path).items()}
        classes = check_header(list(place_of), path)
        first, *rest = (place_of[name] for name in classes)
        # With two places itemgetter gives tuples; with one it would give the entry itself.
        score_columns = itemgetter(first, *rest) if rest else lambda row: (row[first],)
        text: dict[str, list[str]] = {name: [] for name in place_of if name in RESERVED}
        text_columns = [(place_of[name], column) for name, column in text.items()]
        for line_number, row in rows:
            scores = score_columns(row)
            try:
                numbers.extend(map(float, scores))
            except ValueError:
                del numbers[len(numbers) // len(classes) * len(classes) :]
                numbers.extend(_numbers(scores, classes, f"line {line_number} of {path}"))
            for place, column in text_columns:
                column.append(same.setdefault(row[place], row[place]).strip())
    return Table(path, classes, np.frombuffer(numbers).reshape(-1, len(classes)), text)


def _numbers(scores: Sequence[str], classes: Sequence[str], where: str) -> list[float]:
    """Numbers of a row in which some entries are empty or not numbers."""
    result = []
    for name, text in zip(classes, scores, strict=True):
        try:
            result.append(float(text or "nan"))
        except ValueError:
            raise FileFormatError(
                f"{where}: {text[:40]!r} in column {name!r} is not a number; only sample, source, label, group, "
                "kind and dtype hold text."
            ) from None
    return result


def write_csv(predictions: Predictions, path: Path) -> None:
    """Write the long form; numbers have as many digits as reading them back exactly needs."""
    classes = columns_to_write(predictions)
    check_writable_names(predictions, _UNWRITABLE, ".csv", ".zarr")
    low_precision = predictions.dtype.name if predictions.dtype.name in ("float16", "float32") else None
    samples = columns_of_samples(predictions)
    header = ["sample", "source", *list(samples)[1:], "kind", *["dtype"] * bool(low_precision), *classes]
    ids, *others = samples.values()
    with atomic_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        for source, block, scores in rows_to_write(predictions):
            # Python writes the shortest text of a float64, NumPy that of any precision.
            entries = scores.astype(str).tolist() if low_precision else scores.tolist()
            constants = [predictions.kind, low_precision] if low_precision else [predictions.kind]
            for n, row in zip(block, entries, strict=True):
                writer.writerow([ids[n], source, *(column[n] for column in others), *constants, *row])
        text.detach()
