"""Differences between methods: which one is better, the bounds of intervals, and pairs over halves by the formula."""

import math
import statistics

import numpy as np
import pytest

from veridical.evaluation.differences import Difference, bootstrap_differences, differences_over_halves
from veridical.metrics import METRICS
from veridical.metrics.sample import Sample

#: Student's t at 97.5%, by degrees of freedom, from a printed table.
T_975 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764}


@pytest.mark.parametrize(
    ("metric", "low", "high", "better"),
    [
        ("ece", 0.01, 0.03, "b"),
        ("ece", -0.03, -0.01, "a"),
        ("accuracy", 0.01, 0.03, "a"),
        ("accuracy", -0.03, -0.01, "b"),
        ("ece", -0.01, 0.03, None),
        ("ece", 0.0, 0.03, None),
        ("nll", 1e-8, 1e-7, None),  # rounding of float32
        ("nll", math.nan, math.nan, None),
        ("nll", 0.5, math.inf, "b"),
    ],
)
def test_better_method_needs_an_interval_without_zero(metric, low, high, better):
    middle = high if math.isinf(high) else (low + high) / 2
    assert Difference(metric, "a", "b", middle, low, high).better == better


@pytest.mark.parametrize("n_splits", [2, 3, 4, 5])
def test_pairs_over_halves_follow_the_formula(n_splits, rng):
    a, b = rng.uniform(0.2, 0.3, n_splits).tolist(), rng.uniform(0.2, 0.3, n_splits).tolist()
    (pair,) = differences_over_halves({"a": {"nll": a}, "b": {"nll": b}}).pairs
    gaps = [x - y for x, y in zip(a, b, strict=True)]
    reach = T_975[n_splits - 1] * statistics.stdev(gaps) * math.sqrt(1 / n_splits + 1)
    assert pair.difference == pytest.approx(statistics.mean(gaps))
    assert (pair.low, pair.high) == pytest.approx(
        (statistics.mean(gaps) - reach, statistics.mean(gaps) + reach), rel=1e-4
    )


def test_intervals_stay_within_what_a_metric_can_be():
    values = {
        "a": {"accuracy": [0.99, 1.0, 0.7], "ece": [0.0, 0.01, 0.3]},
        "b": {"accuracy": [0.1] * 3, "ece": [0.9] * 3},
    }
    differences = differences_over_halves(values)
    assert differences.intervals["a", "accuracy"][1] == 1.0
    assert differences.intervals["a", "ece"][0] == 0.0
    assert differences.intervals["b", "ece"] == pytest.approx((0.9, 0.9))
    for pair in differences.pairs:
        assert -METRICS[pair.metric].highest <= pair.low <= pair.high <= METRICS[pair.metric].highest


def test_wider_confidence_gives_wider_intervals():
    values = {"a": {"nll": [0.5, 0.6, 0.8]}}
    narrow, wide = (
        differences_over_halves(values, confidence_level=level).intervals["a", "nll"] for level in (0.5, 0.9)
    )
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_every_pair_is_there_once_by_every_metric():
    values = {name: {"ece": [0.1, 0.2], "nll": [0.5, 0.4]} for name in "abc"}
    pairs = [(pair.metric, pair.a, pair.b) for pair in differences_over_halves(values).pairs]
    assert pairs == [(metric, *names) for metric in ("ece", "nll") for names in ("ab", "ac", "bc")]


def test_bootstrap_of_accuracy_redraws_samples(rng):
    """A resample's accuracy is a binomial share: its deviation is sqrt(p (1 - p) / n)."""
    correct = np.arange(400) % 4 > 0
    sample = Sample(np.full(400, 0.75), correct)
    differences = bootstrap_differences({"a": sample}, ["accuracy"], n_resamples=2000)
    low, high = differences.intervals["a", "accuracy"]
    deviation = math.sqrt(0.75 * 0.25 / 400)
    assert (low, high) == pytest.approx((0.75 - 1.96 * deviation, 0.75 + 1.96 * deviation), abs=0.006)


def test_bootstrap_pairs_are_antisymmetric(rng):
    correct = rng.random(100) < 0.6
    first, second = Sample(np.full(100, 0.6), correct), Sample(np.full(100, 0.9), ~correct)
    (one,) = bootstrap_differences({"a": first, "b": second}, ["accuracy"], n_resamples=50).pairs
    (other,) = bootstrap_differences({"b": second, "a": first}, ["accuracy"], n_resamples=50).pairs
    assert (one.difference, one.low, one.high) == pytest.approx((-other.difference, -other.high, -other.low))
    assert one.better == other.better


def test_bootstrap_does_not_depend_on_threads(rng):
    sample = Sample(np.full(50, 0.6), rng.random(50) < 0.6)
    results = [
        bootstrap_differences({"a": sample}, ["accuracy"], n_resamples=64, n_threads=n_threads) for n_threads in (1, 2)
    ]
    assert results[0] == results[1]
    assert results[0] != bootstrap_differences({"a": sample}, ["accuracy"], n_resamples=64, random_state=1)
