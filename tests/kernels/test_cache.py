"""Compiled kernels on disk: reused when nothing changed, never when any kernel did."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def run_with_warnings(package_parent, cache, before="", **environment):
    """The value that PROGRAM prints, how often it read its kernel from disk, and the warnings on stderr."""
    environment = {**os.environ, "PYTHONPATH": str(package_parent), "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    value, hits = done.stdout.split()
    return float(value), int(hits), [line for line in done.stderr.splitlines() if "Warning: " in line]


def run(package_parent, cache):
    value, hits, warnings = run_with_warnings(package_parent, cache)
    assert not warnings
    return value, hits


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


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory):
    """A directory in which the kernel of PROGRAM is stored."""
    path = tmp_path_factory.mktemp("filled") / "cache"
    run(Path(veridical.__file__).parent.parent, path)
    return path


@pytest.fixture
def cache(filled_cache, tmp_path):
    """A copy that a test may damage."""
    return Path(shutil.copytree(filled_cache, tmp_path / "cache"))


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-7],
    "changed": lambda content: content[:-40] + bytes(byte ^ 0xFF for byte in content[-40:]),
    "noise": lambda content: bytes(range(256)) * 4,
}


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [("nbi", "noise"), ("nbi", "truncated"), ("nbc", "empty"), ("nbc", "truncated"), ("nbc", "changed")],
)
def test_damaged_file_is_compiled_again_and_replaced(cache, suffix, damage):
    package = Path(veridical.__file__).parent
    (file,) = cache.rglob(f"*.{suffix}")
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    value, hits, warnings = run_with_warnings(package.parent, cache)
    assert (value, hits) == (pytest.approx(0.4), 0)
    # A file with another beginning may be that of another version, which is nothing to warn about.
    assert len(warnings) == (damage in ("truncated", "changed"))
    assert all(warning.endswith(f"({file.name} is damaged); they are compiled again.") for warning in warnings)
    assert run(package.parent, cache) == (pytest.approx(0.4), 1)


def test_data_file_of_another_version_of_the_kernel_is_not_used(cache):
    """Two processes that compile at the same time can give two versions of a kernel the same name."""
    package = Path(veridical.__file__).parent
    other_types = PROGRAM.replace("0.2]])", "0.2]], dtype=np.float32)")
    (data,) = cache.rglob("*.nbc")
    (index,) = cache.rglob("*.nbi")
    float64_index = index.read_bytes()
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", other_types], env=environment, check=True, capture_output=True)
    (float32_data,) = set(cache.rglob("*.nbc")) - {data}
    float32_data.replace(data)
    index.write_bytes(float64_index)
    assert run(package.parent, cache) == (pytest.approx(0.4), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit there")
def test_full_disk_is_one_warning(package, tmp_path):
    no_room = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
"""
    value, hits, warnings = run_with_warnings(package.parent, tmp_path / "cache", before=no_room)
    assert (value, hits) == (pytest.approx(0.4), 0)
    (warning,) = warnings
    assert "cannot be stored in " in warning
    assert "(File too large), so they are compiled in each process; set NUMBA_CACHE_DIR" in warning
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_missing_cache_directory_is_one_warning(package, tmp_path):
    """Files stand in the place of all directories that Numba would use, which stops root, too."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    (package / "_kernels" / "__pycache__").write_text("")
    value, hits, warnings = run_with_warnings(
        package.parent, blocked / "cache", HOME=str(blocked), XDG_CACHE_HOME=str(blocked / "cache")
    )
    assert (value, hits) == (pytest.approx(0.4), 0)
    (warning,) = warnings
    assert "compiled kernels cannot be stored on disk, so they are compiled in each process; set NUMBA_" in warning


def test_commands_do_not_fail_for_a_full_disk(tmp_path):
    no_room = """
import resource, sys
from veridical.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
main(["evaluate", sys.argv[1], "--no-intervals", "--no-floors"])
"""
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=(3, 20))
    np.savez(tmp_path / "p.npz", probs=probs, labels=probs[0].argmax(axis=1))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", no_room, str(tmp_path / "p.npz")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "aTDE" in done.stdout
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Note: compiled kernels cannot be stored")
