"""What Dask workers do with a block: plain functions of a block of samples, with one thread and clear errors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from veridical.blocks.outputs import ArraySpec, write_arrays
from veridical.blocks.passes import global_samples
from veridical.blocks.readers import NpyReader, Opened, Reader, ZarrReader
from veridical.blocks.scoring import ScoreStates, score_block
from veridical.calibrate import Calibrator
from veridical.combine.truth import Truth
from veridical.combine.truth_discovery import discover
from veridical.errors import WorkerError
from veridical.evaluation.methods import Method
from veridical.predictions import Predictions
from veridical.predictions.classes import ClassIndices
from veridical.predictions.validation import Array, Kind

#: A block, a copy of it, and results: how many times its size a task may take.
_COPIES = 2.0
#: What a worker takes with its imports and compiled kernels, and the share of its limit at which Dask pauses it.
_INTERPRETER, _PAUSED_AT = 300 << 20, 0.8


@lru_cache(maxsize=8)
def _reader(opened: Opened) -> Reader:
    path, dtype = Path(opened.path), np.dtype(opened.dtype)
    if opened.format == "npy":
        return NpyReader(path, opened.offset, opened.shape, dtype, opened.sources_axis)
    from veridical._lazy import require

    zarr = require("zarr", "zarr", at_least=3)
    root = zarr.open(zarr.storage.LocalStore(path, read_only=True), mode="r")
    return ZarrReader(root[opened.array] if opened.array else root, path, opened.sources_axis)


def read_block(opened: Opened, start: int, stop: int) -> Array:
    """Samples ``start`` to ``stop`` of all sources, read by the worker itself."""
    n_bytes = int(np.prod(opened.shape)) // max(opened.shape[1 - opened.sources_axis], 1) * (stop - start)
    check_worker_memory(n_bytes * np.dtype(opened.dtype).itemsize, start, stop)
    reader = _reader(opened)
    memory = reader.allocate(stop - start)
    reader.read(start, stop, memory)
    return memory


def check_worker_memory(n_bytes: int, start: int, stop: int) -> None:
    """Raise before a block that cannot fit makes the worker die or wait without a word."""
    limit = _memory_limit()
    if limit and _INTERPRETER + _COPIES * n_bytes > _PAUSED_AT * limit:
        raise WorkerError(
            f"samples {start} to {stop - 1} take {n_bytes / 1e6:,.0f} MB and about twice that with their results, the "
            f"interpreter takes 300 MB, and this Dask worker may use {limit / 1e6:,.0f} MB, of which it uses 80 %; use "
            "smaller blocks (chunks over samples, or block_memory=), or give workers more memory."
        )


def _memory_limit() -> int:
    """Bytes that the Dask worker of this thread may use; 0 if there is no limit, or no worker."""
    module: Any = sys.modules.get("distributed.worker")
    if module is None:
        return 0
    try:
        return int(module.get_worker().memory_manager.memory_limit or 0)
    except (ValueError, AttributeError):
        return 0


def _block(values: Array, labels: Any, kind: Kind, names: Mapping[str, Any]) -> Predictions:
    return Predictions(values, None if labels is None else ClassIndices(labels), kind=kind, **names)


def discover_block(values: Array, start: int, kind: Kind, options: Mapping[str, Any]) -> Truth:
    """Truth discovery on a block that begins at sample ``start``."""
    check_worker_memory(values.nbytes, start, start + values.shape[1])
    with global_samples(start):
        return discover(_block(values, None, kind, {}), **options)


def predict_block(
    calibrator: Calibrator, name: str, values: Array, start: int, kind: Kind, names: Mapping[str, Any]
) -> Any:
    """``predict_proba`` and the like on a block that begins at sample ``start``."""
    check_worker_memory(values.nbytes, start, start + values.shape[1])
    with global_samples(start):
        return getattr(calibrator, name)(_block(values, None, kind, names))


def scores_of_block(
    values: Array,
    labels: Array,
    start: int,
    kind: Kind,
    names: Mapping[str, Any],
    methods: Sequence[Method | None],
    fitted: Mapping[str, Calibrator],
    n_threads: int | None,
) -> ScoreStates:
    """States of the methods on a block that begins at sample ``start``."""
    check_worker_memory(values.nbytes, start, start + values.shape[1])
    with global_samples(start):
        return score_block(_block(values, labels, kind, names), methods, fitted, n_threads)


def scores_of_stored_block(opened: Opened, start: int, stop: int, labels: Array, *rest: Any) -> ScoreStates:
    """The same for a block that the worker reads."""
    return scores_of_block(read_block(opened, start, stop), labels, start, *rest)


def apply_stored_block(
    opened: Opened,
    start: int,
    stop: int,
    kind: Kind,
    calibrator: Calibrator,
    names: Mapping[str, Any],
    target: tuple[str, dict[str, ArraySpec], int],
) -> int:
    """Read a block, calibrate it and write it; its first sample."""
    results = predict_block(calibrator, "predict_all", read_block(opened, start, stop), start, kind, names)
    path, specs, block_size = target
    write_arrays(Path(path), specs, block_size, start, dict(zip(specs, results, strict=True)))
    return start


def merge_scores(parts: Sequence[ScoreStates]) -> ScoreStates:
    """All states as one."""
    return ScoreStates().merge(*parts)
