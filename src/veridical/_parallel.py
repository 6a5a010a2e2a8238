"""Blocks of work on a thread pool: the only parallelism in the library.

Kernels release the GIL, so Python threads are enough.  Blocks are fixed by the size of the data, never by the
number of threads, so results are the same bytes whatever the number.  The pool belongs to the process that made
it: after a fork the child makes its own.

While blocks run on the pool, BLAS is held to one thread: OpenBLAS starts threads of its own for a dot product of more
than 10,000 numbers, and those of several blocks would fight for the same cores.
"""

from __future__ import annotations

import operator
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from veridical.errors import ParameterError, shown

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")

#: Environment variable that sets the default number of threads, for schedulers that hand out cores themselves.
THREADS_VARIABLE = "VERIDICAL_NUM_THREADS"

#: How many threads kernels use inside a Dask worker, which runs several tasks at a time, unless told otherwise.
THREADS_IN_WORKERS = 1


class _SingleThreadedBLAS(AbstractContextManager[None]):
    """Context in which BLAS uses one thread.

    The limit belongs to the process.  Where several threads enter, the first one sets it and the last one to leave
    restores what was there before.  OpenBLAS ignores other threads once the main thread has set a number: then the
    next thread that can restore it does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        #: BLAS libraries and their numbers of threads, to be restored.
        self._original: list[tuple[Any, int]] = []
        self._libraries: list[Any] = []
        self._includes_scipy = False

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._find_libraries()
                self._original = self._original or [(blas, blas.get_num_threads()) for blas in self._libraries]
                for blas in self._libraries:
                    blas.set_num_threads(1)
            self._n_inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                for blas, n_threads in self._original:
                    blas.set_num_threads(n_threads)
                if all(blas.get_num_threads() == n_threads for blas, n_threads in self._original):
                    self._original = []

    def _find_libraries(self) -> None:
        """NumPy's BLAS, and SciPy's once it is imported, which brings its own."""
        from threadpoolctl import ThreadpoolController  # small inputs never get here

        includes_scipy = "scipy.linalg" in sys.modules
        if not self._libraries or includes_scipy != self._includes_scipy:
            self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            self._includes_scipy = includes_scipy


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()
_blas = _SingleThreadedBLAS()


def single_threaded_blas() -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread, so that sums do not depend on the number of cores."""
    return _blas


def _forget_pools() -> None:
    """In a forked child the threads are gone, and the locks may be held by one of them."""
    global _pools_lock, _blas
    _pools_lock = threading.Lock()
    _blas = _SingleThreadedBLAS()
    _pools.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_pools)


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads to use: as asked, else from the environment, else the cores this process may use."""
    if n_threads is None:
        asked = os.environ.get(THREADS_VARIABLE, "")
        if not asked:
            return THREADS_IN_WORKERS if _in_dask_worker() else _available_cores()
        if not asked.isdecimal() or int(asked) < 1:
            raise ParameterError(f"{THREADS_VARIABLE} is {asked!r}; set it to a whole number of at least 1.")
        return int(asked)
    try:
        number = 0 if isinstance(n_threads, bool) else operator.index(n_threads)
    except Exception:  # an object may raise anything
        number = 0
    if number < 1:
        raise ParameterError(
            f"n_threads is {shown(n_threads)}; give a whole number of at least 1, or None for all cores."
        )
    return number


def _in_dask_worker() -> bool:
    """Whether this thread runs a task of a Dask worker; Dask is not imported to find out."""
    module: Any = sys.modules.get("distributed.worker")
    if module is None:
        return False
    try:
        module.get_worker()
    except ValueError:
        return False
    return True


def _available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _pool(n_threads: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if n_threads not in _pools:
            _pools[n_threads] = ThreadPoolExecutor(n_threads, thread_name_prefix="veridical")
        return _pools[n_threads]


def run_blocks(
    work: Callable[[_Block], _Result], blocks: Sequence[_Block], n_threads: int | None = None
) -> list[_Result]:
    """``[work(block) for block in blocks]``, in order, several at a time."""
    if len(blocks) < 2 and n_threads is None and THREADS_VARIABLE not in os.environ:
        return [work(block) for block in blocks]  # the system is not asked for its cores
    workers = min(resolve_threads(n_threads), len(blocks))
    if workers <= 1 or threading.current_thread().name.startswith("veridical"):
        # Work started from within a block stays in its thread: waiting for the pool from inside it can deadlock.
        return [work(block) for block in blocks]
    with single_threaded_blas():
        return list(_pool(workers).map(work, blocks))
