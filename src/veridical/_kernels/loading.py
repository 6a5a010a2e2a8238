"""From the caller's memory to a small group of samples in cache, checked and summed on the way.

A group of samples is read source by source, so that memory is walked in long runs, once.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from veridical._kernels.arguments import LANES
from veridical._kernels.jit import inner
from veridical._kernels.lanes import gather, store
from veridical._kernels.prefetch import prefetch

#: In cache, rows are padded to a multiple of so many classes, so that unrolled vector loops have no remainder, and
#: sources, which are taken so many at a time, likewise.
_CLASSES_IN_ROW, SOURCES_AT_ONCE = 64, 4

#: A group of samples in cache.  ``scores`` is (group, sources, classes), padded;
#: ``totals`` (group, classes) is their sum over sources; the others are (group, sources): 1 where a source is
#: present, the sum of its scores, and the sum of its negative scores.
Group = namedtuple("Group", "scores totals present sums below")


def padded_shape(n_sources, n_classes):
    """(sources, classes) of a sample in cache."""
    return -(-n_sources // SOURCES_AT_ONCE) * SOURCES_AT_ONCE, -(-n_classes // _CLASSES_IN_ROW) * _CLASSES_IN_ROW


def allocate_group(size, n_sources, n_classes, dtype):
    """Memory for ``size`` samples."""
    sources, classes = padded_shape(n_sources, n_classes)
    return Group(
        scores=np.zeros((size, sources, classes), dtype),
        totals=np.zeros((size, classes), dtype),
        present=np.zeros((size, sources), dtype),
        sums=np.zeros((size, sources), dtype),
        below=np.zeros((size, sources), dtype),
    )


@inner
def is_absent(flat, at, n_classes):
    """Whether all of a source's scores for a sample are NaN: it has no prediction."""
    for l in range(n_classes):
        x = flat[at + np.uintp(l)]
        if x == x:
            return False
    return True


@inner
def _prefetch_next_group(flat, layout, start, size):
    """Ask for a source's rows in the next group, which starts at ``start``."""
    if layout.sample_stride == layout.n_classes:
        prefetch(flat, start, start + size * layout.n_classes)
    else:
        for i in range(size):
            row = start + i * layout.sample_stride
            prefetch(flat, row, row + layout.n_classes)


@inner
def _mark_present(flat, layout, start, size, s, group):
    """Note which of a source's rows are present; returns how many are absent."""
    n_absent = 0
    for i in range(size):
        absent = is_absent(flat, np.uintp(start + i * layout.sample_stride), layout.n_classes)
        group.present[i, s] = 0 if absent else 1
        n_absent += absent
    return n_absent


@inner
def _store_source(flat, start, stride, size, n_classes, s, group):
    """Read a source's vectors for ``size`` samples, and add them up; those that are absent are left out.

    Indices into ``flat`` are unsigned: signed ones could be negative for all the compiler knows, and would be checked.
    """
    scores, totals = group.scores, group.totals
    zero = scores.dtype.type(0)
    for i in range(size):
        if group.present[i, s] != 0:
            at = np.uintp(start + i * stride)
            total = negative = zero
            for l in range(n_classes):
                x = flat[at + np.uintp(l)]
                scores[i, s, l] = x
                totals[i, l] += x
                total += x
                negative += x if x < zero else zero
            group.sums[i, s] = total
            group.below[i, s] = negative


@inner
def _clear_absent(size, s, group):
    for i in range(size):
        if group.present[i, s] == 0:
            group.scores[i, s, :] = 0
            group.sums[i, s] = group.below[i, s] = 0


@inner
def load_group(flat, layout, first, size, group):
    """Read ``size`` samples of every source, from sample ``first`` on, into ``group``."""
    for i in range(size):
        for l in range(layout.n_classes):
            group.totals[i, l] = 0
    for s in range(layout.n_sources):
        start = layout.start + s * layout.source_stride + first * layout.sample_stride
        _prefetch_next_group(flat, layout, start + size * layout.sample_stride, size)
        n_absent = _mark_present(flat, layout, start, size, s, group)
        _store_source(flat, start, layout.sample_stride, size, layout.n_classes, s, group)
        if n_absent > 0:
            _clear_absent(size, s, group)


@inner
def read_lanes(flat, start, stride, size, rows):
    """Read ``size`` samples, ``stride`` numbers apart, into the lanes of ``rows`` (classes, lanes); lanes beyond that
    repeat the last sample.
    """
    for l in range(rows.shape[0]):
        if size == LANES:
            store(rows, l, gather(flat, start + l, stride))
        else:
            for i in range(LANES):
                rows[l, i] = flat[np.uintp(start + l + (i if i < size else size - 1) * stride)]


@inner
def check_sample(present, sums, below, n_sources, options):
    """(valid, exact): whether all sources are distributions, or absent where that is allowed; whether they all sum to
    one up to rounding.

    Sources that are absent, by padding or by NaN, sum to 0 and are present 0 times.
    """
    bound, rounding = sums.dtype.type(options.tolerance), sums.dtype.type(options.rounding)
    count = spread = beyond = inexact = negative = zero = sums.dtype.type(0)
    for s in range(present.shape[0]):
        off = abs(sums[s] - present[s])
        count += present[s]
        negative += below[s]
        spread += off  # NaN shows here
        beyond += off - bound if off > bound else zero
        inexact += off - rounding if off > rounding else zero
    valid = spread == spread and beyond == 0 and negative == 0
    valid = valid and count > 0 and (count == n_sources or options.skip_missing)
    return valid, inexact == 0


@inner
def renormalise_sample(scores, present, sums):
    """Scale every source to sum one."""
    for s in range(present.shape[0]):
        if present[s] != 0:
            factor = present[s] / sums[s]
            for l in range(scores.shape[1]):
                scores[s, l] *= factor
