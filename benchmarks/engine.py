"""How long ``report``, ``compare`` and ``reproduce all`` take on the shipped ensemble, before and after a change.

``python benchmarks/engine.py OLD`` takes the source tree of another version, for example a git worktree.  Each command
runs as a user starts it, once per version to compile kernels and then three times (or as a second argument says), the
versions in turn; the table has the shortest wall time and the processor time of that run.  Without OLD only this
version runs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_HERE = Path(__file__).resolve().parents[1]
_COMMANDS = {
    "report": ("report", "demo.npz", "--out", "report.html"),
    "compare": ("compare", "demo.npz"),
    "reproduce all": ("reproduce", "all", "--out", "reproduction"),
}


def seconds(tree: Path, arguments: tuple[str, ...], folder: Path) -> tuple[float, float]:
    """Wall and processor time of one command of a source tree."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "veridical", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    trees = {"before": Path(sys.argv[1]).resolve()} if len(sys.argv) > 1 else {}
    trees["after"] = _HERE
    n_repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    print(f"{'command':<16}" + "".join(f"{name + ' wall (s)':>18}{name + ' CPU (s)':>18}" for name in trees))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save = "import veridical as vd; vd.save(vd.load_demo(), 'demo.npz')"
        subprocess.run(
            [sys.executable, "-c", save], cwd=folder, env={**os.environ, "PYTHONPATH": str(_HERE / "src")}, check=True
        )
        for command, arguments in _COMMANDS.items():
            best = {version: (float("inf"), float("inf")) for version in trees}
            for repeat in range(n_repeats + 1):
                for version, tree in trees.items():
                    measured = seconds(tree, arguments, folder)
                    if repeat > 0:
                        best[version] = min(best[version], measured)
            cells = "".join(f"{wall:>18.2f}{cpu:>18.2f}" for wall, cpu in best.values())
            walls = [wall for wall, _ in best.values()]
            ratio = f"   ratio {walls[-1] / walls[0]:.2f}" if len(walls) > 1 else ""
            print(f"{command:<16}{cells}{ratio}", flush=True)


if __name__ == "__main__":
    main()
