"""Blocks on Dask: tasks read, compute and write; Dask arrays as sources of blocks, and as results."""

from __future__ import annotations

import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any

import numpy as np

from veridical._lazy import require
from veridical.blocks.blocked import Block, BlockedPredictions, skeleton
from veridical.blocks.outputs import ArraySpec
from veridical.blocks.passes import Throughput, merge
from veridical.blocks.readers import Reader
from veridical.errors import DtypeError, ParameterError, RechunkWarning, ShapeError, WorkerError, shown
from veridical.predictions import Predictions
from veridical.predictions.arrays import is_whole_number
from veridical.predictions.validation import Array, InputKind, check_integer

#: So many results are merged by one task, in the order of the blocks.
_FAN_IN = 8
#: A block, a copy of it, and results: how many times its size a task may take.
_COPIES = 2.0
#: What a worker takes with its imports and compiled kernels, and the share of its limit at which Dask pauses it.
_INTERPRETER, _PAUSED_AT = 300 << 20, 0.8
#: What a Dask array made of predictions remembers of them; arrays computed from it do not.
_FACTS = "veridical_predictions"


class DaskReader(Reader):
    """The chunks of a Dask array (S, N, L), which its tasks are computed from; nothing is read here."""

    is_lazy = True

    def __init__(self, array: Any) -> None:
        self.array = array
        self.edges = np.cumsum([0, *array.chunks[1]]).tolist()
        self.chunks = array.to_delayed().ravel()

    def identity(self) -> list[Any]:
        """The name that Dask gives the array."""
        return ["the Dask array", str(self.array.name)]

    def read(self, start: int, stop: int, out: Array | None = None) -> Array:
        """The samples from ``start`` to ``stop``, computed."""
        return np.asarray(compute(self.array[:, start:stop]))


def open_dask_array(
    array: Any, labels: Any, kind: InputKind | None, sources_axis: int | None, default_kind: InputKind | None
) -> BlockedPredictions:
    """A Dask array (S, N, L) as blocked predictions: its chunks of samples are the blocks."""
    known: Predictions | None = getattr(array, _FACTS, None)
    if array.ndim != 3:
        raise ShapeError(f"the Dask array has shape {array.shape}; give (sources, samples, classes).")
    if sources_axis is not None and not (is_whole_number(sources_axis) and sources_axis in (0, 1)):
        raise ParameterError(f"sources_axis is {shown(sources_axis)}; it is 0 for (S, N, L) or 1 for (N, S, L).")
    if sources_axis == 1:
        array, known = array.swapaxes(0, 1), None
    if any(math.isnan(size) for sizes in array.chunks for size in sizes):
        raise ShapeError("the Dask array has chunks of unknown size; call its compute_chunk_sizes() first.")
    if np.dtype(array.dtype).kind not in "fiub":
        raise DtypeError(f"the Dask array has dtype {array.dtype}; give real numbers.")
    n_pieces = len(array.chunks[0]) * len(array.chunks[2])
    if n_pieces > 1:
        warnings.warn(
            f"the Dask array is chunked over sources or classes, {n_pieces} chunks for each block of samples; they are "
            f"put together first, which moves up to {array.nbytes * (n_pieces - 1) / n_pieces / 1e9:.3g} GB between "
            "workers and holds each block twice: chunk over samples alone, rechunk({0: -1, 2: -1}), where it is made.",
            RechunkWarning,
            stacklevel=5,
        )
        array = array.rechunk({0: -1, 2: -1})
    if known is None:
        values = skeleton(array.shape, np.dtype(array.dtype), "the Dask array")
        known = Predictions(values, kind=kind or default_kind or "probs")
    elif kind is not None and kind != known.kind:
        raise ParameterError(f"kind={shown(kind)} contradicts the Dask array, which holds {known.kind!r}.")
    in_memory = compute(labels) if hasattr(labels, "dask") else labels
    return BlockedPredictions(known if in_memory is None else known.with_labels(in_memory), DaskReader(array))


def to_dask(predictions: BlockedPredictions) -> Any:
    """A Dask array (S, N, L), one chunk per block, which workers read from the file.

    Functions of this library know names, kind and labels of the array; arrays that are computed from it have none, and
    their sources are those of a calibrator by position.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import veridical as vd
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "probs.npy"
    >>> np.save(path, np.full((3, 10_000, 2), 0.5, np.float32))
    >>> vd.scale.to_dask(vd.scale.open(path, block_memory=1 << 18)).chunks
    ((3,), (2730, 2730, 2730, 1810), (2,))
    """
    parts = delayed_results(predictions, _values_of)
    specs = {"values": ArraySpec(predictions.shape, predictions.dtype, 1)}
    array = lazy_arrays(predictions, parts, specs)["values"]
    setattr(array, _FACTS, predictions.whole)
    return array


def _values_of(block: Any) -> tuple[dict[str, Array], None]:
    return {"values": block.predictions.values}, None


