"""Isotonic regression by pooling adjacent violators."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import exact_kernel


@exact_kernel
def pool_violators(first, stop, hits):
    """Least-squares non-decreasing fit to blocks of samples that are in order.

    Block b holds samples ``first[b]`` to ``stop[b] - 1`` with ``hits[b]`` ones among zeros.  A block whose mean
    is not above the one before it is merged into it, until means rise.  Returns the first and last sample of
    each step, shape (K, 2), and the steps' means, shape (K,).
    """
    begin = np.empty(len(first), np.int64)
    end = np.empty(len(first), np.int64)
    sums = np.empty(len(first))
    top = -1
    for b in range(len(first)):
        top += 1
        begin[top], end[top], sums[top] = first[b], stop[b], hits[b]
        # Means compared without division: sums / counts.
        while top > 0 and sums[top] * (end[top - 1] - begin[top - 1]) <= sums[top - 1] * (end[top] - begin[top]):
            sums[top - 1] += sums[top]
            end[top - 1] = end[top]
            top -= 1
    ends = np.empty((top + 1, 2), np.int64)
    values = np.empty(top + 1)
    for k in range(top + 1):
        ends[k, 0] = begin[k]
        ends[k, 1] = end[k] - 1
        values[k] = sums[k] / (end[k] - begin[k])
    return ends, values
