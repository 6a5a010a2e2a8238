"""``.npz``: scores under the name of their kind, with labels and names.

A ``.npz`` is a zip of ``.npy`` images.  We store them uncompressed and aligned, so that they can be mapped; in files of
other writers, images that are aligned by chance are mapped and others are read.
"""

from __future__ import annotations

import math
import shutil
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format

from veridical._atomic import atomic_file
from veridical.errors import CorruptFileError, DtypeError, ShapeError
from veridical.predictions.classes import ClassIndices
from veridical.predictions.container import Predictions
from veridical.predictions.contents import Contents
from veridical.predictions.files.contents import (
    BESIDE_SCORES,
    Format,
    Request,
    beside_scores,
    choose_scores,
    kind_of_name,
)
from veridical.predictions.files.file_checks import (
    check_claim,
    check_is_file,
    check_writable_names,
    missing_column,
    not_an_archive,
    reading,
)
from veridical.predictions.files.format_npy import NpyHeader, map_array, read_header, write_scores
from veridical.predictions.files.labels import IDS, name_of_labels
from veridical.predictions.labels import LabelTable
from veridical.predictions.validation import Array

_WHAT = "a .npz archive"
_SUFFIX = ".npy"
_ALIGNMENT = 64
#: Id of the zip extra field that holds padding, as Android's zipalign writes it.
_PADDING_FIELD = 0xD935
_READ_AT_ONCE = 1 << 20
#: Bytes of one name or label, of four per character.
_LONGEST_NAME = 1 << 14
_MOST_DIMENSIONS = 64
#: Bytes that an id or a name takes as a Python object and in lists and dictionaries, beside its characters.
_PER_ENTRY = 128
#: The same date for every entry, so that equal predictions give equal files.
_NO_DATE = (1980, 1, 1, 0, 0, 0)


