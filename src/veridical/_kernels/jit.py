"""How kernels are compiled, and when a compiled kernel on disk is still the right one.

Kernels release the GIL and run serially: parallelism is a matter of handing blocks of samples to a
thread pool (:mod:`veridical._parallel`), which keeps results independent of the number of threads and is
safe under fork, several Python threads, and Dask.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Reordering and fusing of sums is allowed, so that reductions vectorise; NaN and infinity keep their
#: meaning, because the loaders recognise bad input by them.
RELAXED = {"reassoc", "contract", "arcp", "nsz"}


def _fingerprint() -> str:
    """Hash of every kernel's source."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _fingerprint()


def _compile(function: _Function, **options: Any) -> _Function:
    try:
        dispatcher = numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
    except RuntimeError:
        # Neither the package nor the user's cache directory can be written: compile in memory.
        dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    # Numba stamps a cached kernel with its own file's date only, so a change in a kernel it inlines would
    # go unnoticed.  The stamp is replaced by a hash over all kernels.
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _SOURCES
    return dispatcher  # type: ignore[no-any-return]


def kernel(function: _Function) -> _Function:
    """Compile ``function``; sums may be reordered and multiplications fused into them."""
    return _compile(function, fastmath=RELAXED)


def exact_kernel(function: _Function) -> _Function:
    """Compile ``function`` with every floating-point operation in the order it is written."""
    return _compile(function, fastmath=False)  # unset, it would be inherited from a relaxed caller
