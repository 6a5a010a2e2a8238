"""The tables of a report: every cell is a number of the data, sorted by what it stands for."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_checks import labelled_ensemble

import veridical as vd
from veridical.combine import apply_label_free
from veridical.evaluation.engine import Engine
from veridical.metrics import METRICS, SUMMARY_METRICS, SummaryRow
from veridical.report.data import DisputedSample
from veridical.report.prepare import Stages, choose_methods, disputed_samples, prepare_report
from veridical.report.tables import (
    _metric_cell,
    advice_table,
    disagreement_table,
    disputed_table,
    metric_text,
    metrics_table,
    reliability_table,
    risk_table,
    source_value_table,
    sources_table,
    sweep_table,
)

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def ensemble():
    return labelled_ensemble(sharpness=0.6)


@pytest.fixture(scope="module")
def data(ensemble):
    return prepare_report(ensemble, methods=["atde"], method="temperature", intervals=False)


@pytest.fixture(scope="module")
def unlabelled(ensemble):
    return prepare_report(vd.Predictions(ensemble.values, kind=ensemble.kind))


# --- cells


@pytest.mark.parametrize(
    ("row", "best", "text", "notes", "mark"),
    [
        (SummaryRow("ece", 0.05), 0.05, "5.00%", (), "best"),
        (SummaryRow("ece", 0.05), 0.01, "5.00%", (), ""),
        (SummaryRow("ece", 0.050001), 0.05, "5.00%", (), "best"),  # reads the same
        (SummaryRow("ece", 0.05, low=0.04, high=0.061), 0.01, "5.00%", ("4.00 to 6.10",), ""),
        (SummaryRow("ece", 0.02, 0.015, 0.025), 0.01, "2.00%", ("floor 1.50",), "at-floor"),
        (SummaryRow("ece", 0.03, 0.015, 0.025), 0.01, "3.00%", ("floor 1.50",), ""),
        (
            SummaryRow("ece", 0.025, 0.015, 0.025, 0.01, 0.04),
            0.025,
            "2.50%",
            ("1.00 to 4.00", "floor 1.50"),
            "best at-floor",
        ),
        (SummaryRow("nll", math.inf), 0.5, "infinite", (), ""),
    ],
)
def test_cell_of_a_metric(row, best, text, notes, mark):
    cell = _metric_cell(row, best)
    assert (cell.text, cell.notes, cell.mark) == (text, notes, mark)
    assert cell.value == (row.value if math.isfinite(row.value) else 1e300)  # sorted last


@pytest.mark.parametrize(
    ("metric", "value", "text"), [("ece", 0.0526, "5.26%"), ("nll", 0.45671, "0.4567"), ("accuracy", 1.0, "100.00%")]
)
def test_text_of_a_metric(metric, value, text):
    assert metric_text(metric, value) == text
    assert metric_text(metric, value, unit=False) == text.removesuffix("%")


# --- tables


def test_metrics_table_is_the_evaluation(data):
    table = metrics_table(data.evaluation)
    assert table.caption == "Scores on the half that calibrators have not seen (200 samples)"
    assert table.columns[1:-2] == tuple(METRICS[metric].title for metric in SUMMARY_METRICS)
    assert len(table.rows) == len(data.evaluation.methods)
    for scores, row in zip(data.evaluation.methods, table.rows, strict=True):
        name, *cells, gap, changed = row.cells
        assert name.text == scores.title
        assert [cell.value for cell in cells] == [scores.summary[metric].value for metric in SUMMARY_METRICS]
        assert gap.value == scores.gap
        assert float(gap.text.replace("−", "-")) == pytest.approx(100 * scores.gap, abs=0.005)
        assert (changed.value, changed.text) == (scores.labels_changed, f"{scores.labels_changed:,}")
    for column, metric in enumerate(SUMMARY_METRICS, 1):
        values = [row.cells[column].value for row in table.rows]
        marked = [row.cells[column].value for row in table.rows if "best" in row.cells[column].mark]
        assert (min if METRICS[metric].lower_is_better else max)(values) in marked


def test_metrics_table_on_all_samples_says_so(ensemble):
    table = metrics_table(vd.evaluate(ensemble, methods=["members", "mean"], floors=False))
    assert table.caption == f"Scores on all samples ({ensemble.n_samples} samples)"
    assert len(table.rows) == ensemble.n_sources + 1


def test_sources_table_has_accuracy_with_labels_only(data, unlabelled):
    table = sources_table(data)
    assert table.columns[1] == "Accuracy"
    for source, row in zip(data.inspection.sources, table.rows, strict=True):
        assert row.cells[0].text == source.name
        assert [cell.value for cell in row.cells[1:5]] == [
            source.accuracy,
            source.mean_confidence,
            source.mean_reliability,
            source.agreement,
        ]
        assert row.cells[5].value == source.missing
    assert not any(row.cells[0].notes for row in table.rows)  # trust is not about labels
    plain = sources_table(unlabelled)
    least = [row.cells[0].text for row in plain.rows if row.cells[0].notes == ("trusted least",)]
    assert least == [unlabelled.inspection.sources[unlabelled.inspection.outlier].name]
    assert "Accuracy" not in plain.columns
    assert all(len(row.cells) == len(plain.columns) for row in plain.rows)


def test_value_table_marks_the_smallest_subset(data):
    value = data.inspection.value
    table = source_value_table(value)
    assert table.caption == f"What sources are worth to the mean, on {value.n_samples:,} held-out samples"
    for s, (source, row) in enumerate(zip(value.sources, table.rows, strict=True)):
        assert row.cells[3].value == source.nll_without.value
        assert row.cells[3].notes == (f"{source.nll_without.low:+.4f} to {source.nll_without.high:+.4f}",)
        assert bool(row.cells[0].notes) == (s in value.subset and len(value.subset) < len(value.sources))
    everyone = dataclasses.replace(value, subset=tuple(range(len(value.sources))))
    assert not any(row.cells[0].notes for row in source_value_table(everyone).rows)


def test_reliability_table_has_a_row_per_bin(data):
    panel = data.reliability[0]
    table = reliability_table(panel)
    assert len(table.rows) == len(panel.counts)
    assert sum(row.cells[1].value for row in table.rows) == 200
    empty = dataclasses.replace(panel, counts=(0,) * len(panel.counts))
    assert {row.cells[4].text for row in reliability_table(empty).rows} == {"–"}


def test_sweep_table_has_a_row_per_number_and_method(data):
    table = sweep_table(data)
    assert [(row.cells[0].value, *(cell.value for cell in row.cells[2:])) for row in table.rows] == [
        (point.n_sources, *(point.values[metric] for metric in SUMMARY_METRICS)) for point in data.sweep
    ]


def test_risk_table_has_every_tenth_and_the_area(data):
    table = risk_table(data)
    assert [row.cells[0].text for row in table.rows] == [*(f"{p}%" for p in range(10, 101, 10)), "Area (AURC)"]
    assert [cell.value for cell in table.rows[-1].cells[1:]] == [curve.aurc for curve in data.risk]
    errors = [1 - data.evaluation["mean"].summary["accuracy"].value] * 2
    assert [cell.value for cell in table.rows[-2].cells[1:3]] == pytest.approx(errors)  # all kept: the error rate
    assert table.columns == ("Kept", *(curve.title for curve in data.risk))


def test_disagreement_table_counts_every_sample(data, unlabelled, ensemble):
    table = disagreement_table(data)
    assert table.columns == ("Confidence", "Median HV", "Right", "Wrong")
    assert sum(row.cells[2].value + row.cells[3].value for row in table.rows) == ensemble.n_samples
    right = (ensemble.values.mean(axis=0).argmax(axis=1) == ensemble.labels).sum()
    assert sum(row.cells[2].value for row in table.rows) == right
    plain = disagreement_table(unlabelled)
    assert plain.columns == ("Confidence", "Median HV", "Samples")
    assert sum(row.cells[2].value for row in plain.rows) == ensemble.n_samples


def test_advice_table_marks_the_recommended_methods(data):
    table = advice_table(data.advice)
    marked = [row.cells[1].text for row in table.rows if row.cells[1].mark == "best"]
    assert len(marked) == 2
    assert len(table.rows) == len(data.advice.confidence.standings) + len(data.advice.distribution.standings)
    assert {row.cells[0].text for row in table.rows} == {"Confidence (ECE)", "Distribution (NLL)"}


# --- disputed samples


def disputed_of(predictions):
    engine = Engine(predictions)
    return disputed_samples(predictions, engine.combined("atde").truth.hv, engine.combined("mean"))


def test_disputed_samples_are_described_from_the_predictions():
    values = np.array(
        [
            [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.5, 0.5]],
            [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]],
            [[0.2, 0.8], [0.7, 0.3], [0.9, 0.1], [0.5, 0.5]],
        ]
    )
    predictions = vd.Predictions(values, [1, 0, 0, -1], sample_ids=["a", "b", "c", "d"])
    samples = {sample.sample_id: sample for sample in disputed_of(predictions)}
    assert "d" not in samples  # the sources agree
    assert samples["a"].votes == ((1, 2), (0, 1))
    assert samples["b"].votes == ((0, 3),)
    assert (samples["a"].prediction, samples["a"].label) == (1, 1)
    assert samples["c"].confidence == pytest.approx(values[:, 2].mean(axis=0).max())
    hvs = [sample.hv for sample in disputed_of(predictions)]
    assert hvs == sorted(hvs, reverse=True)
    assert samples["a"].sample == 0


def test_absent_sources_do_not_vote():
    values = np.array([[[0.9, 0.1]], [[np.nan, np.nan]], [[0.1, 0.9]]])
    (sample,) = disputed_of(vd.Predictions(values))
    assert sample.votes == ((0, 1), (1, 1))
    assert (sample.label, sample.sample_id) == (None, None)


@given(st.integers(0, 999), st.integers(2, 40), st.integers(101, 400))
@settings(max_examples=10)
def test_list_has_the_most_disputed_and_some_of_each_class(seed, n_classes, n_samples):
    rng = np.random.default_rng(seed)
    hv = rng.permutation(np.linspace(0.1, 1.0, n_samples))
    values = rng.dirichlet(np.ones(n_classes), (2, n_samples))
    predictions = vd.Predictions(values)
    mean = apply_label_free("mean", predictions, Options())
    listed = [sample.sample for sample in disputed_samples(predictions, hv, mean)]
    order = np.argsort(-hv)
    assert listed[:100] == order[:100].tolist()
    assert len(listed) <= 300
    assert (np.diff(hv[listed]) < 0).all()
    if len(listed) < 300:
        per_class = min(max(200 // n_classes, 1), 10)
        for label in range(n_classes):
            of_class = [n for n in order if mean.prediction[n] == label][:per_class]
            assert set(of_class) <= set(listed)


class Options:
    """How the mean is computed."""

    missing, n_threads = "raise", 1


@pytest.mark.parametrize(("label", "outcome", "classes"), [(1, "right", (1,)), (0, "wrong", (0, 1)), (None, "", (1,))])
def test_disputed_row_says_whether_the_mean_is_right(data, label, outcome, classes):
    sample = DisputedSample(7, 0.25, 1, 0.625, label, ((1, 2), (0, 1)), "q\x1b7")
    (row,) = disputed_table(dataclasses.replace(data, disputed=(sample,))).rows
    names = data.inspection.data.class_names
    assert row.data == {"outcome": outcome, "classes": " ".join(map(str, classes))}
    assert [cell.text for cell in row.cells[1:4]] == ["0.250", names[1], "62.5%"]
    assert row.cells[-1].text == f"{names[1]} 2, {names[0]} 1"
    assert len(row.cells) == 7
    if label is not None:
        assert [cell.text for cell in row.cells[4:6]] == [names[label], outcome]
    unnamed = dataclasses.replace(sample, sample_id=None, sample=1234)
    (row,) = disputed_table(dataclasses.replace(data, disputed=(unnamed,))).rows
    assert (row.cells[0].text, row.cells[0].value) == ("1,234", 1234)


def test_rows_without_any_labels_are_shorter(unlabelled):
    assert {len(row.cells) for row in disputed_table(unlabelled).rows} == {5}


# --- what a report is about


@pytest.mark.parametrize(
    ("method", "methods", "n_sources", "names"),
    [
        ("ptde-kde", None, 3, ["mean", "tde", "atde", "temperature", "ptde-kde"]),
        ("ptde-kde", None, 1, ["mean", "temperature", "ptde-kde"]),
        ("temperature", None, 3, ["mean", "tde", "atde", "temperature"]),
        ("mean", ["atde"], 3, ["mean", "atde"]),
        ("atde", [], 3, ["mean", "atde"]),
    ],
)
def test_mean_comes_first_and_the_chosen_method_last(method, methods, n_sources, names):
    chosen, shown = choose_methods(method, methods, n_sources)
    assert chosen.name == method
    assert [one.name for one in shown] == names


def test_stages_count_those_of_others():
    calls = []
    stages = Stages(lambda *call: calls.append(call), 5)
    inner = stages.within(3)
    inner(0, 3, "a")
    inner(2, 3, "b")
    stages.begin("c")
    stages.begin("d")
    assert calls == [(0, 5, "a"), (2, 5, "b"), (3, 5, "c"), (4, 5, "d")]
