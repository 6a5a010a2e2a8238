"""The verdict reads right in every case that it may meet."""

from dataclasses import replace

import numpy as np
import pytest
from page_checks import labelled_ensemble

import veridical as vd
from veridical.evaluation import Evaluation, MethodScores
from veridical.metrics import Summary, SummaryRow
from veridical.report.prepare import prepare_report
from veridical.report.verdict import verdict_of


def scores(method, ece, *, floor=0.01, floor_high=0.015, gap=0.0, accuracy=0.9, changed=0, n_samples=5000):
    """Scores as ``evaluate`` gives them, as far as the verdict looks."""
    rows = (SummaryRow("ece", ece, floor, floor_high), SummaryRow("accuracy", accuracy))
    return MethodScores(method, method, Summary(rows, n_samples), accuracy + gap, gap, changed)


@pytest.fixture(scope="module")
def inspection():
    """Without the values of sources, whose sentences have tests of their own."""
    return replace(vd.inspect(labelled_ensemble(20, 50)), value=None)


def judged(inspection, *methods, title="pTDE", other_half=()):
    evaluation = Evaluation(inspection.data, methods, "held-out half", 0, {}, other_half)
    return verdict_of(evaluation, inspection, methods[-1].method, title)


def test_verdict_on_an_under_confident_mean(inspection):
    text, tone = judged(inspection, scores("mean", 0.024, gap=-0.023), scores("ptde-kde", 0.012, floor=0.011))
    assert text == (
        "The mean of your 20 sources is under-confident by 2.3 points; pTDE brings ECE from 2.4% to 1.2%, at the noise "
        "floor of 1.1%. No label changes."
    )
    assert tone == "good"


def test_verdict_claims_calibration_only_on_both_halves(inspection):
    methods = scores("mean", 0.048, gap=-0.048), scores("temperature", 0.015, floor=0.012, floor_high=0.018)
    both = (scores("temperature", 0.017, floor=0.012, floor_high=0.018),)
    text, tone = judged(inspection, *methods, title="TS", other_half=both)
    assert "TS brings ECE from 4.8% to 1.5% (1.7% with the halves swapped), at the noise floor of 1.2%." in text
    assert tone == "good"
    one = (scores("temperature", 0.024, floor=0.014, floor_high=0.021),)
    text, tone = judged(inspection, *methods, title="TS", other_half=one)
    assert (
        "TS brings ECE from 4.8% to 1.5% (2.4% with the halves swapped), above the noise floor of 1.4% (by chance at "
        "most 2.2%) on one: slightly miscalibrated."
    ) in text
    assert tone == "better"
    text, _ = judged(inspection, methods[0], scores("temperature", 0.03), title="TS", other_half=one)
    assert "on both: still miscalibrated." in text
    close = (scores("temperature", 0.0224, floor=0.014, floor_high=0.0209),)
    text, _ = judged(inspection, *methods, title="TS", other_half=close)
    assert "to 1.50% (2.24% with the halves swapped), above the noise floor of 1.40% (by chance at most 2.22%)" in text


def test_verdict_on_a_mean_that_is_calibrated_on_one_half_only(inspection):
    other_half = (scores("mean", 0.03), scores("ptde-kde", 0.03))
    text, tone = judged(inspection, scores("mean", 0.012, gap=0.012), scores("ptde-kde", 0.011), other_half=other_half)
    assert "cannot be told from calibrated" not in text
    assert "miscalibrated" in text
    assert tone == "better"
    text, _ = judged(inspection, scores("mean", 0.012), scores("ptde-kde", 0.013), other_half=other_half[1:])
    assert "With pTDE ECE is 1.3% (3.0% with the halves swapped), above the noise floor" in text


def test_verdict_on_an_over_confident_mean(inspection):
    text, tone = judged(inspection, scores("mean", 0.08, gap=0.08), scores("ptde-kde", 0.03))
    assert "over-confident by 8.0 points" in text
    assert "still above the noise floor of 1.0%" in text
    assert tone == "better"


def test_verdict_on_errors_that_cancel_out(inspection):
    text, _ = judged(inspection, scores("mean", 0.05, gap=0.001), scores("ptde-kde", 0.03))
    assert "too sure of some samples and not sure enough of others" in text
    assert "0.1 points above its accuracy" in text


def test_verdict_on_a_calibrated_mean(inspection):
    text, tone = judged(inspection, scores("mean", 0.012), scores("ptde-kde", 0.013))
    assert text.startswith("The mean of your 20 sources cannot be told from calibrated with 5,000 samples: ECE is 1.2%")
    assert "pTDE has nothing to repair: ECE goes from 1.2% to 1.3%, within the noise." in text
    assert tone == "good"


