"""``veridical demo``: the README's first command."""

import json
import re
from pathlib import Path

import pytest
from programs import veridical_in_process as veridical

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the command prints, and its page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("demo"))
        done = veridical("demo")
        assert done.returncode == 0, done.stderr
        return done.stdout, Path("report.html").read_text(encoding="utf-8")


def numbers_of(page):
    """The numbers that a page carries."""
    return json.loads(re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.DOTALL)[1])


def test_demo_prints_the_table_of_the_readme(demo):
    """Up to what another processor rounds differently."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for method in ("DE", "TDE", "aTDE", "TS", "pTDE"):
        shown = re.search(rf"^ ?{method} +([-+\d. ]+)$", readme, re.MULTILINE)[1].split()
        printed = re.search(rf"^ ?{method} +([-+\d. ]+)$", demo[0], re.MULTILINE)[1].split()
        assert [float(x) for x in printed] == pytest.approx([float(x) for x in shown], abs=0.05)


def test_demo_writes_a_small_page_with_its_numbers(demo):
    page = demo[1]
    assert page.startswith("<!doctype html>")
    assert len(page.encode()) < 1_500_000
    methods = {scores["method"]: scores for scores in numbers_of(page)["evaluation"]["methods"]}
    errors = {name: methods[name]["summary"]["ece"]["value"] for name in ("mean", "atde", "ptde-kde")}
    assert errors["ptde-kde"] < errors["atde"] < errors["mean"]
    assert methods["atde"]["labels_changed"] == methods["ptde-kde"]["labels_changed"] == 0


def test_verdict_on_the_shipped_ensemble(demo):
    verdict = numbers_of(demo[1])["verdict"]
    assert verdict.startswith("The mean of your 20 sources is under-confident by 5.3 points; pTDE brings ECE")
    assert "No label changes." in verdict
    assert "TS, which is simpler, is calibrated as well: ECE 0.84%, at its noise floor too." in verdict
    assert 'objective="distribution", keep_labels=False' in verdict
    printed = " ".join(demo[0].split())
    assert "--objective distribution --change-labels." in printed
    assert "keep_labels" not in printed


def test_demo_judges_the_shipped_jury(tmp_path):
    done = veridical("demo", "--jury", "--json", "-o", tmp_path / "jury.html")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["accuracy"] > document["majority_accuracy"] + 0.03
    assert (tmp_path / "jury.html").read_text().startswith("<!doctype html>")
