"""What many samples and many classes cost.

``python benchmarks/large_data.py growth``: processor time of ``vd.evaluate`` with its defaults, as N grows from 10,000
to 1,000,000; the time per sample should not grow.

``python benchmarks/large_data.py classes``: processor time of ``evaluate``, ``calibrate`` and ``report`` on 50,000
samples of 1,000 classes, as multiples of one ``vd.discover`` on the same data, and peak memory.  Each runs in a process
of its own, after a warm-up on a few samples.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import veridical as vd

_SAMPLES = (10_000, 15_000, 50_000, 200_000, 1_000_000)
#: Multiples of one truth discovery, and of memory in MB beyond which a command is too large.
_LIMITS = {"discover": 1.0, "evaluate": 20.0, "calibrate": 60.0, "report": 60.0}
_MOST_MEMORY = 1000 + 500


def plausible(n_sources: int, n_samples: int, n_classes: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    """Probabilities of sources that share most of their errors, and labels; about three of four are right."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_samples)
    probs = np.empty((n_sources, n_samples, n_classes), dtype)
    for first in range(0, n_samples, 1000):
        block = slice(first, min(first + 1000, n_samples))
        size = block.stop - first
        shared = rng.standard_normal((size, n_classes), dtype=np.float32) * 2
        shared[np.arange(size), labels[block]] += rng.normal(8.0, 3.0, size).astype(np.float32)
        for source in probs:
            scores = shared + rng.standard_normal((size, n_classes), dtype=np.float32)
            exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
            source[block] = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probs, labels


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call, of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def growth() -> None:
    """Print seconds of ``evaluate`` per million samples."""
    warm_up, labels = plausible(3, 2000, 10)
    vd.evaluate(warm_up, labels)
    print(f"{'N':>10} {'CPU s':>8} {'CPU s per million':>18}")
    for n_samples in _SAMPLES:
        probs, labels = plausible(3, n_samples, 10)
        seconds = processor_seconds(lambda probs=probs, labels=labels: vd.evaluate(probs, labels))  # type: ignore[misc]
        print(f"{n_samples:>10,} {seconds:>8.2f} {seconds / n_samples * 1e6:>18.1f}", flush=True)


def run(job: str, path: str) -> None:
    """One job on the stored data: prints its processor time and the peak memory in MB."""
    stored = np.load(path)
    probs, labels = stored["probs"], stored["labels"]
    jobs: dict[str, Callable[[Any, Any], object]] = {
        "discover": lambda p, _: vd.discover(p),
        "evaluate": lambda p, y: vd.evaluate(p, y),
        "calibrate": lambda p, y: vd.fit_calibrator(p, y),
        "report": lambda p, y: vd.build_report(vd.Predictions(p, y)),
    }
    jobs[job](probs[:, :300], labels[:300])
    seconds = processor_seconds(lambda: jobs[job](probs, labels))
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - probs.nbytes / 1e6)


def classes(shape: tuple[int, int, int] = (5, 50_000, 1000)) -> None:
    """Print processor time as multiples of one truth discovery, and memory beyond the stored data."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "predictions.npz")
        probs, labels = plausible(*shape, np.float16)
        np.savez(path, probs=probs, labels=labels)
        del probs
        print(f"{'':<10} {'CPU s':>8} {'of discover':>12} {'limit':>6} {'MB beyond data':>15} (limit {_MOST_MEMORY})")
        discovery = 0.0
        for job, limit in _LIMITS.items():
            finished = subprocess.run(
                [sys.executable, __file__, "run", job, path], stdout=subprocess.PIPE, check=True, text=True
            )
            seconds, memory = map(float, finished.stdout.split()[-2:])
            discovery = discovery or seconds
            ratio = seconds / discovery
            print(f"{job:<10} {seconds:>8.1f} {ratio:>12.1f} {limit:>6.0f} {memory:>15.0f}", flush=True)


if __name__ == "__main__":
    task, *arguments = sys.argv[1:] or ["growth"]
    {"growth": growth, "classes": classes, "run": run}[task](*arguments)