class NpzArrays:
    """The arrays of a ``.npz`` by name, each mapped or read on access; use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> NpzArrays:
        self._size, self._claims = check_is_file(self.path, _WHAT), dict[str, int]()
        with reading(self.path, _WHAT):
            if not zipfile.is_zipfile(self.path):
                raise not_an_archive(self.path, ".npz", _WHAT)
            self._archive = zipfile.ZipFile(self.path)
            self._members = {info.filename.removesuffix(_SUFFIX): info for info in self._archive.infolist()}
            for name, info in self._members.items():
                # The other methods of packing have no limit: a header alone would unpack gigabytes.
                if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise CorruptFileError(
                        f"{self._where(name)} is encrypted or packed in an unusual way; write it with numpy.savez."
                    )
        return self

    def __exit__(self, *exception: object) -> None:
        self._archive.close()

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def header(self, name: str) -> NpyHeader:
        """The header of an array; nothing is unpacked."""
        info = self._members[name]
        with reading(self.path, _WHAT), self._archive.open(info) as stream:
            return read_header(stream, info.file_size, self._where(name))

    def check_beside(self, name: str, shape: tuple[int, ...]) -> None:
        """Refuse more labels or names than scores of this shape have samples, sources or classes."""
        header = self.header(name)
        # Images have as many samples as pixels, and at least two classes on one of their axes.
        n_samples = math.prod(shape[1:]) // 2 if len(shape) > 3 else 0
        most = max(*shape, n_samples, _MOST_DIMENSIONS)
        if math.prod(header.shape) > most:
            raise ShapeError(
                f"{self._where(name)} has shape {header.shape}, and the scores have shape {shape}; save one entry per "
                "sample, source or class."
            )
        _check_length(header.dtype, self._where(name))

    def _where(self, name: str) -> str:
        return f"{self.path} (array {name})"

    def __getitem__(self, name: str) -> Array:
        info = self._members[name]
        where = self._where(name)
        with reading(self.path, _WHAT), self._archive.open(info) as stream:
            header = read_header(stream, info.file_size, where)
            self._check_memory(name, header)
            offset = self._offset(info)
            if info.compress_type == zipfile.ZIP_STORED and (offset + header.start) % header.dtype.alignment == 0:
                return map_array(self.path, offset, header)
            numbers = _read_whole(stream, header.n_bytes, where)
            return numbers.view(header.dtype).reshape(header.shape, order=header.order)

    def _check_memory(self, name: str, header: NpyHeader, *, as_objects: bool = False) -> None:
        """Refuse arrays that together take far more memory than the file; texts and ids become Python objects."""
        characters = {"S": 4, "U": 1}.get(header.dtype.kind, 0)  # times its size: an array of text has four bytes each
        per_entry = header.dtype.itemsize * (1 + characters) + (_PER_ENTRY if characters or as_objects else 0)
        self._claims[name] = max(math.prod(header.shape) * per_entry, self._claims.get(name, 0))
        check_claim(self.path, sum(self._claims.values()), self._size)

    def _offset(self, info: zipfile.ZipInfo) -> int:
        """Position of a member's content; the zip's directory does not contain the length of its local header."""
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            name_length, extra_length = struct.unpack("<26xHH", file.read(30))
        return int(info.header_offset + 30 + name_length + extra_length)

    def ids_in(self, name: str) -> Array | list[str] | None:
        """An array of ids, numbers, dates or texts, or None."""
        if name not in self._members:
            return None
        header = self.header(name)
        self._check_memory(name, header, as_objects=True)
        return self[name] if header.dtype.kind in "iuM" else self.names_in(name)

    def labels(self) -> Array | ClassIndices | None:
        """The array of labels; whole numbers that Veridical wrote are places of classes."""
        if "labels" not in self._members:
            return None
        labels = self["labels"]
        is_ours = self._members["labels"].extra[:2] == struct.pack("<H", _PADDING_FIELD)
        return ClassIndices(labels) if is_ours and labels.dtype.kind == "i" else labels

    def names_in(self, name: str) -> list[str] | None:
        """An array of names as a list of strings, or None."""
        if name not in self._members:
            return None
        self._check_memory(name, self.header(name), as_objects=True)
        array = self[name]
        if array.dtype.kind not in "SUiu" or array.ndim != 1:
            raise DtypeError(f"{self.path}: {name} is of dtype {array.dtype}; save a list of strings.")
        with reading(self.path, _WHAT):
            return [entry.decode() if isinstance(entry, bytes) else str(entry) for entry in array.tolist()]


def _check_length(dtype: np.dtype[Any], where: str) -> None:
    """Refuse long names, to read and to write: NumPy gives every entry the length of the longest."""
    if dtype.itemsize > _LONGEST_NAME:
        raise ShapeError(
            f"{where} has entries of {dtype.itemsize:,} bytes; a name in a .npz has at most {_LONGEST_NAME // 4:,} "
            "characters: shorten the longest, or save a .zarr."
        )


def _read_whole(stream: IO[bytes], n_bytes: int, where: str) -> Array:
    """All bytes of a compressed member; reading past the last one compares the checksum."""
    numbers = np.empty(n_bytes, np.uint8)
    filled = 0
    while filled < n_bytes:
        part = stream.read(min(n_bytes - filled, _READ_AT_ONCE))
        if not part:
            raise CorruptFileError(f"{where} ends early; it is truncated: write it again.")
        numbers[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
        filled += len(part)
    stream.read(1)
    return numbers


def _read(path: Path, request: Request) -> Contents:
    """Scores, labels and names of a ``.npz``; ``group_column`` names the array with the groups."""
    group_column = request.group_column
    with NpzArrays(path) as arrays:
        if group_column is not None and group_column not in arrays.names:
            raise missing_column(path, group_column, arrays.names)
        chosen = choose_scores([name for name in arrays.names if name != group_column], request.kind, path)
        shape = arrays.header(chosen).shape
        for name in (*BESIDE_SCORES, group_column or ""):
            if name in arrays.names:
                arrays.check_beside(name, shape)
        return Contents(
            arrays[chosen],
            labels=arrays.labels(),
            kind=kind_of_name(chosen),
            source_names=arrays.names_in("source_names"),
            class_names=arrays.names_in("class_names"),
            sample_ids=arrays.ids_in("sample_ids"),
            groups=arrays.ids_in(group_column or "groups"),
            sample_shape=tuple(arrays["sample_shape"].tolist()) if "sample_shape" in arrays.names else None,
        )


def _read_labels(path: Path) -> Array | LabelTable:
    with NpzArrays(path) as arrays:
        labels = np.asarray(arrays[name_of_labels(arrays.names, path)])
        ids = arrays.ids_in(IDS)
        return labels if ids is None else LabelTable(list(ids), labels)


def write_npz(predictions: Predictions, path: Path, scores: Path | None = None) -> None:
    """Write scores, labels and names, source by source; ``scores`` is a ``.npy`` of the same scores to be copied."""
    check_writable_names(predictions, "\\0$", ".npz", ".zarr")  # NumPy's strings end before their last NULs
    n_bytes = predictions.n_sources * predictions.n_samples * predictions.n_classes * predictions.dtype.itemsize
    contents = {name: np.ascontiguousarray(content) for name, content in beside_scores(predictions).items()}
    for name, array in contents.items():
        _check_length(array.dtype, f"{path} (array {name})")
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        with open_aligned_entry(archive, predictions.kind, n_bytes) as target:
            if scores is None:
                write_scores(predictions, target, (predictions.n_samples,))
            else:  # reading a map would count as memory
                with scores.open("rb") as file_of_scores:
                    shutil.copyfileobj(file_of_scores, target, _READ_AT_ONCE)
        for name, array in contents.items():
            with open_aligned_entry(archive, name, array.nbytes) as target:
                npy_format.write_array(target, array, allow_pickle=False)


def open_aligned_entry(archive: zipfile.ZipFile, name: str, n_bytes: int) -> IO[bytes]:
    """An entry of a ``.npz`` for an image of about ``n_bytes``, aligned so that it can be mapped."""
    entry = zipfile.ZipInfo(f"{name}{_SUFFIX}", date_time=_NO_DATE)
    zip64 = n_bytes > zipfile.ZIP64_LIMIT // 2
    start = archive.fp.tell() if archive.fp is not None else 0
    padding = -(start + 30 + len(entry.filename) + (20 if zip64 else 0) + 4) % _ALIGNMENT
    entry.extra = struct.pack("<HH", _PADDING_FIELD, padding) + b"\0" * padding
    return archive.open(entry, "w", force_zip64=zip64)


def _write_arrays(arrays: dict[str, Array], path: Path) -> None:
    with atomic_file(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


NPZ = Format(
    (".npz",), read=_read, write=write_npz, read_labels=_read_labels, write_arrays=_write_arrays, has_columns=True
)
