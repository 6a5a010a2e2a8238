"""Sums per bin of confidence (method: expected calibration error)."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import exact_kernel, inner, kernel

_LOOKED_UP_TOGETHER = 1024


@inner
def _bin_of(w, edges):
    """The bin b with ``edges[b] < w <= edges[b+1]``, by halving; beyond the ends: the end bins."""
    low, size = 0, edges.shape[0] - 1
    while size > 1:
        half = size // 2
        low += half if w > edges[low + half] else 0
        size -= half
    return low


@inner
def _searched_bins(confidence, edges, bins):
    for i in range(confidence.shape[0]):
        bins[i] = _bin_of(confidence[i], edges)


@inner
def _equal_width_bins(confidence, n_bins, bins):
    """The same bins where ``edges = linspace(0, 1, B + 1)``: a guess, put right by the edges, which are b * (1 / B)."""
    step, last = 1.0 / n_bins, np.float64(n_bins - 1)
    for i in range(confidence.shape[0]):
        w = confidence[i]
        b = np.floor(w * n_bins)
        b -= 1.0 if w <= b * step else 0.0
        b += 1.0 if w > (b + 1.0) * step else 0.0
        b = b if b > 0.0 else 0.0  # so that NaN becomes 0: these are indices
        bins[i] = np.int32(b if b < last else last)


@inner
def _count_samples(confidence, correct, bins, sums, counts):
    """Add up samples per bin; four sets of sums take turns, so that neighbours in a bin need not wait for each other.

    ``counts`` holds two numbers in one: samples in the lower 32 bits, right ones in the upper.  Indices are unsigned,
    because signed ones are checked for counting from the end.
    """
    for position in range(np.uint64(confidence.shape[0])):
        i = np.uint64(position)
        entry = (np.uint64(bins[i]) << np.uint64(2)) + (i & np.uint64(3))
        sums[entry] += confidence[i]
        counts[entry] += np.int64(1) + (np.int64(correct[i]) << np.int64(32))


@inner
def _add_weights(confidence, correct, weight, bins, result):
    for i in range(confidence.shape[0]):
        b = bins[i]
        result[0, b] += weight[i]
        result[1, b] += weight[i] * confidence[i]
        result[2, b] += weight[i] if correct[i] else 0.0


@kernel
def all_probabilities(values):
    """Whether all values lie from 0 to 1; NaN does not."""
    outside = 0
    for i in range(values.shape[0]):
        outside += 0 if (values[i] >= 0.0) & (values[i] <= 1.0) else 1
    return outside == 0


@kernel
def bin_sums(confidence, correct, weight, edges, equal_width):
    """Per bin (lo, hi]: sums of weight, weight * confidence and weight * correct, shape (3, B).

    ``weight`` may be None (all ones, for fewer than 2^32 samples).  Bins are looked up for a cache's worth of samples
    at a time, so that this part is vector instructions; whether all confidences lie from 0 to 1, the second
    result, is seen on the way.
    """
    n_samples, n_bins = confidence.shape[0], edges.shape[0] - 1
    bins = np.empty(_LOOKED_UP_TOGETHER, np.int32)
    sums, counts = np.zeros(4 * n_bins), np.zeros(4 * n_bins, np.int64)
    result = np.zeros((3, n_bins))
    fine = True
    for start in range(0, n_samples, _LOOKED_UP_TOGETHER):
        stop = min(start + _LOOKED_UP_TOGETHER, n_samples)
        fine &= all_probabilities(confidence[start:stop])
        if equal_width:
            _equal_width_bins(confidence[start:stop], n_bins, bins)
        else:
            _searched_bins(confidence[start:stop], edges, bins)
        if weight is None:
            _count_samples(confidence[start:stop], correct[start:stop], bins, sums, counts)
        else:
            _add_weights(confidence[start:stop], correct[start:stop], weight[start:stop], bins, result)
    for entry in range(4 * n_bins):
        result[0, entry // 4] += counts[entry] & 0xFFFFFFFF
        result[1, entry // 4] += sums[entry]
        result[2, entry // 4] += counts[entry] >> 32
    return result, fine


@kernel
def histogram_gradient(confidence, edges, per_bin, gradient):
    """``gradient[i] = per_bin[bin of confidence[i]]``."""
    for i in range(confidence.shape[0]):
        gradient[i] = per_bin[_bin_of(confidence[i], edges)]


@exact_kernel
def largest_cumulative_gap(confidence, correct, weight):
    """``max_k |sum_{i<=k} weight_i (confidence_i - correct_i)|`` over the ends k of groups of equal confidence.

    ``confidence`` is sorted; ``weight`` may be None (all ones).
    """
    total = largest = 0.0
    last = confidence.shape[0] - 1
    for i in range(last + 1):
        gap = confidence[i] - (1.0 if correct[i] else 0.0)
        total += gap if weight is None else weight[i] * gap
        if i == last or confidence[i + 1] != confidence[i]:
            largest = max(largest, abs(total))
    return largest
