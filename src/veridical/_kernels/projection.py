"""Euclidean projection onto the part of the simplex where one class wins (paper, Section 3.3)."""

from __future__ import annotations

from veridical._kernels.jit import kernel


@kernel
def _largest_other(z, c):
    largest = z.dtype.type(0)
    for l in range(z.shape[0]):
        if l != c and z[l] > largest:
            largest = z[l]
    return largest


@kernel
def project_onto_winner(z, c, margin):
    """Move ``z`` (in place) to the nearest point of the simplex with ``z[c] >= z[l] + margin`` for all other l.

    The answer cuts every other class at a level m and sets z[c] = m + margin, where m solves
    ``m = z[c] - margin + sum_l max(z[l] - m, 0)``.  Newton's method on this convex piecewise linear
    equation, started at its left, climbs to m in a handful of passes and needs no sort: each step averages
    z[c] - margin with the classes that still stand above m.
    """
    zero = z.dtype.type(0)
    start = z[c] - margin
    if _largest_other(z, c) <= start:
        return
    level = start
    standing = -1
    while True:
        count = 0
        total = zero
        for l in range(z.shape[0]):
            above = l != c and z[l] > level
            total += z[l] if above else zero
            count += 1 if above else 0
        # Each step leaves fewer classes standing; the same number twice is the solution.
        if count == standing or count == 0:
            break
        standing = count
        level = (start + total) / z.dtype.type(count + 1)
    for l in range(z.shape[0]):
        if z[l] > level:
            z[l] = level
    z[c] = level + margin
