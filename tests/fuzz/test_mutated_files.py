"""Damaged and forged files of every format: read, or refused in one sentence, in bounded memory, and never run.

A child process reads them, because its memory is measured and limited, and because a file that ends a process would
otherwise end the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HUNT
from hunting import SEED
from mutated_formats import GROUPS

pytestmark = pytest.mark.compiled

#: Damaged files of each format in continuous integration; VERIDICAL_HUNT times as many in a hunt.
N_FILES = {"arrays": 30, "torch": 10, "labels": 30, "fits": 10}


@pytest.mark.parametrize("group", GROUPS)
def test_damaged_files(group, tmp_path):
    n_files = N_FILES[group] * max(HUNT, 1)
    program = str(Path(__file__).with_name("mutated_formats.py"))
    command = [sys.executable, program, group, str(tmp_path), str(SEED), str(n_files)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout)
    print({name: (outcome["read"], outcome["refused"]) for name, outcome in outcomes.items()})
    for name, outcome in outcomes.items():
        assert not outcome["failures"], f"{name}: {outcome['failures'][0]}"
        assert outcome["refused"] > 0, f"{name}: nothing was damaged"
