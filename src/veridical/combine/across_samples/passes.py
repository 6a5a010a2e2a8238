"""Passes over the predictions for the sums of the consensus, block by block of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from veridical._parallel import run_blocks, single_threaded_blas
from veridical.combine.across_samples.sums import ConsensusSums, check_pairs
from veridical.combine.in_memory import MOST_SAMPLES, SourcesInMemory
from veridical.combine.truth import Floats
from veridical.predictions.validation import Array

_Result = TypeVar("_Result")

#: A block of this size stays in the processor's cache while it is checked, summed and multiplied.
_BLOCK_BYTES = 2 * 1024**2
#: Blocks hold a multiple of so many samples, which are added up side by side where there are few classes.
_SAMPLES_AT_ONCE, _FEW_CLASSES = 16, 64
#: Threads are handed runs of blocks, so that no more than so many S x S matrices wait to be added.
_MOST_RUNS, _LEAST_RUNS, _WAITING_NUMBERS = 64, 8, 1 << 24
#: Sums of products about zero lose digits for a source whose variance is a smaller share than this of its mean square.
_EXACT_ABOUT_ZERO = 1e-3
#: Up to so many numbers, products are summed in double precision: rounding averages out only over many samples.
FEW_NUMBERS = 1 << 20


class _AbsentError(Exception):
    """A source is absent for some sample."""


def gather_sums(sources: SourcesInMemory) -> tuple[ConsensusSums, bool]:
    """The sums over all samples, and whether every source is present in all of them; the numbers are checked."""
    try:
        return _sums_of_complete(sources), True
    except _AbsentError:
        return _sums_with_gaps(sources), False


def _on_runs(sources: SourcesInMemory, work: Callable[[list[slice]], _Result]) -> list[_Result]:
    """``work`` of lists of blocks on our threads, with one BLAS thread each, so that their number changes no sum."""
    size, n_samples = _samples_in_block(sources), sources.n_samples
    most = min(max(_WAITING_NUMBERS // sources.n_sources**2, _LEAST_RUNS), _MOST_RUNS)
    n_blocks = -(-n_samples // size)
    length = size * max(-(-n_blocks // most), 1)
    runs = [_blocks(start, min(start + length, n_samples), size) for start in range(0, n_samples, length)]
    if n_samples <= MOST_SAMPLES:  # products of so few numbers stay in one thread
        return [work(run) for run in runs]
    with single_threaded_blas():
        return run_blocks(work, runs, sources.options.n_threads)


def _samples_in_block(sources: SourcesInMemory) -> int:
    per_sample = sources.n_sources * sources.n_classes * sources.predictions.result_dtype.itemsize
    return max(_BLOCK_BYTES // per_sample // _SAMPLES_AT_ONCE, 1) * _SAMPLES_AT_ONCE


def _blocks(first: int, stop: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, stop)) for start in range(first, stop, size)]


def _precise(probs: Array, sources: SourcesInMemory) -> Array:
    """Probabilities in the precision in which their products are summed."""
    few = sources.n_sources * sources.n_samples * sources.n_classes <= FEW_NUMBERS
    return probs.astype(np.float64, copy=False) if few else probs


def _sums_of_complete(sources: SourcesInMemory) -> ConsensusSums:
    """The sums in one pass, where no source is absent.

    Products are summed about zero and centred afterwards; a second pass about the means follows only where a source
    varies so little that this loses digits.
    """
    n_sources, n_classes = sources.n_sources, sources.n_classes
    check_pairs(n_sources)

    def work(run: list[slice]) -> tuple[Floats, Floats, bool]:
        products, totals = np.zeros((n_sources, n_sources)), np.zeros((n_sources, n_classes))
        are_even = True
        for part in run:
            block = sources.block(part)
            if block.present is not None and not block.present.all():
                raise _AbsentError
            are_even &= block.is_even
            flat = _precise(block.probs, sources).reshape(n_sources, -1)
            products += flat @ flat.T
            totals += _sums_over_samples(flat, n_classes)
        return products, totals, are_even

    results = _on_runs(sources, work)
    sums = ConsensusSums.zeros(n_sources, n_classes)
    sums.counts += sources.n_samples
    for products, totals, _ in results:
        sums.products += products
        sums.totals += totals
    sources.are_even = all(are_even for *_, are_even in results)
    sums.squares += np.diag(sums.products)[:, None]
    mean_square = np.diag(sums.products) / max(sources.n_samples, 1)
    variance = mean_square - np.einsum("sl,sl->s", sums.means, sums.means)
    if (variance < _EXACT_ABOUT_ZERO * mean_square).any():
        return sums_about(sums.means, sources)
    return sums


def _sums_over_samples(flat: Array, n_classes: int) -> Floats:
    """(S, L) sums over the samples of rows (S, n L); short rows are added side by side, which is faster."""
    n_sources, n_numbers = flat.shape
    side_by_side = n_classes <= _FEW_CLASSES and n_numbers % (_SAMPLES_AT_ONCE * n_classes) == 0
    width = _SAMPLES_AT_ONCE if side_by_side else 1
    wide = flat.reshape(n_sources, -1, width * n_classes).sum(axis=1)
    totals: Floats = wide.reshape(n_sources, width, n_classes).sum(axis=1, dtype=np.float64)
    return totals


def _sums_with_gaps(sources: SourcesInMemory) -> ConsensusSums:
    """The sums where sources are absent for some samples: a pass for the means, and one about them."""

    def work(run: list[slice]) -> tuple[Floats, Floats, bool]:
        counts, totals = np.zeros(sources.n_sources), np.zeros((sources.n_sources, sources.n_classes))
        are_even = True
        for part in run:
            block = sources.block(part)
            are_even &= block.is_even
            counts += part.stop - part.start if block.present is None else block.present.sum(axis=1)
            totals += block.probs.sum(axis=1, dtype=np.float64)
        return counts, totals, are_even

    results = _on_runs(sources, work)
    sources.are_even = all(are_even for *_, are_even in results)
    counts = np.sum([counts for counts, *_ in results], axis=0)
    means = np.sum([totals for _, totals, _ in results], axis=0) / np.maximum(counts, 1.0)[:, None]
    return sums_about(means, sources)


def sums_about(means: Floats, sources: SourcesInMemory) -> ConsensusSums:
    """The sums about the means of all samples, with or without absent sources."""

    def work(run: list[slice]) -> ConsensusSums:
        sums = ConsensusSums.zeros(sources.n_sources, sources.n_classes, means)
        for part in run:
            block = sources.block(part)
            sums.update(_precise(block.probs, sources), block.present, shift_is_mean=True)
        return sums

    sums, *others = _on_runs(sources, work)
    for other in others:
        sums = sums.merge(other)
    return sums
