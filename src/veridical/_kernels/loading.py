"""From the caller's memory to a small block in cache: conversion, softmax, checks, the sum that decides labels.

A group of samples is read source by source, so that memory is walked in long runs, once.  In cache a sample
lies in one of two orders, whichever lets the inner loops run over many neighbouring numbers:

- by source: row s holds source s's vector, padded with classes of score zero;
- by class: row l holds all sources' scores of class l, padded with absent sources.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from veridical._kernels.elementary import exp_in_place
from veridical._kernels.jit import kernel
from veridical._kernels.prefetch import prefetch

#: Rows in cache are padded to a multiple of so many numbers, so that unrolled vector loops have no remainder.
_SOURCES_IN_ROW, _CLASSES_IN_ROW = 16, 64
#: Laid out by source, sources are padded to a multiple of this, and taken so many at a time.
SOURCES_AT_ONCE = 4
#: How many rows ahead memory is asked for.
_AHEAD = 2

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
def _padded(n, multiple):
    return (n + multiple - 1) // multiple * multiple


@kernel
def allocate_group(size, n_sources, n_classes, by_class, like):
    """Room for ``size`` samples in the dtype of ``like``."""
    sources = _padded(n_sources, _SOURCES_IN_ROW if by_class else SOURCES_AT_ONCE)
    classes = n_classes if by_class else _padded(n_classes, _CLASSES_IN_ROW)
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
        at = np.uintp(start + i * layout.sample_stride)
        for l in range(n_classes):
            rows[i, l] = flat[at + np.uintp(l * layout.class_stride)]


@kernel
def _is_absent(memory, at, n_classes):
    """A source says that it has nothing to say about a sample by a row of NaN."""
    if memory[at] == memory[at]:
        return False
    for l in range(n_classes):
        if memory[at + np.uintp(l)] == memory[at + np.uintp(l)]:
            return False
    return True


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
def _store_by_class(memory, start, size, n_classes, s, group):
    """Source ``s`` of ``size`` samples, whose rows follow each other in ``memory``, into column ``s`` of each block.

    Indices into ``memory`` are unsigned throughout: a signed one could be negative for all the compiler knows, and
    every access would be checked for that.
    """
    scores = group.scores
    for i in range(size):
        at = np.uintp(start + i * n_classes)
        if group.present[i, s] != 0:
            for l in range(n_classes):
                scores[i, l, s] = memory[at + np.uintp(l)]
        else:
            for l in range(n_classes):
                scores[i, l, s] = 0


@kernel
def _store_by_source(memory, start, size, n_classes, s, group):
    """The same into row ``s`` of each block, and the sums over classes and sources on the way."""
    scores, totals = group.scores, group.totals
    zero = memory.dtype.type(0)
    for i in range(size):
        at = np.uintp(start + i * n_classes)
        total = negative = zero
        if group.present[i, s] != 0:
            for l in range(n_classes):
                x = memory[at + np.uintp(l)]
                scores[i, s, l] = x
                totals[i, l] += x
                total += x
                negative += x if x < zero else zero
        else:
            for l in range(n_classes):
                scores[i, s, l] = zero
        group.sums[i, s] = total
        group.below[i, s] = negative


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
    """Ask for the rows of source ``s`` in the next group, so that they have arrived when it is their turn."""
    start = layout.start + s * layout.source_stride + (first + size) * layout.sample_stride
    prefetch(flat, start, start + (size - 1) * layout.sample_stride + layout.n_classes * layout.class_stride)


@kernel
def _store(memory, start, size, n_classes, s, by_class, group):
    if by_class:
        _store_by_class(memory, start, size, n_classes, s, group)
    else:
        _store_by_source(memory, start, size, n_classes, s, group)


@kernel
def load_group(flat, layout, first, kind, by_class, group, rows):
    """Read ``rows.shape[0]`` samples of every source, from sample ``first`` on, into ``group``."""
    size, n_classes = rows.shape
    as_it_is = kind == PROBS and layout.class_stride == 1 and layout.sample_stride == n_classes
    buffer = rows.reshape(rows.size)
    group.totals[:] = 0
    for s in range(layout.n_sources):
        _prefetch_ahead(flat, layout, first, size, s)
        start = layout.start + s * layout.source_stride + first * layout.sample_stride
        if as_it_is:
            for i in range(size):
                group.present[i, s] = 0 if _is_absent(flat, np.uintp(start + i * n_classes), n_classes) else 1
            _store(flat, start, size, n_classes, s, by_class, group)
        else:
            _read_rows(flat, start, layout, rows)
            for i in range(size):
                group.present[i, s] = 0 if _is_absent(buffer, np.uintp(i * n_classes), n_classes) else 1
            if kind == LOGITS:
                _softmax_in_place(rows)
            elif kind == LOG_PROBS:
                exp_in_place(buffer)
            _store(buffer, 0, size, n_classes, s, by_class, group)
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
