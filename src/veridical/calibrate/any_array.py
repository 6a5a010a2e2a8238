"""Predictions of calibrators for arrays of other libraries, and for predictions that are not in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from veridical._dispatch import also_out_of_memory
from veridical.arrays.foreign import also_foreign

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


def takes_any_array(method: Callable[_Parameters, _Answer]) -> Callable[_Parameters, _Answer]:
    """The method, also for blocked predictions and Dask arrays, and for PyTorch, JAX and CuPy arrays."""
    return also_foreign("veridical.calibrate.on_arrays", 1)(also_out_of_memory(1, "X")(method))
