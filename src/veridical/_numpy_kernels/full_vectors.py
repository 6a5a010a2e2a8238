"""Calibrated scores back into whole distributions: twin of :mod:`veridical._kernels.full_vectors`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._numpy_kernels.projection import lead, leads, project_onto_winner
from veridical._numpy_kernels.sums import ones, row_starts, row_sums, smallest

Array = npt.NDArray[Any]

#: Scores this small are multiplied by its inverse before they are divided by their sum: 1 / 5e-324 overflows.
_TINY = 2.0**-1000


def restore_winners(probs: Array, winners: Array, margin: float) -> None:
    """Scale rows to sum one and make ``winners[i]`` the strict argmax of row i, in place."""
    if len(probs) == 1:
        _restore_winner(probs[0], int(winners[0]), margin)
        return
    probs *= (1.0 / row_sums(probs)).astype(probs.dtype, copy=False)[:, None]
    ahead = leads(probs, winners)
    least = probs.dtype.type(margin)
    if not smallest(ahead) >= least:
        for i in np.flatnonzero(ahead < least):
            _lead_strictly(probs[i], int(winners[i]), margin)


def _restore_winner(row: Array, c: int, margin: float) -> None:
    """The same for one row, in fewer calls."""
    row *= 1.0 / float(row.astype(np.float64, copy=False).dot(ones(len(row))))
    if lead(row, c) < row.dtype.type(margin):
        _lead_strictly(row, c, margin)


def _lead_strictly(row: Array, c: int, margin: float) -> None:
    """Rounding can undo a margin that is small beside the scores: it is doubled until the label holds."""
    while True:
        project_onto_winner(row, c, margin)
        if lead(row, c) > 0 or not margin < 1.0:
            return
        margin *= 2.0


def replace_confidence(probs: Array, winners: Array, confidence: Array, margin: float) -> None:
    """Set row i's winner to ``confidence[i]`` and scale the others to share the rest, in place; then it wins strictly.

    Where the other classes are all zero they share the rest equally.
    """
    rows = probs.astype(np.float64)
    numbers, starts = rows.reshape(-1), row_starts(*rows.shape)
    index = starts + winners
    numbers[index] = 0.0
    others = row_sums(rows)
    if smallest(others) < _TINY:
        for i in np.flatnonzero(others < _TINY):
            if others[i] > 0.0:
                rows[i] *= 1.0 / _TINY
            else:
                rows[i] = 1.0
                rows[i, winners[i]] = 0.0
        others = row_sums(rows)
    rows *= ((1.0 - confidence) / others)[:, None]
    runners_up = numbers[starts + rows.argmax(axis=1)]
    numbers[index] = confidence
    probs[...] = rows
    ahead = confidence - runners_up
    if not smallest(ahead) >= margin:
        for i in np.flatnonzero(~(ahead >= margin)):
            _lead_strictly(probs[i], int(winners[i]), margin)
