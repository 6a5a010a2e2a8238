"""Logits and log-probabilities as probabilities."""

from __future__ import annotations

import numpy as np

from veridical._kernels.bits import bits_of, float_of
from veridical._kernels.elementary import exp_in_place
from veridical._kernels.jit import inner, kernel
from veridical._kernels.loading import is_absent

#: About so many numbers are converted at a time: a long run for vector instructions that stays in the first cache.
_NUMBERS_AT_ONCE = 2048
#: With few classes, so many samples are laid out by class: the loops then run over samples.
SAMPLES_AT_ONCE = 256


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
def _softmax_by_class(columns, scale):
    """The softmax of each column of ``columns`` (L, samples), short of the division: ``scale`` is what to multiply by.

    It is NaN where a number is not finite: 0 x is zero for a finite number and NaN for any other.
    """
    n_classes, size = columns.shape
    zero = columns.dtype.type(0)
    for i in range(size):
        scale[i] = columns[0, i]
    for l in range(n_classes):
        for i in range(size):
            x = columns[l, i]
            scale[i] = (x if x > scale[i] else scale[i]) + x * zero
    for l in range(n_classes):
        for i in range(size):
            columns[l, i] -= scale[i]
        exp_in_place(columns[l])
    for i in range(size):
        scale[i] = columns[0, i]
    for l in range(1, n_classes):
        for i in range(size):
            scale[i] += columns[l, i]
    for i in range(size):
        scale[i] = 1 / scale[i]


@kernel
def softmax_of_few_classes(flat, layout, out, columns, scale):
    """``out`` (S, N, L) becomes the softmax of the logits that ``layout`` describes.

    As :func:`probabilities_into`, for rows that are too short for vector instructions: a batch of samples is laid out
    by class in ``columns`` (L, SAMPLES_AT_ONCE), and ``scale`` holds a number for each.
    """
    n_samples, n_classes = layout.n_samples, layout.n_classes
    for s in range(layout.n_sources):
        for first in range(0, n_samples, SAMPLES_AT_ONCE):
            size = n_samples - first if n_samples - first < SAMPLES_AT_ONCE else SAMPLES_AT_ONCE
            for i in range(size):
                at = _position(layout, s, first + i)
                for l in range(n_classes):
                    columns[l, i] = flat[at + np.uintp(l)]
            _softmax_by_class(columns, scale)
            for i in range(size):
                for l in range(n_classes):
                    out[s, first + i, l] = columns[l, i] * scale[i]
                if scale[i] != scale[i] and not is_absent(flat, _position(layout, s, first + i), n_classes):
                    out[s, first + i, 0] = 0
