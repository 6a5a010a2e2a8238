"""Where the columns of a ``.parquet`` file are, as its footer says.

pyarrow ends the process when it is asked for a column whose statistics contradict the schema (seen in 26.0), so the
footer, a structure in Thrift's compact protocol, is read here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from veridical.predictions.files.format_parquet_pages import BINARY, I64, LIST, STRUCT, CompactReader

#: The file ends with the length of the footer and these letters.
_TAIL, _MAGIC = 8, b"PAR1"
#: Numbers of the fields that are read: of the file, of a group of rows, of a column chunk, and of its metadata.
_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
_PATH, _N_VALUES, _STORED_SIZE, _DATA_PAGES, _DICTIONARY_PAGE = 3, 5, 7, 9, 11


class ColumnChunk(NamedTuple):
    """The values of one column in one group of rows."""

    name: str
    n_values: int
    start: int
    size: int


def column_chunks(data: Any) -> list[ColumnChunk]:
    """All column chunks; ``data`` are the bytes of the file."""
    if len(data) < _TAIL or data[-4:] != _MAGIC:
        raise ValueError("the footer is missing")
    start = len(data) - _TAIL - struct.unpack("<I", data[-_TAIL:-4])[0]
    if start < 0:
        raise ValueError("the footer is longer than the file")
    return list(_structures(CompactReader(data, start), _ROW_GROUPS, _row_group))


def _structures(
    reader: CompactReader, field: int, read: Callable[[CompactReader], Iterator[ColumnChunk]]
) -> Iterator[ColumnChunk]:
    """What ``read`` finds in each structure of the list in one field of a structure; other fields are skipped."""
    for number, kind in reader.fields():
        if number != field or kind != LIST:
            reader.skip(kind)
            continue
        for element in reader.elements():
            if element != STRUCT:
                raise ValueError("the footer lists something other than structures")
            yield from read(reader)


def _row_group(reader: CompactReader) -> Iterator[ColumnChunk]:
    yield from _structures(reader, _COLUMNS, _column)


def _column(reader: CompactReader) -> Iterator[ColumnChunk]:
    for number, kind in reader.fields():
        if number == _METADATA and kind == STRUCT:
            yield _metadata(reader)
        else:
            reader.skip(kind)


def _metadata(reader: CompactReader) -> ColumnChunk:
    names: list[str] = []
    numbers: dict[int, int] = {}
    for number, kind in reader.fields():
        if number == _PATH and kind == LIST:
            names = [reader.text() if element == BINARY else "" for element in reader.elements()]
        elif kind == I64:
            numbers[number] = reader.integer()
        else:
            reader.skip(kind)
    start = numbers[_DATA_PAGES]
    dictionary = numbers.get(_DICTIONARY_PAGE, 0)
    return ColumnChunk(
        ".".join(names), numbers[_N_VALUES], min(start, dictionary) if dictionary > 0 else start, numbers[_STORED_SIZE]
    )
