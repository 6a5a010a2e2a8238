"""``.zarr``: chunked arrays in a directory, with zarr (the extra ``zarr``)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from veridical._atomic import atomic_directory
from veridical._lazy import require
from veridical.errors import DtypeError, FileFormatError, StorageError
from veridical.predictions.container import Predictions
from veridical.predictions.contents import Contents
from veridical.predictions.files.contents import (
    BESIDE_SCORES,
    Format,
    Request,
    beside_scores,
    choose_scores,
    declared_kind,
    kind_of_name,
    settle_kind,
)
from veridical.predictions.files.file_checks import check_claim, reading
from veridical.predictions.validation import INPUT_KINDS, Array, InputKind, check_choice

_WHAT = "a .zarr store"
_CHUNK_BYTES = 1 << 22
#: Files of a store that say how it is packed; those with a dot belong to version 2 of the format.
_METADATA = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
#: How many chunks zarr unpacks at the same time.
_CHUNKS_AT_ONCE = 10
#: Bytes that zarr takes for each chunk that it reads or finds missing, and the most that are read at once (minutes).
_PER_CHUNK, _MOST_CHUNKS = 1 << 12, 1_000_000

#: Codecs that are read: they compress, do arithmetic and nothing else.  Others exist, a pickle among them, and what
#: one version of a library refuses another runs.
_COMPRESSORS = ("zstd", "blosc", "gzip", "zlib", "lz4")
_KNOWN = {
    *_COMPRESSORS,
    *("shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "astype", "packbits"),
    *("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"),
    *("bytes", "endian", "transpose", "sharding_indexed"),
}


def is_zarr(path: Path) -> bool:
    """Whether a directory is a zarr store, whatever its name."""
    return path.is_dir() and any((path / name).is_file() for name in _METADATA)


def _read(path: Path, request: Request) -> Contents:
    """Scores of a group with named arrays, or of one array."""
    scores, contents, stored = _open(path, request.kind)
    with reading(path, _WHAT):
        check_claim(path, _claim(scores, whole=True), stored)
        return replace(contents, values=_read_whole(scores, path))


def open_zarr(path: Path, kind: InputKind | None) -> tuple[Any, Contents]:
    """The opened array of the scores, and everything beside it; none of the scores are read."""
    return _open(path, kind)[:2]


def _open(path: Path, kind: InputKind | None) -> tuple[Any, Contents, int]:
    """The opened array of the scores, everything beside it, and the size of the store in bytes."""
    zarr = _require_zarr()
    if not path.exists():
        raise FileFormatError(f"{path} does not exist; check the name.")
    if not is_zarr(path):
        raise FileFormatError(f"{path} is not {_WHAT} (a directory with {_METADATA[-1]} or {_METADATA[1]} in it).")
    with reading(path, _WHAT):
        stored = _check_store(path)
        root = zarr.open(zarr.storage.LocalStore(path, read_only=True), mode="r")
        attributes = dict(root.attrs)
        declared: Any = attributes.get("kind")
        if declared is not None:
            check_choice(declared, INPUT_KINDS, f"{path}: kind")
        beside: dict[str, Any] = {name: attributes.get(name) for name in BESIDE_SCORES}
        arrays: dict[str, Any] = {}
        if isinstance(root, zarr.Array):
            scores = root
            declared = settle_kind(declared, declared_kind(path), f"the name of {path}")
        else:
            names = [name for name, _ in root.arrays()]
            chosen = choose_scores(names, kind or declared, path)
            scores = root[chosen]
            arrays = {name: root[name] for name in BESIDE_SCORES if name in names}
            declared = kind_of_name(chosen) or declared
        _check_metadata(scores, path)
        claim = _claim(scores, whole=False) + sum(_claim(array, whole=True) for array in arrays.values())
        check_claim(path, claim, stored)
        beside |= {name: _read_whole(array, path) for name, array in arrays.items()}
        return scores, Contents(np.empty(0), kind=declared, **beside), stored


def _claim(array: Any, *, whole: bool) -> int:
    """Bytes that it takes to read an array whole, or in blocks; chunks that are missing take some as well."""
    box, chunk = _box_of(array), _chunk_shape(array)
    n_unpacked = min(_count(box, chunk), _CHUNKS_AT_ONCE) * math.prod(chunk)  # whole, even for a part of a chunk
    n_numbers = n_unpacked + (math.prod(array.shape) if whole else 0)
    return n_numbers * int(np.dtype(array.dtype).itemsize) + _count(box, array.chunks) * _PER_CHUNK


def _box_of(array: Any) -> tuple[slice, ...]:
    return tuple(slice(0, size) for size in array.shape)


def _chunk_shape(array: Any) -> tuple[int, ...]:
    """The shape of what one file holds: of a shard, or of a chunk without shards."""
    return tuple(getattr(array, "shards", None) or array.chunks)


def _count(part: tuple[slice, ...], chunk: tuple[int, ...]) -> int:
    """How many chunks a box meets."""
    return math.prod(-(-s.stop // size) - s.start // size for s, size in zip(part, chunk, strict=True))


def _check_metadata(array: Any, path: Path) -> None:
    """Refuse an opened array whose metadata do not show that it is safe to decode."""
    _check_codecs(_codecs(array.metadata.to_dict()), path)
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "fiub":
        raise DtypeError(f"{path} holds an array of dtype {dtype}; save real numbers.")


def read_zarr_part(array: Any, path: Path, part: tuple[slice, ...]) -> Array:
    """The numbers in a box of an opened array."""
    _check_metadata(array, path)
    n_chunks = _count(part, array.chunks)
    if n_chunks > _MOST_CHUNKS:
        raise FileFormatError(
            f"{path} has {n_chunks:,} chunks of shape {array.chunks} to read at once; write at most {_MOST_CHUNKS:,}."
        )
    return np.asarray(array[part])


def _read_whole(array: Any, path: Path) -> Array:
    return read_zarr_part(array, path, _box_of(array))


def _require_zarr() -> Any:
    """The zarr module; version 2 decodes by codecs that version 3 refuses, a pickle among them."""
    return require("zarr", "zarr", at_least=3)


def _codecs(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """The codecs of an array, from its metadata in format 3 or 2."""
    codecs = (*(metadata.get("codecs") or ()), *(metadata.get("filters") or ()), metadata.get("compressor"))
    return [{"name": codec} if isinstance(codec, str) else codec for codec in codecs if codec is not None]


def _check_codecs(codecs: Sequence[dict[str, Any]], path: Path) -> None:
    """Refuse codecs that are not known to be harmless."""
    for codec in codecs:
        name = str(codec.get("id", codec.get("name"))).removeprefix("numcodecs.")  # of format 2, or 3
        if name not in _KNOWN:
            raise FileFormatError(
                f"{path} is packed with {name!r}, which could run programs when it is read; write it again with one "
                f"of: {', '.join(_COMPRESSORS)}."
            )
        options = dict(codec.get("configuration") or codec)
        for entry in ("dtype", "astype", "encode_dtype", "decode_dtype"):  # of filters
            if options.get(entry) is not None and np.dtype(options[entry]).kind not in "fiub":
                raise FileFormatError(f"{path} is packed with {name!r} by way of {options[entry]!r}; write numbers.")
        for inner in ("codecs", "index_codecs"):  # of shards
            _check_codecs(options.get(inner) or (), path)


def _described_arrays(document: Any) -> Iterator[dict[str, Any]]:
    """The metadata of every array that a metadata file describes, those of a whole group among them."""
    if isinstance(document, dict):
        if any(key in document for key in ("codecs", "filters", "compressor")):
            yield document
        for key, entry in document.items():
            if key != "attributes":
                yield from _described_arrays(entry)


def _check_store(path: Path) -> int:
    """The size of a store in bytes; refused are stores that cannot be seen whole or could run programs when decoded.

    Every directory must be listed and nothing may be a link, so that every file has one name, the one it is read by.
    """
    stored = 0
    for folder, directories, names in os.walk(path.resolve(), onerror=_refuse_directory):
        for name in (*directories, *names):
            entry = Path(folder) / name
            if entry.is_symlink():
                raise FileFormatError(
                    f"{path} contains a link to {entry.resolve()}; put a copy of what it links to in its place."
                )
            if entry.is_dir():
                continue
            if not entry.is_file():
                raise FileFormatError(f"{entry} is not a regular file; a .zarr store contains files and directories.")
            stored += entry.stat().st_size
            if name in _METADATA:
                for metadata in _described_arrays(json.loads(entry.read_text(encoding="utf-8"))):
                    _check_codecs(_codecs(metadata), path)
    return stored


def _refuse_directory(error: OSError) -> NoReturn:
    raise FileFormatError(
        f"the directory {error.filename} cannot be listed ({error.strerror}); check its permissions."
    ) from error


def _write(predictions: Predictions, path: Path) -> None:
    """Write a group with the scores under the name of their kind, and arrays of numbers; texts are its attributes."""
    zarr = _require_zarr()
    if path.exists() and not is_zarr(path):
        raise StorageError(f"{path} exists and is not {_WHAT}; remove it or choose another name.")
    if predictions.dtype.kind == "f" and predictions.dtype.itemsize > 8:
        raise DtypeError(f"{predictions.dtype} does not fit into {_WHAT}; convert the scores to float64.")
    rows = min(max(_CHUNK_BYTES // (predictions.n_classes * predictions.dtype.itemsize), 1), predictions.n_samples or 1)
    with atomic_directory(path) as folder:
        root = zarr.open_group(str(folder), mode="w")
        scores = root.create_array(
            predictions.kind,
            shape=(predictions.n_sources, predictions.n_samples, predictions.n_classes),
            chunks=(1, rows, predictions.n_classes),
            dtype=predictions.dtype,
        )
        for s, source in enumerate(predictions):
            for start in range(0, predictions.n_samples, rows):
                scores[s, start : start + rows] = source[start : start + rows]
        for name, entries in beside_scores(predictions).items():
            if isinstance(entries, np.ndarray) and entries.dtype.kind == "i":
                n = len(entries)
                root.create_array(name, shape=(n,), chunks=(max(n, 1),), dtype="int64")[...] = entries
            else:
                root.attrs[name] = entries.tolist() if isinstance(entries, np.ndarray) else list(entries)


ZARR = Format((".zarr",), read=_read, write=_write, open_array=open_zarr, is_directory=True, extra="zarr")
