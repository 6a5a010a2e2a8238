"""Scores that are equal up to rounding.

Votes and forests give few distinct scores, which rounding scatters: the mean of the same predictions in another order
is another float.  A fit takes scores in one narrow cell for one, and cuts between cells, so that the last bit of a
score decides nothing.
"""

from __future__ import annotations

import numpy as np

from veridical.combine.combined import Floats

#: Scores from 0 to 1 are told apart in cells about 1e-9 wide.  Their ends are irrational multiples, so that scores such
#: as 0.5 and 1/3, around which rounding scatters, are not on one.
_CELLS, _FIRST = 1e9 * np.pi / 3, np.sqrt(2) - 1
#: Where a cut lies between two scores.  Halfway is where new votes fall (0.5 is between 0.4 and 0.6); at an irrational
#: part a little below, no mean of votes does.
_CUT = np.sqrt(0.24)


def cells_of(scores: Floats) -> Floats:
    """The number of each score's cell, which rises with the score."""
    cells: Floats = np.floor(scores * _CELLS + _FIRST)
    return cells


def last_of_cells(ordered: Floats) -> Floats:
    """Sorted scores, each as the largest of its cell."""
    if not len(ordered):
        return ordered
    ends = np.append(np.diff(cells_of(ordered)) > 0, True)
    sizes = np.diff(np.flatnonzero(ends), prepend=-1)
    return np.repeat(ordered[ends], sizes)


def cuts_above(scores: Floats, ordered: Floats) -> Floats:
    """Where to cut above some of the sorted scores ``ordered``; strictly rising, and none above the largest."""
    above = np.unique(cells_of(ordered).searchsorted(cells_of(scores), side="right"))
    above = above[above < len(ordered)]
    lower, upper = ordered[above - 1], ordered[above]
    return np.unique(lower + _CUT * (upper - lower))
