"""Scores that are equal up to rounding.

Votes and forests give few distinct scores, which rounding scatters: the mean of the same predictions in another order
is another float.  A fit takes scores in one narrow cell for one, and cuts between cells, so that the last bit of a
score decides nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.combine.combined import Floats

#: Scores from 0 to 1 are told apart in cells about 1e-9 wide; those that were rounded to single precision, whose errors
#: are relative, in cells of about 1e-6 of themselves.  Their ends are irrational multiples, so that scores such as 0.5
#: and 1/3, around which rounding scatters, are not on one.
_CELLS, _RELATIVE_CELLS, _FIRST = 1e9 * np.pi / 3, 1e6 * np.pi / 3, np.sqrt(2) - 1
_SMALLEST = 1e-30
#: Where a cut lies between two scores.  Halfway is where new votes fall (0.5 is between 0.4 and 0.6); at an irrational
#: part a little below, no mean of votes does.
_CUT = np.sqrt(0.24)


def is_single(dtype: Any) -> bool:
    """Whether scores of this dtype have the errors of single precision."""
    return bool(np.finfo(dtype).bits < 64)


def cells_of(scores: Floats, single: bool = False) -> Floats:
    """The number of each score's cell, which rises with the score."""
    scaled = _RELATIVE_CELLS * np.log(np.maximum(scores, _SMALLEST)) if single else scores * _CELLS
    cells: Floats = np.floor(scaled + _FIRST)
    return cells


def last_of_cells(ordered: Floats, single: bool = False) -> Floats:
    """Sorted scores, each as the largest of its cell."""
    if not len(ordered):
        return ordered
    ends = np.append(np.diff(cells_of(ordered, single)) > 0, True)
    sizes = np.diff(np.flatnonzero(ends), prepend=-1)
    return np.repeat(ordered[ends], sizes)


def cuts_above(scores: Floats, ordered: Floats, single: bool = False) -> Floats:
    """Where to cut above some of the sorted scores ``ordered``; strictly rising, and none above the largest."""
    above = np.unique(cells_of(ordered, single).searchsorted(cells_of(scores, single), side="right"))
    above = above[above < len(ordered)]
    lower, upper = ordered[above - 1], ordered[above]
    return np.unique(lower + _CUT * (upper - lower))
