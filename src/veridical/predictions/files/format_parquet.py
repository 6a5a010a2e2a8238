"""``.parquet``: tables of columns, with pyarrow (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import atomic_file
from veridical._lazy import require
from veridical.errors import DtypeError
from veridical.predictions.files.contents import Choose, Columns, check_distinct
from veridical.predictions.files.file_checks import SURROGATES, check_claim, check_is_file, reading, wrong_content
from veridical.predictions.files.table_format import table_format

_WHAT = "a .parquet table"
_MAGIC = b"PAR1"
#: Bytes that a value takes: a number in an array, and an id or a name as a Python object.
_PER_NUMBER, _PER_TEXT = 8, 160
_NUMBERS = "numbers in it, or choose the columns of classes with class_columns="


def read_table(path: Path, choose: Choose) -> Columns:
    """The chosen columns, read once it is known how much memory that takes; nulls are NaN and empty texts."""
    parquet = require("pyarrow.parquet", "parquet")
    check_is_file(path, _WHAT)
    with reading(path, _WHAT):
        with path.open("rb") as start:
            if start.read(4) != _MAGIC:
                raise wrong_content(path, _WHAT)
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
            check_distinct(names, path)
            of_numbers, of_text = choose(names)
            _check_types(file.schema_arrow, of_numbers, of_text, path)
            _check_sizes(file.metadata, len(of_numbers), len(of_text), path)
        with parquet.ParquetFile(path, read_dictionary=list(of_text), page_checksum_verification=True) as file:
            table = file.read(columns=[*of_numbers, *of_text])
        # Column by column into one array, so that memory holds the numbers twice at most.
        kinds = [_type_of(table.column(name)) for name in of_numbers]
        numbers = np.empty((table.num_rows, len(kinds)), np.result_type(*kinds) if kinds else float)
        for l, name in enumerate(of_numbers):
            numbers[:, l] = table.column(name).to_numpy()
        return Columns(names, numbers, {name: _texts_of(table.column(name)) for name in of_text})


def _check_types(schema: Any, numbers: Sequence[str], text: Sequence[str], path: Path) -> None:
    types = require("pyarrow", "parquet").types
    of_numbers = (types.is_integer, types.is_floating, types.is_boolean)
    of_text = (types.is_string, types.is_large_string, types.is_date, types.is_timestamp, types.is_null, *of_numbers)
    for columns, allowed, needed in ((numbers, of_numbers, _NUMBERS), (text, of_text, "text, numbers or dates in it")):
        for name in columns:
            kind = schema.field(name).type
            kind = getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind
            if not any(is_allowed(kind) for is_allowed in allowed):
                raise DtypeError(f"column {name!r} of {path} is of type {kind}; write {needed}.")


def _check_sizes(metadata: Any, n_numbers: int, n_texts: int, path: Path) -> None:
    """Refuse columns that take far more memory than the file: repeated values can be packed without limit."""
    groups = [metadata.row_group(g) for g in range(metadata.num_row_groups)]
    per_row = _PER_NUMBER * n_numbers + _PER_TEXT * n_texts
    n_bytes = sum(group.total_byte_size + group.num_rows * per_row for group in groups)
    check_claim(path, n_bytes, path.stat().st_size)


def _type_of(column: Any) -> np.dtype[Any]:
    """The precision of a column of numbers; nulls are NaN, which whole numbers do not have."""
    if column.null_count and not str(column.type).startswith(("float", "double", "halffloat")):
        return np.dtype(np.float64)
    kind: np.dtype[Any] = np.dtype(column.type.to_pandas_dtype())
    return kind


def _texts_of(column: Any) -> list[str]:
    """A column of text; equal texts are one object."""
    column = column.unify_dictionaries().combine_chunks()
    if not hasattr(column, "dictionary"):
        column = column.dictionary_encode()
    entries = [_text_of(entry) for entry in (*column.dictionary.to_pylist(), None)]
    places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return list(map(entries.__getitem__, places.tolist()))


def _text_of(entry: Any) -> str:
    """An entry as a .csv has it: whole numbers without a point, nothing for null and NaN."""
    if isinstance(entry, float):
        return str(int(entry)) if entry.is_integer() else "" if entry != entry else str(entry)
    return "" if entry is None else str(entry)


def write_table(
    path: Path, types: Mapping[str, Any], blocks: Iterable[Sequence[Any]], *, for_spreadsheets: bool = False
) -> None:
    """Write blocks of columns; spreadsheets do not read them."""
    pa, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    known = {str: pa.string(), int: pa.int64()}
    schema = pa.schema([(name, known.get(kind) or pa.from_numpy_dtype(kind)) for name, kind in types.items()])
    with (
        atomic_file(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for block in blocks:
            columns = [pa.array(np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part) for part in block]
            writer.write_table(pa.table(columns, schema=schema))


PARQUET = table_format(".parquet", read_table, write_table, unwritable=SURROGATES, keeps_types=True, extra="parquet")
