"""Truth discovery against an average, a researcher's loop, and its own limits.

Run ``python benchmarks/truth.py``; it prints one table a section.  Figures are ratios in the same process, best of
several; the first compile and the memory are measured in processes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from timing import best_ratio, best_seconds

import veridical as vd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from naive import discover_by_numpy

#: (S, N, L), the ratio to stay below, the ratio to aim at.
AGAINST_MEAN = [((50, 5000, 1000), 1.5, 1.0), ((100, 10000, 100), 2.5, 1.2), ((100, 10000, 10), 6.0, 3.0)]

_FIRST_CALL = """
import time, numpy as np, veridical as vd
probs = np.full((3, 4, 5), 0.2, dtype=np.float32)
start = time.perf_counter(); vd.discover(probs); print(time.perf_counter() - start)
"""

_MEMORY = """
import re, sys, numpy as np, veridical as vd
def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
probs = np.full((20, int(sys.argv[2]), 10), 0.1, dtype=sys.argv[1])
vd.discover(probs[:, :100])
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before = peak()
truth = vd.discover(probs)
outputs = sum(getattr(truth, f).nbytes for f in ("probs", "reliability", "hv", "prediction", "n_iter", "converged"))
print((peak() - before - outputs) / 2**20)
"""


def ensemble(n_sources: int, n_samples: int, n_classes: int) -> np.ndarray:
    """Sources that scatter around a common opinion, in float32."""
    rng = np.random.default_rng(0)
    opinion = 3 * rng.standard_normal((n_samples, n_classes), dtype=np.float32)
    probs = np.empty((n_sources, n_samples, n_classes), np.float32)
    for source in probs:
        scores = np.exp(opinion + rng.standard_normal((n_samples, n_classes), dtype=np.float32))
        np.divide(scores, scores.sum(axis=1, keepdims=True), out=source)
    return probs


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def against_mean() -> Table:
    """Everything that discover returns, divided by one NumPy average of the same array."""
    table = _table("Time / probs.mean(axis=0)", "S, N, L", "ratio", "must", "aim", "1 thread", "scaling", "ms")
    for shape, must, aim in AGAINST_MEAN:
        probs = ensemble(*shape)
        ratio, ours, theirs = best_ratio(lambda p=probs: vd.discover(p), lambda p=probs: p.mean(axis=0))
        single = best_seconds(lambda p=probs: vd.discover(p, n_threads=1))
        double = best_seconds(lambda p=probs: vd.discover(p, n_threads=2))
        table.add_row(
            str(shape), f"{ratio:.2f}", f"{must}", f"{aim}", f"{single / theirs:.2f}", f"{single / double:.2f}",
            f"{ours * 1e3:.1f}",
        )  # fmt: skip
    return table


def against_loop() -> Table:
    """A loop over samples with NumPy inside, on as many samples as it does in reasonable time."""
    table = _table("Times faster than a NumPy loop over samples", "S, N, L", "faster", "must")
    for (n_sources, _, n_classes), _, _ in AGAINST_MEAN:
        n_samples = 2000 if n_classes < 1000 else 500
        probs = ensemble(n_sources, n_samples, n_classes)
        slowdown, *_ = best_ratio(lambda p=probs: discover_by_numpy(p), lambda p=probs: vd.discover(p), repeats=3)
        table.add_row(str((n_sources, n_samples, n_classes)), f"{slowdown:.0f}", "30")
    return table


def limits() -> Table:
    """One sample at a time, memory beyond the outputs, the first call's compile."""
    table = _table("Limits", "what", "figure", "must")
    one = ensemble(20, 1, 1000)
    table.add_row(
        "one sample, S = 20, L = 1000", f"{best_seconds(lambda: vd.discover(one), 2000) * 1e6:.0f} µs", "200 µs"
    )
    for dtype in ("float32", "float16"):
        for n_samples in (100_000, 1_000_000):
            extra = _measure(_MEMORY, dtype, str(n_samples))
            table.add_row(f"memory beyond outputs, {dtype}, N = {n_samples:,}", f"{extra:.0f} MB", "64 MB")
    with tempfile.TemporaryDirectory() as cache:
        for what in ("first call ever (compiles)", "first call of a later process"):
            table.add_row(what, f"{_measure(_FIRST_CALL, NUMBA_CACHE_DIR=cache):.1f} s", "")
    return table


def _measure(program: str, *arguments: str, **environment: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env={**os.environ, **environment}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return float(done.stdout)


if __name__ == "__main__":
    console = Console()
    started = time.perf_counter()
    for section in (against_mean, against_loop, limits):
        console.print(section())
    console.print(f"{time.perf_counter() - started:.0f} s in all, {os.cpu_count()} cores")
