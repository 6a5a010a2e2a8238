"""What the first run costs: compiling truth discovery for one dtype, and ``veridical demo`` without any cache.

``python benchmarks/first_run.py [OLD]``: every figure is of a new process with an empty cache of kernels, in processor
seconds; OLD is the source tree of another version to compare with, for example a git worktree.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).resolve().parents[1]
_DISCOVER = """
import time
import numpy as np
import veridical as vd
probs = np.random.default_rng(0).dirichlet(np.ones(10), (5, 100)).astype("{dtype}")
vd.Predictions(probs)
start = time.process_time()
vd.discover(probs)
print(time.process_time() - start)
"""


def environment(tree: Path, cache: Path) -> dict[str, str]:
    """Variables with which a process runs ``tree`` and keeps its kernels in ``cache``."""
    return {**os.environ, "PYTHONPATH": str(tree / "src"), "NUMBA_CACHE_DIR": str(cache)}


def compile_seconds(tree: Path, dtype: str) -> float:
    """Processor time of the first ``discover`` of a process without a cache."""
    with tempfile.TemporaryDirectory() as cache:
        variables = environment(tree, Path(cache))
        program = [sys.executable, "-c", _DISCOVER.format(dtype=dtype)]
        return float(subprocess.run(program, env=variables, stdout=subprocess.PIPE, check=True).stdout)


def demo_seconds(tree: Path, cache: Path) -> float:
    """Processor time of ``veridical demo``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [sys.executable, "-m", "veridical", "demo", "--quiet"]
    subprocess.run(program, env=environment(tree, cache), cwd=cache, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    trees = {"before": Path(sys.argv[1]).resolve()} if len(sys.argv) > 1 else {}
    trees["after"] = _HERE
    print(f"{'CPU seconds':<22}" + "".join(f"{name:>10}" for name in trees))
    for dtype in ("float32", "float64"):
        best = [min(compile_seconds(tree, dtype) for _ in range(2)) for tree in trees.values()]
        print(f"{'discover, ' + dtype:<22}" + "".join(f"{seconds:>10.1f}" for seconds in best), flush=True)
    cold_and_warm = []
    for tree in trees.values():
        with tempfile.TemporaryDirectory() as cache:
            cold_and_warm.append([demo_seconds(tree, Path(cache)) for _ in range(2)])
    for name, row in zip(("demo, no cache", "demo, again"), zip(*cold_and_warm, strict=True), strict=True):
        print(f"{name:<22}" + "".join(f"{seconds:>10.1f}" for seconds in row), flush=True)


if __name__ == "__main__":
    main()
