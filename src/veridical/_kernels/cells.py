"""Integer sums over the cells of a grid of confidences (method: mergeable calibration state)."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import exact_kernel


@exact_kernel
def add_to_cells(confidence, correct, edges, low, units, sums):
    """Add samples to ``sums`` (4, G) of integers, per cell (edges[j], edges[j + 1]], 0 in cell 0.

    Rows: samples, right samples, sum of offsets, sum of offsets of right samples, where the offset of a sample is
    ``round(confidence * units) - low[j]``.  ``edges`` are equally spaced, so a cell is guessed and then corrected.
    """
    last = edges.shape[0] - 2
    for i in range(confidence.shape[0]):
        w = confidence[i]
        j = min(max(int(np.ceil(w * (last + 1))) - 1, 0), last)
        if j > 0 and w <= edges[j]:
            j -= 1
        elif j < last and w > edges[j + 1]:
            j += 1
        offset = np.int64(np.rint(w * units)) - low[j]
        sums[0, j] += 1
        sums[2, j] += offset
        if correct[i]:
            sums[1, j] += 1
            sums[3, j] += offset
