"""Blocks on a Dask cluster: the workers read, compute and write; what comes back to the client are states."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from veridical._lazy import require
from veridical._parallel import THREADS_IN_WORKERS
from veridical.blocks.blocked import BlockedPredictions
from veridical.blocks.blocks_on_workers import apply_stored_block, merge_scores, read_block, scores_of_stored_block
from veridical.blocks.outputs import ArraySpec, BlockOutput
from veridical.blocks.passes import Throughput
from veridical.blocks.readers import Opened
from veridical.blocks.scoring import ScoreStates
from veridical.calibrate import Calibrator
from veridical.errors import ParameterError, WorkerError, shown
from veridical.evaluation.methods import Method
from veridical.predictions.validation import check_integer

#: So many states are merged by one task.
_FAN_IN = 8


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


@contextmanager
def worker_errors() -> Iterator[None]:
    """Say in one sentence that workers died, which Dask reports by the name of a task."""
    killed: Any = getattr(sys.modules.get("distributed"), "KilledWorker", ())
    try:
        yield
    except killed as error:
        raise WorkerError(
            "a Dask worker died several times while it worked on the same block, most likely because it had too little "
            "memory; use smaller blocks (chunks over samples, or block_memory=), or give workers more memory."
        ) from error


def check_client(client: Any) -> None:
    """Refuse what is neither None nor a client."""
    if client is not None and not (hasattr(client, "submit") and hasattr(client, "scatter")):
        raise ParameterError(f"client is {shown(client)}; give a dask.distributed.Client, or leave it out.")


def compute(value: Any, client: Any = None) -> Any:
    """The result of something delayed, on the client's workers or where Dask computes by default."""
    with worker_errors():
        if client is None:
            return require("dask", "cluster").compute(value)[0]
        return client.compute(value).result()


def opened_of(predictions: BlockedPredictions) -> Opened:
    """What workers need to read blocks themselves."""
    opened = getattr(predictions.reader, "opened", None)
    if opened is None:
        raise ParameterError(
            "workers read predictions from a file; give a C-ordered .npy or a .zarr that all of them can reach."
        )
    result: Opened = opened()
    return result._replace(content=str(predictions.identity))


def to_dask(predictions: BlockedPredictions) -> Any:
    """A Dask array (S, N, L), one chunk per block, which workers read from the file.

    It keeps the names of sources and classes as attributes, which calibrators match with those of their fit; arrays
    that are computed from it do not.

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
    module, delayed = require("dask.array", "cluster"), require("dask", "cluster").delayed
    opened, task = opened_of(predictions), delayed(read_block, pure=True)
    blocks = []
    for index in range(predictions.n_blocks):
        part = predictions.samples_of(index)
        shape = (predictions.n_sources, part.stop - part.start, predictions.n_classes)
        value = task(opened, part.start, part.stop)
        blocks.append(module.from_delayed(value, shape=shape, dtype=predictions.dtype))
    array = module.concatenate(blocks, axis=1)
    for name, entries in _names_of(predictions).items():
        setattr(array, name, entries)
    return array


def _names_of(predictions: BlockedPredictions) -> dict[str, Any]:
    return {"source_names": predictions.source_names, "class_names": predictions.class_names}


def scores_on_cluster(
    predictions: BlockedPredictions,
    methods: Sequence[Method | None],
    fitted: Mapping[str, Calibrator],
    client: Any,
    report: Throughput,
    n_threads: int | None = None,
) -> ScoreStates:
    """States of all blocks, merged on the workers by eights; the client receives one."""
    assert predictions.labels is not None
    opened = opened_of(predictions)
    # What is scattered is lost with the workers that hold it, so this is done to large things alone.
    calibrators = client.scatter([dict(fitted)], broadcast=True, hash=False)[0] if fitted else {}
    rest = (predictions.kind, _names_of(predictions), tuple(methods), calibrators, n_threads or THREADS_IN_WORKERS)
    parts = []
    for index in range(predictions.n_blocks):
        part = predictions.samples_of(index)
        labels = predictions.labels[part]
        parts.append(
            client.submit(scores_of_stored_block, opened, part.start, part.stop, labels, *rest, pure=False, retries=0)
        )
    with worker_errors():
        _follow(parts, predictions, report)
        while len(parts) > 1:
            groups = [parts[k : k + _FAN_IN] for k in range(0, len(parts), _FAN_IN)]
            parts = [client.submit(merge_scores, group, pure=False) for group in groups]
        result: ScoreStates = parts[0].result()
    predictions.check_unchanged()
    return result


def _follow(futures: Sequence[Any], predictions: BlockedPredictions, report: Throughput) -> None:
    """Report blocks as they finish; the first error is raised, and the other blocks are given up."""
    completed = require("distributed", "cluster").as_completed(futures)
    report.begin(0)
    for done, future in enumerate(completed, start=1):
        _raise_error(future, futures)
        report.update(min(done * predictions.block_size, predictions.n_samples))


def _raise_error(future: Any, futures: Iterable[Any]) -> None:
    """Raise what went wrong with a block, if anything did, and give the other blocks up."""
    error = future.exception() if future.status == "error" else None
    if error is not None:
        for other in futures:
            other.cancel()
        raise error


def apply_on_cluster(
    calibrator: Calibrator,
    predictions: BlockedPredictions,
    output: BlockOutput,
    specs: Mapping[str, ArraySpec],
    client: Any,
    report: Throughput,
) -> None:
    """Every worker reads, calibrates and writes its blocks; blocks count as finished in their order."""
    opened, names = opened_of(predictions), _names_of(predictions)
    target = str(output.arrays_path), dict(specs), predictions.block_size
    (shared,) = client.scatter([calibrator], broadcast=True, hash=False)
    first = output.blocks_done
    futures = {}
    for number in range(first, predictions.n_blocks):
        part = predictions.samples_of(number)
        future = client.submit(
            apply_stored_block,
            opened,
            part.start,
            part.stop,
            predictions.kind,
            shared,
            names,
            target,
            pure=False,
            retries=0,
        )
        futures[future] = number
    report.begin(min(first * predictions.block_size, predictions.n_samples))
    finished: set[int] = set()
    with worker_errors():
        for future in require("distributed", "cluster").as_completed(list(futures)):
            _raise_error(future, futures)
            finished.add(futures[future])
            done = output.blocks_done
            while done in finished:
                done += 1
            if done > output.blocks_done:
                output.commit(done)
            report.update(min((first + len(finished)) * predictions.block_size, predictions.n_samples))
    predictions.check_unchanged()
