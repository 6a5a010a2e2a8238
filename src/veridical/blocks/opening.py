"""Files, arrays and Dask arrays as blocked predictions: their facts are read and checked, their numbers are not."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import as_path
from veridical._dispatch import STREAM_ABOVE, is_dask_array
from veridical.blocks.blocked import BLOCK_MEMORY, BlockedPredictions, skeleton
from veridical.blocks.readers import Reader, ZarrReader, reader_of
from veridical.errors import FileFormatError, LabelError, ParameterError, ShapeError, shown
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.files.contents import Request, settle_kind
from veridical.predictions.files.file_checks import reading
from veridical.predictions.files.format_zarr import ZARR, is_zarr
from veridical.predictions.files.formats import format_with, suffixes_with
from veridical.predictions.files.loading import predictions_of
from veridical.predictions.inputs import check_sources_axis
from veridical.predictions.labels import LABELS_NEEDED
from veridical.predictions.validation import INPUT_KINDS, Array, InputKind, check_choice


def as_blocked(
    predictions: Any,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    labels: Any = None,
    *,
    needs_labels: bool = False,
) -> BlockedPredictions:
    """``predictions`` if they are blocked already; otherwise files, arrays or Predictions, in blocks."""
    if isinstance(predictions, BlockedPredictions):
        if kind is not None and shown(kind) != shown(predictions.kind):
            raise ParameterError(f"kind={shown(kind)} contradicts the predictions, which hold {predictions.kind!r}.")
        if sources_axis is not None and shown(sources_axis) != "0":
            raise ParameterError("these predictions know which axis their sources are on; leave sources_axis out.")
        blocked = predictions if labels is None else predictions.with_labels(labels)
    else:
        blocked = open(predictions, labels, kind=kind, sources_axis=sources_axis)
    if needs_labels and blocked.labels is None:
        raise LabelError(LABELS_NEEDED)
    return blocked


def open(
    path: Any,
    labels: Any = None,
    *,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    block_memory: int = BLOCK_MEMORY,
    default_kind: InputKind | None = None,
) -> BlockedPredictions:
    """Predictions that are read block by block: for files larger than memory.

    Parameters
    ----------
    path : path, Predictions, array of shape (S, N, L), or Dask array of that shape
        A ``.npy`` file or a ``.zarr`` store; or an array, for example a memory map.  Ids, groups and images of
        Predictions, and of a store, are those of the blocks.
    labels : path or array of N labels, optional
        As in :func:`veridical.load`; they are held in memory, 8 bytes per sample.
    kind, sources_axis
        As in :func:`veridical.load`.
    block_memory : int
        Bytes for reading and computing, by default 256 MB: a block is a quarter of it.
    default_kind : str, optional
        The kind where neither the caller nor the file declares one; "probs" by default.

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
    if kind is not None and not isinstance(path, Predictions):
        check_choice(kind, INPUT_KINDS, "kind")
    if default_kind is not None:
        check_choice(default_kind, INPUT_KINDS, "default_kind")
    if is_dask_array(path):
        from veridical.blocks.on_dask import open_dask_array

        return open_dask_array(path, labels, kind, sources_axis, default_kind)
    if isinstance(path, (str, os.PathLike)):
        return _open_file(as_path(path), labels, kind, sources_axis or 0, block_memory, default_kind)
    if isinstance(path, Predictions):
        whole = as_predictions(path, kind, sources_axis)
        whole = whole if labels is None else whole.with_labels(labels)
    else:
        whole = Predictions(path, labels, kind=kind or default_kind or "probs", sources_axis=sources_axis or 0)
    return BlockedPredictions(whole, reader_of(whole.values), block_memory)


def is_large(path: str | os.PathLike[str]) -> bool:
    """Whether a file or store that can be read in blocks has more than 2 GB of numbers."""
    source = Path(path)
    if source.suffix.lower() == ".npy":
        return source.is_file() and source.stat().st_size > STREAM_ABOVE
    if not is_zarr(source):
        return False
    return bool(math.prod(ZARR.open_array(source, None)[0].shape) * 4 > STREAM_ABOVE)


def _open_file(
    path: Path,
    labels: Any,
    kind: InputKind | None,
    sources_axis: int,
    block_memory: int,
    default_kind: InputKind | None,
) -> BlockedPredictions:
    """A .npy file or a .zarr store."""
    with reading(path, "predictions"):
        format = ZARR if is_zarr(path) else format_with("open_array", path)
        if format is None:
            suffixes = " or ".join(suffixes_with("open_array"))
            raise FileFormatError(
                f"{path} is not a {suffixes}, which can be read in blocks; convert it with veridical.save, or load it "
                "whole."
            )
        array, contents = format.open_array(path, kind)
        if not isinstance(array, np.ndarray):
            if len(array.shape) != 3:
                raise ShapeError(f"{path} holds an array of shape {array.shape}; give (sources, samples, classes).")
            if sources_axis not in (0, 1):
                raise ParameterError(
                    f"sources_axis is {shown(sources_axis)}; in a {path.suffix} that is read in blocks it is 0 or 1."
                )
    if (settle_kind(kind, contents.kind, path) or default_kind) == "binary":
        raise ParameterError(f"{path} holds probabilities of one class, which are not read in blocks; load them whole.")
    contents = replace(contents, values=skeleton(array.shape, np.dtype(array.dtype), str(path)))
    request = Request(kind, sources_axis=sources_axis, default_kind=default_kind or "probs")
    whole = predictions_of(contents, labels, str(path), request)
    reader: Reader = (
        reader_of(_as_samples(array, whole, sources_axis, path))
        if isinstance(array, np.ndarray)
        else ZarrReader(array, path, sources_axis)
    )
    return BlockedPredictions(whole, reader, block_memory)


def _as_samples(array: Array, whole: Predictions, sources_axis: int, path: Path) -> Array:
    """A mapped array as (S, N, L); no number of it is read."""
    if sources_axis == 0 and array.flags.c_contiguous:
        return array.reshape(whole.n_sources, whole.n_samples, whole.n_classes)
    if array.ndim != 3:
        raise ShapeError(
            f"{path} holds an array of shape {array.shape}; images are read in blocks in C order with their sources "
            "first, shape (sources, images, height, width, classes): load it whole."
        )
    return np.moveaxis(array, sources_axis, 0)
