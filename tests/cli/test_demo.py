"""``veridical demo``: the README's first command."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.compiled


def test_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "veridical", "demo", "--json"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
        env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    methods = {scores["method"]: scores for scores in json.loads(done.stdout)["methods"]}
    errors = {name: methods[name]["summary"]["ece"]["value"] for name in ("mean", "atde", "ptde-kde")}
    page = tmp_path / "report.html"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_size < 1.5e6
    assert errors["ptde-kde"] < errors["atde"] < errors["mean"]
    assert methods["atde"]["labels_changed"] == methods["ptde-kde"]["labels_changed"] == 0
