"""NumPy twins of the kernels that apply a calibrator, for inputs so small that loading a compiler takes longer.

A server that answers one sample at a time needs neither Numba nor a cache of compiled kernels.  Which of the two is
used depends on the size of the input and on how the calibrator was loaded, so that the same input always has the same
result.  A twin works in float64 whatever the dtype of its input: labels are those of the kernels exactly, float64
values agree to 1e-12 and float32 values to 1e-5 (HV relative to its size; both as far as the sum of squares in a sample
is representable).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

#: An input of at most so many samples and numbers is small.
MOST_SAMPLES, MOST_NUMBERS = 64, 1 << 16


def is_small(n_samples: int, n_numbers: int) -> bool:
    """Whether an input of ``n_samples``, and ``n_numbers`` in all, is left to NumPy."""
    return n_samples <= MOST_SAMPLES and n_numbers <= MOST_NUMBERS


@functools.cache
def imported(package: str, module: str, name: str) -> Callable[..., Any]:
    """A function of one of the two packages."""
    function: Callable[..., Any] = getattr(importlib.import_module(f"veridical.{package}.{module}"), name)
    return function
