"""Evaluations, fits with evidence, calibrated predictions and facts: small data, labels of some samples, bad input."""

import hashlib
import json
import math

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical import errors, metrics
from veridical.evaluation.comparison import run_halves
from veridical.evaluation.engine import Engine, half_split
from veridical.evaluation.methods import resolve_methods
from veridical.evaluation.source_sweep import DiscoveryRule, sweep_sources

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(7)
    probs = random_ensemble(rng, 3, 60, 3)
    labels = np.array([rng.choice(3, p=row) for row in probs.mean(axis=0)])
    return vd.Predictions(probs, labels)


@pytest.fixture(scope="module")
def partly_labelled(predictions):
    """Every third label is not known; and the predictions of the others alone."""
    labels = predictions.labels.copy()
    labels[::3] = -1
    known = predictions.select(samples=np.flatnonzero(labels >= 0))
    return vd.Predictions(predictions.values, labels), known


# --- evaluations


def test_gap_is_mean_confidence_minus_accuracy():
    probs = np.array([[[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.8, 0.2]]])
    scores = vd.evaluate(probs, [0, 1, 1, 1], methods=["mean"], floors=False)["mean"]
    assert scores.mean_confidence == pytest.approx(0.75, abs=1e-5)
    assert scores.gap == pytest.approx(0.25, abs=1e-5)
    assert scores.summary["accuracy"].value == 0.5
    assert scores.summary.n_samples == 4


def test_table_of_an_evaluation_averages_the_sources(predictions):
    evaluation = vd.evaluate(predictions, methods=["members", "mean"], floors=False)
    heading, (sources, mean) = evaluation.rows()
    assert heading == ["method", "ECE-KDE", "ECE", "NLL", "Brier", "KS", "Acc", "gap"]
    alone = [metrics.nll(predictions.labels, source) for source in predictions]
    assert sources[0] == "one source (mean of 3)"
    assert sources[heading.index("NLL")] == f"{np.mean(alone):.4f}"
    assert mean[0] == "DE"
    assert mean[-1] == f"{100 * evaluation['mean'].gap:+.2f}"
    assert str(evaluation).startswith("3 sources, scored on all samples; errors and accuracy in %\n")


def test_evaluation_keeps_only_the_named_methods(predictions):
    evaluation = vd.evaluate(predictions, methods=["mean", "tde", "atde"], floors=False)
    part = evaluation.only("atde", "mean")
    assert [scores.method for scores in part.methods] == ["mean", "atde"]
    assert part["atde"] is evaluation["atde"]
    with pytest.raises(KeyError):
        part["tde"]


def test_evaluation_to_frame_has_one_row_per_method(predictions):
    evaluation = vd.evaluate(predictions, methods=["members", "tde"], floors=False)
    frame = evaluation.to_frame()
    assert frame["method"].tolist() == ["source:0", "source:1", "source:2", "tde"]
    assert frame["nll"][3] == evaluation["tde"].summary["nll"].value
    assert frame["labels_changed"][3] == evaluation["tde"].labels_changed


def test_labels_changed_are_predictions_that_differ_from_the_mean(predictions):
    evaluation = vd.evaluate(predictions, methods=["members", "tde"], floors=False)
    mean = predictions.values.mean(axis=0).argmax(axis=1)
    for s in range(3):
        assert evaluation[f"source:{s}"].labels_changed == (predictions.values[s].argmax(axis=1) != mean).sum()
    tde = vd.discover(predictions, accuracy_preserving=False).probs.argmax(axis=1)
    assert evaluation["tde"].labels_changed == (tde != mean).sum()


def test_floors_and_intervals_are_there_where_asked_for(predictions):
    plain = vd.evaluate(predictions, methods=["mean"], floors=False)["mean"].summary["ece"]
    assert (plain.floor, plain.floor_high, plain.low, plain.high) == (None,) * 4
    both = vd.evaluate(predictions, methods=["mean"], intervals=True)["mean"].summary
    assert both["nll"].floor is None  # not a calibration error
    assert both["nll"].low < both["nll"].value < both["nll"].high


def test_evaluation_reports_progress_of_every_method(predictions):
    calls = []
    vd.evaluate(predictions, methods=["members", "mean"], floors=False, progress=lambda *call: calls.append(call))
    assert calls == [(0, 2, "single sources"), (1, 2, "DE"), (2, 2, "done")]


def test_samples_without_label_are_not_scored(partly_labelled):
    some, known = partly_labelled
    partly = vd.evaluate(some, methods=["members", "mean"], floors=False)
    whole = vd.evaluate(known, methods=["members", "mean"], floors=False)
    assert partly.data.n_samples == known.n_samples == 40
    assert [scores.to_dict() for scores in partly.methods] == [scores.to_dict() for scores in whole.methods]


