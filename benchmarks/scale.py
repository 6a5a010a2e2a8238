"""Predictions larger than memory: time against reading the file, peak memory, and scaling over Dask workers.

    python benchmarks/scale.py [--gigabytes 8] [--folder DIR]

A float32 file (S, N, L) of plausible predictions is made in a temporary directory and deleted afterwards.  Each
function runs in a process of its own, on a cold cache (dropped as root before the run; elsewhere, the file's own pages
are dropped) and on a warm one, between two plain readings of the file in the same blocks: the ratio is against the mean
of the two.  Memory is the peak of the resident set above that of the interpreter with its imports and compiled kernels.
Limits: 1.2 times the reading on a cold cache, 3 times on a warm one, 1 GB of memory.  The consensus reads the file
twice, once for its sums and once for the result; its ratio is against two readings.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

#: Sources and classes of the file: an ensemble on ImageNet.
N_SOURCES, N_CLASSES = 50, 1000
#: Function -> how many times it reads the file.
FUNCTIONS = {"discover": 1, "evaluate": 1, "apply": 1, "consensus": 2}
LIMITS = {"cold": 1.2, "warm": 3.0}

_RUN = """
import json, re, sys, time, tempfile, pathlib
import numpy as np, veridical as vd
from veridical import scale

function, path, folder = sys.argv[1:]
def memory(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
def read(predictions):
    for block in predictions.blocks(reuse=True):
        pass
def run(predictions, out):
    if function == "read":
        read(predictions)
    elif function == "discover":
        scale.discover(predictions, out=out)
    elif function == "consensus":
        scale.consensus(predictions, out=out)
    elif function == "evaluate":
        vd.evaluate(predictions, methods=["mean", "atde"])
    else:
        scale.apply_calibrator(vd.load_calibrator(folder + "/calibrator.json"), predictions, out=out)
warm = scale.open(np.load(path, mmap_mode="r")[:, :64].copy(), np.load(folder + "/labels.npy")[:64])
with tempfile.TemporaryDirectory(dir=folder) as name:
    run(warm, name + "/warm")  # imports and compiles
    predictions = scale.open(path, folder + "/labels.npy")
    try:
        open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
    except OSError:
        pass
    before, start = memory("VmRSS"), time.perf_counter()
    run(predictions, name + "/result")
    seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "memory": memory("VmHWM") - before, "blocks": predictions.n_blocks}))
"""


_FIT = """
import sys
import numpy as np, veridical as vd
folder = sys.argv[1]
probs, labels = np.load(folder + "/probs.npy", mmap_mode="r")[:, :2000], np.load(folder + "/labels.npy")[:2000]
vd.Temperature().fit(probs, labels).save(folder + "/calibrator.json")
"""


def make_file(path: Path, n_bytes: int) -> int:
    """Write predictions of sources that scatter around a common opinion, and labels drawn from it; samples in it."""
    n_samples = n_bytes // (4 * N_SOURCES * N_CLASSES)
    rng = np.random.default_rng(0)
    shape = (N_SOURCES, n_samples, N_CLASSES)
    values = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    labels = np.empty(n_samples, np.int64)
    # Noise is drawn once and shifted for each sample: a tenth of the time, and no two samples are alike.
    noise = rng.standard_normal((N_SOURCES, 64 * N_CLASSES), dtype=np.float32)
    for start in range(0, n_samples, 256):
        n_block = min(256, n_samples - start)
        opinion = rng.standard_normal((n_block, N_CLASSES), dtype=np.float32)
        top = rng.integers(0, N_CLASSES, n_block)
        opinion[np.arange(n_block), top] += rng.gamma(6.0, 1.2, n_block).astype(np.float32)
        chances = np.exp(0.8 * (opinion - opinion.max(axis=1, keepdims=True)))
        chances /= chances.sum(axis=1, keepdims=True)
        drawn = (chances.cumsum(axis=1) < rng.random((n_block, 1))).sum(axis=1)
        labels[start : start + n_block] = np.minimum(drawn, N_CLASSES - 1)
        shifts = rng.integers(0, 63 * N_CLASSES, n_block)
        for s in range(N_SOURCES):
            scores = opinion + 0.8 * np.stack([noise[s, shift : shift + N_CLASSES] for shift in shifts])
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=1, keepdims=True)
            values[s, start : start + n_block] = scores
    values.flush()
    np.save(path.with_name("labels.npy"), labels)
    return n_samples


def drop_cache(path: Path) -> None:
    """Forget what is cached of the file: of everything, as root, or of this file."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(function: str, path: Path, cache: str) -> dict[str, float]:
    """One run in a process of its own."""
    if cache == "cold":
        drop_cache(path)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, function, str(path), str(path.parent)], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def print_times(path: Path, caches: list[str], functions: list[str]) -> None:
    """Print one line per function and cache."""
    print(
        f"{'cache':<6}{'function':<11}{'seconds':>9}{'reading':>9}{'ratio':>7}{'limit':>7}{'memory (MB)':>13}",
        flush=True,
    )
    for cache in caches:
        if cache == "warm":
            measure("read", path, cache)
        for function in functions:
            before = measure("read", path, cache)["seconds"]
            run = measure(function, path, cache)
            after = measure("read", path, cache)["seconds"]
            reading = 0.5 * (before + after) * FUNCTIONS[function]
            print(
                f"{cache:<6}{function:<11}{run['seconds']:>9.2f}{reading:>9.2f}{run['seconds'] / reading:>7.2f}"
                f"{LIMITS[cache]:>7.1f}{run['memory'] / 1e6:>13.0f}",
                flush=True,
            )


def main() -> None:
    """Make the file, measure, delete it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--folder", type=Path, help="where the file is made; default: the temporary directory")
    parser.add_argument("--keep", type=Path, help="use this folder, with the file in it if it is there, and keep it")
    parser.add_argument("--caches", default="cold,warm")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "probs.npy"
        if not path.exists():
            start = time.perf_counter()
            n_samples = make_file(path, int(options.gigabytes * 1e9))
            print(f"made ({N_SOURCES}, {n_samples}, {N_CLASSES}) in {time.perf_counter() - start:.0f} s", flush=True)
        subprocess.run([sys.executable, "-c", _FIT, str(folder)], check=True)
        print_times(path, options.caches.split(","), options.functions.split(","))


if __name__ == "__main__":
    main()
