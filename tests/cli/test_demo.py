"""``veridical demo``: the README's first command."""

import json
import re
from pathlib import Path

import pytest
from programs import veridical

pytestmark = pytest.mark.compiled


def test_demo_writes_a_report_and_json(tmp_path):
    done = veridical("demo", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    methods = {scores["method"]: scores for scores in json.loads(done.stdout)["methods"]}
    errors = {name: methods[name]["summary"]["ece"]["value"] for name in ("mean", "atde", "ptde-kde")}
    page = tmp_path / "report.html"
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_size < 1.5e6
    assert errors["ptde-kde"] < errors["atde"] < errors["mean"]
    assert methods["atde"]["labels_changed"] == methods["ptde-kde"]["labels_changed"] == 0


def test_demo_prints_the_table_of_the_readme(tmp_path):
    """Up to what another processor rounds differently."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    done = veridical("demo", cwd=tmp_path)
    for method in ("DE", "TDE", "aTDE", "TS", "pTDE"):
        shown = re.search(rf"^ ?{method} +([-+\d. ]+)$", readme, re.MULTILINE)[1].split()
        printed = re.search(rf"^ ?{method} +([-+\d. ]+)$", done.stdout, re.MULTILINE)[1].split()
        assert [float(x) for x in printed] == pytest.approx([float(x) for x in shown], abs=0.05)


def test_demo_judges_the_shipped_jury(tmp_path):
    done = veridical("demo", "--jury", "--json", "-o", tmp_path / "jury.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["accuracy"] > document["majority_accuracy"] + 0.03
    assert (tmp_path / "jury.html").read_text().startswith("<!doctype html>")
