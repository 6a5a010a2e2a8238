"""How often intervals contain the true calibration error, and how often noise floors are exceeded, by simulation.

``VERIDICAL_HUNT=8 pytest -n 0 -s -m simulation tests/metrics/test_coverage_of_intervals.py`` prints the coverage of
each cell with its standard error: the table in docs/reference/metrics.md.  Without the variable there are an eighth as
many simulations of each, which is enough to notice an interval that is wrong.
"""

import numpy as np
import pytest
from conftest import examples
from scipy.special import ndtr

from veridical import metrics
from veridical.metrics.intervals import Resamples
from veridical.metrics.registry import METRICS
from veridical.metrics.sample import Sample

RNG = np.random.default_rng(5)
POPULATION = np.clip(RNG.beta(4, 1.5, 100_000), 0.02, 0.998)
#: How far confidences exceed the accuracy, up to a factor: everywhere alike, or increasing, from below to above it.
GAPS = {"shift": np.ones_like(POPULATION), "slope": POPULATION - 0.6}


def chances(shape, error):
    """Chances to be right, for a mean gap of ``error``."""
    gap = GAPS[shape]
    return np.clip(POPULATION - gap * error / np.abs(gap).mean(), 0.0, 1.0)


def true_error(metric, chance):
    if metric != "ks_error":
        return np.abs(POPULATION - chance).mean()
    order = np.argsort(POPULATION)
    return np.abs(np.cumsum((POPULATION - chance)[order])).max() / len(order)


def share_of_misses(metric, shape, error, n_samples, n_simulations, n_resamples, seed=0):
    """(true error below the interval, above it), each a share of the simulations."""
    rng, chance = np.random.default_rng(seed), chances(shape, error)
    true, missed = true_error(metric, chance), np.zeros(2)
    for k in range(n_simulations):
        drawn = rng.integers(0, len(POPULATION), n_samples)
        sample = Sample(POPULATION[drawn], rng.random(n_samples) < chance[drawn])
        how = {"n_resamples": n_resamples, "random_state": k, "n_threads": 1}
        low, high = Resamples([METRICS[metric]], [sample], **how).interval(0, 0)
        missed += [true < low - 1e-9, true > high + 1e-9]
    return missed / n_simulations


@pytest.mark.parametrize("error", [0.0, 0.12])
def test_few_intervals_miss_the_true_error(error):
    """Of a calibrated model most contain 0; the bootstrap's basic intervals contain it in half of the cases."""
    assert share_of_misses("ece", "shift", error, 300, 60, 200).sum() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.simulation
@pytest.mark.parametrize("n_samples", [300, 2000, 20_000])
@pytest.mark.parametrize("error", [0.0, 0.03, 0.12])
@pytest.mark.parametrize("shape", ["shift", "slope"])
@pytest.mark.parametrize("metric", ["ece", "ece_kde", "ks_error"])
def test_intervals_contain_the_true_error(metric, shape, error, n_samples):
    n_simulations = examples(50 if n_samples < 20_000 else 25)
    below, above = share_of_misses(metric, shape, error, n_samples, n_simulations, 500, seed=1)
    coverage = 1 - below - above
    standard_error = np.sqrt(coverage * (1 - coverage) / n_simulations)
    print(f"\n{metric} {shape} {error} N={n_samples}: {100 * coverage:.1f} +- {100 * standard_error:.1f} %")
    assert coverage >= 0.93 - 3 * standard_error


def rejected(make, n_samples, n_simulations, n_resamples=500):
    """How often two methods of equal error are told apart."""
    rng, count = np.random.default_rng(7), 0
    for k in range(n_simulations):
        chance = rng.choice(POPULATION, n_samples)
        correct = rng.random(n_samples) < chance
        pair = [Sample(confidence, correct) for confidence in make(chance, rng)]
        how = {"n_resamples": n_resamples, "random_state": k, "n_threads": 1}
        _, low, high = Resamples([METRICS["ece"]], pair, **how).difference(0, 1, 0)
        count += low > 1e-9 or high < -1e-9
    return count / n_simulations


