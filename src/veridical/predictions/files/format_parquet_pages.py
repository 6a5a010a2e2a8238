"""Sizes that the pages of a ``.parquet`` file claim, read before any page is unpacked.

A column is a sequence of pages, each a header and compressed values.  The footer of the file states sizes as well,
but memory is allocated by the page headers, so these are read: structures in Thrift's compact protocol, whose second
and third fields are the sizes of the page, unpacked and stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

#: Codes of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, I64, _DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)
_UNPACKED_SIZE, _STORED_SIZE = 2, 3
#: Page headers are nested two structures deep.
_DEEPEST = 8


class Page(NamedTuple):
    """The size that a page claims to have when it is unpacked, and where the page after it begins."""

    unpacked: int
    end: int


def unpacked_size(data: Any, start: int, length: int) -> int:
    """The bytes that all pages of a column chunk claim to unpack to; ``data`` are the bytes of the file."""
    return sum(page.unpacked for page in _pages(data, start, start + length))


def _pages(data: Any, position: int, end: int) -> Iterator[Page]:
    while position < end:
        page = _read_page(data, position)
        yield page
        position = page.end


def _read_page(data: Any, position: int) -> Page:
    reader = CompactReader(data, position)
    sizes = {_UNPACKED_SIZE: -1, _STORED_SIZE: -1}
    for field, kind in reader.fields():
        if field in sizes and kind == _I32:
            sizes[field] = reader.integer()
        else:
            reader.skip(kind)
    if min(sizes.values()) < 0:
        raise ValueError("a page has no size")
    return Page(sizes[_UNPACKED_SIZE], reader.position + sizes[_STORED_SIZE])


class CompactReader:
    """Reads the parts of Thrift's compact protocol that headers consist of; running past the end raises."""

    def __init__(self, data: Any, position: int) -> None:
        self._data, self.position = data, position

    def _byte(self) -> int:
        self.position += 1
        return int(self._data[self.position - 1])

    def _unsigned(self) -> int:
        result = shift = 0
        while True:
            byte = self._byte()
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift > 63:
                return result

    def integer(self) -> int:
        """A signed number, stored as 0, -1, 1, -2, ..."""
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """(number, kind) of each field of a structure; the caller reads or skips its value before the next."""
        number = 0
        while (head := self._byte()) != 0:
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 0x0F

    def elements(self) -> Iterator[int]:
        """The kind of each element of a list; the caller reads or skips it before the next."""
        head = self._byte()
        count = self._unsigned() if head >> 4 == 15 else head >> 4
        if count > len(self._data):
            raise ValueError("a list claims more elements than the file has bytes")
        for _ in range(count):
            yield head & 0x0F

    def text(self) -> str:
        """A text."""
        length = self._unsigned()
        self.position += length
        return bytes(self._data[self.position - length : self.position]).decode()

    def skip(self, kind: int, depth: int = 0) -> None:
        """Pass over a value."""
        if depth > _DEEPEST:
            raise ValueError("a header is nested too deeply")
        if kind in (_BYTE, _DOUBLE):
            self.position += 1 if kind == _BYTE else 8
        elif kind in (_I16, _I32, I64):
            self._unsigned()
        elif kind == BINARY:
            length = self._unsigned()  # which moves the position
            self.position += length
        elif kind in (LIST, _SET):
            for element in self.elements():
                self.skip(_BYTE if element in (_TRUE, _FALSE) else element, depth + 1)
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(f"a header holds a value of the unknown kind {kind}")
