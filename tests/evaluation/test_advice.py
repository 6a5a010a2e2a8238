"""Advice: the simplest method that cannot be told from the best."""

import json

import numpy as np
import pytest

import veridical as vd
from veridical import metrics
from veridical.evaluation.advice import advise
from veridical.evaluation.engine import Engine
from veridical.evaluation.evaluating import run_evaluation
from veridical.evaluation.methods import resolve_methods

pytestmark = pytest.mark.compiled


def advice_on(probs, labels, *methods, **options):
    engine = Engine(vd.Predictions(probs, labels))
    settings = {"floors": True, "intervals": False, "random_state": 0}
    run = run_evaluation(engine, resolve_methods(["mean", *methods]), settings)
    return advise(run, engine, methods[-1] if methods else "mean", **options), run


def sampled(n_samples, sharpness, seed=0):
    """Three sources around distributions that the labels are drawn from; at sharpness 1 they are calibrated."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(4, 0.5), n_samples)
    labels = (rng.random(n_samples)[:, None] > np.cumsum(true, axis=1)).sum(axis=1).clip(0, 3)
    logits = sharpness * np.log(true + 1e-9) + 0.02 * rng.normal(size=(3, n_samples, 4))
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    return probs / probs.sum(axis=2, keepdims=True), labels


def test_advice_prefers_the_mean_where_it_is_calibrated():
    advice, _ = advice_on(*sampled(1500, 1.0), "temperature", change_labels=False)
    assert advice.confidence.recommended == "mean"
    assert advice.confidence["mean"].at_floor


def test_advice_prefers_temperature_to_a_spline_that_does_as_well():
    advice, _ = advice_on(*sampled(2000, 2.0), "temperature", "spline", change_labels=False)
    assert advice.confidence.recommended == "temperature"
    assert not advice.confidence["mean"].ties_with_best
    assert advice.confidence["spline"].ties_with_best
    assert "TS, which is simpler" in " ".join(advice.sentences)


def test_advice_names_a_better_method():
    advice, _ = advice_on(*sampled(2000, 2.0), "temperature", "atde", change_labels=False)
    assert advice.sentences[0].startswith("TS does better here: ECE")


def test_standings_are_the_paired_comparison_of_the_metrics():
    probs, labels = sampled(600, 2.0)
    advice, run = advice_on(probs, labels, "temperature", change_labels=False)
    standing = advice.confidence["mean"]
    mean, best = (run.outcomes[name].vectors for name in ("mean", advice.confidence.best))
    expected = metrics.compare("ece", mean.correct, mean.confidence, best.confidence, n_resamples=400)
    assert standing.behind == pytest.approx(expected.difference)
    assert (standing.low, standing.high) == pytest.approx((expected.low, expected.high))


def test_advice_says_what_letting_labels_change_gains():
    probs, labels = sampled(1500, 1.0)
    skewed = probs * np.array([1.0, 1.0, 1.0, 12.0])
    advice, _ = advice_on(skewed / skewed.sum(axis=2, keepdims=True), labels, "temperature")
    gain = advice.label_change
    assert gain.nll_after < gain.nll_before
    assert gain.accuracy_after > gain.accuracy_before
    points = 100 * (gain.accuracy_after - gain.accuracy_before)
    assert advice.sentences[-1] == (
        f"Letting labels change lowers NLL from {gain.nll_before:.3f} to {gain.nll_after:.3f} and raises accuracy by "
        f"{points:.1f} points: "
        'objective="distribution", keep_labels=False.'
    )


def test_advice_is_silent_where_labels_need_not_change():
    advice, _ = advice_on(*sampled(1500, 1.0), "temperature")
    assert advice.label_change is None


def test_advice_goes_to_json_and_prints():
    advice, _ = advice_on(*sampled(200, 2.0), "temperature", change_labels=False)
    assert json.loads(json.dumps(advice.to_dict()))["confidence"]["recommended"] == advice.confidence.recommended
    assert "TS *" in str(advice)


def test_calibration_comes_with_advice():
    calibration = vd.fit_calibrator(*sampled(400, 2.0), method="spline")
    assert [scores.method for scores in calibration.evaluation.methods] == ["mean", "spline"]
    assert "temperature" in calibration.advice.confidence
    assert calibration.to_dict()["advice"]["method"] == "spline"
