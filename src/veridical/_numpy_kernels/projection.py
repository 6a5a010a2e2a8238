"""The nearest distributions in which given classes win: twin of :mod:`veridical._kernels.projection`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def leads(rows: Array, winners: Array) -> Array:
    """(N,) how far row i's class ``winners[i]`` is above the largest other class."""
    if len(rows) == 1:  # indexing with one number is far cheaper than with an array
        row, c = rows[0], winners[0]
        score = row[c]
        row[c] = -1.0
        lead = score - row.max(keepdims=True)
        row[c] = score
        return lead  # type: ignore[no-any-return]
    index = np.arange(len(rows)), winners
    scores = rows[index]
    rows[index] = -1.0
    others = rows.max(axis=1)
    rows[index] = scores
    return scores - others  # type: ignore[no-any-return]


def project_rows_onto_winners(rows: Array, winners: Array, margin: float) -> None:
    """Move each row, in place, to the nearest point of the simplex where its winner leads by ``margin``."""
    behind = leads(rows, winners) < margin
    if behind.any():
        for i in np.flatnonzero(behind):
            project_onto_winner(rows[i], int(winners[i]), margin)


def project_onto_winner(row: Array, c: int, margin: float) -> None:
    """Cut the other classes at the level m where m + margin, m for those above it and the rest still sum to one.

    With the other classes in falling order, m is the largest of the means of ``row[c] - margin`` and the first k of
    them.
    """
    own = row[c] - margin
    row[c] = -1.0
    sums = np.sort(row)[:0:-1].cumsum()  # without the winner, which is the lowest
    level = max(((sums + own) / np.arange(2, len(row) + 1)).max(), own)
    np.minimum(row, level, out=row)
    row[c] = level + margin
