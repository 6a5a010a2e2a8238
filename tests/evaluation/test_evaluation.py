"""Scores of methods, comparison of calibrators, fitting with evidence."""

import json

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical import errors, metrics
from veridical.evaluation.methods import resolve_methods

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(1)
    probs = random_ensemble(rng, 6, 600, 5, np.float32, spread=2.0)
    chances = probs.mean(axis=0, dtype=np.float64) ** 1.5
    labels = np.array([rng.choice(5, p=p / p.sum()) for p in chances])
    return vd.Predictions(probs, labels, source_names=list("abcdef"))


def test_figures_are_those_of_the_metrics(predictions):
    evaluation = vd.evaluate(predictions, floors=False)
    truth = vd.discover(predictions)
    mean = vd.discover(predictions, max_iter=0)
    for method, probs in (("mean", mean.probs), ("atde", truth.probs)):
        scores = evaluation[method]
        assert scores.summary["ece"].value == metrics.ece(predictions.labels, probs)
        assert scores.summary["nll"].value == metrics.nll(predictions.labels, probs)
        assert scores.gap == pytest.approx(probs.max(axis=1).mean(dtype=float) - scores.summary["accuracy"].value)
        assert scores.labels_changed == 0
    third = evaluation["source:2"]
    assert third.title == "c"
    assert third.is_source
    assert third.summary["brier"].value == pytest.approx(metrics.brier(predictions.labels, predictions.values[2]))
    assert evaluation.protocol == "all samples"


def test_calibrators_are_scored_on_the_half_they_have_not_seen(predictions):
    evaluation = vd.evaluate(predictions, methods=["mean", "temperature"], floors=False, random_state=7)
    fitted_on, scored_on = predictions.split(random_state=7)
    probs = vd.Temperature().fit(fitted_on).predict_proba(scored_on)
    assert evaluation["temperature"].summary["nll"].value == metrics.nll(scored_on.labels, probs)
    assert evaluation["mean"].summary.n_samples == scored_on.n_samples
    assert evaluation.protocol == "held-out half"


def test_floors_and_intervals(predictions):
    row = vd.evaluate(predictions, methods=["mean"], intervals=True)["mean"].summary["ece"]
    assert row.low <= row.value <= row.high
    assert 0 < row.floor < row.floor_high


def test_json_and_tables(predictions):
    evaluation = vd.evaluate(predictions, floors=False)
    document = json.loads(json.dumps(evaluation.to_dict()))
    assert document["data"]["n_sources"] == 6
    assert document["methods"][-1]["summary"]["accuracy"]["value"] == evaluation["atde"].summary["accuracy"].value
    heading, rows = evaluation.rows()
    assert all(len(row) == len(heading) for row in rows)
    assert rows[0][0] == "one source (mean of 6)"
    assert evaluation._repr_html_().count("<tr>") == 1 + len(rows)


def test_same_seed_same_numbers(predictions):
    first = vd.evaluate(predictions, methods=["mean", "ptde"], n_threads=1)
    second = vd.evaluate(predictions, methods=["mean", "ptde"], n_threads=2)
    assert first.to_dict() == second.to_dict()


def test_data_hash_changes_with_the_data(predictions):
    whole = vd.evaluate(predictions, methods=["mean"], floors=False).data
    assert whole.sha256 == vd.inspect(predictions).data.sha256
    assert whole.sha256 != vd.inspect(predictions.select(sources=[1, 0, 2, 3, 4, 5])).data.sha256


def test_compare(predictions):
    comparison = vd.compare_calibrators(predictions, methods=["mean", "temperature", "spline"], n_splits=3)
    for i in range(3):
        fitted_on, scored_on = predictions.split(random_state=i)
        probs = vd.Temperature().fit(fitted_on).predict_proba(scored_on)
        assert comparison.values["temperature"]["ece_kde"][i] == metrics.ece_kde(scored_on.labels, probs)
    means = {method: comparison.mean(method, "nll") for method in comparison.methods}
    assert comparison.best("nll") == min(means, key=means.get)
    assert comparison.best("accuracy") in comparison.methods
    assert comparison.std("spline", "ece") == np.std(comparison.values["spline"]["ece"], ddof=1)
    json.dumps(comparison.to_dict())
    _, rows = comparison.rows()
    starred = [{row[0] for row in rows if row[j].endswith("*")} for j in range(1, 7)]
    assert all(starred)
    assert starred[-1] == {"DE", "TS", "Spline"}  # none of them changes a label


@pytest.mark.filterwarnings("error")
def test_infinite_losses_are_said_in_words():
    """Votes give the right class no chance where all are wrong: the mean's NLL is infinite in some split."""
    rng = np.random.default_rng(0)
    votes, labels = np.eye(3)[rng.integers(0, 3, (3, 200))], rng.integers(0, 3, 200)
    comparison = vd.compare_calibrators(votes, labels, methods=["mean", "irm"], n_splits=2)
    heading, rows = comparison.rows()
    assert rows[0][heading.index("NLL")] == "infinite"
    assert np.isnan(comparison.std("mean", "nll"))
    assert not any(word in cell for row in rows for cell in row for word in ("inf±", "nan"))