def test_calibrators_are_fitted_on_samples_with_labels(partly_labelled):
    some, known = partly_labelled
    for method in (vd.Temperature(), vd.HistogramBinning(), vd.PTDE()):  # weights of consensus and pools need no labels
        partly = method.fit(some).predict_proba(some)
        np.testing.assert_array_equal(partly, method.fit(known).predict_proba(some))
    first = vd.fit_calibrator(some, method="temperature")
    second = vd.fit_calibrator(known, method="temperature")
    assert first.calibrator.temperature_ == second.calibrator.temperature_
    assert first.evaluation.to_dict()["methods"] == second.evaluation.to_dict()["methods"]


def test_sources_agree_on_all_samples_and_are_right_on_labelled_ones(partly_labelled):
    some, known = partly_labelled
    for s, source in enumerate(vd.inspect(some).sources):
        assert source.accuracy == np.mean(known.values[s].argmax(axis=1) == known.labels)
        mean = some.values.mean(axis=0).argmax(axis=1)
        assert source.agreement == np.mean(some.values[s].argmax(axis=1) == mean)


@pytest.mark.parametrize("methods", [["mean"], ["mean", "temperature"]])
@pytest.mark.parametrize("seed", [-1, 0.5, "1"])
def test_evaluation_rejects_what_is_not_a_seed(predictions, methods, seed):
    with pytest.raises(errors.ParameterError, match=r"^random_state is .*; give a whole number"):
        vd.evaluate(predictions, methods=methods, random_state=seed)


@pytest.mark.parametrize("option", ["floors", "intervals"])
def test_evaluation_rejects_flags_that_are_words(predictions, option):
    with pytest.raises(errors.ParameterError) as caught:
        vd.evaluate(predictions, **{option: "no"})
    assert str(caught.value) == f"{option} is 'no'; give True or False."


def test_evaluation_of_no_samples_is_rejected(predictions):
    with pytest.raises(errors.ShapeError) as caught:
        vd.evaluate(predictions.select(samples=slice(0)))
    assert str(caught.value) == "there are no samples to score; at least one is needed."


def test_evaluation_with_a_numpy_seed_goes_to_json(predictions):
    evaluation = vd.evaluate(predictions, methods=["mean"], floors=False, random_state=np.int64(3))
    assert json.loads(json.dumps(evaluation.to_dict()))["random_state"] == 3


# --- data


def test_facts_hash_numbers_then_labels():
    probs = np.array([[[0.75, 0.25]], [[0.5, 0.5]]])
    bare, labelled = vd.Predictions(probs), vd.Predictions(probs, [1])
    digest = hashlib.sha256(probs.tobytes())
    assert vd.inspect(bare).data.sha256 == digest.hexdigest()
    digest.update(np.array([1], np.int64).tobytes())
    facts = vd.inspect(labelled).data
    assert facts.sha256 == digest.hexdigest()
    assert (facts.source_names, facts.class_names) == (("source 0", "source 1"), ("class 0", "class 1"))
    assert (facts.kind, facts.dtype) == ("probs", "float64")


# --- fits


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "mean"}, "mean has nothing to fit; name a calibrator, such as 'temperature'."),
        ({"method": "mean", "tol": 1}, "mean has no parameters; leave 'tol' out."),
        ({"method": "members"}, "'members' stands for every single source; name one method, such as 'ptde'."),
        ({"method": 5}, "method is 5; give the name of a method, such as 'temperature'."),
    ],
)
def test_fit_rejects_what_cannot_be_fitted(predictions, options, sentence):
    with pytest.raises(errors.ParameterError) as caught:
        vd.fit_calibrator(predictions, **options)
    assert str(caught.value) == sentence


def test_fit_uses_all_samples_and_evidence_one_half(predictions):
    calibration = vd.fit_calibrator(predictions, method="temperature", random_state=3)
    fitted_on, scored_on = predictions.split(random_state=3)
    assert calibration.calibrator.temperature_ == vd.Temperature().fit(predictions).temperature_
    probs = vd.Temperature().fit(fitted_on).predict_proba(scored_on)
    assert calibration.evaluation["temperature"].summary["nll"].value == metrics.nll(scored_on.labels, probs)
    assert [scores.method for scores in calibration.evaluation.methods] == ["mean", "temperature"]
    assert calibration.rows() == calibration.evaluation.rows()
    assert str(calibration).startswith("temperature, scored on held-out half; errors and accuracy in %\n")


