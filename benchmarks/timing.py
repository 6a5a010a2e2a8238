"""How benchmarks measure: in one process, best of several, as ratios against a peer timed beside it."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Shortest of several runs, after one that does not count."""
    work()
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def best_ratio(work: Callable[[], object], peer: Callable[[], object], repeats: int = 5) -> tuple[float, float, float]:
    """(ratio, seconds of ``work``, seconds of ``peer``), the two run alternately so that both see the same machine."""
    work()
    peer()
    ours = theirs = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        middle = time.perf_counter()
        peer()
        ours = min(ours, middle - start)
        theirs = min(theirs, time.perf_counter() - middle)
    return ours / theirs, ours, theirs
