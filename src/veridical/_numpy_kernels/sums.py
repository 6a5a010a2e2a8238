"""Sums and maxima of a few rows by products with ones and by ``argmax``.

NumPy's ``dot`` and ``argmax`` take a fraction of the microseconds that its reductions need before they read a number.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@functools.lru_cache(maxsize=256)
def ones(n: int, dtype: Any = np.float64) -> Array:
    """A vector of ones that nobody writes to."""
    vector = np.ones(n, dtype)
    vector.flags.writeable = False
    return vector


@functools.lru_cache(maxsize=256)
def row_starts(n_rows: int, n_columns: int) -> Array:
    """Where each row starts in the memory of an array of that shape."""
    starts = np.arange(0, n_rows * n_columns, n_columns)
    starts.flags.writeable = False
    return starts


def row_sums(rows: Array) -> Array:
    """(N,) sums of (N, L), in float64."""
    sums: Array = rows.astype(np.float64, copy=False).dot(ones(rows.shape[1]))
    return sums


def smallest(values: Array) -> float:
    """The smallest number, or NaN where there is one; infinity of no numbers."""
    return float(values.item(values.argmin())) if values.size else np.inf
