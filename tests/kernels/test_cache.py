"""Compiled kernels on disk: reused when nothing changed, never when any kernel did."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import veridical

pytestmark = pytest.mark.compiled

PROGRAM = """
import numpy as np
from veridical._kernels.projection import project_rows_onto_winners as kernel
rows = np.array([[0.5, 0.3, 0.2]])
kernel(rows, np.array([1]), 0.0)
print(rows[0, 1], sum(kernel.stats.cache_hits.values()))
"""


def run(package_parent, cache):
    environment = {**os.environ, "PYTHONPATH": str(package_parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    value, hits = done.stdout.split()
    return float(value), int(hits)


@pytest.fixture
def package(tmp_path):
    """A copy of the package whose sources a test may change."""
    source = Path(veridical.__file__).parent
    target = tmp_path / "src" / "veridical"
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "data"))
    return target


def test_reuse_and_invalidation(package, tmp_path):
    cache = tmp_path / "cache"
    assert run(package.parent, cache) == (pytest.approx(0.4), 0)
    assert run(package.parent, cache) == (pytest.approx(0.4), 1)
    # A kernel that the cached one has inlined changes, in a file of its own: the cached one must not be used.
    other = package / "_kernels" / "elementary.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert run(package.parent, cache) == (pytest.approx(0.4), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions differ there")
def test_nowhere_to_write(package, tmp_path):
    """Neither the package nor the home directory can be written: kernels are compiled in memory."""
    program = """
import numba.core.caching

def refuse(self):
    raise OSError("read-only file system")

numba.core.caching._CacheLocator.ensure_cache_path = refuse
"""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program + PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0.4", "0"]
