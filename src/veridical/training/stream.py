"""Predictions that go to disk while they are made: memory holds one batch, whatever the ensemble's size.

An array (S, N, L) in C order is what comes out when member after member predicts batch after batch, so its rows are
appended to a file, and the shape is filled in at the end.  A ``.npz`` is a zip of such files; here they are stored
uncompressed and aligned, so that the result can be mapped instead of read.
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
from veridical.predictions.files.npz import NpzArrays, open_aligned_entry

_Array = npt.NDArray[Any]

#: Room for the header of a .npy file; NumPy pads it to a multiple of 64, and any shape met in practice fits twice.
_HEADER_BYTES = 128
_COPY_AT_ONCE = 1 << 20


class NpyStream:
    """Appends rows to a ``.npy`` file whose shape is known only at the end."""

    def __init__(self, file: IO[bytes], dtype: npt.DTypeLike) -> None:
        self._file = file
        self.dtype = np.dtype(dtype)
        file.write(b"\0" * _HEADER_BYTES)

    def append(self, rows: _Array) -> None:
        """Write rows after those that are there."""
        rest = np.ascontiguousarray(rows, dtype=self.dtype).data.cast("B")
        while rest:  # an unbuffered file may take a part, and says only at the next call that there is no room
            rest = rest[self._file.write(rest) :]

    def finish(self, shape: tuple[int, ...]) -> None:
        """Say what shape all rows together have."""
        self._file.seek(0)
        header = {"descr": npy_format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        npy_format.write_array_header_1_0(self._file, header)
        self._file.seek(0, os.SEEK_END)


def write_npz(path: str | os.PathLike[str], rows: Path, kind: str, others: Mapping[str, _Array]) -> None:
    """Put the ``.npy`` file ``rows`` under the name ``kind``, and small arrays, into one ``.npz``; or write nothing."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with rows.open("rb") as source, open_aligned_entry(archive, kind, rows.stat().st_size) as target:
            shutil.copyfileobj(source, target, _COPY_AT_ONCE)
        for name, array in others.items():
            with open_aligned_entry(archive, name, array.nbytes) as target:
                npy_format.write_array(target, np.ascontiguousarray(array), allow_pickle=False)


class PredictionsFile:
    """A ``.npz`` of predictions in the making: rows member by member, then labels and names, then it is there.

    Use as a context manager; leaving it without :meth:`finish` removes what was written.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, dtype: npt.DTypeLike) -> None:
        self.path, self.kind, self._dtype = Path(path), kind, dtype

    def __enter__(self) -> PredictionsFile:
        with storage_errors(self.path):
            self._folder = tempfile.TemporaryDirectory(dir=self.path.parent, prefix=f".{self.path.name}.")
            self._rows = Path(self._folder.name) / "rows.npy"
            try:
                # Unbuffered: batches are large, and a full disk is noticed at the batch that does not fit.
                self._file = self._rows.open("wb", buffering=0)
                self._stream = NpyStream(self._file, self._dtype)
            except OSError:
                self._folder.cleanup()
                raise
        return self

    def append(self, rows: _Array) -> None:
        """Write the next rows (B, L) of the member at hand."""
        with storage_errors(self.path):
            self._stream.append(rows)

    def finish(
        self,
        shape: tuple[int, int, int],
        labels: npt.NDArray[np.int64] | None,
        source_names: Sequence[str] | None,
        class_names: Sequence[str] | None,
    ) -> None:
        """Give the file its name."""
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
