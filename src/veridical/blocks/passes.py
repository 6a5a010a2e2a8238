"""One pass over the blocks of predictions: errors name the sample of the whole, progress says how fast it goes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from veridical._progress import Progress, check_progress
from veridical.blocks.blocked import Block, BlockedPredictions
from veridical.errors import InvalidInputError

_Result = TypeVar("_Result")

_SAMPLE = re.compile(r"\bsample (\d+)\b")


@contextmanager
def global_samples(first: int) -> Iterator[None]:
    """Errors about a sample of a block become errors about the sample of the whole; the block begins at ``first``."""
    try:
        yield
    except InvalidInputError as error:
        message = str(error)
        renamed = _SAMPLE.sub(lambda match: f"sample {first + int(match[1])}", message)
        if renamed == message:
            raise
        raise type(error)(renamed) from error


class Throughput:
    """Reports blocks as samples done, with the bytes read per second.

    Parameters
    ----------
    progress : callable or None
    predictions : BlockedPredictions
    what : str
        What is done to the blocks.
    n_passes, n_before : int
        How many passes there are, and how many of them are over.
    """

    def __init__(
        self,
        progress: Progress | None,
        predictions: BlockedPredictions,
        what: str,
        n_passes: int = 1,
        n_before: int = 0,
    ) -> None:
        self._progress = check_progress(progress)
        self._what = what
        self._before = n_before * predictions.n_samples
        self._total = n_passes * predictions.n_samples
        self._bytes_per_sample = predictions.n_bytes / max(predictions.n_samples, 1)
        self._start, self._first = time.monotonic(), 0

    def begin(self, done: int) -> None:
        """The pass starts, with ``done`` samples finished earlier."""
        self._start, self._first = time.monotonic(), done
        self._progress(self._before + done, self._total, self._what)

    def update(self, done: int) -> None:
        """So many samples are finished."""
        seconds = max(time.monotonic() - self._start, 1e-9)
        rate = (done - self._first) * self._bytes_per_sample / seconds
        self._progress(self._before + done, self._total, f"{self._what}, {rate / 1e6:,.0f} MB/s")


def run_pass(
    predictions: BlockedPredictions, work: Callable[[Block], _Result], report: Throughput, *, first: int = 0
) -> Iterator[tuple[Block, _Result]]:
    """``work`` of every block from number ``first``, in order; a block is reported after the caller has used it.

    At the end, what was read must be what was opened.
    """
    report.begin(min(first * predictions.block_size, predictions.n_samples))
    for block in predictions.blocks(first, reuse=True):
        with global_samples(block.start):
            result = work(block)
        yield block, result
        report.update(block.stop)
    predictions.check_unchanged()
