"""From the caller's memory to a small group of samples in cache, checked and summed on the way.

A group of samples is read source by source, so that memory is walked in long runs, once.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from veridical._kernels.arguments import Layout as Layout  # caches of earlier versions look for it here
from veridical._kernels.jit import inner
from veridical._kernels.layouts import SOURCES_AT_ONCE, clear_source, scale_source, store_source, sum_sample
from veridical._kernels.prefetch import prefetch

#: Rows in cache are padded to a multiple of so many numbers, so that unrolled vector loops have no remainder.
_SOURCES_IN_ROW, _CLASSES_IN_ROW = 16, 64

#: A group of samples in cache.  ``scores`` is (group, sources, classes) or (group, classes, sources), padded;
#: ``totals`` (group, classes) is their sum over sources; the others are (group, sources): 1 where a source is
#: present, the sum of its scores, and the sum of its negative scores.
Group = namedtuple("Group", "scores totals present sums below")


def padded_shape(n_sources, n_classes, by_class):
    """(sources, classes) of a sample in cache."""
    if by_class is None:
        return -(-n_sources // SOURCES_AT_ONCE) * SOURCES_AT_ONCE, -(-n_classes // _CLASSES_IN_ROW) * _CLASSES_IN_ROW
    return -(-n_sources // _SOURCES_IN_ROW) * _SOURCES_IN_ROW, n_classes


def allocate_group(size, n_sources, n_classes, by_class, dtype):
    """Memory for ``size`` samples."""
    sources, classes = padded_shape(n_sources, n_classes, by_class)
    return Group(
        scores=np.zeros((size, sources, classes) if by_class is None else (size, classes, sources), dtype),
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
def _clear_absent(size, s, by_class, group):
    for i in range(size):
        if group.present[i, s] == 0:
            clear_source(group.scores[i], by_class, s)
            group.sums[i, s] = group.below[i, s] = 0


@inner
def load_group(flat, layout, first, size, by_class, group):
    """Read ``size`` samples of every source, from sample ``first`` on, into ``group``."""
    for i in range(size):
        for l in range(layout.n_classes):
            group.totals[i, l] = 0
    for s in range(layout.n_sources):
        start = layout.start + s * layout.source_stride + first * layout.sample_stride
        _prefetch_next_group(flat, layout, start + size * layout.sample_stride, size)
        n_absent = _mark_present(flat, layout, start, size, s, group)
        store_source(group, by_class, s, flat, start, layout.sample_stride, size, layout.n_classes)
        if n_absent > 0:
            _clear_absent(size, s, by_class, group)
    for i in range(size):
        sum_sample(group.scores[i], by_class, group.totals[i], group.sums[i], group.below[i])


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
def renormalise_sample(scores, by_class, present, sums):
    """Scale every source to sum one."""
    for s in range(present.shape[0]):
        if present[s] != 0:
            scale_source(scores, by_class, s, present[s] / sums[s])
