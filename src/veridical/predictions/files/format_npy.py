"""``.npy``: one array, memory-mapped instead of read.

The header is parsed here and compared with the size of the file before memory is allocated: NumPy allocates what the
header claims, and evaluates it as Python text.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from veridical._atomic import atomic_file
from veridical.errors import CorruptFileError, DtypeError, FileFormatError
from veridical.predictions.container import Predictions
from veridical.predictions.contents import Contents
from veridical.predictions.files.contents import Format, Request, declared_kind
from veridical.predictions.files.file_checks import check_is_file, reading, wrong_content
from veridical.predictions.validation import Array, InputKind

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 10_000
_ENTRY = re.compile(
    r"""['"](descr|fortran_order|shape)['"]\s*:\s*(?:['"]([^'"]*)['"]|(True|False)|\(([\s\dL,]*)\)|(\[))"""
)
_DTYPE = re.compile(r"[<>|=]?([a-zA-Z?]\d{0,6}|[mM]8\[\d{0,6}[a-zA-Z]{1,2}\])")
#: Bytes that are written at once.
_WRITE_AT_ONCE = 1 << 22


class NpyHeader(NamedTuple):
    """The header of a ``.npy`` array; ``start`` is the position of the first number."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Any
    start: int

    @property
    def n_bytes(self) -> int:
        """Number of bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize


def _read(path: Path, request: Request) -> Contents:
    """Scores of a ``.npy`` file, mapped; only the file's name can declare their kind."""
    return Contents(map_npy(path), kind=declared_kind(path))


def _open_array(path: Path, kind: InputKind | None) -> tuple[Array, Contents]:
    return map_npy(path), Contents(np.empty(0), kind=declared_kind(path))


def map_npy(path: Path) -> Array:
    """The array of a ``.npy`` file, mapped."""
    size = check_is_file(path, "a .npy array")
    with reading(path, "a .npy array"), path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC[: min(size, len(_MAGIC))]:
            raise wrong_content(path, "a .npy array")
        file.seek(0)
        return map_array(path, 0, read_header(file, size, str(path)))


def map_array(path: Path, offset: int, header: NpyHeader) -> Array:
    """The array whose ``.npy`` image begins at ``offset``; an empty one cannot be mapped."""
    if header.n_bytes == 0:
        return np.empty(header.shape, header.dtype)
    return np.memmap(path, header.dtype, "r", offset + header.start, header.shape, header.order)


def read_header(file: IO[bytes], size: int, where: str) -> NpyHeader:
    """The header of a ``.npy`` image, which must agree with the image's ``size`` in bytes."""
    start = file.read(min(size, 12))
    width = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(start[8 : 8 + width], "little")
    if len(start) < 12 or start[:6] != _MAGIC or start[6] not in (1, 2, 3):
        raise CorruptFileError(f"{where} is not a .npy array or is truncated; write it again.")
    if not 2 <= length <= _LONGEST_HEADER or 8 + width + length > size:
        raise CorruptFileError(f"{where} claims a header of {length:,} bytes; it is damaged: write it again.")
    text = (start[8 + width :] + file.read(length + width - 4)).decode("latin-1")
    header = _parse_header(text, 8 + width + length, where)
    if header.start + header.n_bytes != size:
        raise CorruptFileError(
            f"{where} has a header for an array of shape {header.shape} and dtype {header.dtype}, {header.n_bytes:,} "
            f"bytes, and contains {size - header.start:,} bytes; it is truncated or damaged: write it again."
        )
    return header


def _parse_header(text: str, start: int, where: str) -> NpyHeader:
    """The three entries of a header; only those of plain arrays are parsed, and nothing is evaluated."""
    entries = {match[1]: match.groups()[1:] for match in _ENTRY.finditer(text)}
    if set(entries) != {"descr", "fortran_order", "shape"}:
        raise CorruptFileError(f"{where} has a header without dtype, order or shape; write it again.")
    descr, fortran, shape = entries["descr"][0], entries["fortran_order"][1], entries["shape"][2]
    if entries["descr"][3]:
        raise DtypeError(f"{where} holds records with named fields; save one plain array of numbers.")
    if (
        descr is None
        or fortran is None
        or shape is None
        or not re.fullmatch(r"[<>|=]?[a-zA-Z?]\d{0,6}|[<>|=]?[mM]8(\[\d{0,6}[a-zA-Z]{1,2}\])?", descr)
    ):
        raise CorruptFileError(f"{where} has a header that cannot be parsed; write it again.")
    if "O" in descr:
        raise FileFormatError(
            f"{where} holds Python objects, that is a pickle, which can run programs and is never loaded; convert it "
            'where you trust it, for example numpy.save(path, numpy.stack([numpy.asarray(a, "float32") for a in it])).'
        )
    dtype = np.dtype(descr)
    if dtype.kind not in "fiubcSUM" or dtype.itemsize == 0:
        raise DtypeError(f"{where} has dtype {descr}; save real numbers, for example array.astype(numpy.float32).")
    sizes = tuple(int(number) for number in re.findall(r"\d+", shape))
    return NpyHeader(sizes, dtype, "F" if fortran == "True" else "C", start)


def _write(predictions: Predictions, path: Path) -> None:
    """Write the scores alone, (S, N, L) or (S, N, H, W, L)."""
    with atomic_file(path) as file:
        write_scores(predictions, file, predictions.sample_shape)


def _write_probs(arrays: dict[str, Array], path: Path) -> None:
    with atomic_file(path) as file:
        np.save(file, arrays["probs"])


def write_scores(predictions: Predictions, file: IO[bytes], sample_shape: tuple[int, ...]) -> int:
    """Write the scores (S, *sample_shape, L) as a ``.npy`` image, source by source; return the number of bytes."""
    dtype = predictions.dtype
    shape = (predictions.n_sources, *sample_shape, predictions.n_classes)
    npy_format.write_array_header_1_0(
        file, {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )
    rows = max(_WRITE_AT_ONCE // (predictions.n_classes * dtype.itemsize), 1)
    for source in predictions:
        for start in range(0, predictions.n_samples, rows):
            file.write(np.ascontiguousarray(source[start : start + rows], dtype=dtype).data.cast("B"))
    return math.prod(shape) * dtype.itemsize


NPY = Format(
    (".npy",),
    read=_read,
    write=_write,
    read_labels=map_npy,
    write_arrays=_write_probs,
    open_array=_open_array,
    keeps_kind=False,
)
