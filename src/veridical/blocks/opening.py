"""Files as blocked predictions: their metadata are read and checked, their numbers are not."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import as_path
from veridical._dispatch import STREAM_ABOVE
from veridical.blocks.blocked import BLOCK_MEMORY, BlockedPredictions, skeleton
from veridical.blocks.readers import ArrayReader, NpyReader, Reader, ZarrReader
from veridical.errors import FileFormatError, InvalidInputError, ParameterError, ShapeError, shown
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.files.contents import Contents, declared_kind, settle_kind
from veridical.predictions.files.file_checks import reading
from veridical.predictions.files.format_npy import map_npy
from veridical.predictions.files.format_zarr import is_zarr, open_zarr
from veridical.predictions.files.formats import read_labels
from veridical.predictions.inputs import check_sources_axis
from veridical.predictions.validation import Kind


def as_blocked(
    predictions: Any, kind: Kind | None = None, sources_axis: int | None = None, labels: Any = None
) -> BlockedPredictions:
    """``predictions`` if they are blocked already; otherwise arrays, or Predictions in memory or mapped, in blocks."""
    if isinstance(predictions, BlockedPredictions):
        if kind is not None and shown(kind) != shown(predictions.kind):
            raise ParameterError(f"kind={shown(kind)} contradicts the predictions, which hold {predictions.kind!r}.")
        if sources_axis is not None and shown(sources_axis) != "0":
            raise ParameterError("these predictions know which axis their sources are on; leave sources_axis out.")
        return predictions if labels is None else predictions.with_labels(labels)
    return open(predictions, labels, kind=kind, sources_axis=sources_axis)


def open(
    path: Any,
    labels: Any = None,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    block_memory: int = BLOCK_MEMORY,
) -> BlockedPredictions:
    """Predictions that are read block by block: for files larger than memory.

    Parameters
    ----------
    path : path, array of shape (S, N, L), or Predictions
        A ``.npy`` file or a ``.zarr`` store; or an array, for example a memory map.
    labels : path or array of N labels, optional
        As in :func:`veridical.load`; they are held in memory, 8 bytes per sample.
    kind, sources_axis
        As in :func:`veridical.load`.
    block_memory : int
        Bytes for reading and computing, by default 256 MB: a block is a quarter of it.

    Returns
    -------
    BlockedPredictions

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import veridical as vd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "probs.npy"
    >>> np.save(path, np.full((3, 10_000, 2), 0.5, np.float32))
    >>> predictions = vd.scale.open(path, block_memory=1 << 18)
    >>> predictions
    BlockedPredictions(3 sources, 10000 samples, 2 classes, kind='probs', float32, unlabelled, 4 blocks of 2730 samples)
    >>> sum(len(block.predictions.values[0]) for block in predictions.blocks())
    10000
    """
    if sources_axis is not None:
        check_sources_axis(sources_axis)
    if isinstance(path, Predictions):
        whole = as_predictions(path, kind, sources_axis)
        whole = whole if labels is None else whole.with_labels(labels)
        return BlockedPredictions(whole, ArrayReader(whole.values), block_memory)
    if isinstance(path, (str, os.PathLike)):
        return _open_file(as_path(path), labels, kind, sources_axis, block_memory)
    whole = Predictions(path, labels, kind="probs" if kind is None else kind, sources_axis=sources_axis or 0)
    return BlockedPredictions(whole, ArrayReader(whole.values), block_memory)


def is_large(path: str | os.PathLike[str]) -> bool:
    """Whether a file or store that can be read in blocks has more than 2 GB of numbers."""
    source = Path(path)
    if source.suffix.lower() == ".npy":
        return source.is_file() and source.stat().st_size > STREAM_ABOVE
    if not is_zarr(source):
        return False
    return bool(math.prod(open_zarr(source, None)[0].shape) * 4 > STREAM_ABOVE)


def _open_file(
    path: Path, labels: Any, kind: Kind | None, sources_axis: int | None, block_memory: int
) -> BlockedPredictions:
    """A .npy file or a .zarr store."""
    label_files = (Path(labels),) if isinstance(labels, (str, os.PathLike)) else ()
    if label_files:
        labels = read_labels(label_files[0])
    with reading(path, "predictions"):
        if is_zarr(path):
            shape, dtype, reader, contents = _open_zarr(path, kind, sources_axis or 0)
        elif path.suffix.lower() == ".npy":
            shape, dtype, reader = _open_npy(path, sources_axis or 0)
            contents = Contents(np.empty(0), kind=declared_kind(path))
        else:
            raise FileFormatError(
                f"{path} is not a .npy file or .zarr store, which can be read in blocks; convert it with "
                "veridical.save, or load it whole."
            )
    facts = {name: getattr(contents, name) for name in ("source_names", "class_names", "sample_ids")}
    settled = settle_kind(kind, contents.kind, path) or "probs"
    if settled == "binary":
        raise ParameterError(f"{path} holds probabilities of one class, which are not read in blocks; load them whole.")
    try:
        whole = skeleton(
            shape, dtype, str(path), labels=contents.labels if labels is None else labels, kind=settled, **facts
        )
    except InvalidInputError as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error
    whole.files = (path, *label_files)
    return BlockedPredictions(whole, reader, block_memory)


def _open_zarr(
    path: Path, kind: Kind | None, sources_axis: int
) -> tuple[tuple[int, ...], np.dtype[Any], Reader, Contents]:
    """Shape (S, N, L), dtype, reader, and what is beside the scores."""
    array, contents = open_zarr(path, kind)
    if len(array.shape) != 3:
        raise ShapeError(f"{path} holds an array of shape {array.shape}; give (sources, samples, classes).")
    if sources_axis not in (0, 1):
        raise ParameterError(f"sources_axis is {shown(sources_axis)}; in a .zarr that is read in blocks it is 0 or 1.")
    shape = [*array.shape]
    shape[0], shape[sources_axis] = shape[sources_axis], shape[0]
    return tuple(shape), np.dtype(array.dtype), ZarrReader(array, path, sources_axis), contents


def _open_npy(path: Path, sources_axis: int) -> tuple[tuple[int, ...], np.dtype[Any], Reader]:
    """Shape (S, N, L), dtype and reader of a file."""
    array = map_npy(path)
    if array.ndim == 2 and not sources_axis:
        array = array[None]
    if array.ndim != 3:
        raise ShapeError(f"{path} holds an array of shape {array.shape}; give (sources, samples, classes).")
    if sources_axis not in (0, 1, 2):
        raise ParameterError(f"sources_axis is {shown(sources_axis)}; it is 0, 1 or 2.")
    values = np.moveaxis(array, sources_axis, 0)
    if sources_axis < 2 and array.flags.c_contiguous and array.dtype.isnative and isinstance(array, np.memmap):
        return values.shape, array.dtype, NpyReader(path, array.offset, array.shape, array.dtype, sources_axis)
    return values.shape, array.dtype, ArrayReader(values)
