"""Results that print as tables."""

import re
import sys

import numpy as np
import pytest

import veridical as vd
from veridical import errors, metrics
from veridical._tables import Cell, Row, Table, html_table, latex_table, markdown_table, text_table


@pytest.fixture(scope="module")
def ensemble():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), (3, 80))
    labels = np.where(rng.random(80) < 0.7, probs.mean(axis=0).argmax(axis=1), rng.integers(0, 3, 80))
    return vd.Predictions(probs, labels, source_names=["a", "b <i>", "c"])


@pytest.fixture(scope="module")
def results(ensemble):
    calibration = vd.fit_calibrator(ensemble, method="temperature")
    return {
        "summary": metrics.summary(ensemble.labels, ensemble.values[0], floors=False),
        "evaluation": vd.evaluate(ensemble, floors=False),
        "comparison": vd.compare_calibrators(ensemble, methods=["mean", "temperature"], n_splits=2),
        "inspection": vd.inspect(ensemble),
        "calibration": calibration,
        "calibrator": vd.inspect_calibrator(calibration.calibrator),
        "calibrated": vd.apply_calibrator(calibration.calibrator, ensemble),
    }


NAMES = ("summary", "evaluation", "comparison", "inspection", "calibration", "calibrator", "calibrated")


@pytest.mark.compiled
@pytest.mark.parametrize("name", NAMES)
def test_results_print_their_rows(results, name):
    result = results[name]
    printed, shown = str(result), result._repr_html_()
    heading, rows = result._heading_and_rows()
    for row in (heading, *rows):
        for cell in row:
            assert cell in printed
    assert shown.count("<tr>") == printed.count("\n") + 1 - (1 if result._caption() else 0)
    assert "<i>" not in shown


@pytest.mark.compiled
@pytest.mark.parametrize("name", NAMES)
def test_results_become_frames(results, name):
    pytest.importorskip("pandas")
    frame = results[name].to_frame()
    assert len(frame) == len(results[name]._records()) > 0


@pytest.mark.compiled
def test_frames_hold_all_digits(results):
    pytest.importorskip("pandas")
    frame = results["evaluation"].to_frame().set_index("method")
    assert frame.loc["mean", "nll"] == results["evaluation"]["mean"].summary["nll"].value
    compared = results["comparison"].to_frame().set_index("method")
    assert compared.loc["temperature", "ece"] == results["comparison"].mean("temperature", "ece")


@pytest.mark.compiled
def test_to_frame_names_the_extra_to_install(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(errors.MissingExtraError, match=r"pip install '\.\[pandas\]'"):
        results["evaluation"].to_frame()


def test_text_table_aligns_numbers_to_the_right():
    lines = text_table(Table.of(["name", "value"], [["a", "1.5"], ["long name", "+12.25"]])).split("\n")
    assert lines == ["name        value", "a             1.5", "long name  +12.25"]


def test_html_table_escapes_cells():
    table = html_table(Table.of(["<b>"], [["&\x1b"]], "<i>"))
    assert re.findall("<[bi]>", table) == []
    assert "&amp;\\x1b" in table


GROUPED = Table(
    ("ensemble", "method", "ECE ↓"),
    (
        Row((Cell("a_b"), Cell("DE"), Cell("5.26", 0.0526, "0.10")), group="a_b, 3 sources"),
        Row((Cell(), Cell("95%"), Cell("4.00 to 6.00")), group="a_b, 3 sources", is_note=True),
        Row((Cell("c"), Cell("DE"), Cell("1.00", notes=("floor 0.90",), mark="best")), group="c, 1 source"),
    ),
    n_names=2,
    sortable=True,
)


def test_each_rendering_shows_groups_notes_and_the_best():
    text = text_table(GROUPED.part([1, 2]), star="*").splitlines()
    assert text == [
        "method          ECE ↓",
        "── a_b, 3 sources ───",
        "DE       5.26 ± 0.10",
        "  95%   4.00 to 6.00",
        "── c, 1 source ──────",
        "DE              1.00*",
    ]
    assert markdown_table(GROUPED).splitlines()[2:] == [
        r"| a\_b | DE | 5.26 ± 0.10 |",
        "|  | *95%* | 4.00 to 6.00 |",
        "| c | DE | **1.00** |",
    ]
    latex = latex_table(GROUPED, {"ensemble": "Ensemble"})
    assert r"Ensemble & method & ECE$\downarrow$ \\" in latex
    assert r"a\_b & DE & 5.26{\scriptsize$\pm$0.10} \\" in latex
    assert r" & \quad\textit{95\%} & $4.00$--$6.00$ \\" in latex
    assert latex.count(r"\midrule") == 2
    page = html_table(GROUPED, "numbers")
    assert '<table id="numbers" class="sortable">' in page
    assert '<tr class="group"><th colspan="3" scope="rowgroup">c, 1 source</th></tr>' in page
    assert '<td data-value="0.0526">5.26<span class="spread"> ± 0.10</span></td>' in page
    assert '<td data-value="1.00" class="best">1.00<small>floor 0.90</small></td>' in page
