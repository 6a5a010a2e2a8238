"""Blocks of work on a thread pool: the only parallelism in the library.

Kernels release the GIL, so Python threads are enough.  Blocks are fixed by the size of the data, never by the
number of threads, so results are the same bytes whatever the number.  The pool belongs to the process that made
it: after a fork the child makes its own.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from veridical.errors import ParameterError, shown

_Block = TypeVar("_Block")
_Result = TypeVar("_Result")

#: Environment variable that sets the default number of threads, for schedulers that hand out cores themselves.
THREADS_VARIABLE = "VERIDICAL_NUM_THREADS"

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _forget_pools() -> None:
    """In a forked child the threads are gone, and the lock may be held by one of them."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_pools)


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads to use: as asked, else from the environment, else the cores this process may use."""
    if n_threads is None:
        asked = os.environ.get(THREADS_VARIABLE, "")
        if not asked:
            return _available_cores()
        if not asked.isdecimal() or int(asked) < 1:
            raise ParameterError(f"{THREADS_VARIABLE} is {asked!r}; set it to a whole number of at least 1.")
        return int(asked)
    try:
        number = 0 if isinstance(n_threads, bool) else operator.index(n_threads)
    except TypeError:
        number = 0
    if number < 1:
        raise ParameterError(
            f"n_threads is {shown(n_threads)}; give a whole number of at least 1, or None for all cores."
        )
    return number


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
    workers = min(resolve_threads(n_threads), len(blocks))
    if workers <= 1 or threading.current_thread().name.startswith("veridical"):
        # Work started from within a block stays in its thread: waiting for the pool from inside it can deadlock.
        return [work(block) for block in blocks]
    return list(_pool(workers).map(work, blocks))
