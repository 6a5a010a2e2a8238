"""Dask workers: scaling from one to two on a file larger than a worker's memory, and the scheduler's cost per block.

    python benchmarks/scale_workers.py [--gigabytes 1.5] [--folder DIR]

Printed are the times of ``vd.evaluate(..., client=client)`` with one and two local workers of one thread each, whose
memory limit is half the size of the file, without the start of the cluster; the time per block of a file of tiny
blocks, which is what the scheduler and the client cost; and the size of the states of a block and of all blocks.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scale import make_file

import veridical as vd
from veridical import scale
from veridical.blocks.evaluating import score_block
from veridical.blocks.on_dask import local_client
from veridical.evaluation.methods import resolve_methods

METHODS = ["mean", "atde"]


def seconds(predictions: Any, client: Any) -> float:
    """Time of one evaluation."""
    start = time.perf_counter()
    vd.evaluate(predictions, methods=METHODS, floors=False, client=client)
    return time.perf_counter() - start


def print_scaling(path: Path) -> None:
    """Times with one and with two workers."""
    predictions = scale.open(path, path.with_name("labels.npy"))
    limit = int(predictions.n_bytes / 2)  # of which the interpreter takes 300 MB
    print(f"{predictions.n_bytes / 1e9:.2f} GB in {predictions.n_blocks} blocks, {limit / 1e9:.2f} GB per worker")
    times = {}
    for n_workers in (1, 2):
        with local_client(n_workers, memory_limit=limit) as client:
            seconds(predictions, client)  # compiles, and fills the cache
            times[n_workers] = min(seconds(predictions, client) for _ in range(2))
        rate = predictions.n_bytes / times[n_workers] / 1e6
        print(f"  {n_workers} worker{'s' * (n_workers > 1)}: {times[n_workers]:.2f} s, {rate:.0f} MB/s", flush=True)
    print(f"  speed-up {times[1] / times[2]:.2f}")


def print_overhead(folder: Path) -> None:
    """Time per block where a block is next to no work."""
    probs = np.full((2, 40_000, 2), 0.5, np.float32)
    np.save(folder / "tiny.npy", probs)
    labels = np.zeros(40_000, np.int64)
    times = {}
    with local_client(2) as client:
        for n_blocks in (10, 200, 2000):
            size = 40_000 // n_blocks
            predictions = scale.open(folder / "tiny.npy", labels)
            predictions.block_size, predictions.edges = size, [*range(0, 40_001, size)]
            times[n_blocks] = min(seconds(predictions, client) for _ in range(2))
    per_block = (times[2000] - times[200]) / 1800
    print(f"scheduler and client: {1000 * per_block:.2f} ms per block")
    print(f"  {times[200]:.2f} s for 200 blocks, {times[2000]:.2f} s for 2000")


def print_sizes(path: Path) -> None:
    """Bytes of states on their way between processes."""
    predictions = scale.open(path, path.with_name("labels.npy"))
    block = next(iter(predictions.blocks()))
    state = score_block(resolve_methods(METHODS), {}, None, block)
    full = sum(40 * each.n_cells for each in state.states.values())
    size = len(pickle.dumps(state))
    print(f"states of a block of {block.stop} samples: {size / 1e3:.0f} kB; at most {full / 1e3:.0f} kB")


def main() -> None:
    """Make the files, measure, delete them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=1.6)
    parser.add_argument("--folder", type=Path, help="where the files are made; default: the temporary directory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        path = Path(name) / "probs.npy"
        make_file(path, int(options.gigabytes * 1e9))
        print_scaling(path)
        print_sizes(path)
        print_overhead(Path(name))


if __name__ == "__main__":
    main()
