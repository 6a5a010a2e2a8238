"""Logits and log-probabilities as probabilities."""

from __future__ import annotations

import numpy as np

from veridical._kernels.arguments import LANES
from veridical._kernels.bits import bits_of, float_of
from veridical._kernels.elementary import exp, exp_in_place
from veridical._kernels.jit import inner, kernel
from veridical._kernels.lanes import all_lanes, load, select, spread, store
from veridical._kernels.loading import is_absent, read_lanes

#: About so many numbers are converted at a time: a long run for vector instructions that stays in the first cache.
_NUMBERS_AT_ONCE = 2048


@inner
def _largest_if_finite(row, bits):
    """The largest of some floats, or NaN where one of them is not finite.

    Their ``bits`` are compared, as integers in the same order: those of negative floats are counted backwards.
    The compiler makes vector instructions of that, and none of the largest float.
    """
    integer = bits.dtype.type
    sign, magnitude = integer(8 * bits.itemsize - 1), integer((1 << (8 * bits.itemsize - 1)) - 1)
    largest, smallest = integer(-magnitude - 1), magnitude
    for l in range(bits.shape[0]):
        x = integer(bits[l] ^ integer(integer(bits[l] >> sign) & magnitude))
        largest = x if x > largest else largest
        smallest = x if x < smallest else smallest
    infinity = bits_of(row.dtype.type(np.inf))
    if largest >= infinity or smallest <= -infinity - 1:
        return row.dtype.type(np.nan)
    return float_of(integer(largest ^ integer(integer(largest >> sign) & magnitude)))


@inner
def _read_row(flat, at, are_logits, row, bits):
    """Copy a row from ``flat[at]`` on; logits less the largest, or NaN where one is not finite."""
    for l in range(row.shape[0]):
        row[l] = flat[at + np.uintp(l)]
    if are_logits:
        largest = _largest_if_finite(row, bits)
        for l in range(row.shape[0]):
            row[l] -= largest


@inner
def _normalise(row):
    """Divide by the sum, which is taken in float64: its error would otherwise grow with the number of classes."""
    total = 0.0
    for l in range(row.shape[0]):
        total += row[l]
    scale = row.dtype.type(1.0 / total)
    for l in range(row.shape[0]):
        row[l] *= scale


@inner
def _position(layout, s, i):
    return np.uintp(layout.start + s * layout.source_stride + i * layout.sample_stride)


@kernel
def probabilities_into(flat, layout, are_logits, out, bits, memory):
    """``out`` (S, N, L) becomes the softmax of the scores that ``layout`` describes, or their exponentials.

    ``bits`` is ``out`` seen as integers, ``memory`` is ``out`` in one dimension.  A row of NaN stays one: the source is
    absent.  A row of logits of which some are not finite becomes (0, NaN, NaN, ...), which is neither absent nor a
    distribution.
    """
    n_samples, n_classes = layout.n_samples, layout.n_classes
    rows_at_once = _NUMBERS_AT_ONCE // n_classes + 1
    for s in range(layout.n_sources):
        for first in range(0, n_samples, rows_at_once):
            stop = first + rows_at_once if first + rows_at_once < n_samples else n_samples
            for i in range(first, stop):
                _read_row(flat, _position(layout, s, i), are_logits, out[s, i], bits[s, i])
            offset = s * n_samples
            exp_in_place(memory[(offset + first) * n_classes : (offset + stop) * n_classes])
            if are_logits:
                for i in range(first, stop):
                    _normalise(out[s, i])
                    if out[s, i, 0] != out[s, i, 0] and not is_absent(flat, _position(layout, s, i), n_classes):
                        out[s, i, 0] = 0


@inner
def _softmax_of_lanes(columns):
    """The softmax of each lane of ``columns`` (L, lanes), NaN where a number is not finite; returns where that is."""
    zero = columns.dtype.type(0)
    largest, doubtful = load(columns, 0), spread(zero)
    for l in range(columns.shape[0]):
        x = load(columns, l)
        largest = select(x > largest, x, largest)
        doubtful = doubtful + x * zero  # 0 for finite numbers, NaN for all others
    total = spread(zero)
    for l in range(columns.shape[0]):
        exponential = exp(load(columns, l) - largest + doubtful)
        total = total + exponential
        store(columns, l, exponential)
    for l in range(columns.shape[0]):
        store(columns, l, load(columns, l) * (columns.dtype.type(1) / total))
    return doubtful == zero


@kernel
def softmax_of_few_classes(flat, layout, out, columns):
    """``out`` (S, N, L) becomes the softmax of the logits that ``layout`` describes.

    As :func:`probabilities_into`, for rows that are too short for vector instructions: samples stand in the lanes of
    ``columns`` (L, LANES).
    """
    n_samples, n_classes = layout.n_samples, layout.n_classes
    for s in range(layout.n_sources):
        for first in range(0, n_samples, LANES):
            size = n_samples - first if n_samples - first < LANES else LANES
            start = layout.start + s * layout.source_stride + first * layout.sample_stride
            read_lanes(flat, start, layout.sample_stride, size, columns)
            all_finite = all_lanes(_softmax_of_lanes(columns))
            for i in range(size):
                for l in range(n_classes):
                    out[s, first + i, l] = columns[l, i]
            if not all_finite:
                for i in range(size):
                    x = out[s, first + i, 0]
                    if x != x and not is_absent(flat, _position(layout, s, first + i), n_classes):
                        out[s, first + i, 0] = 0
