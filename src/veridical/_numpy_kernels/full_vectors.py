"""Calibrated scores back into whole distributions: twin of :mod:`veridical._kernels.full_vectors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._numpy_kernels.projection import leads, project_onto_winner

Array = npt.NDArray[Any]

#: Scores this small are multiplied by its inverse before they are divided by their sum: 1 / 5e-324 overflows.
_TINY = 2.0**-1000


def restore_winners(probs: Array, winners: Array, margin: float) -> None:
    """Scale rows to sum one and make ``winners[i]`` the strict argmax of row i, in place."""
    sums = np.add.reduce(probs, 1, np.float64, keepdims=True)
    np.multiply(probs, 1.0 / sums, out=probs, casting="same_kind")
    behind = leads(probs, winners) < probs.dtype.type(margin)
    if behind.any():
        for i in np.flatnonzero(behind):
            _lead_strictly(probs[i : i + 1], winners[i : i + 1], margin)


def _lead_strictly(row: Array, winner: Array, margin: float) -> None:
    """Rounding can undo a margin that is small beside the scores: it is doubled until the label holds."""
    while True:
        project_onto_winner(row[0], int(winner[0]), row.dtype.type(margin))
        if leads(row, winner)[0] > 0 or not margin < 1.0:
            return
        margin *= 2.0


def replace_winning_score(probs: Array, winners: Array, confidence: Array, margin: float) -> None:
    """Set row i's winner to ``confidence[i]`` and scale the others to share the rest, in place; then it wins strictly.

    Where the other classes are all zero they share the rest equally.
    """
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
