"""How kernels are compiled.  :mod:`veridical._kernels.disk_cache` keeps them on disk.

Kernels release the GIL and run serially: parallelism is a matter of handing blocks of samples to a
thread pool (:mod:`veridical._parallel`), which keeps results independent of the number of threads and is
safe under fork, several Python threads, and Dask.

A kernel is called from Python.  The functions it is made of are declared ``inner``: they are compiled as part of the
kernels that call them (:mod:`veridical._kernels.inner_functions`) and cannot be called from Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

from veridical._kernels.disk_cache import disk_cache
from veridical._kernels.inner_functions import INNER_OPTIONS

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Reordering and fusing of sums is allowed, so that reductions vectorise; NaN and infinity keep their
#: meaning, because the loaders recognise bad input by them.
RELAXED = {"reassoc", "contract", "arcp", "nsz"}
_OPTIONS = {"nogil": True, "error_model": "numpy"}


def _compile(function: _Function, **options: Any) -> _Function:
    dispatcher = numba.njit(**_OPTIONS, **options)(function)
    if dispatcher is not function:  # NUMBA_DISABLE_JIT leaves it as it is
        dispatcher._cache = disk_cache(function)
    return dispatcher  # type: ignore[no-any-return]


def kernel(function: _Function) -> _Function:
    """Compile ``function``; sums may be reordered and multiplications fused into them."""
    return _compile(function, fastmath=RELAXED)


def exact_kernel(function: _Function) -> _Function:
    """Compile ``function`` with every floating-point operation in the order it is written."""
    return _compile(function, fastmath=False)  # unset, it would be inherited from a relaxed caller


def inner(function: _Function) -> _Function:
    """Compile ``function`` into the kernels that call it, with sums reordered as in :func:`kernel`."""
    return numba.njit(**_OPTIONS, **INNER_OPTIONS, fastmath=RELAXED)(function)  # type: ignore[no-any-return]


def exact_inner(function: _Function) -> _Function:
    """Compile ``function`` into the kernels that call it, in the order of operations it is written."""
    return numba.njit(**_OPTIONS, **INNER_OPTIONS, fastmath=False)(function)  # type: ignore[no-any-return]


def inner_by_precision(single: Callable[[Any], Any], double: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An inner function of lanes: ``single`` for those of float32, ``double`` for those of float64."""

    def by_precision(x: Any) -> Any:
        return single(x) if x.dtype == np.float32 else double(x)

    _choose_when_compiled(by_precision, lambda x: single if x.dtype == types.float32 else double, {"contract"})
    return by_precision


def _choose_when_compiled(stub: Callable[..., Any], choose: Callable[..., Any], fastmath: set[str] | bool) -> None:
    """Have Numba compile, wherever ``stub`` is called, what ``choose`` returns for the types of the arguments."""
    if not numba.config.DISABLE_JIT:
        overload(stub, strict=False, jit_options={**_OPTIONS, **INNER_OPTIONS, "fastmath": fastmath})(choose)
