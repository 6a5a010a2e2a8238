"""The nearest distributions in which given classes win: twin of :mod:`veridical._kernels.projection`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._numpy_kernels.sums import row_starts

Array = npt.NDArray[Any]


#: Up to so many classes a list of Python's numbers is faster than a call of NumPy.
_FEW_CLASSES = 48


def lead(row: Array, c: int) -> float:
    """How far class c is above the largest other class."""
    score = row[c]
    if len(row) <= _FEW_CLASSES:
        others = row.tolist()
        del others[c]
        return float(score - max(others))
    row[c] = -1.0
    largest = row[row.argmax()]
    row[c] = score
    return float(score - largest)


def leads(rows: Array, winners: Array) -> Array:
    """(N,) how far row i's class ``winners[i]`` is above the largest other class; rows follow each other in memory."""
    numbers, starts = rows.reshape(-1), row_starts(*rows.shape)
    index = starts + winners
    scores = numbers[index]
    numbers[index] = -1.0
    others = numbers[starts + rows.argmax(axis=1)]
    numbers[index] = scores
    return scores - others  # type: ignore[no-any-return]


def project_rows_onto_winners(rows: Array, winners: Array, margin: float) -> None:
    """Move each row, in place, to the nearest point of the simplex where its winner leads by ``margin``."""
    if len(rows) == 1:
        c = int(winners[0])
        if lead(rows[0], c) < margin:
            project_onto_winner(rows[0], c, margin)
        return
    behind = leads(rows, winners) < margin
    if behind.any():
        for i in np.flatnonzero(behind):
            project_onto_winner(rows[i], int(winners[i]), margin)


def project_onto_winner(row: Array, c: int, margin: float) -> None:
    """Cut the other classes at the level m where m + margin, m for those above it and the rest still sum to one.

    With the other classes in falling order, m is the largest of the means of ``row[c] - margin`` and the first k of
    them.
    """
    own = float(row[c]) - margin
    if len(row) <= _FEW_CLASSES:
        others = row.tolist()
        del others[c]
        others.sort(reverse=True)
        level = total = own
        for k, score in enumerate(others, 2):
            if score <= level:  # from here on the means fall
                break
            total += score
            level = total / k
    else:
        row[c] = -1.0
        sums = np.sort(row)[:0:-1].cumsum()  # without the winner, which is the lowest
        level = max(float(((sums + own) / np.arange(2, len(row) + 1)).max()), own)
    np.minimum(row, level, out=row)
    row[c] = level + margin
