"""From the caller's memory to a small block in cache: conversion, softmax, checks, the sum that decides labels.

A group of samples is read source by source, so that memory is walked in long runs, once.  In cache a sample
lies in one of two orders, whichever lets the inner loops run over many neighbouring numbers:

- by source: row s holds source s's vector, padded with zeros to a multiple of ``LANES`` classes;
- by class: row l holds all sources' scores of class l, padded with absent sources.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from veridical._kernels.elementary import exp_in_place
from veridical._kernels.jit import kernel
from veridical._kernels.prefetch import prefetch

#: Rows in cache are padded to a multiple of this many numbers, so that vector loops have no remainder.
LANES = 16
#: How many rows ahead memory is asked for.
_AHEAD = 4

PROBS, LOGITS, LOG_PROBS = 0, 1, 2

#: What can be said of a sample: all is well; a source is no distribution; a source is absent; all are.
FINE, NOT_A_DISTRIBUTION, ABSENT, NOBODY = 0, 1, 2, 3

#: A three-dimensional array inside one run of memory: where it starts, its steps, its shape.
Layout = namedtuple("Layout", "start source_stride sample_stride class_stride n_sources n_samples n_classes")

#: A group of samples in cache.  ``scores`` is (group, sources, classes) or (group, classes, sources), padded;
#: ``totals`` (group, classes) is their sum over sources; the others are (group, sources): 1 where a source is
#: present, the sum of its scores, and the sum of its negative scores.
Group = namedtuple("Group", "scores totals present sums below")


@kernel
def _padded(n):
    return (n + LANES - 1) // LANES * LANES


@kernel
def allocate_group(size, n_sources, n_classes, by_class, like):
    """Room for ``size`` samples in the dtype of ``like``."""
    sources = _padded(n_sources) if by_class else n_sources
    classes = n_classes if by_class else _padded(n_classes)
    return Group(
        np.zeros((size, classes, sources) if by_class else (size, sources, classes), like.dtype),
        np.zeros((size, classes), like.dtype),
        np.zeros((size, sources), like.dtype),
        np.zeros((size, sources), like.dtype),
        np.zeros((size, sources), like.dtype),
    )


@kernel
def _read_rows(flat, start, layout, rows):
    """``rows[i]`` becomes the numbers of sample i as they stand in memory."""
    n_rows, n_classes = rows.shape
    for i in range(n_rows):
        # A slice first: an index that is a sum could be negative for all the compiler knows, and every access
        # would check for that.
        run = flat[start + i * layout.sample_stride :]
        if layout.class_stride == 1:
            for l in range(n_classes):
                rows[i, l] = run[l]
        else:
            for l in range(n_classes):
                rows[i, l] = run[l * layout.class_stride]


@kernel
def _mark_absent(rows, s, present):
    """A source says that it has nothing to say about a sample by a row of NaN."""
    n_rows, n_classes = rows.shape
    for i in range(n_rows):
        n_nan = 0
        if rows[i, 0] != rows[i, 0]:
            for l in range(n_classes):
                n_nan += 1 if rows[i, l] != rows[i, l] else 0
        present[i, s] = 0 if n_nan == n_classes else 1


@kernel
def _softmax_in_place(rows):
    """Softmax of each row; one with an infinite or undefined entry becomes NaN, which the checks refuse."""
    n_rows, n_classes = rows.shape
    for i in range(n_rows):
        largest = smallest = rows[i, 0]
        for l in range(n_classes):
            x = rows[i, l]
            largest = x if x > largest else largest
            smallest = x if x < smallest else smallest
        shift = largest if smallest >= np.finfo(rows.dtype).min else rows.dtype.type(np.nan)
        for l in range(n_classes):
            rows[i, l] -= shift
    exp_in_place(rows.reshape(rows.size))
    for i in range(n_rows):
        total = rows.dtype.type(0)
        for l in range(n_classes):
            total += rows[i, l]
        for l in range(n_classes):
            rows[i, l] /= total


@kernel
def _store_by_class(rows, s, present, scores):
    n_rows, n_classes = rows.shape
    for i in range(n_rows):
        for l in range(n_classes):
            scores[i, l, s] = rows[i, l]
        if present[i, s] == 0:
            for l in range(n_classes):
                scores[i, l, s] = 0


@kernel
def _store_by_source(rows, s, present, scores, totals, sums, below):
    n_rows, n_classes = rows.shape
    zero = rows.dtype.type(0)
    for i in range(n_rows):
        total = negative = zero
        if present[i, s] != 0:
            for l in range(n_classes):
                x = rows[i, l]
                scores[i, s, l] = x
                totals[i, l] += x
                total += x
                negative += x if x < zero else zero
        else:
            for l in range(n_classes):
                scores[i, s, l] = zero
        sums[i, s] = total
        below[i, s] = negative


@kernel
def _sum_by_class(scores, size, totals, sums, below):
    zero = scores.dtype.type(0)
    sums[:] = 0
    below[:] = 0
    for i in range(size):
        for l in range(scores.shape[1]):
            total = zero
            for s in range(scores.shape[2]):
                x = scores[i, l, s]
                total += x
                sums[i, s] += x
                below[i, s] += x if x < zero else zero
            totals[i, l] = total


@kernel
def _prefetch_ahead(flat, layout, first, size, s):
    """Ask for the rows that come ``_AHEAD`` sources later, or with the next group."""
    start = layout.start + (s + _AHEAD) * layout.source_stride + first * layout.sample_stride
    if s + _AHEAD >= layout.n_sources:
        start += size * layout.sample_stride - layout.n_sources * layout.source_stride
    prefetch(flat, start, start + (size - 1) * layout.sample_stride + layout.n_classes * layout.class_stride)


@kernel
def _store(rows, s, by_class, group):
    if by_class:
        _store_by_class(rows, s, group.present, group.scores)
    else:
        _store_by_source(rows, s, group.present, group.scores, group.totals, group.sums, group.below)


@kernel
def load_group(flat, layout, first, kind, by_class, group, rows):
    """Read ``rows.shape[0]`` samples of every source, from sample ``first`` on, into ``group``."""
    size, n_classes = rows.shape
    group.totals[:] = 0
    as_it_is = kind == PROBS and layout.class_stride == 1 and layout.sample_stride == n_classes
    for s in range(layout.n_sources):
        _prefetch_ahead(flat, layout, first, size, s)
        start = layout.start + s * layout.source_stride + first * layout.sample_stride
        if as_it_is:
            given = flat[start : start + size * n_classes].reshape(size, n_classes)
            _mark_absent(given, s, group.present)
            _store(given, s, by_class, group)
        else:
            _read_rows(flat, start, layout, rows)
            _mark_absent(rows, s, group.present)
            if kind == LOGITS:
                _softmax_in_place(rows)
            elif kind == LOG_PROBS:
                exp_in_place(rows.reshape(rows.size))
            _store(rows, s, by_class, group)
    if by_class:
        _sum_by_class(group.scores, size, group.totals, group.sums, group.below)


@kernel
def _find_fault(present, sums, below, n_sources, tolerance, skip_missing):
    for s in range(n_sources):
        if not (below[s] == 0 and abs(sums[s] - present[s]) <= tolerance):
            return NOT_A_DISTRIBUTION, s
        if present[s] == 0 and not skip_missing:
            return ABSENT, s
    return NOBODY, 0


@kernel
def check_sample(present, sums, below, n_sources, tolerance, skip_missing):
    """(status, source, exact): what is wrong with a sample, if anything, and with which source.

    ``exact`` says that the sources' sums differ from one by no more than rounding.  Sources that are absent, by
    padding or by NaN, sum to 0 and are present 0 times.
    """
    bound, rounding = sums.dtype.type(tolerance), sums.dtype.type(16 * np.finfo(sums.dtype).eps)
    count = spread = beyond = inexact = negative = zero = sums.dtype.type(0)
    for s in range(present.shape[0]):
        off = abs(sums[s] - present[s])
        count += present[s]
        negative += below[s]
        spread += off  # NaN shows here
        beyond += off - bound if off > bound else zero
        inexact += off - rounding if off > rounding else zero
    good = spread == spread and beyond == 0 and negative == 0
    if not good or count == 0 or (count < n_sources and not skip_missing):
        status, source = _find_fault(present, sums, below, n_sources, tolerance, skip_missing)
        return status, source, False
    return FINE, 0, inexact == 0


@kernel
def renormalise_sample(scores, by_class, present, sums):
    """Scale every source to sum one."""
    for s in range(present.shape[0]):
        if present[s] != 0:
            factor = present[s] / sums[s]
            if by_class:
                for l in range(scores.shape[0]):
                    scores[l, s] *= factor
            else:
                for l in range(scores.shape[1]):
                    scores[s, l] *= factor