def test_verdict_on_a_method_that_spoils_a_calibrated_ensemble(inspection):
    text, tone = judged(inspection, scores("mean", 0.012), scores("ptde-kde", 0.05))
    assert "pTDE makes it worse: ECE rises to 5.0%, above its noise floor of 1.0%." in text
    assert tone == "bad"


def test_verdict_on_a_method_that_lowers_the_error_of_a_calibrated_ensemble_and_its_floor_more(inspection):
    before = scores("mean", 0.07, floor=0.06, floor_high=0.08)
    text, tone = judged(inspection, before, scores("ptde-kde", 0.064, floor=0.05, floor_high=0.06))
    assert "With pTDE ECE goes from 7.0% to 6.4%, which is above its own noise floor of 5.0%." in text
    assert "worse" not in text
    assert tone == "better"


@pytest.mark.parametrize(("after", "words"), [(0.06, "goes from 5.0% to 6.0%"), (0.0501, "stays at 5.0%")])
def test_verdict_on_a_method_that_does_not_help(inspection, after, words):
    text, tone = judged(inspection, scores("mean", 0.05, gap=0.05), scores("ptde-kde", after))
    assert f"pTDE does not help: ECE {words}, and the noise floor is 1.0%." in text
    assert tone == "bad"


def test_verdict_counts_changed_labels(inspection):
    before, after = scores("mean", 0.05, gap=0.05), scores("tde", 0.012, accuracy=0.85, changed=300)
    text, tone = judged(inspection, before, after, title="TDE")
    assert "300 of 5,000 labels change, and accuracy goes from 90.0% to 85.0%." in text
    assert tone == "bad"
    text, tone = judged(inspection, before, scores("tde", 0.012, changed=1), title="TDE")
    assert "1 of 5,000 labels changes, and accuracy goes from 90.0% to 90.0%." in text
    assert tone == "good"


def test_verdict_on_the_mean_alone(inspection):
    text, _ = judged(inspection, scores("mean", 0.05, gap=-0.05))
    assert text.endswith("under-confident by 5.0 points; ECE is 5.0%, where perfect calibration would show 1.0%.")
    assert "label" not in text


@pytest.mark.compiled
def test_verdict_on_one_source():
    data = prepare_report(labelled_ensemble(1, 300, sharpness=0.4), intervals=False)
    assert data.verdict.startswith("Your one source is under-confident by")
    assert data.sweep == ()
    assert data.disputed == ()


@pytest.mark.compiled
def test_verdict_without_labels():
    data = prepare_report(labelled_ensemble(3, 50).values)
    assert data.tone == "unknown"
    assert data.evaluation is None
    assert data.verdict.startswith("3 sources, 50 samples, no labels: how well calibrated they are cannot be measured.")


@pytest.mark.compiled
def test_verdict_names_a_source_that_harms_the_others():
    ensemble = labelled_ensemble(5, 1000, seed=3)
    values = ensemble.values.copy()
    values[2] = np.roll(values[2], 1, axis=1)
    named = vd.Predictions(values, ensemble.labels, source_names=["a", "b", "odd one", "d", "e"])
    data = prepare_report(named, method="mean", methods=[], intervals=False)
    assert "odd one harms the others: without it the NLL of the mean falls." in data.verdict
    assert "stands apart" not in data.verdict
    unlabelled = prepare_report(vd.Predictions(values, source_names=named.source_names), intervals=False)
    assert "odd one stands apart from the others: truth discovery trusts it" in unlabelled.verdict
    assert "20.0% would be an equal share." in unlabelled.verdict


@pytest.mark.compiled
def test_verdict_does_not_blame_the_best_source():
    """Four sources that share their errors trust each other; the one that is right stands apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 400)
    common = np.where(rng.random(400) < 0.55, labels, rng.integers(0, 4, 400))
    values = np.full((5, 400, 4), 0.05)
    for s, named in enumerate([common] * 4 + [labels]):
        values[s, np.arange(400), named] = 0.85
    values[:4] += 0.01 * rng.random((4, 400, 4))
    values /= values.sum(axis=2, keepdims=True)
    named = vd.Predictions(values, labels, source_names=["a", "b", "c", "d", "best"])
    verdict = prepare_report(named, method="mean", methods=[], intervals=False).verdict
    assert "best stands apart" not in verdict
    assert "trusts best" not in verdict
    assert "best harms" not in verdict
    assert "The mean is not better than its best source, best: accuracy 100.0%" in verdict


@pytest.mark.compiled
def test_verdict_says_what_auto_chose():
    data = prepare_report(labelled_ensemble(3, 200, sharpness=0.5), method="auto", methods=[], intervals=False)
    assert data.method_title.startswith("auto (")
    assert data.method_title in data.verdict
