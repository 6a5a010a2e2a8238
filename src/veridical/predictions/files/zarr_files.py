"""``.zarr``: chunked arrays in a directory, with zarr (the extra ``zarr``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from veridical._atomic import atomic_directory
from veridical._extras import require
from veridical.errors import DtypeError, FileFormatError, StorageError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import (
    Contents,
    check_claim,
    choose_scores,
    declared_kind,
    kind_of_name,
    reading,
    settle_kind,
)
from veridical.predictions.validation import KINDS, Array, Kind, check_choice

_WHAT = "a .zarr store"
_CHUNK_BYTES = 1 << 22
#: Files of a store that say how it is packed; those with a dot belong to version 2 of the format.
_METADATA = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
_PACKING = ("compressor", "filters", "codecs", "index_codecs")
#: Codecs that do arithmetic and nothing else.  Others exist, a pickle among them, and what one version of a library
#: refuses another runs.
_COMPRESSORS = {"blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma"}
_FILTERS = {"shuffle", "delta", "fixedscaleoffset", "quantize", "bitround", "astype", "packbits"}
_CHECKSUMS = {"crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"}
_LAYOUTS = {"bytes", "endian", "transpose", "sharding_indexed"}
_HARMLESS = _COMPRESSORS | _FILTERS | _CHECKSUMS | _LAYOUTS


def is_zarr(path: Path) -> bool:
    """Whether a directory is a zarr store, whatever it is called."""
    return path.is_dir() and any((path / name).is_file() for name in _METADATA)


def read_zarr(path: Path, kind: Kind | None) -> Contents:
    """Scores of a group with named arrays, or of one array."""
    zarr = _require_zarr()
    if not path.exists():
        raise FileFormatError(f"{path} does not exist; check the name.")
    if not is_zarr(path):
        raise FileFormatError(f"{path} is not {_WHAT} (a directory with {_METADATA[-1]} or {_METADATA[1]} in it).")
    with reading(path, _WHAT):
        files = _check_store(path)
        stored = sum(file.stat().st_size for file in files)
        root = zarr.open(zarr.storage.LocalStore(path, read_only=True), mode="r")
        attributes = dict(root.attrs)
        declared: Any = attributes.get("kind")
        if declared is not None:
            check_choice(declared, KINDS, f"{path}: kind")
        labels = None
        if isinstance(root, zarr.Array):
            values = _read_array(root, path, stored)
            declared = settle_kind(declared, declared_kind(path), f"the name of {path}")
        else:
            names = [name for name, _ in root.arrays()]
            chosen = choose_scores(names, kind or declared, path)
            values = _read_array(root[chosen], path, stored)
            labels = _read_array(root["labels"], path, stored) if "labels" in names else None
            declared = kind_of_name(chosen) or declared
        return Contents(
            values,
            labels,
            declared,
            attributes.get("source_names"),
            attributes.get("class_names"),
            files=files,
        )


def _require_zarr() -> Any:
    """The zarr module; version 2 decodes by codecs that version 3 refuses, a pickle among them."""
    return require("zarr", "zarr", at_least=3)


def _read_array(array: Any, path: Path, stored: int) -> Array:
    """All numbers of an opened array, once its own metadata show that it is safe to decode."""
    _check_codecs(array.metadata.to_dict(), path)
    if np.dtype(array.dtype).kind not in "fiub":
        raise DtypeError(f"{path} holds an array of dtype {array.dtype}; save real numbers.")
    check_claim(path, int(array.nbytes), stored)
    return np.asarray(array[...])


def _check_store(path: Path) -> tuple[Path, ...]:
    """All files of a store; refused are stores that cannot be seen whole or could run programs when decoded.

    Every directory must be listed and every link must stay within the store, so that no metadata file is missed.
    """
    root = path.resolve()
    files = []
    for folder, directories, names in os.walk(root, onerror=_refuse_directory):
        for name in (*directories, *names):
            entry = Path(folder) / name
            if not entry.resolve().is_relative_to(root):
                raise FileFormatError(
                    f"{path} contains a link to {entry.resolve()}, outside the store; copy the linked files into it."
                )
            if entry.is_dir():
                continue
            if not entry.is_file():
                raise FileFormatError(f"{entry} is not a regular file; a .zarr store contains files and directories.")
            files.append(entry)
            if name in _METADATA:
                _check_codecs(json.loads(entry.read_text(encoding="utf-8")), path)
    return tuple(files)


def _refuse_directory(error: OSError) -> NoReturn:
    raise FileFormatError(
        f"the directory {error.filename} cannot be listed ({error.strerror}); check its permissions."
    ) from error


def _check_codecs(metadata: Any, path: Path) -> None:
    """Refuse metadata that name a codec other than the arithmetic ones."""
    for codec in _codecs(metadata):
        if codec.removeprefix("numcodecs.") not in _HARMLESS:
            raise FileFormatError(
                f"{path} is packed with {codec!r}, which could run programs when it is read; write it again with an "
                "ordinary compressor, such as zstd."
            )


def _codecs(metadata: Any, within: bool = False) -> Iterator[str]:
    """Names of all codecs anywhere in a store's metadata."""
    if isinstance(metadata, str) and within:
        yield metadata
    elif isinstance(metadata, (list, tuple)):
        for entry in metadata:
            yield from _codecs(entry, within)
    elif isinstance(metadata, dict):
        if within:
            yield str(metadata.get("id", metadata.get("name")))
        for key, entry in metadata.items():
            if key != "attributes" and (key in _PACKING or isinstance(entry, (dict, list, tuple))):
                yield from _codecs(entry, key in _PACKING)


def write_zarr(predictions: Predictions, path: Path) -> None:
    """Write a group with the scores under the name of their kind, and labels; names are the group's attributes."""
    zarr = _require_zarr()
    if path.exists() and not is_zarr(path):
        raise StorageError(f"{path} exists and is not {_WHAT}; remove it or choose another name.")
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
        if predictions.labels is not None:
            shape = predictions.labels.shape
            root.create_array("labels", shape=shape, chunks=(max(shape[0], 1),), dtype="int64")[...] = (
                predictions.labels
            )
        for name in ("source_names", "class_names"):
            names = getattr(predictions, name)
            if names is not None:
                root.attrs[name] = list(names)
