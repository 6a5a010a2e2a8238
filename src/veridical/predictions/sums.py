"""How far from one the sums of probabilities may be: by precision, and by the digits of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.predictions.arrays import Array

#: How far from one a distribution's sum may be, by the precision its numbers were stored in: at all, and more for each
#: class, whose number is rounded (in half precision to a multiple of 2**-24) and added up in single precision.
SUM_TOLERANCE = {
    "bfloat16": (1.6e-2, 2**-25),
    "float16": (2e-3, 2**-25),
    "float32": (1e-4, 2**-25),
    "float64": (1e-5, 2**-54),
}
#: Digits that count as rounding, and the most that it may take a sum away from one.
_MOST_DIGITS, _LARGEST_ROUNDING = 8, 0.05


def tolerance_of(dtype: np.dtype[Any], n_classes: int = 1, stored_as: str | None = None) -> float:
    """How far from one a sum of ``n_classes`` probabilities may be.

    ``stored_as`` is "bfloat16" for numbers of that precision, which NumPy has not: their ``dtype`` is float32.
    """
    base, per_class = SUM_TOLERANCE.get(stored_as or dtype.name, SUM_TOLERANCE["float64"])
    return base + per_class * n_classes


def rounding_of(values: Array) -> float:
    """How far from one rounding may take the sums of a table's probabilities (..., L).

    Numbers below one with d digits behind the point, or d significant ones, are off by at most 10**-d / 2 each.
    """
    numbers, digits = values.ravel(), 1
    precision = np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps
    for start in range(0, len(numbers), 1 << 16):
        part = np.abs(numbers[start : start + (1 << 16)].astype(np.float64))
        part = part[np.isfinite(part) & (part > 0)]
        exponents = np.minimum(np.floor(np.log10(part)), -1)
        while digits <= _MOST_DIGITS:
            with np.errstate(over="ignore", invalid="ignore"):
                scale = 10.0 ** (digits - 1 - exponents)
                if (np.abs(np.rint(part * scale) / scale - part) <= precision * part).all():
                    break
            digits += 1
        if digits > _MOST_DIGITS:
            return 0.0
    return min(float(values.shape[-1]) / float(2 * 10**digits), _LARGEST_ROUNDING)
