"""Calibrated scores back into whole distributions (method: opt and pTDE, full vectors)."""

from __future__ import annotations

from veridical._kernels.jit import exact_inner, inner, kernel
from veridical._kernels.projection import project_onto_winner

#: Scores this small are multiplied by its inverse before they are divided by their sum: 1 / 5e-324 overflows.
_TINY = 2.0**-1000


@inner
def _sum(row):
    total = 0.0
    for l in range(row.shape[0]):
        total += row[l]
    return total


@exact_inner  # reordered, two factors could become one that overflows
def _multiply(row, factor):
    for l in range(row.shape[0]):
        row[l] *= factor


@kernel
def restore_winners(probs, winners, margin):
    """Make ``winners[i]`` the strict argmax of row i, in place, by the nearest distribution that does so.

    Rounding can undo a margin that is small beside the scores, so the label is checked in the rows' own dtype
    and the margin doubled until it holds.
    """
    for i in range(probs.shape[0]):
        row, c = probs[i], winners[i]
        _multiply(row, 1.0 / _sum(row))
        step = margin
        while True:
            project_onto_winner(row, c, row.dtype.type(step))
            largest_other = row.dtype.type(-1)
            for l in range(row.shape[0]):
                if l != c and row[l] > largest_other:
                    largest_other = row[l]
            if row[c] > largest_other or not step < 1.0:
                break
            step *= 2.0


@kernel
def replace_confidence(probs, winners, confidence, margin):
    """Set row i's winner c to w_i and scale the others by (1 - w_i) / (1 - v_i), in place; then c wins strictly.

    1 - v_i is the sum of the others, which keeps its digits where v is near 1.  Where that sum is 0 they share
    1 - w_i equally.
    """
    n_classes = probs.shape[1]
    for i in range(probs.shape[0]):
        row, c, w = probs[i], winners[i], confidence[i]
        row[c] = 0
        others = _sum(row)
        if 0.0 < others < _TINY:
            _multiply(row, 1.0 / _TINY)
            others = _sum(row)
        if others > 0.0:
            _multiply(row, (1.0 - w) / others)
        else:
            row[:] = (1.0 - w) / (n_classes - 1)
        row[c] = w
    restore_winners(probs, winners, margin)
