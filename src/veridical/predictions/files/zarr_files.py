"""``.zarr``: chunked arrays in a directory, with zarr (the extra ``zarr``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
#: Files of a store that say how it is packed; zarr 2 writes those with a dot, zarr 3 the other.
_METADATA = (".zarray", ".zgroup", ".zmetadata", "zarr.json")
_PACKING = ("compressor", "filters", "codecs", "index_codecs")
#: Ways of packing that do arithmetic and nothing else.  Others exist, a pickle among them, and what one
#: version of a library refuses another runs.
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
    zarr = require("zarr", "zarr")
    if not path.exists():
        raise FileFormatError(f"{path} does not exist; check the name.")
    if not is_zarr(path):
        raise FileFormatError(f"{path} is not {_WHAT} (a directory with {_METADATA[-1]} or {_METADATA[1]} in it).")
    with reading(path, _WHAT):
        stored = _check_packing(path)
        root = zarr.open(str(path), mode="r")
        facts = dict(root.attrs)
        kind_said: Any = None if facts.get("kind") is None else check_choice(facts["kind"], KINDS, f"{path}: kind")
        labels = None
        if isinstance(root, zarr.Array):
            values = _numbers(root, path, stored)
            declared = settle_kind(kind_said, declared_kind(path), f"the name of {path}")
        else:
            names = [name for name, _ in root.arrays()]
            chosen = choose_scores(names, kind or kind_said, path)
            values = _numbers(root[chosen], path, stored)
            labels = _numbers(root["labels"], path, stored) if "labels" in names else None
            declared = kind_of_name(chosen) or kind_said
        return Contents(values, labels, declared, facts.get("source_names"), facts.get("class_names"))


def _numbers(array: Any, path: Path, stored: int) -> Array:
    if np.dtype(array.dtype).kind not in "fiub":
        raise DtypeError(f"{path} holds an array of dtype {array.dtype}; save real numbers.")
    check_claim(path, int(array.nbytes), stored)
    return np.asarray(array[...])


def _check_packing(path: Path) -> int:
    """Refuse stores that are packed in ways that could run programs; the bytes that a store takes."""
    stored = 0
    for folder, _, names in os.walk(path):
        for name in names:
            file = Path(folder) / name
            stored += file.stat().st_size
            if name in _METADATA:
                for codec in _codecs(json.loads(file.read_text(encoding="utf-8"))):
                    if codec.removeprefix("numcodecs.") not in _HARMLESS:
                        raise FileFormatError(
                            f"{path} is packed with {codec!r}, which could run programs when it is read; write it "
                            "again with an ordinary compressor, such as zstd."
                        )
    return stored


def _codecs(metadata: Any, within: bool = False) -> Iterator[str]:
    """Names of all ways of packing anywhere in a store's metadata."""
    if isinstance(metadata, str) and within:
        yield metadata
    elif isinstance(metadata, list):
        for entry in metadata:
            yield from _codecs(entry, within)
    elif isinstance(metadata, dict):
        if within:
            yield str(metadata.get("id", metadata.get("name")))
        for key, entry in metadata.items():
            if isinstance(entry, (dict, list)) and key != "attributes":
                yield from _codecs(entry, key in _PACKING)


def write_zarr(predictions: Predictions, path: Path) -> None:
    """Write a group with the scores under the name of their kind, and labels; names are the group's attributes."""
    zarr = require("zarr", "zarr")
    if path.exists() and not is_zarr(path):
        raise StorageError(f"{path} exists and is not {_WHAT}; remove it or choose another name.")
    rows = min(max(_CHUNK_BYTES // (predictions.n_classes * predictions.dtype.itemsize), 1), predictions.n_samples or 1)
    with atomic_directory(path) as folder:
        root = zarr.open_group(str(folder), mode="w")
        # zarr 3 renamed it, and warns of the old name.
        create = root.create_array if hasattr(root, "create_array") else root.create_dataset
        scores = create(
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
            create("labels", shape=shape, chunks=(max(shape[0], 1),), dtype="int64")[...] = predictions.labels
        for name in ("source_names", "class_names"):
            names = getattr(predictions, name)
            if names is not None:
                root.attrs[name] = list(names)
