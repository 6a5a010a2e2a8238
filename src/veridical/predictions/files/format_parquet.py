"""``.parquet``: tables of columns, with pyarrow (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import atomic_file
from veridical._extras import require
from veridical.errors import DtypeError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Contents
from veridical.predictions.files.file_checks import (
    SURROGATES,
    check_claim,
    check_is_file,
    check_writable_names,
    reading,
    wrong_content,
)
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
from veridical.predictions.validation import Array, InputKind

_WHAT = "a .parquet table"
_MAGIC = b"PAR1"
#: Bytes that a value takes: a number in an array, and an id or a name as a Python object.
_PER_NUMBER, _PER_TEXT = 8, 160


def read_parquet(path: Path, kind: InputKind | None, group_column: str | None = None) -> Contents:
    """Scores and labels of a ``.parquet`` in long form or of one source; nulls are NaN."""
    with _open(path) as table:
        check_header(table.names, path)
        column_of = {name: column for column, name in standard_names(table.names, group_column, path).items()}
        classes = check_header(list(column_of), path)
        text = {name: column for name, column in column_of.items() if name in RESERVED}
        columns = table.read(numbers=classes, text=list(text.values()))
        # Column by column into one array, so that memory holds the numbers twice at most.
        scores = np.empty((len(columns), len(classes)), np.result_type(*(columns.type_of(name) for name in classes)))
        for l, name in enumerate(classes):
            scores[:, l] = columns.numbers(name)
        return contents_of(
            Table(path, classes, scores, {name: columns.text(column) for name, column in text.items()}), kind
        )


def read_text_columns(
    path: Path, choose: Callable[[Sequence[str]], tuple[int, int | None]]
) -> tuple[Sequence[str], Sequence[str] | None]:
    """The column of labels and the one of ids, if there is one, as text; ``choose`` finds their places by the names."""
    with _open(path) as table:
        places = choose(table.names)
        names = [table.names[place] for place in places if place is not None]
        columns = table.read(text=names)
        return columns.text(names[0]), columns.text(names[1]) if len(names) > 1 else None


def read_all_columns(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Names and entries of all columns: texts, numbers or None."""
    with _open(path) as table:
        if len(set(table.names)) < len(table.names):
            return table.names, []  # what is wrong is for the caller to say
        columns = table.read(text=table.names)
        return table.names, [columns.entries(name) for name in table.names]


@contextmanager
def _open(path: Path) -> Iterator[_StoredTable]:
    parquet = require("pyarrow.parquet", "parquet")
    check_is_file(path, _WHAT)
    with reading(path, _WHAT):
        with path.open("rb") as start:
            if start.read(4) != _MAGIC:
                raise wrong_content(path, _WHAT)
        with parquet.ParquetFile(path) as file:
            yield _StoredTable(path, file.schema_arrow, file.metadata)


class _StoredTable:
    """A table in a file, of which columns are read once it is known how much memory that takes."""

    def __init__(self, path: Path, schema: Any, metadata: Any) -> None:
        self._path, self._schema, self._metadata = path, schema, metadata
        self.names: list[str] = schema.names

    def read(self, *, numbers: Sequence[str] = (), text: Sequence[str] = ()) -> _Columns:
        """Some columns; those of text with each different text once."""
        pa, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
        for name in numbers:
            self._check_type(name, (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean), "numbers")
        for name in text:
            is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp)
            is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
            self._check_type(name, (*is_text, *is_number), "text, numbers or dates")
        self._check_sizes(numbers, text)
        with parquet.ParquetFile(self._path, read_dictionary=list(text), page_checksum_verification=True) as file:
            return _Columns(self._path, file.read(columns=[*numbers, *text]))

    def _check_type(self, name: str, allowed: Sequence[Callable[[Any], bool]], needed: str) -> None:
        kind = self._schema.field(name).type
        kind = getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind
        if not any(is_allowed(kind) for is_allowed in allowed):
            raise DtypeError(f"column {name!r} of {self._path} is of type {kind}; write {needed} in it.")

    def _check_sizes(self, numbers: Collection[str], text: Collection[str]) -> None:
        """Refuse columns that take far more memory than the file: repeated values can be packed without limit."""
        n_bytes = 0
        for g in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(g)
            n_bytes += group.total_byte_size
            n_bytes += group.num_rows * (_PER_NUMBER * len(numbers) + _PER_TEXT * len(text))
        check_claim(self._path, n_bytes, self._path.stat().st_size)


class _Columns:
    """Columns in memory."""

    def __init__(self, path: Path, table: Any) -> None:
        self._path, self._table = path, table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def type_of(self, name: str) -> np.dtype[Any]:
        """The precision that a column of numbers is read in; nulls are NaN, which whole numbers do not have."""
        column = self._table.column(name)
        if column.null_count and not str(column.type).startswith(("float", "double", "halffloat")):
            return np.dtype(np.float64)
        kind: np.dtype[Any] = np.dtype(column.type.to_pandas_dtype())
        return kind

    def numbers(self, name: str) -> Array:
        """A column of numbers."""
        numbers = np.asarray(self._table.column(name).to_numpy())
        if numbers.dtype.kind not in "fiub":
            raise DtypeError(f"column {name!r} of {self._path} holds {numbers.dtype}; write numbers in it.")
        return numbers

    def text(self, name: str) -> list[str]:
        """A column of text; equal texts are one object."""
        return self._entries(name, lambda entry: "" if entry is None else str(entry))

    def entries(self, name: str) -> list[Any]:
        """A column of texts, numbers or None; equal ones are one object."""
        return self._entries(name, lambda entry: str(entry) if isinstance(entry, date) else entry)

    def _entries(self, name: str, convert: Callable[[Any], Any]) -> list[Any]:
        column = self._table.column(name).unify_dictionaries().combine_chunks()
        if not hasattr(column, "dictionary"):
            column = column.dictionary_encode()
        entries = [convert(entry) for entry in (*column.dictionary.to_pylist(), None)]
        places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return list(map(entries.__getitem__, places.tolist()))


def write_parquet(predictions: Predictions, path: Path) -> None:
    """Write the long form, a block of a source at a time."""
    pa = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    classes = columns_to_write(predictions)
    check_writable_names(predictions, SURROGATES, ".parquet", ".zarr")
    source_type = pa.int64() if predictions.source_names is None else pa.string()
    samples = columns_of_samples(predictions)
    fields = [("source", source_type), ("kind", pa.string())]
    for name, entries in samples.items():
        fields.append((name, pa.string() if any(isinstance(entry, str) for entry in entries) else pa.int64()))
    fields += [(name, pa.from_numpy_dtype(predictions.dtype.newbyteorder("="))) for name in classes]
    schema = pa.schema(fields)
    with (
        atomic_file(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for source, block, scores in rows_to_write(predictions):
            columns = [pa.array([source] * len(block)), pa.array([predictions.kind] * len(block))]
            columns += [pa.array(entries[block.start : block.stop]) for entries in samples.values()]
            columns += [pa.array(np.ascontiguousarray(scores[:, l])) for l in range(len(classes))]
            writer.write_table(pa.table(columns, schema=schema))