def one_knows_less(chance, rng):
    """Both calibrated; the second has two confidences only, so that its noise floor is lower."""
    few = POPULATION > 0.73
    return chance, np.where(chance > 0.73, POPULATION[few].mean(), POPULATION[~few].mean())


def equally_overconfident(chance, rng):
    return [np.clip(chance + 0.03 + 0.02 * rng.standard_normal(len(chance)), 0, 1) for _ in range(2)]


def test_few_calibrated_methods_are_told_apart():
    assert rejected(one_knows_less, 300, 60, 200) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.simulation
@pytest.mark.parametrize("n_samples", [300, 2000])
@pytest.mark.parametrize("make", [one_knows_less, equally_overconfident])
def test_methods_of_equal_error_are_told_apart_in_one_of_twenty_cases(make, n_samples):
    n_simulations = examples(50)
    share = rejected(make, n_samples, n_simulations)
    standard_error = np.sqrt(share * (1 - share) / n_simulations)
    print(f"\n{make.__name__} N={n_samples}: {100 * share:.1f} +- {100 * standard_error:.1f} % told apart")
    assert share <= 0.06 + 3 * np.sqrt(0.05 * 0.95 / n_simulations)


def grouped(rng, n_groups, size, correlation):
    """(correct, confidence, groups) of calibrated confidences whose outcomes depend on each other within groups."""
    group = np.repeat(np.arange(n_groups), size)
    confidence = rng.choice(POPULATION, len(group))
    latent = np.sin(np.pi / 2 * correlation)
    normal = np.sqrt(latent) * rng.standard_normal(n_groups)[group]
    normal += np.sqrt(1 - latent) * rng.standard_normal(len(group))
    return ndtr(normal) < confidence, confidence, group


def share_above_floor(n_groups, size, correlation, n_simulations):
    rng, count = np.random.default_rng(3), 0
    for k in range(n_simulations):
        correct, confidence, group = grouped(rng, n_groups, size, correlation)
        how = {"groups": group, "random_state": k, "n_threads": 1}
        row = metrics.summary(correct, confidence, **how)["ece"]
        count += row.value > row.floor_high
    return count / n_simulations


@pytest.mark.simulation
@pytest.mark.parametrize("correlation", [0.0, 0.2])
@pytest.mark.parametrize("n_groups", [4, 12, 60])
def test_grouped_floors_are_exceeded_in_at_most_one_of_twenty_cases(n_groups, correlation):
    """2 to 5 % without correlation, 5 to 6 % with; 5.4 % are above the 95 % quantile of 200 draws of their own kind."""
    n_simulations = examples(40)
    share = share_above_floor(n_groups, 40, correlation, n_simulations)
    print(f"\n{n_groups} groups, correlation {correlation}: {100 * share:.1f} % above the floor")
    assert share <= 0.06 + 2 * np.sqrt(0.06 * 0.94 / n_simulations)


def test_one_of_two_halves_is_rarely_above_the_floor():
    """Two looks: 10 % of calibrated methods are above the 95 % quantile on one half."""
    rng, counts = np.random.default_rng(0), np.zeros(2)
    for k in range(80):
        rows = []
        for half in range(2):
            confidence = rng.choice(POPULATION, 300)
            value = metrics.ece(rng.random(300) < confidence, confidence)
            floor = metrics.noise_floor("ece", confidence, n_draws=100, random_state=2 * k + half, n_threads=1)
            rows.append(metrics.SummaryRow("ece", value, floor.mean, floor.quantiles[0.95]))
        counts += [any(row.value > row.most_by_chance(looks) for row in rows) for looks in (1, 2)]
    assert counts[1] / 80 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 80)
    assert counts[1] < counts[0]
