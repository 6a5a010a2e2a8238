"""A saved calibrator in production: from the start of Python to the first answer, and the latency of small requests.

Run ``python benchmarks/serving.py``.  CPU seconds are those of a process of its own, beside those of importing NumPy;
latencies are medians and 99% quantiles of many requests, as ratios to ``np.mean`` and ``np.log`` on the same array,
timed in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import veridical as vd

METHODS = ("temperature", "spline", "ptde-kde")
#: CPU seconds from the start of Python to the first answer, with and without compiled kernels on disk.
MOST_SECONDS, MOST_SECONDS_COLD = 0.6, 2.0
#: How many times ``np.mean`` and ``np.log`` a request may take.
MOST_RATIO = 5.0
SHAPES = ((5, 10), (20, 10), (5, 1000), (20, 1000))
BATCHES = (1, 16)

_FIRST_ANSWER = """
import sys
import numpy as np
import veridical as vd
calibrator = vd.load_calibrator(sys.argv[1])
calibrator.predict_all(np.load(sys.argv[2]))
"""
_ASK = """
import re, time
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(time.process_time(), int(peak) / 1024)
"""


def ensemble(n_sources: int, n_samples: int, n_classes: int, seed: int = 0) -> np.ndarray:
    """Sources that scatter around a common opinion, in float32."""
    rng = np.random.default_rng(seed)
    scores = 3 * rng.standard_normal((n_samples, n_classes)) + rng.standard_normal((n_sources, n_samples, n_classes))
    scores = np.exp(scores)
    return (scores / scores.sum(axis=-1, keepdims=True)).astype(np.float32)


def fitted(method: str, n_sources: int, n_classes: int, n_samples: int = 2000) -> vd.calibrate.Calibrator:
    """A calibrator for labels drawn from the mean."""
    probs = ensemble(n_sources, n_samples, n_classes, seed=1)
    mean = probs.mean(axis=0, dtype=np.float64)
    drawn = (mean.cumsum(axis=1) < np.random.default_rng(2).random((n_samples, 1))).sum(axis=1)
    return vd.calibrators()[method]().fit(probs, np.minimum(drawn, n_classes - 1))


def cpu_seconds(program: str, *arguments: str, cache: str | None = None) -> tuple[float, float]:
    """CPU seconds and megabytes of memory of a process; the least of three."""
    environment = {**os.environ} | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    runs = []
    for _ in range(3):
        command = [sys.executable, "-c", program + _ASK, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        runs.append(tuple(map(float, done.stdout.split())))
    return min(runs)


def first_answers(console: Console) -> None:
    """CPU seconds to the first answer for one sample, S = 5, L = 10."""
    table = Table(title="From the start of Python to the first answer, one sample, S = 5, L = 10")
    columns = ("method", "CPU s", "limit", "no cache: CPU s", "limit", "MB", "x import numpy")
    for column in columns:
        table.add_column(column, justify="left" if column == "method" else "right")
    least, memory = cpu_seconds("import numpy\n")
    table.add_row("import numpy", f"{least:.2f}", "", "", "", f"{memory:.0f}", "1.00")
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "one.npy", ensemble(5, 1, 10))
        for method in METHODS:
            fitted(method, 5, 10).save(Path(folder) / "calibrator.json")
            files = (str(Path(folder) / "calibrator.json"), str(Path(folder) / "one.npy"))
            warm, memory = cpu_seconds(_FIRST_ANSWER, *files)
            cold, _ = cpu_seconds(_FIRST_ANSWER, *files, cache=str(Path(folder) / "empty"))
            limits = f"{MOST_SECONDS:.1f}", f"{MOST_SECONDS_COLD:.1f}"
            ratio = f"{warm / least:.2f}"
            table.add_row(method, f"{warm:.2f}", limits[0], f"{cold:.2f}", limits[1], f"{memory:.0f}", ratio)
    console.print(table)


def latencies(work: Callable[[], object], peer: Callable[[], object], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds of the two, one after the other, ``n`` times."""
    ours, theirs = np.empty(n), np.empty(n)
    for _ in range(20):
        work()
        peer()
    for i in range(n):
        start = time.perf_counter()
        work()
        middle = time.perf_counter()
        peer()
        ours[i], theirs[i] = middle - start, time.perf_counter() - middle
    return 1e6 * ours, 1e6 * theirs


def small_requests(console: Console) -> None:
    """Latency of ``predict_confidence`` and ``predict_proba``."""
    table = Table(title=f"Latency in microseconds, and times np.mean + np.log on the same array (limit {MOST_RATIO:g})")
    columns = ("S", "L", "N", "method", "call", "p50", "p99", "mean+log p50", "p99", "x p50", "x p99")
    for column in columns:
        table.add_column(column, justify="left" if column in ("method", "call") else "right")
    for n_sources, n_classes in SHAPES:
        for n_samples in BATCHES:
            probs = ensemble(n_sources, n_samples, n_classes)
            n = 2000 if probs.size < 20_000 else 300
            for method in METHODS:
                calibrator = fitted(method, n_sources, n_classes, 500 if n_classes > 100 else 2000)
                for call in ("predict_confidence", "predict_proba"):
                    work = getattr(calibrator, call)
                    ours, theirs = latencies(
                        lambda work=work, probs=probs: work(probs),
                        lambda probs=probs: (np.mean(probs, axis=0), np.log(probs)),
                        n,
                    )
                    at = [np.quantile(times, q) for times in (ours, theirs) for q in (0.5, 0.99)]
                    ratios = at[0] / at[2], at[1] / at[3]
                    cells = [f"{value:.0f}" for value in at] + [f"{ratio:.1f}" for ratio in ratios]
                    table.add_row(str(n_sources), str(n_classes), str(n_samples), method, call, *cells)
    console.print(table)


if __name__ == "__main__":
    console = Console(width=120)
    first_answers(console)
    small_requests(console)
