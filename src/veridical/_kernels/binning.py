"""Sums per bin of confidence (method: expected calibration error)."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import exact_kernel, kernel


@kernel
def _bin_of(w, edges):
    """The bin b with ``edges[b] < w <= edges[b+1]``, by halving; beyond the ends: the end bins."""
    low, size = 0, edges.shape[0] - 1
    while size > 1:
        half = size // 2
        low += half if w > edges[low + half] else 0
        size -= half
    return low


@kernel
def _bin_of_equal_width(w, edges):
    """The same bin where edges are equally spaced on [0, 1]: a guess, put right by the edges themselves."""
    n_bins = edges.shape[0] - 1
    b = min(int(w * n_bins), n_bins - 1)
    b -= 1 if b > 0 and w <= edges[b] else 0
    b += 1 if b < n_bins - 1 and w > edges[b + 1] else 0
    return b


@kernel
def bin_sums(confidence, correct, weight, edges, equal_width):
    """Per bin (lo, hi]: sums of weight, weight * confidence and weight * correct, shape (3, B).

    ``weight`` may be None (all ones).  Two sets of sums take turns, so that neighbours in the same bin do not
    wait for each other's addition.
    """
    n_bins = edges.shape[0] - 1
    sums = np.zeros((2 * n_bins, 4))  # a row of four: one cache line holds all that one sample changes
    for i in range(confidence.shape[0]):
        w = confidence[i]
        b = _bin_of_equal_width(w, edges) if equal_width else _bin_of(w, edges)
        row = 2 * b + (i & 1)
        if weight is None:
            sums[row, 0] += 1.0
            sums[row, 1] += w
            sums[row, 2] += 1.0 if correct[i] else 0.0
        else:
            sums[row, 0] += weight[i]
            sums[row, 1] += weight[i] * w
            sums[row, 2] += weight[i] if correct[i] else 0.0
    result = np.empty((3, n_bins))
    for b in range(n_bins):
        for k in range(3):
            result[k, b] = sums[2 * b, k] + sums[2 * b + 1, k]
    return result


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
