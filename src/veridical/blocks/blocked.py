"""Predictions that are read block by block: larger than memory, with the same interface as in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from veridical.blocks.readers import Reader
from veridical.errors import CorruptFileError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, check_integer

#: Memory for reading and computing, unless the caller says how much.
BLOCK_MEMORY = 256 << 20
#: A block is read while another one is worked on, and results and copies take about as much as a block.
_BLOCKS_IN_MEMORY = 4


class Block(NamedTuple):
    """Consecutive samples: block ``number``, samples ``start`` to ``stop`` of the whole.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> np.save("probs.npy", np.full((3, 100, 2), 0.5))
    >>> block = next(iter(vd.scale.open("probs.npy").blocks()))
    >>> block.number, block.start, block.stop
    (0, 0, 100)
    """

    number: int
    start: int
    stop: int
    predictions: Predictions


class BlockedPredictions:
    """Predictions (S, N, L) that are read in blocks of samples when they are needed.

    :func:`veridical.scale.open` makes them.  ``veridical.discover``, ``consensus``, ``evaluate``, ``fit_calibrator``
    and ``apply_calibrator`` take them in place of arrays, and so do the calibrators.

    Parameters
    ----------
    whole : Predictions
        Shape, labels and names; its numbers are not looked at.
    reader : Reader
        Where the numbers come from.
    block_memory : int
        Bytes for reading and computing.
    identity : list, optional
        Of what the reader reads, where it is known already.

    Attributes
    ----------
    n_sources, n_samples, n_classes, n_blocks : int
    block_size : int
        Samples in a block; it depends on the shape, the dtype and ``block_memory`` alone.
    kind, dtype, labels, source_names, class_names, files
        As in :class:`veridical.Predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> np.save("probs.npy", np.full((3, 100, 2), 0.5))
    >>> predictions = vd.scale.open("probs.npy")
    >>> predictions.n_sources, predictions.n_samples, predictions.n_classes
    (3, 100, 2)
    """

    #: The functions that take over for these predictions are in :mod:`veridical.blocks`.
    veridical_module = "veridical.blocks.blocked_functions"

    def __init__(
        self,
        whole: Predictions,
        reader: Reader,
        block_memory: int = BLOCK_MEMORY,
        identity: list[Any] | None = None,
    ) -> None:
        self.whole, self.reader = whole, reader
        self.identity = reader.identity() if identity is None else identity
        self.n_sources, self.n_samples, self.n_classes = whole.n_sources, whole.n_samples, whole.n_classes
        self.block_memory = check_integer(block_memory, "block_memory", 1 << 16, 1 << 60)
        per_sample = self.n_sources * self.n_classes * max(self.dtype.itemsize, 4)
        n_samples = max(self.block_memory // _BLOCKS_IN_MEMORY // per_sample, 1)
        if n_samples > reader.granularity:
            n_samples -= n_samples % reader.granularity
        elif reader.granularity * per_sample <= self.block_memory:
            n_samples = reader.granularity  # or a chunk would be decoded for several blocks
        self.block_size = min(n_samples, max(self.n_samples, 1))
        self.n_blocks = -(-self.n_samples // self.block_size)

    kind = property(lambda self: self.whole.kind, doc="What the numbers are.")
    dtype: Any = property(lambda self: self.whole.dtype, doc="The precision of the stored numbers.")
    result_dtype: Any = property(lambda self: self.whole.result_dtype, doc="The precision of results.")
    source_names = property(lambda self: self.whole.source_names, doc="Names of the sources, or None.")
    class_names = property(lambda self: self.whole.class_names, doc="Names of the classes, or None.")
    files = property(lambda self: self.whole.files, doc="The files that are read.")

    @property
    def labels(self) -> npt.NDArray[np.int64] | None:
        """(N,) labels, held in memory, or None."""
        return self.whole.labels

    @property
    def n_bytes(self) -> int:
        """Size of all numbers."""
        return self.n_sources * self.n_samples * self.n_classes * int(self.dtype.itemsize)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(S, N, L)."""
        return self.n_sources, self.n_samples, self.n_classes

    def __repr__(self) -> str:
        facts = repr(self.whole).removeprefix("Predictions(").removesuffix(")")
        return f"BlockedPredictions({facts}, {self.n_blocks} blocks of {self.block_size} samples)"

    def with_labels(self, labels: Any) -> BlockedPredictions:
        """The same predictions with these labels."""
        return BlockedPredictions(self.whole.with_labels(labels), self.reader, self.block_memory, self.identity)

    def check_unchanged(self) -> None:
        """Raise if the numbers are not those that were opened; called when all of them are read.

        Raises
        ------
        CorruptFileError
        """
        if self.reader.identity() != self.identity:
            raise CorruptFileError(
                f"{self.identity[0]} was changed while it was read; wait until it is complete and run again."
            )

    def samples_of(self, index: int) -> slice:
        """The samples of a block."""
        start = index * self.block_size
        return slice(start, min(start + self.block_size, self.n_samples))

    def read(self, start: int, stop: int) -> Predictions:
        """The predictions for samples ``start`` to ``stop``, in memory."""
        memory = self.reader.allocate(stop - start)
        self.reader.read(start, stop, memory)
        return self._predictions(memory, start, stop)

    def take(self, samples: npt.NDArray[np.intp]) -> Predictions:
        """The predictions for some samples, in ascending order, in memory; blocks without any are not read."""
        parts = []
        for index in np.unique(samples // self.block_size).tolist():
            part = self.samples_of(index)
            chosen = samples[(samples >= part.start) & (samples < part.stop)] - part.start
            parts.append(self.read(part.start, part.stop).values[:, chosen])
        self.check_unchanged()
        values = np.concatenate(parts, axis=1) if parts else self.reader.allocate(0)
        return self._derive(values, samples)

    def blocks(self, first: int = 0, *, reuse: bool = False) -> Iterator[Block]:
        """All blocks from number ``first``, the next one read while the caller works on this one.

        With ``reuse`` the memory of a block is used again for the next but one: keep nothing of it.
        """
        if first >= self.n_blocks:
            return
        memories = [self.reader.allocate(self.block_size) for _ in range(2)] if reuse else []

        def fetch(index: int) -> Block:
            part = self.samples_of(index)
            n_samples = part.stop - part.start
            memory = memories[index % 2][:, :n_samples] if reuse else self.reader.allocate(n_samples)
            self.reader.read(part.start, part.stop, memory)
            return Block(index, part.start, part.stop, self._predictions(memory, part.start, part.stop))

        with ThreadPoolExecutor(1, thread_name_prefix="reader") as pool:
            ahead: Future[Block] = pool.submit(fetch, first)
            for index in range(first, self.n_blocks):
                block = ahead.result()
                if index + 1 < self.n_blocks:
                    ahead = pool.submit(fetch, index + 1)
                yield block

    def _predictions(self, values: Array, start: int, stop: int) -> Predictions:
        return self._derive(values, slice(start, stop))

    def _derive(self, values: Array, samples: Any) -> Predictions:
        part = Predictions(values, kind=self.kind, source_names=self.source_names, class_names=self.class_names)
        if self.labels is not None:
            part.labels = self.labels[samples]  # checked already
        part.files = self.files
        return part


def skeleton(shape: tuple[int, ...], dtype: np.dtype[Any], where: str, **facts: Any) -> Predictions:
    """Predictions of this shape that hold no numbers, to check everything else with."""
    if len(shape) != 3 or math.prod(shape) == 0:
        raise ShapeError(f"{where} holds an array of shape {shape}; give (sources, samples, classes), none of them 0.")
    return Predictions(np.broadcast_to(np.zeros((), dtype.newbyteorder("=")), shape), **facts)
