"""The calibrators' kernels against their plain twins."""

import naive
import numpy as np
import pytest
from ensembles import random_ensemble
from hypothesis import given
from hypothesis import strategies as st

import veridical as vd
from veridical._kernels.isotonic import pool_violators
from veridical._kernels.pooling import log_pool_loss, mixture_loss
from veridical._kernels.scaling import temperature_loss
from veridical.calibrate.isotonic import fit_steps
from veridical.combine.in_memory import SourcesInMemory


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=12))
def test_isotonic_steps(pairs):
    scores = np.array([score / 5 for score, _ in pairs])
    hits = np.array([hit for _, hit in pairs])
    thresholds, values = fit_steps(scores.copy(), scores[hits])
    expected = naive.isotonic(list(scores), [float(hit) for hit in hits])
    np.testing.assert_allclose(np.interp(list(expected), thresholds, values), list(expected.values()), atol=1e-12)
    assert (np.diff(thresholds) > 0).all()


def test_pool_violators_merges_until_means_rise():
    ends, values = pool_violators(np.array([0, 2, 4]), np.array([2, 4, 8]), np.array([2.0, 0.0, 3.0]))
    np.testing.assert_array_equal(ends, [[0, 3], [4, 7]])
    np.testing.assert_allclose(values, [0.5, 0.75])


@pytest.mark.parametrize("squared", [False, True])
def test_temperature_loss(rng, squared):
    probs = random_ensemble(rng, 1, 25, 6)[0]
    labels = rng.integers(0, 6, 25)
    logs = np.log(probs) - np.log(probs.max(axis=1, keepdims=True))
    for inverse in (0.3, 1.0, 2.5):
        loss, slope = temperature_loss(logs, labels, inverse, squared)
        rows = list(zip(logs.tolist(), labels.tolist(), strict=True))
        expected = sum(naive.temperature_loss(x, y, inverse, squared) for x, y in rows)
        assert loss == pytest.approx(expected, rel=1e-11)
        step = 1e-6
        ahead, behind = (
            sum(naive.temperature_loss(x, y, inverse + d, squared) for x, y in rows) for d in (step, -step)
        )
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-6)


def test_log_pool(rng):
    probs = random_ensemble(rng, 4, 20, 5)
    labels = rng.integers(0, 5, 20)
    weights = rng.normal(0.3, 0.2, 4)
    shares = np.repeat(weights[:, None], 20, axis=1)
    sources = SourcesInMemory(vd.Predictions(probs), vd.Identity()).few
    expected = [naive.log_pool(probs[:, n].tolist(), weights) for n in range(20)]
    np.testing.assert_allclose(sources.log_pool(weights[:, None], 1e-12), expected, atol=1e-12)

    def loss(at):
        return -sum(np.log(naive.log_pool(probs[:, n].tolist(), at)[labels[n]]) for n in range(20))

    gradient = np.zeros(4)
    assert log_pool_loss(np.log(probs), shares, labels, gradient) == pytest.approx(loss(weights), rel=1e-11)
    step = 1e-6
    for s in range(4):
        moved = np.eye(4)[s] * step
        assert gradient[s] == pytest.approx((loss(weights + moved) - loss(weights - moved)) / (2 * step), abs=1e-5)


def test_mixture_loss(rng):
    scores, shares, gradient = rng.uniform(0.01, 1, (30, 4)), rng.dirichlet(np.ones(4)), np.zeros(4)
    loss = mixture_loss(scores, np.ones((30, 4)), shares, gradient)
    assert loss == pytest.approx(-sum(np.log(sum(a * p for a, p in zip(shares, row, strict=True))) for row in scores))
    gains = naive.mixture_gains(scores.tolist(), shares)
    np.testing.assert_allclose(gradient, [30 - 30 * gain for gain in gains], atol=1e-10)


def test_mixture_loss_with_absent_sources(rng):
    scores, shares, gradient = rng.uniform(0.01, 1, (30, 4)), rng.dirichlet(np.ones(4)), np.zeros(4)
    present = (rng.random((30, 4)) < 0.6).astype(float)
    present[:, 2] = 1.0

    def expected(a):
        total = 0.0
        for n in range(30):
            here = [s for s in range(4) if present[n, s]]
            total -= np.log(sum(a[s] * scores[n, s] for s in here) / sum(a[s] for s in here))
        return total

    assert mixture_loss(scores * present, present, shares, gradient) == pytest.approx(expected(shares), rel=1e-11)
    for s in range(4):
        moved = np.eye(4)[s] * 1e-6
        slope = (expected(shares + moved) - expected(shares - moved)) / 2e-6
        assert gradient[s] == pytest.approx(slope, abs=1e-5)
