"""Predictions that are read block by block: larger than memory, with the same facts as in memory."""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from veridical.blocks.passes import map_blocks, read_ahead
from veridical.blocks.readers import Reader
from veridical.errors import CorruptFileError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, check_integer

#: Memory for reading and computing, unless the caller says how much.
BLOCK_MEMORY = 256 << 20
#: A block is read while another one is worked on, and results and copies take about as much as a block.
_BLOCKS_IN_MEMORY = 4
#: Facts of the whole that blocked predictions have under the names that they have in memory.
_SHARED = {"n_sources", "n_samples", "n_classes", "kind", "dtype", "result_dtype", "source_names", "class_names"}
_SHARED |= {"labels", "sample_ids", "groups", "sample_shape", "is_votes", "files"}


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
    #: (n,) bits that a pass sets for its samples; None without any.
    marks: Any = None

    def with_scores(self, scores: Array) -> Block:
        """The block with its scores (S, n, L), where it was made without them."""
        predictions = self.predictions.with_scores(scores, slice(None))
        predictions.first_sample = self.start
        return self._replace(predictions=predictions)


class BlockedPredictions:
    """Predictions (S, N, L) that are read in blocks of samples when they are needed.

    :func:`veridical.scale.open` makes them.  ``veridical.discover``, ``consensus``, ``evaluate``, ``fit_calibrator``
    and ``apply_calibrator`` take them in place of arrays, and so do the calibrators.

    Parameters
    ----------
    whole : Predictions
        Shape, labels, ids, groups and names; its numbers are not looked at.
    reader : Reader
        Where the numbers come from.
    block_memory : int
        Bytes for reading and computing.
    identity : list, optional
        Of what the reader reads, where it is known already.
    marks : (N,) array, optional
        Bits for each sample that blocks carry along.

    Attributes
    ----------
    n_sources, n_samples, n_classes, n_blocks : int
    block_size : int
        Samples in a block; it depends on the shape, the dtype and ``block_memory`` alone.
    kind, dtype, labels, groups, sample_ids, sample_shape, source_names, class_names, files
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

    #: The functions for blocks take over for these predictions.
    is_in_blocks = True

    def __init__(
        self,
        whole: Predictions,
        reader: Reader,
        block_memory: int = BLOCK_MEMORY,
        identity: list[Any] | None = None,
        marks: npt.NDArray[np.uint8] | None = None,
    ) -> None:
        self.whole, self.reader, self.marks = whole, reader, marks
        self.identity = reader.identity() if identity is None else identity
        self.block_memory = check_integer(block_memory, "block_memory", 1 << 16, 1 << 60)
        per_sample = self.n_sources * self.n_classes * max(self.dtype.itemsize, 4)
        n_samples = max(self.block_memory // _BLOCKS_IN_MEMORY // per_sample, 1)
        if n_samples > reader.granularity:
            n_samples -= n_samples % reader.granularity
        elif reader.granularity * per_sample <= self.block_memory:
            n_samples = reader.granularity  # or a chunk would be decoded for several blocks
        self.block_size = min(n_samples, max(self.n_samples, 1))
        #: Where the blocks begin, and where the last one ends.
        self.edges = reader.edges or [*range(0, self.n_samples, self.block_size), self.n_samples]

    def __getattr__(self, name: str) -> Any:
        """Facts of the whole, under the names that they have in memory."""
        if name in _SHARED:
            return getattr(self.whole, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return len(self.edges) - 1

    @property
    def n_bytes(self) -> int:
        """Size of all numbers."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(S, N, L)."""
        return self.n_sources, self.n_samples, self.n_classes

    def __repr__(self) -> str:
        facts = repr(self.whole).removeprefix("Predictions(").removesuffix(")")
        return f"BlockedPredictions({facts}, {self.n_blocks} blocks of {self.block_size} samples)"

    def _with(self, whole: Predictions | None = None, marks: Any = None) -> BlockedPredictions:
        marks = self.marks if marks is None else marks
        return BlockedPredictions(whole or self.whole, self.reader, self.block_memory, self.identity, marks)

    def with_labels(self, labels: Any) -> BlockedPredictions:
        """The same predictions with these labels."""
        return self._with(self.whole.with_labels(labels))

    def with_marks(self, marks: npt.NDArray[np.uint8]) -> BlockedPredictions:
        """The same predictions; ``marks`` of its samples go with each block."""
        return self._with(marks=marks)

    def with_group_codes(self, codes: Array | None) -> BlockedPredictions:
        """The same predictions with numbers in place of the groups."""
        whole = copy.copy(self.whole)
        whole.groups = codes
        return self._with(whole)

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

    def without_scores(self, number: int) -> Block:
        """A block with everything but its scores, which whoever works on it reads."""
        samples = self.samples_of(number)
        marks = None if self.marks is None else self.marks[samples]
        return Block(number, samples.start, samples.stop, self._without_scores(samples), marks)

    def empty_block(self) -> Block:
        """A block without samples: what a function gives for it has the dtypes and the other axes of the result."""
        return Block(0, 0, 0, self._without_scores(slice(0, 0)))

    def _without_scores(self, samples: slice) -> Predictions:
        return self.whole.with_scores(np.empty((self.n_sources, 0, self.n_classes), self.dtype), samples)

    def in_memory(self, values: Array, samples: Any) -> Predictions:
        """The scores (S, n, L) of some samples with everything that is known of these samples."""
        predictions = self.whole.with_scores(values, samples)
        if predictions.n_samples == self.n_samples:
            predictions.sample_shape = self.sample_shape
        return predictions

    def samples_of(self, number: int) -> slice:
        """The samples of a block."""
        return slice(self.edges[number], self.edges[number + 1])

    def block_of(self, sample: int) -> int:
        """The block that a sample is in."""
        return bisect_right(self.edges, sample) - 1

    def read(self, start: int, stop: int) -> Predictions:
        """The predictions for samples ``start`` to ``stop``, in memory."""
        return self.in_memory(self.reader.read(start, stop), slice(start, stop))

    def take(self, samples: npt.NDArray[np.intp]) -> Predictions:
        """The predictions for some samples, in ascending order, in memory; blocks without any are not read."""
        marks = np.zeros(self.n_samples, np.uint8)
        marks[samples] = 1
        holding = np.unique(np.searchsorted(self.edges, samples, side="right") - 1).tolist()
        parts = [values for _, values in map_blocks(self.with_marks(marks), _marked_values, numbers=holding)]
        values = np.concatenate(parts or [self.empty_block().predictions.values], axis=1)
        return self.in_memory(values, samples)

    def blocks(self, first: int = 0, *, reuse: bool = False) -> Iterator[Block]:
        """All blocks from number ``first``, the next one read while the caller works on this one.

        With ``reuse`` the memory of a block is used again for the next but one: keep nothing of it.
        """
        return read_ahead(self, range(first, self.n_blocks), reuse=reuse)


def _marked_values(block: Block) -> Array:
    return block.predictions.values[:, block.marks > 0]


def skeleton(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> Array:
    """An array of this shape that takes no memory, to check everything else with."""
    if math.prod(shape) == 0:
        raise ShapeError(f"{where} holds an array of shape {shape}; give (sources, samples, classes), none of them 0.")
    return np.broadcast_to(np.zeros((), dtype.newbyteorder("=")), shape)
