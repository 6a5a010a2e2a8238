"""Euclidean projection onto the part of the simplex where one class wins (paper, Section 3.3)."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import inner, kernel
from veridical._kernels.lanes import any_lane, load, select, spread, store


@inner
def _excess(z, level):
    """``sum_l max(z[l] - level, 0)``."""
    total = zero = z.dtype.type(0)
    for l in range(z.shape[0]):
        above = z[l] - level
        total += above if above > zero else zero
    return total


@inner
def _count_above(z, level):
    count = np.int32(0)
    for l in range(z.shape[0]):
        count += np.int32(z[l] > level)
    return count


@inner
def project_onto_winner(z, c, margin):
    """Move ``z`` (in place) to the nearest point of the simplex with ``z[c] >= z[l] + margin`` for all other l.

    The answer cuts every other class at a level m and sets z[c] = m + margin, where m solves
    ``m - (z[c] - margin) = sum_l max(z[l] - m, 0)``.  Newton's method on this convex piecewise linear equation,
    started at its left, climbs to m in a handful of passes and needs no sort: each step averages z[c] - margin with
    the classes that still stand above m.
    """
    winner = z[c]
    start = level = winner - margin
    z[c] = -1  # never above the level
    excess = _excess(z, level)
    if excess == 0:
        z[c] = winner
        return
    count = _count_above(z, level)
    standing = count + 1
    # Each step leaves fewer classes standing; as many as before is the solution.
    while 0 < count < standing:
        standing = count
        level += (excess - (level - start)) / z.dtype.type(count + 1)
        excess = _excess(z, level)
        count = _count_above(z, level)
    for l in range(z.shape[0]):
        z[l] = z[l] if z[l] < level else level
    z[c] = level + margin


@kernel
def project_rows_onto_winners(rows, winners, margin):
    """:func:`project_onto_winner` for each row and its own winner."""
    for i in range(rows.shape[0]):
        project_onto_winner(rows[i], winners[i], rows.dtype.type(margin))


@inner
def _above(z, label, level):
    """How much the classes other than the label are above a level, in sum, and how many are."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    excess = count = spread(zero)
    for l in range(z.shape[0]):
        above = select(label == np.int32(l), spread(zero), load(z, l) - level)
        excess = excess + select(above > zero, above, spread(zero))
        count = select(above > zero, count + one, count)
    return excess, count


@inner
def project_lanes(z, label, margin):
    """As :func:`project_onto_winner`, in all lanes whose label does not lead."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    own = spread(zero)
    for l in range(z.shape[0]):
        own = select(label == np.int32(l), load(z, l), own)
    start = level = own - margin
    excess, count = _above(z, label, level)
    behind = excess > zero
    if any_lane(behind):
        going, standing = behind, count + one
        while any_lane(going):
            standing = count
            level = select(going, level + (excess - (level - start)) / (count + one), level)
            excess, count = _above(z, label, level)
            # Each step leaves fewer classes standing; as many as before is the solution.
            going = going & (count > zero) & (count < standing)
        for l in range(z.shape[0]):
            x = load(z, l)
            cut = select(label == np.int32(l), level + margin, select(x < level, x, level))
            store(z, l, select(behind, cut, x))
