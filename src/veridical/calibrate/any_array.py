"""Predictions of calibrators for arrays of other libraries, and for predictions that are not in memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from veridical._dispatch import also_out_of_memory
from veridical.backends.foreign import also_foreign

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


def takes_any_array(method: Callable[_Parameters, _Answer]) -> Callable[_Parameters, _Answer]:
    """The method, also for blocked predictions and Dask arrays, and for PyTorch, JAX and CuPy arrays."""
    general = also_foreign("veridical.calibrate.on_arrays", 1)(also_out_of_memory(1, "X")(method))

    @functools.wraps(method)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        # What a server has is told by one look at its type.
        is_plain = len(args) == 2 and type(args[1]) is np.ndarray
        return method(*args, **kwargs) if is_plain else general(*args, **kwargs)

    return call
