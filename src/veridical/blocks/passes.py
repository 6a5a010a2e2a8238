"""One way over the blocks of predictions: ``map_blocks`` and ``merge_blocks``, in this process or on Dask workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from veridical._progress import Progress, check_progress

if TYPE_CHECKING:
    from veridical.blocks.blocked import Block, BlockedPredictions

_Result = TypeVar("_Result")


class Throughput:
    """Reports blocks as samples done, with the bytes read per second.

    Parameters
    ----------
    progress : callable or None
    what : str
        What is done to the blocks.
    n_passes, n_before : int
        How many passes there are, and how many of them are over.
    """

    def __init__(self, progress: Progress | None, what: str = "", n_passes: int = 1, n_before: int = 0) -> None:
        self._progress, self._what = check_progress(progress), what
        self._n_passes, self._n_before = n_passes, n_before

    def begin(self, predictions: BlockedPredictions, done: int = 0) -> None:
        """A pass starts, with ``done`` samples finished earlier."""
        self._before, self._total = (n * predictions.n_samples for n in (self._n_before, self._n_passes))
        self._bytes_per_sample = predictions.n_bytes / max(predictions.n_samples, 1)
        self._start, self._first, self._done = time.monotonic(), done, done
        self._progress(self._before + done, self._total, self._what)

    def add(self, n_samples: int) -> None:
        """So many samples more are finished."""
        self._done += n_samples
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = (self._done - self._first) * self._bytes_per_sample / seconds
        self._progress(self._before + self._done, self._total, f"{self._what}, {rate / 1e6:,.0f} MB/s")


def map_blocks(
    predictions: BlockedPredictions,
    work: Callable[[Block], _Result],
    report: Throughput | None = None,
    *,
    numbers: Sequence[int] | None = None,
    client: Any = None,
) -> Iterator[tuple[int, _Result]]:
    """Number and ``work`` of each block as it is finished; it is reported after the caller has used it.

    In this process they come in order, and the next block is read meanwhile; with a Dask client, and for Dask arrays,
    tasks read their blocks themselves.  At the end, what was read must be what was opened.
    """
    numbers = range(predictions.n_blocks) if numbers is None else numbers
    report = report or Throughput(None)
    report.begin(predictions, predictions.edges[numbers[0]] if numbers else predictions.n_samples)
    results: Iterator[tuple[int, _Result]]
    if client is None and not predictions.reader.is_lazy:
        results = ((block.number, work(block)) for block in read_ahead(predictions, numbers, reuse=True))
    else:
        from veridical.blocks.on_dask import results_on_dask

        results = results_on_dask(predictions, work, numbers, client)
    for number, result in results:
        yield number, result
        samples = predictions.samples_of(number)
        report.add(samples.stop - samples.start)
    predictions.check_unchanged()


def merge_blocks(
    predictions: BlockedPredictions,
    work: Callable[[Block], _Result],
    report: Throughput | None = None,
    *,
    client: Any = None,
) -> _Result:
    """``work`` of all blocks, merged in their order; workers send back one result."""
    if client is None and not predictions.reader.is_lazy:
        return reduce(merge, (result for _, result in map_blocks(predictions, work, report)))
    from veridical.blocks.on_dask import merge_on_dask

    report = report or Throughput(None)
    report.begin(predictions)
    total: _Result = merge_on_dask(predictions, work, client, report)
    predictions.check_unchanged()
    return total


def merge(first: Any, second: Any) -> Any:
    """Two results as one: entries of dictionaries by their keys, lists joined, states merged, numbers added.

    None merges to None.
    """
    if isinstance(first, dict):
        common = {key: merge(value, second[key]) for key, value in first.items() if key in second}
        return {**first, **second, **common}
    if first is None or second is None:
        return None
    return first.merge(second) if hasattr(first, "merge") else first + second


def read_ahead(predictions: BlockedPredictions, numbers: Sequence[int], *, reuse: bool = False) -> Iterator[Block]:
    """Some blocks, the next one read while the caller works on this one.

    With ``reuse`` the memory of a block is used again for the next but one: keep nothing of it.
    """
    if not numbers:
        return
    reader = predictions.reader
    memories = [reader.allocate(predictions.block_size) for _ in range(2)] if reuse else []

    def fetch(place: int) -> Block:
        block = predictions.without_scores(numbers[place])
        memory = memories[place % 2][:, : block.stop - block.start] if reuse else None
        return block.with_scores(reader.read(block.start, block.stop, memory))

    with ThreadPoolExecutor(1, thread_name_prefix="reader") as pool:
        ahead: Future[Block] = pool.submit(fetch, 0)
        for place in range(len(numbers)):
            block = ahead.result()
            if place + 1 < len(numbers):
                ahead = pool.submit(fetch, place + 1)
            yield block
