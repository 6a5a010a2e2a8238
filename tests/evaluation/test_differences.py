"""Which differences between methods are real."""

import numpy as np
import pytest

import veridical as vd
from veridical.evaluation.differences import bootstrap_differences, differences_over_halves
from veridical.metrics import SUMMARY_METRICS
from veridical.metrics.sample import Sample


def sample_of(confidence, correct, nll_shift=0.0, brier_shift=0.0):
    """A sample with the losses of two classes, shifted."""
    nll = -np.log(np.where(correct, confidence, 1 - confidence))
    sample = Sample(confidence, correct)
    sample.per_sample("nll", lambda: nll + nll_shift)
    sample.per_sample("brier", lambda: 2 * np.square(confidence - correct) + brier_shift)
    return sample


def calibrated(rng, n_samples=2000, shift=0.0):
    """Outcomes drawn from confidences, which are then shifted."""
    truth = rng.uniform(0.5, 0.9, n_samples)
    return sample_of(np.clip(truth + shift, 0, 1), rng.random(n_samples) < truth)


def better(differences):
    return {(pair.metric, pair.a, pair.b): pair.better for pair in differences.pairs}


@pytest.mark.compiled
def test_bootstrap_finds_real_differences_only(rng):
    good = calibrated(rng)
    bad = sample_of(np.clip(good.confidence + 0.1, 0, 1), good.correct, 0.05, 0.02)
    differences = bootstrap_differences({"good": good, "bad": bad, "same": good}, SUMMARY_METRICS, n_resamples=60)
    judged = better(differences)
    for metric in ("ece_kde", "ece", "ks_error", "nll", "brier"):
        assert judged[metric, "good", "bad"] == "good"
        assert judged[metric, "good", "same"] is None
    assert judged["accuracy", "good", "bad"] is None
    assert len(judged) == len(SUMMARY_METRICS) * 3
    for low, high in differences.intervals.values():
        assert 0 <= low <= high


@pytest.mark.compiled
def test_bootstrap_intervals_are_those_of_the_metric(rng):
    sample = calibrated(rng, 300)
    differences = bootstrap_differences({"a": sample}, ["ece"], n_resamples=60, random_state=4)
    reference = vd.metrics.bootstrap("ece", sample.correct, sample.confidence, n_resamples=60, random_state=4)
    assert differences.intervals["a", "ece"] == pytest.approx((reference.low, reference.high))
    assert differences.pairs == ()


def test_bootstrap_ignores_rounding(rng):
    sample = calibrated(rng)
    rounded = sample_of(sample.confidence, sample.correct, 1e-14, -1e-14)
    pairs = bootstrap_differences({"one": sample, "other": rounded}, ["nll", "brier"], n_resamples=60).pairs
    assert all(pair.difference != 0 for pair in pairs)
    assert {pair.better for pair in pairs} == {None}


@pytest.mark.filterwarnings("error")
def test_infinite_losses_are_worse_than_finite_ones_and_equal_to_each_other(rng):
    finite = calibrated(rng, 300)
    infinite = sample_of(finite.confidence, finite.correct, np.inf)
    samples = {"finite": finite, "one": infinite, "other": infinite}
    values = {name: {"nll": [sample.losses("nll").mean()] * 3} for name, sample in samples.items()}
    expected = {
        ("nll", "finite", "one"): "finite",
        ("nll", "finite", "other"): "finite",
        ("nll", "one", "other"): None,
    }
    assert better(bootstrap_differences(samples, ["nll"], n_resamples=60)) == expected
    assert better(differences_over_halves(values)) == expected


@pytest.mark.compiled
def test_halves_find_real_differences_only(rng):
    def ece(shift):
        return [vd.metrics.ece(s.correct, s.confidence) for s in (calibrated(rng, 3000, shift) for _ in range(5))]

    differences = differences_over_halves(
        {"a": {"ece": ece(0.0)}, "b": {"ece": ece(0.0)}, "shifted": {"ece": ece(0.1)}}
    )
    assert better(differences) == {("ece", "a", "b"): None, ("ece", "a", "shifted"): "a", ("ece", "b", "shifted"): "b"}


def test_intervals_over_halves_allow_for_overlap():
    """The deviation of the mean is sqrt(1/5 + 1) of one split's, not sqrt(1/5)."""
    drawn = [0.010, 0.012, 0.011, 0.013, 0.009]
    low, high = differences_over_halves({"a": {"nll": drawn}}).intervals["a", "nll"]
    reach = 2.7764451052 * np.std(drawn, ddof=1) * np.sqrt(1.2)
    assert (low, high) == pytest.approx((np.mean(drawn) - reach, np.mean(drawn) + reach))
