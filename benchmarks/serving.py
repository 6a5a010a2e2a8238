"""A saved calibrator in production: from the start of Python to the first answer, and the latency of small requests.

Run ``python benchmarks/serving.py``.  CPU seconds are those of a process of its own, beside those of importing NumPy;
latencies are medians and 99% quantiles of many requests, as ratios to ``np.mean`` and ``np.log`` on the same array,
timed in turn, for a calibrator as it is loaded and for one whose kernels are loaded (``load_kernels``).  Requests
during which the scheduler gave the core to another process are left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

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


def latencies(calls: Sequence[Callable[[], object]], n: int) -> np.ndarray:
    """(calls, n) microseconds of each call, in turn; NaN where the scheduler gave the core to another process."""
    times = np.empty((len(calls), n))
    for call in calls * 20:
        call()
    for i in range(n):
        for k, call in enumerate(calls):
            before = interruptions()
            start = time.perf_counter()
            call()
            times[k, i] = time.perf_counter() - start
            if interruptions() != before:
                times[k, i] = np.nan
    return 1e6 * times


def interruptions() -> int:
    """How often this thread had to leave its core; on Windows, which does not count, always 0."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


def both_ways(method: str, n_sources: int, n_classes: int) -> dict[str, vd.calibrate.Calibrator]:
    """A calibrator as a server reads it, answered by NumPy, and the same with its kernels loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calibrator.json"
        fitted(method, n_sources, n_classes, 500 if n_classes > 100 else 2000).save(path)
        return {"NumPy": vd.load_calibrator(path), "kernels": vd.load_calibrator(path).load_kernels()}


def marked(ratio: float) -> str:
    """The ratio, with a mark where it is above the limit."""
    return f"{ratio:.1f}" + (" !" if ratio > MOST_RATIO else "")


def small_requests(console: Console) -> None:
    """Latency of ``predict_confidence`` and ``predict_proba``."""
    table = Table(title=f"Latency in microseconds, and times np.mean + np.log on the same array (limit {MOST_RATIO:g})")
    columns = ("S", "L", "N", "method", "call", "by", "p50", "p99", "mean+log p50", "p99", "x p50", "x p99")
    for column in columns:
        table.add_column(column, justify="left" if column in ("method", "call", "by") else "right")
    for n_sources, n_classes in SHAPES:
        for method in METHODS:
            ways = both_ways(method, n_sources, n_classes)
            for n_samples in BATCHES:
                probs = ensemble(n_sources, n_samples, n_classes)
                for call in ("predict_confidence", "predict_proba"):
                    works = [partial(getattr(calibrator, call), probs) for calibrator in ways.values()]
                    times = latencies([*works, partial(mean_and_log, probs)], 1000 if probs.size < 20_000 else 200)
                    at = np.nanquantile(times, (0.5, 0.99), axis=1).T
                    for way, ours in zip(ways, at[:-1], strict=True):
                        cells = [f"{value:.0f}" for value in (*ours, *at[-1])] + [marked(r) for r in ours / at[-1]]
                        shape = str(n_sources), str(n_classes), str(n_samples)
                        table.add_row(*shape, method, call.removeprefix("predict_"), way, *cells)
    console.print(table)


def mean_and_log(probs: np.ndarray) -> None:
    """What the latencies are compared with."""
    np.mean(probs, axis=0)
    np.log(probs)


def from_threads(console: Console, n_threads: int = 4) -> None:
    """Median latency of single samples while other threads ask as well; answers are those of one thread."""
    table = Table(title=f"Single samples from {n_threads} threads at once, S = 5, L = 10")
    for column in ("method", "by", "p50", "mean+log p50", "x p50", "equal answers"):
        table.add_column(column, justify="left" if column in ("method", "by") else "right")
    samples = np.split(ensemble(5, 200, 10), 200, axis=1)
    for method in METHODS:
        for way, calibrator in both_ways(method, 5, 10).items():
            expected = [calibrator.predict_proba(sample) for sample in samples]

            def ask(seed: int, calibrator: vd.calibrate.Calibrator = calibrator) -> tuple[np.ndarray, list[np.ndarray]]:
                one = samples[seed]
                times = latencies([partial(calibrator.predict_proba, one), partial(mean_and_log, one)], 500)
                return times, [calibrator.predict_proba(sample) for sample in samples]

            with ThreadPoolExecutor(n_threads) as pool:
                results = list(pool.map(ask, range(n_threads)))
            ours, theirs = np.nanmedian(np.concatenate([times for times, _ in results], axis=1), axis=1)
            equal = all(np.array_equal(a, b) for _, answers in results for a, b in zip(answers, expected, strict=True))
            table.add_row(method, way, f"{ours:.0f}", f"{theirs:.0f}", marked(ours / theirs), "yes" if equal else "NO")
    console.print(table)


if __name__ == "__main__":
    console = Console(width=120)
    first_answers(console)
    small_requests(console)
    from_threads(console)
