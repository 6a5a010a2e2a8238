"""Passes over the predictions for the consensus: its sums, and the mean weighted by it, block by block of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from veridical._numpy_kernels import MOST_SAMPLES
from veridical._parallel import run_blocks, single_threaded_blas
from veridical.combine.across_samples.factor import distinctness_of
from veridical.combine.across_samples.sums import ConsensusSums, check_pairs
from veridical.combine.combined import Floats
from veridical.predictions import Predictions
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
#: Rows whose sum is further from one, in units of rounding, are divided by it.
_INEXACT = 16


#: Up to so many numbers, products are summed in double precision: rounding averages out only over many samples.
_FEW_NUMBERS = 1 << 20


class SuspectError(Exception):
    """A block holds something that needs a closer look: a source is absent, or a row is not a distribution."""


def _on_threads(work: Callable[[slice], _Result], blocks: list[slice], n_threads: int | None) -> list[_Result]:
    """Blocks on our threads, with one BLAS thread each: sums then do not depend on the number of threads."""
    if len(blocks) == 1 and blocks[0].stop <= MOST_SAMPLES:  # products of so few numbers stay in one thread
        return [work(blocks[0])]
    with single_threaded_blas():
        return run_blocks(work, blocks, n_threads)


def _samples_in_block(predictions: Predictions) -> int:
    per_sample = predictions.n_sources * predictions.n_classes * predictions.result_dtype.itemsize
    return max(_BLOCK_BYTES // per_sample // _SAMPLES_AT_ONCE, 1) * _SAMPLES_AT_ONCE


def _blocks(first: int, stop: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, stop)) for start in range(first, stop, size)]


def _runs(predictions: Predictions) -> list[slice]:
    """Slices of samples, each of whole blocks."""
    size = _samples_in_block(predictions)
    most = min(max(_WAITING_NUMBERS // predictions.n_sources**2, _LEAST_RUNS), _MOST_RUNS)
    n_blocks = -(-predictions.n_samples // size)
    return _blocks(0, predictions.n_samples, size * max(-(-n_blocks // most), 1))


def probability_block(predictions: Predictions, part: slice) -> tuple[Array, Array]:
    """Probabilities (S, n, L) in the precision of results, and the sums (S, n) of their rows.

    Nothing is checked; rows of absent sources, and rows with an infinite logit, hold NaN.
    """
    block = predictions.samples(part.start, part.stop).astype(predictions.result_dtype, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        if predictions.kind == "logits":
            block = np.where(np.isfinite(block), block, np.nan).astype(block.dtype, copy=False)
            block -= block.max(axis=-1, keepdims=True)
        if predictions.kind != "probs":
            block = np.exp(block)
        row_sums = block @ np.ones(block.shape[2], block.dtype)
        if predictions.kind == "logits":
            block /= row_sums[:, :, None]
            row_sums = np.where(np.isnan(row_sums), row_sums, block.dtype.type(1))
    return block, row_sums


def _complete_block(predictions: Predictions, part: slice) -> Array:
    """A block in which every row is a distribution."""
    block, row_sums = probability_block(predictions, part)
    off = float(np.abs(row_sums - 1).max())
    # Written so that NaN fails.
    if not (off <= predictions.sum_tolerance and block.min() >= 0):
        raise SuspectError
    if off > _INEXACT * np.finfo(block.dtype).eps:
        block = block / row_sums[:, :, None]
    return block


def _block_with_gaps(predictions: Predictions, part: slice) -> Array:
    """A block in which absent sources are NaN; its numbers are known to be valid."""
    block, row_sums = probability_block(predictions, part)
    if np.abs(row_sums - 1).max(initial=0, where=~np.isnan(row_sums)) > _INEXACT * np.finfo(block.dtype).eps:
        block = block / row_sums[:, :, None]
    return block


def _precise(block: Array, predictions: Predictions) -> Array:
    """The block in the precision in which its products are summed."""
    few = predictions.n_sources * predictions.n_samples * predictions.n_classes <= _FEW_NUMBERS
    return block.astype(np.float64, copy=False) if few else block


def sums_of_complete(predictions: Predictions, n_threads: int | None) -> ConsensusSums | None:
    """The sums in one pass, or None where a source is absent or a row is not a distribution.

    Products are summed about zero and centred afterwards; a second pass about the means follows only where a source
    varies so little that this loses digits.
    """
    n_sources, n_classes, size = predictions.n_sources, predictions.n_classes, _samples_in_block(predictions)
    check_pairs(n_sources)

    def work(run: slice) -> tuple[Floats, Floats]:
        products, totals = np.zeros((n_sources, n_sources)), np.zeros((n_sources, n_classes))
        for part in _blocks(run.start, run.stop, size):
            flat = _precise(_complete_block(predictions, part), predictions).reshape(n_sources, -1)
            products += flat @ flat.T
            totals += _sums_over_samples(flat, n_classes)
        return products, totals

    try:
        results = _on_threads(work, _runs(predictions), n_threads)
    except SuspectError:
        return None
    sums = ConsensusSums.zeros(n_sources, n_classes)
    sums.counts += predictions.n_samples
    for products, totals in results:
        sums.products += products
        sums.totals += totals
    sums.squares += np.diag(sums.products)[:, None]
    mean_square = np.diag(sums.products) / max(predictions.n_samples, 1)
    variance = mean_square - np.einsum("sl,sl->s", sums.means, sums.means)
    if (variance < _EXACT_ABOUT_ZERO * mean_square).any():
        return sums_about(sums.means, predictions, n_threads)
    return sums


def _sums_over_samples(flat: Array, n_classes: int) -> Floats:
    """(S, L) sums over the samples of rows (S, n L); short rows are added side by side, which is faster."""
    n_sources, n_numbers = flat.shape
    side_by_side = n_classes <= _FEW_CLASSES and n_numbers % (_SAMPLES_AT_ONCE * n_classes) == 0
    width = _SAMPLES_AT_ONCE if side_by_side else 1
    wide = flat.reshape(n_sources, -1, width * n_classes).sum(axis=1)
    totals: Floats = wide.reshape(n_sources, width, n_classes).sum(axis=1, dtype=np.float64)
    return totals


def sums_with_gaps(predictions: Predictions, n_threads: int | None) -> ConsensusSums:
    """The sums where sources are absent for some samples: a pass for the means, and one about them."""

    def work(run: slice) -> tuple[Floats, Floats]:
        counts, totals = np.zeros(predictions.n_sources), np.zeros((predictions.n_sources, predictions.n_classes))
        for part in _blocks(run.start, run.stop, _samples_in_block(predictions)):
            block = _block_with_gaps(predictions, part)
            counts += (~np.isnan(block[:, :, 0])).sum(axis=1)
            totals += np.nansum(block, axis=1, dtype=np.float64)
        return counts, totals

    results = _on_threads(work, _runs(predictions), n_threads)
    counts = np.sum([part for part, _ in results], axis=0)
    means = np.sum([part for _, part in results], axis=0) / np.maximum(counts, 1.0)[:, None]
    return sums_about(means, predictions, n_threads)


def sums_about(means: Floats, predictions: Predictions, n_threads: int | None) -> ConsensusSums:
    """The sums about the means of all samples, with or without absent sources."""

    def work(run: slice) -> ConsensusSums:
        sums = ConsensusSums.zeros(predictions.n_sources, predictions.n_classes, means)
        for part in _blocks(run.start, run.stop, _samples_in_block(predictions)):
            sums.update(_precise(_block_with_gaps(predictions, part), predictions), shift_is_mean=True)
        return sums

    sums, *others = _on_threads(work, _runs(predictions), n_threads)
    for other in others:
        sums = sums.merge(other)
    return sums


def sample_weights(weights: Floats, dependence: Floats, present: Array) -> tuple[Floats, Floats]:
    """Shares (S, n) of the sources that are present, and how many distinct sources with weight they amount to.

    The share of source s is proportional to w_s a_s, with a_s from :func:`distinctness_of` the sources present.  If
    only sources without weight are present, they share by a_s.
    """
    distinctness = distinctness_of(dependence, present)
    counted = np.where(weights[:, None] > 0, distinctness, 0.0)
    shares = weights[:, None] * distinctness
    none = shares.sum(axis=0) <= 0
    shares[:, none] = counted[:, none] = distinctness[:, none]
    return shares / shares.sum(axis=0), counted.sum(axis=0)


def weighted_means(
    predictions: Predictions, weights: Floats, dependence: Floats, n_threads: int | None, *, complete: bool
) -> tuple[Array, Floats]:
    """(N, L) mean of the sources with their weights, and (N,) the number of distinct sources."""
    n_sources, n_samples, n_classes = predictions.n_sources, predictions.n_samples, predictions.n_classes
    probs = np.empty((n_samples, n_classes), predictions.result_dtype)
    distinct = np.empty(n_samples)
    everyone, n_distinct = sample_weights(weights, dependence, np.ones((n_sources, 1)))
    shares = everyone[:, 0].astype(probs.dtype)

    def work(part: slice) -> None:
        if complete:
            flat = _complete_block(predictions, part).reshape(n_sources, -1)
            probs[part] = (shares @ flat).reshape(-1, n_classes)
            distinct[part] = n_distinct
            return
        block = _block_with_gaps(predictions, part)
        present = ~np.isnan(block[:, :, 0])
        own, distinct[part] = sample_weights(weights, dependence, present)
        probs[part] = np.einsum("sn,snl->nl", own, np.where(present[:, :, None], block, 0))

    _on_threads(work, _blocks(0, n_samples, _samples_in_block(predictions)), n_threads)
    return probs, distinct