def test_calibration_in_json_has_no_choice_unless_auto_made_one(predictions):
    document = json.loads(json.dumps(vd.fit_calibrator(predictions, method="temperature").to_dict()))
    assert (document["type"], document["method"]) == ("calibration", "temperature")
    assert "chosen" not in document
    assert [scores["method"] for scores in document["methods"]] == ["mean", "temperature"]
    auto = vd.fit_calibrator(predictions, method="auto", candidates=["ts"])
    document = auto.to_dict()
    assert document["chosen"] == auto.chosen
    assert {row["method"] for row in document["candidates"]} == {"identity", "temperature"}
    assert f"auto ({auto.chosen})" in str(auto)


# --- calibrated predictions


def test_calibrated_predictions_as_table_and_frame():
    probs = np.array([[[0.9, 0.1], [0.4, 0.6]]])
    calibrator = vd.Identity().fit(probs, [0, 1])
    result = vd.apply_calibrator(calibrator, vd.Predictions(probs, class_names=["cat", "dog"]))
    assert result.mean_confidence == pytest.approx(0.75)
    assert result.rows() == (["calibrated", ""], [["samples", "2"], ["mean confidence", "75.00 %"]])
    frame = result.to_frame()
    assert list(frame.columns) == ["prediction", "confidence", "cat", "dog"]
    assert frame["prediction"].tolist() == [0, 1]
    assert frame["dog"].tolist() == pytest.approx([0.1, 0.6])
    assert result.labels is None


def test_calibrated_predictions_of_no_samples_have_no_mean(predictions):
    calibrator = vd.Temperature().fit(predictions)
    result = vd.apply_calibrator(calibrator, predictions.values[:, :0])
    assert result.probs.shape == (0, 3)
    assert math.isnan(result.mean_confidence)


def test_calibrated_predictions_do_not_replace_their_input(predictions, tmp_path):
    path = tmp_path / "p.npz"
    vd.save(predictions, path)
    before = path.read_bytes()
    result = vd.apply_calibrator(vd.Temperature().fit(predictions), vd.load(path))
    with pytest.raises(errors.ParameterError, match="is the same file as the input"):
        result.save(path)
    assert path.read_bytes() == before


# --- halves and sweeps


def test_halves_equal_one_run_per_seed(predictions):
    methods = resolve_methods(["mean", "temperature"])
    runs = run_halves(Engine(predictions), methods, 3, 5)
    assert len(runs) == 3
    for i, outcomes in enumerate(runs):
        split = half_split(predictions, 5 + i)
        alone = Engine(predictions).run(methods, split, random_state=5 + i)
        assert [outcome.method.name for outcome in outcomes] == ["mean", "temperature"]
        for outcome, expected in zip(outcomes, alone, strict=True):
            np.testing.assert_array_equal(outcome.stated.confidence, expected.stated.confidence)
            np.testing.assert_array_equal(outcome.prediction, expected.prediction)
            assert len(outcome.prediction) == len(split.scored_on) == 30


@pytest.mark.parametrize(
    ("n_splits", "seed", "words"),
    [(0, 0, "n_splits is 0; give a whole number of at least 1."), (1, -1, "random_state is -1; give a whole number")],
)
def test_comparison_rejects_bad_numbers(predictions, n_splits, seed, words):
    with pytest.raises(errors.ParameterError, match=words):
        vd.compare_calibrators(predictions, methods=["mean"], n_splits=n_splits, random_state=seed)


def test_sweep_takes_its_own_rules(predictions):
    one_update = DiscoveryRule("one update", accuracy_preserving=True, tol=0.0, max_iter=1)
    sweep = sweep_sources(Engine(predictions), [2, 3], [one_update])
    assert set(sweep) == {(n, name) for n in (2, 3) for name in ("mean", "one update")}
    for n in (2, 3):
        truth = vd.discover(predictions.select(sources=slice(n)), tol=0.0, max_iter=1)
        np.testing.assert_allclose(sweep[n, "one update"].confidence, truth.probs.max(axis=1), atol=1e-12)
        np.testing.assert_array_equal(sweep[n, "one update"].correct, truth.prediction == predictions.labels)


def test_sweep_of_the_mean_leaves_absent_sources_out(predictions):
    values = predictions.values.copy()
    values[1, ::2] = np.nan
    sweep = sweep_sources(Engine(vd.Predictions(values, predictions.labels)), [1, 2, 3], [])
    for n in (1, 2, 3):
        expected = np.nanmean(values[:n], axis=0).max(axis=1)
        np.testing.assert_allclose(sweep[n, "mean"].confidence, expected, atol=2e-6)
