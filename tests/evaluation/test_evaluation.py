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
    found = vd.evaluate(predictions, floors=False)
    truth = vd.discover(predictions)
    mean = vd.discover(predictions, max_iter=0)
    for method, probs in (("mean", mean.probs), ("atde", truth.probs)):
        scores = found[method]
        assert scores.summary["ece"].value == metrics.ece(predictions.labels, probs)
        assert scores.summary["nll"].value == metrics.nll(predictions.labels, probs)
        assert scores.gap == pytest.approx(probs.max(axis=1).mean(dtype=float) - scores.summary["accuracy"].value)
        assert scores.labels_changed == 0
    third = found["source:2"]
    assert third.title == "c"
    assert third.is_source
    assert third.summary["brier"].value == pytest.approx(metrics.brier(predictions.labels, predictions.values[2]))
    assert found.protocol == "all samples"


def test_calibrators_are_scored_on_the_half_they_have_not_seen(predictions):
    found = vd.evaluate(predictions, methods=["mean", "temperature"], floors=False, random_state=7)
    fitted_on, scored_on = predictions.split(random_state=7)
    probs = vd.Temperature().fit(fitted_on).predict_proba(scored_on)
    assert found["temperature"].summary["nll"].value == metrics.nll(scored_on.labels, probs)
    assert found["mean"].summary.n_samples == scored_on.n_samples
    assert found.protocol == "held-out half"


def test_floors_and_intervals(predictions):
    found = vd.evaluate(predictions, methods=["mean"], intervals=True)["mean"].summary["ece"]
    assert found.low <= found.value <= found.high
    assert 0 < found.floor < found.floor_high


def test_json_and_tables(predictions):
    found = vd.evaluate(predictions, floors=False)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["data"]["n_sources"] == 6
    assert document["methods"][-1]["summary"]["accuracy"]["value"] == found["atde"].summary["accuracy"].value
    heading, rows = found.rows()
    assert all(len(row) == len(heading) for row in rows)
    assert rows[0][0] == "one source (mean of 6)"
    assert found._repr_html_().count("<tr>") == 1 + len(rows)


def test_same_seed_same_numbers(predictions):
    first = vd.evaluate(predictions, methods=["mean", "ptde"], n_threads=1)
    second = vd.evaluate(predictions, methods=["mean", "ptde"], n_threads=2)
    assert first.to_dict() == second.to_dict()


def test_hash_knows_the_data(predictions):
    whole = vd.evaluate(predictions, methods=["mean"], floors=False).data
    assert whole.sha256 == vd.inspect(predictions).data.sha256
    assert whole.sha256 != vd.inspect(predictions.select(sources=[1, 0, 2, 3, 4, 5])).data.sha256


def test_compare(predictions):
    found = vd.compare_calibrators(predictions, methods=["mean", "temperature", "spline"], n_splits=3)
    for i in range(3):
        fitted_on, scored_on = predictions.split(random_state=i)
        probs = vd.Temperature().fit(fitted_on).predict_proba(scored_on)
        assert found.values["temperature"]["ece_kde"][i] == metrics.ece_kde(scored_on.labels, probs)
    means = {method: found.mean(method, "nll") for method in found.methods}
    assert found.best("nll") == min(means, key=means.get)
    assert found.best("accuracy") in found.methods
    assert found.std("spline", "ece") == np.std(found.values["spline"]["ece"], ddof=1)
    json.dumps(found.to_dict())
    _, rows = found.rows()
    starred = [{row[0] for row in rows if row[j].endswith("*")} for j in range(1, 7)]
    assert all(starred)
    assert starred[-1] == {"DE", "TS", "Spline"}  # none of them changes a label


@pytest.mark.filterwarnings("error")
def test_infinite_losses_are_said_in_words():
    """Votes give the right class no chance where all are wrong: the mean's NLL is infinite in some split."""
    rng = np.random.default_rng(0)
    votes, labels = np.eye(3)[rng.integers(0, 3, (3, 200))], rng.integers(0, 3, 200)
    found = vd.compare_calibrators(votes, labels, methods=["mean", "irm"], n_splits=2)
    heading, rows = found.rows()
    assert rows[0][heading.index("NLL")] == "infinite"
    assert np.isnan(found.std("mean", "nll"))
    assert not any(word in cell for row in rows for cell in row for word in ("inf±", "nan"))


def test_fit_and_apply(predictions, tmp_path):
    found = vd.fit_calibrator(predictions, method="spline")
    expected = vd.Spline().fit(predictions).predict_confidence(predictions)
    applied = vd.apply_calibrator(found.calibrator, predictions)
    np.testing.assert_array_equal(applied.confidence, expected)
    assert found.evaluation.protocol == "held-out half"
    assert found.chosen is None
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
        found = vd.evaluate(holed, methods=["members", "atde", "ptde"], floors=False)
    assert found["source:2"].summary.n_samples < found["source:1"].summary.n_samples
    assert np.isfinite(found["ptde-kde"].summary["ece"].value)


def test_absent_source_has_no_row(predictions):
    values = predictions.values.copy()
    values[2] = np.nan
    holed = vd.Predictions(values, predictions.labels)
    with pytest.warns(errors.AbsentSourceWarning) as said:
        found = vd.evaluate(holed, methods=["members", "mean"], floors=False)
    assert [str(warning.message) for warning in said][1] == "source 2 has no prediction for any sample; it has no row."
    assert "source:2" not in [scores.method for scores in found.methods]
    assert "source:1" in [scores.method for scores in found.methods]


def test_auto_says_what_it_chose_on_the_half_and_on_all(predictions):
    found = vd.fit_calibrator(predictions, method="auto", candidates=["ts", "spline"])
    choices = ("identity on mean", "temperature on mean", "spline on mean")
    assert found.chosen in choices
    assert found.chosen_on_half in choices
    assert found.to_dict()["chosen_on_half"] == found.chosen_on_half
    assert vd.fit_calibrator(predictions, method="ts").chosen_on_half is None


def test_report_uses_the_parameters_of_the_calibrator(predictions):
    only = {"candidates": ["spline"]}
    report = vd.build_report(predictions, method="auto", methods=[], parameters=only, intervals=False)
    assert report.data.parameters["auto"]["candidates"] == ["spline"]
    assert report.data.method_title in ("auto (Spline on mean)", "auto (identity on mean)")
