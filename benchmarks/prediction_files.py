"""How long reading and writing predictions takes, beside the plain reader or writer of each format.

Run ``python benchmarks/prediction_files.py``; needs the extras parquet and zarr.  Best of several, same process, the
shipped ensemble (20 sources, 10,000 samples, 10 classes, float16).  What is mapped is summed as
well, so that its numbers are read.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import zarr

import veridical as vd

REPEATS = 3


def best(work: Callable[[], Any]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def read_ours(path: Path) -> None:
    """All numbers of a file."""
    np.asarray(vd.load(path).values).sum(dtype=np.float64)


def read_npz(path: Path) -> None:
    """All numbers of an archive, by NumPy."""
    with np.load(path) as stored:
        stored["logits"].sum(dtype=np.float64)


PEERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    ".npz": ("numpy.load", read_npz),
    ".npy": ("numpy.load", lambda path: np.load(path).sum(dtype=np.float64)),
    ".csv": ("pyarrow.csv (table only)", lambda path: pyarrow.csv.read_csv(path)),
    ".parquet": ("pyarrow.parquet (table only)", lambda path: pyarrow.parquet.read_table(path)),
    ".zarr": ("zarr", lambda path: zarr.open(str(path), mode="r")["logits"][...].sum(dtype=np.float64)),
}


def main() -> None:
    """Print the table."""
    predictions = vd.load_demo()
    print(f"{'format':<9} {'MB':>6} {'save s':>8} {'load s':>8} {'peer s':>8} {'ratio':>6}  peer")
    with tempfile.TemporaryDirectory() as folder:
        for suffix, (name, read_peer) in PEERS.items():
            path = Path(folder) / f"logits_demo{suffix}"
            saving = best(lambda path=path: vd.save(predictions, path))  # type: ignore[misc]
            files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
            size = sum(file.stat().st_size for file in files) / 1e6
            ours = best(lambda path=path: read_ours(path))  # type: ignore[misc]
            peer = best(lambda path=path, read_peer=read_peer: read_peer(path))  # type: ignore[misc]
            print(f"{suffix:<9} {size:6.1f} {saving:8.3f} {ours:8.3f} {peer:8.3f} {ours / peer:6.1f}  {name}")


if __name__ == "__main__":
    main()
