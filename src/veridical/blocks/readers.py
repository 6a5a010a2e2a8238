"""Reading the samples of a block from where the predictions are: a .npy file, a Zarr array, or any array."""

from __future__ import annotations

import mmap
import os
import weakref
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from veridical._lazy import require
from veridical.blocks.identity import identity_of_array, identity_of_path
from veridical.errors import CorruptFileError, FileFormatError
from veridical.predictions.files.format_zarr import read_zarr_part
from veridical.predictions.validation import Array

#: Bytes that are read with one system call.
_MOST_AT_ONCE = 1 << 28


class Reader:
    """Reads samples of all sources."""

    #: Blocks hold a multiple of so many samples where they can: what is stored together is read once.
    granularity = 1
    #: Whether another process can read the same data: the reader is pickled as the name of a file.
    is_shared = True
    #: Whether nothing is read before Dask computes it.
    is_lazy = False
    #: Where blocks begin and the last one ends, where the data decide that.
    edges: list[int] | None = None

    def identity(self) -> list[Any]:
        """What tells this data, as it is now, from others, ready for JSON; the name of a file comes first."""
        raise NotImplementedError

    def allocate(self, n_samples: int) -> Array:
        """Memory (S, n, L) for blocks of at most so many samples, in the layout of the file."""
        raise NotImplementedError

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        """The samples from ``start`` to ``stop``, (S, stop - start, L), in ``out`` if that is passed."""
        out = self.allocate(stop - start) if out is None else out
        self._fill(start, stop, out)
        return out

    def _fill(self, start: int, stop: int, out: Array) -> None:
        raise NotImplementedError


class NpyReader(Reader):
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

    def __init__(
        self, path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any], sources_axis: int
    ) -> None:
        self.path, self._offset, self._shape, self._dtype = path, offset, shape, dtype
        self._sources_first = sources_axis == 0
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._file)
        self._opened = self._status()

    def __reduce__(self) -> tuple[Any, ...]:
        sources_axis = 0 if self._sources_first else 1
        return NpyReader, (self.path.resolve(), self._offset, self._shape, self._dtype, sources_axis)

    def _status(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns

    def identity(self) -> list[Any]:
        """That of the file, and the order of its axes."""
        return [*identity_of_path(self.path), self._sources_first]

    def allocate(self, n_samples: int) -> Array:
        """In the layout of the file, seen as (S, n, L)."""
        first, second, third = self._shape
        if self._sources_first:
            return np.empty((first, n_samples, third), self._dtype)
        return np.empty((n_samples, second, third), self._dtype).swapaxes(0, 1)

    def _fill(self, start: int, stop: int, out: Array) -> None:
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
            self._read_at(out.swapaxes(0, 1), self._offset + start * self._shape[1] * row)
            return
        for s, source in enumerate(out):
            self._read_at(source, self._offset + (s * self._shape[1] + start) * row)

    def _read_at(self, target: Array, position: int) -> None:
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


class ArrayReader(Reader):
    """Copies samples from an array (S, N, L) in memory or mapped."""

    is_shared = False

    def __init__(self, array: Array) -> None:
        self._array = array
        self._map = mapped_file(array)
        self._size = 0 if self._map is None else os.stat(str(self._map.filename)).st_size

    def identity(self) -> list[Any]:
        """That of the mapped file, and which part of it is the array; or that of numbers in memory."""
        if self._map is None:
            return identity_of_array(self._array)
        place = _address(self._array) - _address(self._map)
        return [*identity_of_path(Path(str(self._map.filename))), place, list(self._array.strides)]

    def allocate(self, n_samples: int) -> Array:
        """An array of the machine's own numbers."""
        n_sources, _, n_classes = self._array.shape
        return np.empty((n_sources, n_samples, n_classes), self._array.dtype.newbyteorder("="))

    def _fill(self, start: int, stop: int, out: Array) -> None:
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


class ZarrReader(Reader):
    """Decodes the chunks of a Zarr array (S, N, L)."""

    def __init__(self, array: Any, path: Path, sources_axis: int) -> None:
        self._array, self._path, self._axis = array, path, sources_axis
        chunk = getattr(array, "shards", None) or array.chunks
        self.granularity = int(chunk[1 - sources_axis])

    def __reduce__(self) -> tuple[Any, ...]:
        content = str(self.identity())  # a worker does not take what it has opened for what replaced it
        return _open_again, (self._path.resolve(), str(self._array.path), self._axis, content)

    def identity(self) -> list[Any]:
        """That of the store, with every chunk, and the order of its axes."""
        return [*identity_of_path(self._path), self._axis]

    def allocate(self, n_samples: int) -> Array:
        """In the order of the array's axes, seen as (S, n, L)."""
        shape = list(self._array.shape)
        shape[1 - self._axis] = n_samples
        return np.empty(shape, np.dtype(self._array.dtype).newbyteorder("=")).swapaxes(0, self._axis)

    def _fill(self, start: int, stop: int, out: Array) -> None:
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


@lru_cache(maxsize=8)
def _open_again(path: Path, array: str, sources_axis: int, content: str) -> ZarrReader:
    zarr = require("zarr", "zarr", at_least=3)
    root = zarr.open(zarr.storage.LocalStore(path, read_only=True), mode="r")
    return ZarrReader(root[array] if array else root, path, sources_axis)


def reader_of(values: Array) -> Reader:
    """The reader of an array (S, N, L): by position where it is a run of a mapped file."""
    file = mapped_file(values)
    if file is not None and values.dtype.isnative:
        offset = file.offset + _address(values) - _address(file)
        for sources_axis in (0, 1):
            stored = values.swapaxes(0, sources_axis)
            if stored.flags.c_contiguous:
                return NpyReader(Path(str(file.filename)), offset, stored.shape, values.dtype, sources_axis)
    return ArrayReader(values)


def _address(array: Array) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


def mapped_file(array: Any) -> np.memmap[Any, Any] | None:
    """The memory map that an array is a view of, if it is one of a named file."""
    current: Any = array
    while isinstance(current, np.ndarray):
        base: Any = current.base
        if isinstance(current, np.memmap) and isinstance(base, mmap.mmap):
            return current if current.filename is not None else None
        current = base
    return None
