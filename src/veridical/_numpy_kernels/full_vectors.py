"""Calibrated scores back into whole distributions: twin of :mod:`veridical._kernels.full_vectors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._numpy_kernels.projection import lead, leads, project_onto_winner

Array = npt.NDArray[Any]

#: Scores this small are multiplied by its inverse before they are divided by their sum: 1 / 5e-324 overflows.
_TINY = 2.0**-1000


def restore_winners(probs: Array, winners: Array, margin: float) -> None:
    """Scale rows to sum one and make ``winners[i]`` the strict argmax of row i, in place."""
    if len(probs) == 1:
        _restore_winner(probs[0], int(winners[0]), margin)
        return
    sums = np.add.reduce(probs, 1, np.float64, keepdims=True)
    np.multiply(probs, 1.0 / sums, out=probs, casting="same_kind")
    behind = leads(probs, winners) < probs.dtype.type(margin)
    if behind.any():
        for i in np.flatnonzero(behind):
            _lead_strictly(probs[i], int(winners[i]), margin)


def _restore_winner(row: Array, c: int, margin: float) -> None:
    """The same for one row, in fewer calls."""
    np.multiply(row, 1.0 / np.add.reduce(row, None, np.float64), out=row, casting="same_kind")
    if lead(row, c) < row.dtype.type(margin):
        _lead_strictly(row, c, margin)


def _lead_strictly(row: Array, c: int, margin: float) -> None:
    """Rounding can undo a margin that is small beside the scores: it is doubled until the label holds."""
    while True:
        project_onto_winner(row, c, row.dtype.type(margin))
        if lead(row, c) > 0 or not margin < 1.0:
            return
        margin *= 2.0


def replace_confidence(probs: Array, winners: Array, confidence: Array, margin: float) -> None:
    """Set row i's winner to ``confidence[i]`` and scale the others to share the rest, in place; then it wins strictly.

    Where the other classes are all zero they share the rest equally.
    """
    if len(probs) == 1:
        row, c, w = probs[0], int(winners[0]), float(confidence[0])
        row[c] = 0.0
        total = float(np.add.reduce(row, None, np.float64))
        if total >= _TINY:
            np.multiply(row, (1.0 - w) / total, out=row, casting="same_kind")
            row[c] = w
            _restore_winner(row, c, margin)
            return
    index = np.arange(len(probs)), winners
    probs[index] = 0.0
    others = np.add.reduce(probs, 1, np.float64)
    if others.min() < _TINY:
        for i in np.flatnonzero(others < _TINY):
            if others[i] > 0.0:
                probs[i] *= 1.0 / _TINY
            else:
                probs[i] = 1.0
                probs[i, winners[i]] = 0.0
        others = np.add.reduce(probs, 1, np.float64)
    np.multiply(probs, ((1.0 - confidence) / others)[:, None], out=probs, casting="same_kind")
    probs[index] = confidence
    restore_winners(probs, winners, margin)
