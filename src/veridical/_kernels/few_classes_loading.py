"""Sixteen samples with few classes from the caller's memory into lanes, and whether they are valid."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from veridical._kernels.arguments import LANES
from veridical._kernels.jit import inner
from veridical._kernels.lanes import all_lanes, load, select, spread, store
from veridical._kernels.loading import read_lanes
from veridical._kernels.prefetch import prefetch

#: Working memory: ``scores`` (sources, classes, lanes), what belongs to sources (sources, lanes) and to classes
#: (classes, lanes), and numbers of samples (1, lanes).
Memory = namedtuple("Memory", "scores present influence sums distance weight z target label number")


def allocate(n_sources, n_classes, dtype):
    """Working memory for sixteen samples."""
    present, influence, sums, distance, weight = np.zeros((5, n_sources, LANES), dtype)
    z, target = np.zeros((2, n_classes, LANES), dtype)
    scores = np.zeros((n_sources, n_classes, LANES), dtype)
    label, number = np.zeros((1, LANES), np.int32), np.zeros((1, LANES), dtype)
    return Memory(scores, present, influence, sums, distance, weight, z, target, label, number)


@inner
def _clear_absent(scores, present):
    """Sources that are all NaN have no prediction: their scores and presence become 0."""
    for i in range(LANES):
        absent = True
        for l in range(scores.shape[0]):
            absent = absent and scores[l, i] != scores[l, i]
        if absent:
            present[i] = 0
            for l in range(scores.shape[0]):
                scores[l, i] = 0


@inner
def read_samples(flat, layout, first, size, memory):
    """Scores of ``size`` samples, from sample ``first`` on, which sources are present, and whether none is negative."""
    zero, one = memory.z.dtype.type(0), memory.z.dtype.type(1)
    lowest = spread(zero)
    run = size * layout.n_classes
    for s in range(layout.n_sources):
        start = layout.start + s * layout.source_stride + first * layout.sample_stride
        if layout.sample_stride == layout.n_classes:
            prefetch(flat, start + 2 * run, start + 3 * run)
        scores = memory.scores[s]
        read_lanes(flat, start, layout.sample_stride, size, scores)
        total = spread(zero)
        for l in range(layout.n_classes):
            x = load(scores, l)
            total = total + x
            lowest = select(x < lowest, x, lowest)
        store(memory.present, s, spread(one))
        if not all_lanes(total == total):
            _clear_absent(scores, memory.present[s])
            total = spread(zero)
            for l in range(layout.n_classes):
                total = total + load(scores, l)
        store(memory.sums, s, total)
    return lowest >= zero


@inner
def check_lanes(memory, layout, options):
    """(valid, inexact, count): where all sources are distributions, or absent where that may be; where some sum is not
    one up to rounding; and how many sources are present.
    """
    zero, one = memory.z.dtype.type(0), memory.z.dtype.type(1)
    count = furthest = spread(zero)
    known = spread(one) > zero
    for s in range(layout.n_sources):
        present = load(memory.present, s)
        off = load(memory.sums, s) - present
        off = select(off < zero, spread(zero) - off, off)
        count = count + present
        known = known & (off == off)
        furthest = select(off > furthest, off, furthest)
    valid = known & (furthest <= memory.z.dtype.type(options.tolerance)) & (count > zero)
    if not options.skip_missing:
        valid = valid & (count == memory.z.dtype.type(layout.n_sources))
    return valid, furthest > memory.z.dtype.type(options.rounding), count


@inner
def renormalise_lanes(memory, inexact):
    """Scale every source of these lanes to sum one."""
    zero, one = memory.z.dtype.type(0), memory.z.dtype.type(1)
    for s in range(memory.scores.shape[0]):
        present, scores = load(memory.present, s), memory.scores[s]
        factor = select(inexact & (present > zero), one / load(memory.sums, s), spread(one))
        for l in range(scores.shape[0]):
            store(scores, l, load(scores, l) * factor)
