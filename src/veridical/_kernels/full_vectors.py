"""Calibrated scores back into whole distributions (method: opt and pTDE, full vectors)."""

from __future__ import annotations

from veridical._kernels.jit import kernel
from veridical._kernels.projection import project_onto_winner


@kernel
def _normalise(row):
    total = 0.0
    for l in range(row.shape[0]):
        total += row[l]
    for l in range(row.shape[0]):
        row[l] /= total


@kernel
def restore_winners(probs, winners, margin):
    """Make ``winners[i]`` the strict argmax of row i, in place, by the nearest distribution that does so.

    Rounding can undo a margin that is small beside the scores, so the label is checked in the rows' own dtype
    and the margin doubled until it holds.
    """
    for i in range(probs.shape[0]):
        row, c = probs[i], winners[i]
        _normalise(row)
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
def replace_winning_score(probs, winners, confidence, margin):
    """Set row i's winner c to w_i and scale the others by (1 - w_i) / (1 - v_i), in place; then c wins strictly.

    Where the others hold nothing (v = 1) they share 1 - w_i equally.
    """
    n_classes = probs.shape[1]
    for i in range(probs.shape[0]):
        row, c, w = probs[i], winners[i], confidence[i]
        others = 0.0
        for l in range(n_classes):
            others += row[l] if l != c else 0.0
        for l in range(n_classes):
            row[l] = row[l] * ((1.0 - w) / others) if others > 0.0 else (1.0 - w) / (n_classes - 1)
        row[c] = w
    restore_winners(probs, winners, margin)