@contextmanager
def local_client(n_workers: int, memory_limit: Any = "auto") -> Iterator[Any]:
    """A client of worker processes on this machine, with one thread each."""
    n_workers = check_integer(n_workers, "workers", 1, 1024)
    distributed = require("distributed", "cluster")
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",  # any free port; a second cluster would warn about the usual one
            memory_limit=memory_limit,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def check_client(client: Any, reader: Reader) -> None:
    """Refuse what is neither None nor a client, and a client whose workers cannot read the samples."""
    if client is None:
        return
    if not (hasattr(client, "submit") and hasattr(client, "scatter")):
        raise ParameterError(f"client is {shown(client)}; give a dask.distributed.Client, or leave it out.")
    _check_shared(reader)


def _check_shared(reader: Reader) -> None:
    if not reader.is_shared:
        raise ParameterError(
            "workers read predictions from a file; give a C-ordered .npy or a .zarr that all of them can reach."
        )


def results_on_dask(
    predictions: BlockedPredictions, work: Callable[..., Any], numbers: Sequence[int], client: Any
) -> Iterator[tuple[int, Any]]:
    """Number and result of each block, as they are finished."""
    parts = delayed_results(predictions, work, numbers)
    if client is None:
        yield from zip(numbers, require("dask", "cluster").compute(*parts), strict=True)
        return
    number_of = dict(zip(client.compute(parts), numbers, strict=True))
    for future in _finished(list(number_of)):
        yield number_of[future], future.result()


def merge_on_dask(predictions: BlockedPredictions, work: Callable[..., Any], client: Any, report: Throughput) -> Any:
    """The results of all blocks, merged by tasks in the order of the blocks, as they are in one process."""
    parts = delayed_results(predictions, work)
    merge_parts = require("dask", "cluster").delayed(partial(reduce, merge), pure=False)
    total = parts[0]
    for first in range(1, len(parts), _FAN_IN - 1):
        total = merge_parts([total, *parts[first : first + _FAN_IN - 1]])
    if client is None:
        result = compute(total)
        report.add(predictions.n_samples)
        return result
    *futures, merged = client.compute([*parts, total])
    number_of = {future: number for number, future in enumerate(futures)}
    del futures
    for future in _finished(list(number_of)):
        samples = predictions.samples_of(number_of.pop(future))
        report.add(samples.stop - samples.start)
    with _worker_errors():
        return merged.result()


def _finished(futures: list[Any]) -> Iterator[Any]:
    """Futures as they finish; the first error is raised, and the other blocks are given up."""
    with _worker_errors():
        for future in require("distributed", "cluster").as_completed(futures):
            error = future.exception() if future.status == "error" else None
            if error is not None:
                for other in futures:
                    other.cancel()
                raise error
            yield future


@contextmanager
def _worker_errors() -> Iterator[None]:
    """Say in one sentence that workers died, which Dask reports by the name of a task."""
    killed: Any = getattr(sys.modules.get("distributed"), "KilledWorker", ())
    try:
        yield
    except killed as error:
        raise WorkerError(
            "a Dask worker died several times while it worked on the same block, most likely because it had too little "
            "memory; use smaller blocks (chunks over samples, or block_memory=), or give workers more memory."
        ) from error


def compute(value: Any) -> Any:
    """The result of something delayed, where Dask computes by default."""
    with _worker_errors():
        return require("dask", "cluster").compute(value)[0]


def delayed_results(
    predictions: BlockedPredictions, work: Callable[..., Any], numbers: Sequence[int] | None = None
) -> list[Any]:
    """``work`` of blocks as tasks, which get the chunk of a Dask array, or read their samples from the file."""
    reader, delayed = predictions.reader, require("dask", "cluster").delayed
    _check_shared(reader)
    numbers = range(predictions.n_blocks) if numbers is None else numbers
    task, shared = delayed(run_block, pure=False), delayed(work, pure=False, traverse=False)
    source = None if isinstance(reader, DaskReader) else delayed(reader, pure=False, traverse=False)
    return [
        task(
            shared,
            delayed(predictions.without_scores(number), pure=False, traverse=False),
            reader.chunks[number] if isinstance(reader, DaskReader) else source,
            predictions.n_bytes // predictions.n_samples,
        )
        for number in numbers
    ]


def run_block(work: Callable[..., Any], block: Block, source: Array | Reader, bytes_per_sample: int) -> Any:
    """One task: check that the block fits, read it if it is in a file, and work on it."""
    check_worker_memory(bytes_per_sample * (block.stop - block.start), block.start, block.stop)
    scores = source if isinstance(source, np.ndarray) else source.read(block.start, block.stop)
    return work(block.with_scores(scores))


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


def lazy_arrays(predictions: BlockedPredictions, parts: Sequence[Any], specs: Mapping[str, Any]) -> dict[str, Any]:
    """One Dask array for each array in the results of all blocks."""
    module = require("dask.array", "cluster")
    arrays = {}
    for name, spec in specs.items():
        before, after = spec.shape[: spec.samples_axis], spec.shape[spec.samples_axis + 1 :]
        blocks = [
            module.from_delayed(part[0][name], (*before, n_samples, *after), spec.dtype)
            for part, n_samples in zip(parts, np.diff(predictions.edges).tolist(), strict=True)
        ]
        arrays[name] = module.concatenate(blocks, axis=spec.samples_axis)
    return arrays