def test_fit_and_apply(predictions, tmp_path):
    calibration = vd.fit_calibrator(predictions, method="spline")
    expected = vd.Spline().fit(predictions).predict_confidence(predictions)
    applied = vd.apply_calibrator(calibration.calibrator, predictions)
    np.testing.assert_array_equal(applied.confidence, expected)
    assert calibration.evaluation.protocol == "held-out half"
    assert calibration.chosen is None
    applied.save(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as stored:
        np.testing.assert_array_equal(stored["probs"], applied.probs)


def test_parameters_reach_the_evidence(predictions):
    plain = vd.fit_calibrator(predictions, method="temperature").evaluation["temperature"]
    pooled = vd.fit_calibrator(predictions, method="temperature", combine="log-pool").evaluation["temperature"]
    named = vd.fit_calibrator(predictions, method="log-pool+temperature").evaluation["log-pool+temperature"]
    assert pooled.summary["nll"].value == named.summary["nll"].value != plain.summary["nll"].value


def test_calibrated_file_reads_back(predictions, tmp_path):
    applied = vd.apply_calibrator(vd.Spline().fit(predictions), predictions)
    applied.save(tmp_path / "out.npz")
    again = vd.load(tmp_path / "out.npz")
    assert again.n_sources == 1
    np.testing.assert_array_equal(again.labels, predictions.labels)
    with pytest.raises(errors.FileFormatError, match=r"use the extension \.npz"):
        applied.save(tmp_path / "out.pdf")
    assert "mean confidence" in applied._repr_html_()


def test_method_names():
    assert [method.name for method in resolve_methods(["DE", "ptde", "mean", "TS"])] == [
        "mean",
        "ptde-kde",
        "temperature",
    ]
    assert [method.name for method in resolve_methods(["Log-Pool+Matrix"])] == ["log-pool+matrix"]
    with pytest.raises(errors.UnknownNameError, match=r"combine for matrix 'magic' is unknown"):
        resolve_methods(["magic+matrix"])
    with pytest.raises(errors.UnknownNameError, match="method 'magic' is unknown; choose one of: members, mean"):
        resolve_methods(["magic"])


def test_bad_input(predictions):
    with pytest.raises(errors.LabelError, match="needs labels"):
        vd.evaluate(predictions.values)
    with pytest.raises(errors.LabelError, match="3 labels for 600 samples"):
        vd.evaluate(predictions.values, [0, 1, 2])
    with pytest.raises(errors.UnknownNameError, match="parameter of spline 'n_nots' is unknown"):
        vd.fit_calibrator(predictions, method="spline", n_nots=3)


def test_absent_sources(predictions):
    values = predictions.values.copy()
    values[2, ::3] = np.nan
    holed = vd.Predictions(values, predictions.labels)
    n_absent, n_all = len(values[2, ::3]), values.shape[0] * values.shape[1]
    with pytest.warns(errors.AbsentSourceWarning, match=f"^{n_absent:,} of {n_all:,} predictions are absent"):
        evaluation = vd.evaluate(holed, methods=["members", "atde", "ptde"], floors=False)
    assert evaluation["source:2"].summary.n_samples < evaluation["source:1"].summary.n_samples
    assert np.isfinite(evaluation["ptde-kde"].summary["ece"].value)


def test_absent_source_has_no_row(predictions):
    values = predictions.values.copy()
    values[2] = np.nan
    holed = vd.Predictions(values, predictions.labels)
    with pytest.warns(errors.AbsentSourceWarning) as said:
        evaluation = vd.evaluate(holed, methods=["members", "mean"], floors=False)
    assert [str(warning.message) for warning in said][1] == "source 2 has no prediction for any sample; it has no row."
    assert "source:2" not in [scores.method for scores in evaluation.methods]
    assert "source:1" in [scores.method for scores in evaluation.methods]


def test_auto_says_what_it_chose_on_the_half_and_on_all(predictions):
    calibration = vd.fit_calibrator(predictions, method="auto", candidates=["ts", "spline"])
    choices = ("identity on mean", "temperature on mean", "spline on mean")
    assert calibration.chosen in choices
    assert calibration.chosen_on_half in choices
    assert calibration.to_dict()["chosen_on_half"] == calibration.chosen_on_half
    assert vd.fit_calibrator(predictions, method="ts").chosen_on_half is None


def test_report_uses_the_parameters_of_the_calibrator(predictions):
    only = {"candidates": ["spline"]}
    report = vd.build_report(predictions, method="auto", methods=[], parameters=only, intervals=False)
    assert report.data.parameters["auto"]["candidates"] == ["spline"]
    assert report.data.method_title in ("auto (Spline on mean)", "auto (identity on mean)")
