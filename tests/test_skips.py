"""Continuous integration fails on skipped tests, except for the reasons that conftest.py lists."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ACCEPTED_SKIPS


def run_pytest(folder, reason, ci, workers):
    (folder / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (folder / "test_one.py").write_text(f"import pytest\n\ndef test_one():\n    pytest.skip({reason!r})\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers), str(folder)],
        cwd=folder,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_unlisted_skip_fails_in_ci(tmp_path, workers):
    done = run_pytest(tmp_path, "the data are not here", "true", workers)
    assert done.returncode == 1, done.stdout
    assert "test_one.py:4: the data are not here" in done.stdout


def test_unlisted_skip_passes_elsewhere(tmp_path):
    assert run_pytest(tmp_path, "the data are not here", "", 0).returncode == 0


def test_listed_skip_passes_in_ci(tmp_path):
    assert run_pytest(tmp_path, next(iter(ACCEPTED_SKIPS)), "true", 0).returncode == 0
