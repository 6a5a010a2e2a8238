"""Files of predictions that are written batch by batch, so that memory holds one batch.

Members predict one after another, batch by batch, so the rows of an array (S, N, L) in C order are appended to a file,
and its shape is filled in at the end.  A ``.npz`` is a zip of such files; they are stored uncompressed and aligned, so
that the result can be mapped instead of read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from veridical._atomic import atomic_file, storage_errors
from veridical.predictions.files.format_npz import NpzArrays, open_aligned_entry

_Array = npt.NDArray[Any]

#: Bytes kept for the header of a .npy file; NumPy pads it to a multiple of 64, and any shape in practice fits twice.
_HEADER_BYTES = 128
_COPY_BYTES = 1 << 20


class NpyStream:
    """Appends rows to a ``.npy`` file whose shape is known only at the end."""

    def __init__(self, file: IO[bytes], dtype: npt.DTypeLike) -> None:
        self._file = file
        self.dtype = np.dtype(dtype)
        file.write(b"\0" * _HEADER_BYTES)

    def append(self, rows: _Array) -> None:
        """Append rows."""
        remaining = np.ascontiguousarray(rows, dtype=self.dtype).data.cast("B")
        while remaining:  # an unbuffered file may take a part, and fails only at the next call if the disk is full
            remaining = remaining[self._file.write(remaining) :]

    def finish(self, shape: tuple[int, ...]) -> None:
        """Write the shape of all rows together."""
        self._file.seek(0)
        header = {"descr": npy_format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        npy_format.write_array_header_1_0(self._file, header)
        self._file.seek(0, os.SEEK_END)


def write_npz(path: str | os.PathLike[str], rows: Path, kind: str, others: Mapping[str, _Array]) -> None:
    """Write a ``.npz`` of the ``.npy`` file ``rows``, under the name ``kind``, and of small arrays; or nothing."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with rows.open("rb") as source, open_aligned_entry(archive, kind, rows.stat().st_size) as target:
            shutil.copyfileobj(source, target, _COPY_BYTES)
        for name, array in others.items():
            with open_aligned_entry(archive, name, array.nbytes) as target:
                npy_format.write_array(target, np.ascontiguousarray(array), allow_pickle=False)


class PredictionsFile:
    """A ``.npz`` of predictions that is written row by row, then given labels and names.

    Use as a context manager; without :meth:`finish` it leaves no file.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, dtype: npt.DTypeLike) -> None:
        self.path, self.kind, self._dtype = Path(path), kind, dtype

    def __enter__(self) -> PredictionsFile:
        with storage_errors(self.path):
            self._folder = tempfile.TemporaryDirectory(dir=self.path.parent, prefix=f".{self.path.name}.")
            self._rows = Path(self._folder.name) / "rows.npy"
            try:
                # Unbuffered: batches are large, and a full disk fails at the batch that does not fit.
                self._file = self._rows.open("wb", buffering=0)
                self._stream = NpyStream(self._file, self._dtype)
            except OSError:
                self._folder.cleanup()
                raise
        return self

    def append(self, rows: _Array) -> None:
        """Append rows (B, L) of the current member."""
        with storage_errors(self.path):
            self._stream.append(rows)

    def finish(
        self,
        shape: tuple[int, int, int],
        labels: npt.NDArray[np.int64] | None,
        source_names: Sequence[str] | None,
        class_names: Sequence[str] | None,
    ) -> None:
        """Write the file, with labels and names, under its name."""
        with storage_errors(self.path):
            self._stream.finish(shape)
            self._file.close()
        others: dict[str, _Array] = {}
        if labels is not None:
            others["labels"] = labels
        for key, names in (("source_names", source_names), ("class_names", class_names)):
            if names is not None:
                others[key] = np.array([str(name) for name in names])
        write_npz(self.path, self._rows, self.kind, others)

    def scores(self) -> _Array:
        """The scores (S, N, L) of the finished file, mapped."""
        with NpzArrays(self.path) as arrays:
            return arrays[self.kind]

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        self._folder.cleanup()
