"""Reading the samples of a block from where the predictions are: a .npy file, a Zarr array, or any array."""

from __future__ import annotations

import mmap
import os
import weakref
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from veridical.blocks.identity import identity_of_array, identity_of_path
from veridical.errors import CorruptFileError, FileFormatError
from veridical.predictions.files.format_zarr import read_zarr_part
from veridical.predictions.validation import Array

#: Bytes that are read with one system call.
_MOST_AT_ONCE = 1 << 28


class Reader(Protocol):
    """Reads samples of all sources."""

    #: Blocks hold a multiple of so many samples where they can: what is stored together is read once.
    granularity: int

    def allocate(self, n_samples: int) -> Array:
        """Memory (S, n, L) for blocks of at most so many samples."""

    def read(self, start: int, stop: int, out: Array) -> None:
        """Fill ``out`` (S, stop - start, L) with the samples from ``start`` to ``stop``."""

    def identity(self) -> list[Any]:
        """What tells this data, as it is now, from others, ready for JSON; the name of a file comes first."""


class Opened(NamedTuple):
    """Where a block comes from, for a worker to open: never the numbers themselves."""

    path: str
    format: str
    offset: int
    shape: tuple[int, ...]
    dtype: str
    sources_axis: int
    array: str = ""
    #: Of the content, so that a worker that has opened a file does not take it for the one that replaces it.
    content: str = ""


class NpyReader:
    """Reads a C-ordered .npy file by position, without a map.

    A map of a file that another program truncates ends the interpreter with SIGBUS; a read that comes back short is an
    exception.  Pages of a map also count as memory of the process.

    Parameters
    ----------
    path : Path
    offset : int
        Where the numbers begin.
    shape : tuple
        Of the array in the file.
    dtype : dtype
    sources_axis : {0, 1}
    """

    granularity = 1

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], sources_axis: int
    ) -> None:
        self.path, self._offset, self._shape, self._dtype = path, offset, shape, dtype
        self._sources_first = sources_axis == 0
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._opened = self._status()

    def _status(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns

    def identity(self) -> list[Any]:
        """That of the file, and the order of its axes."""
        return [*identity_of_path(self.path), self._sources_first]

    def opened(self) -> Opened:
        """What another process needs to open the same file."""
        path = str(self.path.resolve())
        return Opened(path, "npy", self._offset, self._shape, self._dtype.str, 0 if self._sources_first else 1)

    def allocate(self, n_samples: int) -> Array:
        """In the layout of the file, seen as (S, n, L)."""
        first, second, third = self._shape
        if self._sources_first:
            return np.empty((first, n_samples, third), self._dtype)
        return np.empty((n_samples, second, third), self._dtype).swapaxes(0, 1)

    def read(self, start: int, stop: int, out: Array) -> None:
        """One stretch of the file for each source, or one for all where samples come first."""
        size, changed = self._status()
        if size < self._opened[0]:
            raise self._shrunk(size)
        if changed != self._opened[1]:
            raise CorruptFileError(
                f"{self.path} was changed while it was read; wait until it is complete and run again."
            )
        row = self._shape[2] * self._dtype.itemsize
        if not self._sources_first:
            self._fill(out.swapaxes(0, 1), self._offset + start * self._shape[1] * row)
            return
        for s, source in enumerate(out):
            self._fill(source, self._offset + (s * self._shape[1] + start) * row)

    def _fill(self, target: Array, position: int) -> None:
        view = target.data.cast("B")
        while len(view):
            n_read = os.preadv(self._file, [view[:_MOST_AT_ONCE]], position)
            if n_read == 0:
                raise self._shrunk(self._status()[0])
            view, position = view[n_read:], position + n_read

    def _shrunk(self, size: int) -> CorruptFileError:
        return CorruptFileError(
            f"{self.path} shrank from {self._opened[0]:,} to {size:,} bytes while it was read; wait "
            "until the program that writes it has finished, and run again."
        )


class ArrayReader:
    """Copies samples from an array (S, N, L) in memory or mapped."""

    granularity = 1

    def __init__(self, array: Array) -> None:
        self._array = array
        self._map = mapped_file(array)
        self._size = 0 if self._map is None else os.stat(str(self._map.filename)).st_size

    def identity(self) -> list[Any]:
        """That of the mapped file, and which part of it is the array; or that of numbers in memory."""
        if self._map is None:
            return identity_of_array(self._array)
        place = self._array.__array_interface__["data"][0] - self._map.__array_interface__["data"][0]
        return [*identity_of_path(Path(str(self._map.filename))), place, list(self._array.strides)]

    def allocate(self, n_samples: int) -> Array:
        """An array of the machine's own numbers."""
        n_sources, _, n_classes = self._array.shape
        return np.empty((n_sources, n_samples, n_classes), self._array.dtype.newbyteorder("="))

    def read(self, start: int, stop: int, out: Array) -> None:
        """Copy, and let the pages of a map go, which would count as memory of this process."""
        if self._map is not None and os.stat(str(self._map.filename)).st_size < self._size:
            raise CorruptFileError(
                f"{self._map.filename} shrank while it was read; wait until the program that writes it "
                "has finished, and run again."
            )
        out[...] = self._array[:, start:stop]
        pages = getattr(self._map, "_mmap", None)
        if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


class ZarrReader:
    """Decodes the chunks of a Zarr array (S, N, L)."""

    def __init__(self, array: Any, path: Path, sources_axis: int) -> None:
        self._array, self._path, self._axis = array, path, sources_axis
        chunk = getattr(array, "shards", None) or array.chunks
        self.granularity = int(chunk[1 - sources_axis])

    def identity(self) -> list[Any]:
        """That of the store, with every chunk, and the order of its axes."""
        return [*identity_of_path(self._path), self._axis]

    def opened(self) -> Opened:
        """What another process needs to open the same store."""
        array = self._array
        shape, dtype = tuple(map(int, array.shape)), np.dtype(array.dtype).str
        return Opened(str(self._path.resolve()), "zarr", 0, shape, dtype, self._axis, str(array.path))

    def allocate(self, n_samples: int) -> Array:
        """In the order of the array's axes, seen as (S, n, L)."""
        shape = list(self._array.shape)
        shape[1 - self._axis] = n_samples
        return np.empty(shape, np.dtype(self._array.dtype).newbyteorder("=")).swapaxes(0, self._axis)

    def read(self, start: int, stop: int, out: Array) -> None:
        """Decode the chunks of these samples; a missing or damaged chunk is named by its samples."""
        sizes = [slice(0, size) for size in self._array.shape]
        sizes[1 - self._axis] = slice(start, stop)
        try:
            block = read_zarr_part(self._array, self._path, tuple(sizes))
        except (ValueError, RuntimeError, KeyError, OSError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise FileFormatError(
                f"{self._path}: samples {start} to {stop - 1} cannot be read ({reason}); write the store again."
            ) from error
        out[...] = block.swapaxes(0, self._axis)


def mapped_file(array: Any) -> np.memmap[Any, Any] | None:
    """The memory map that an array is a view of, if it is one of a named file."""
    current: Any = array
    while isinstance(current, np.ndarray):
        base: Any = current.base
        if isinstance(current, np.memmap) and isinstance(base, mmap.mmap):
            return current if current.filename is not None else None
        current = base
    return None
