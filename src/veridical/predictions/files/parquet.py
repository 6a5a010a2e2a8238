"""``.parquet``: tables of columns, with pyarrow (the extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import atomic_file
from veridical._extras import require
from veridical.errors import DtypeError, FileFormatError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import (
    Contents,
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
    columns_to_write,
    contents_of,
    labels_to_write,
    rows_to_write,
)
from veridical.predictions.validation import Array, Kind

_WHAT = "a .parquet table"
_MAGIC = b"PAR1"


def read_parquet(path: Path, kind: Kind | None) -> Contents:
    """Scores and labels of a ``.parquet`` in long form or of one source; nulls are NaN."""
    table = _read(path)
    with reading(path, _WHAT):
        classes = check_header(table.column_names, path)
        scores = np.stack([_numbers(table.column(name), name, path) for name in classes], axis=1)
        text = {name: _text(table.column(name)) for name in table.column_names if name in RESERVED}
        return contents_of(Table(path, classes, scores, text))


def read_text_column(path: Path, names: Sequence[str]) -> Sequence[str]:
    """The one column that has one of these names, or the only column, as text."""
    table = _read(path)
    with reading(path, _WHAT):
        found = [name for name in table.column_names if name in names]
        if len(found) != 1 and len(table.column_names) != 1:
            raise FileFormatError(f"{path} has columns {', '.join(table.column_names)[:200]}; call one of them label.")
        return _text(table.column(found[0] if found else table.column_names[0]))


def _read(path: Path) -> Any:
    parquet = require("pyarrow.parquet", "parquet")
    size = check_is_file(path, _WHAT)
    with reading(path, _WHAT):
        with path.open("rb") as start:
            if start.read(4) != _MAGIC:
                raise wrong_content(path, _WHAT)
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            # Before any column is unpacked: repeated values can be packed without limit.
            check_claim(path, file.metadata.num_rows * file.metadata.num_columns * 2, size)
            return file.read()


def _numbers(column: Any, name: str, path: Path) -> Array:
    numbers = column.to_numpy()
    if numbers.dtype.kind not in "fiub":
        raise DtypeError(f"column {name!r} of {path} is of type {column.type}; write numbers in the class columns.")
    return np.asarray(numbers)


def _text(column: Any) -> list[str]:
    return ["" if entry is None else str(entry) for entry in column.to_pylist()]


def write_parquet(predictions: Predictions, path: Path) -> None:
    """Write the long form, a block of a source at a time."""
    pa = require("pyarrow", "parquet")
    parquet = require("pyarrow.parquet", "parquet")
    classes = columns_to_write(predictions)
    check_writable_names(predictions, "[\ud800-\udfff]", ".parquet", ".zarr")
    source_type = pa.int64() if predictions.source_names is None else pa.string()
    fields = [("sample", pa.int64()), ("source", source_type), ("kind", pa.string())]
    labels = labels_to_write(predictions)
    if labels is not None:
        fields.append(("label", pa.string() if labels and isinstance(labels[0], str) else pa.int64()))
    fields += [(name, pa.from_numpy_dtype(predictions.dtype.newbyteorder("="))) for name in classes]
    schema = pa.schema(fields)
    with (
        atomic_file(path) as file,
        parquet.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for source, block, scores in rows_to_write(predictions):
            columns = [pa.array(block), pa.array([source] * len(block)), pa.array([predictions.kind] * len(block))]
            if labels is not None:
                columns.append(pa.array(labels[block.start : block.stop]))
            columns += [pa.array(np.ascontiguousarray(scores[:, l])) for l in range(len(classes))]
            writer.write_table(pa.table(columns, schema=schema))
