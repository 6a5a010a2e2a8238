"""The losses' gradients against finite differences, and their values against the metrics."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_metric_kernels import outcomes

from veridical import metrics
from veridical.metrics.gradients import histogram_loss, kde_loss


def differences(loss, confidence, step):
    """Central differences of a loss by each confidence, one-sided where [0, 1] ends."""
    result = np.empty(len(confidence))
    for i in range(len(confidence)):
        up, down = confidence.copy(), confidence.copy()
        up[i] = min(up[i] + step, 1.0)
        down[i] = max(down[i] - step, 0.0)
        result[i] = (loss(up) - loss(down)) / (up[i] - down[i])
    return result


@settings(max_examples=examples(100))
@given(outcomes(), st.integers(1, 10))
def test_histogram_value_is_the_metric(sample, n_bins):
    confidence, correct, _ = sample
    value, _ = histogram_loss(confidence, correct, metrics.bin_edges(confidence, n_bins))
    assert value == pytest.approx(metrics.ece(correct, confidence, n_bins=n_bins), abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_histogram_gradient(rng, weighted):
    confidence, correct = rng.random(60), rng.random(60) < 0.6
    weight = rng.random(60) if weighted else None
    edges = metrics.bin_edges(rng.random(100), 7)
    inside = np.abs(confidence[:, None] - edges).min(axis=1) > 1e-5  # where a step does not leave the bin
    _, gradient = histogram_loss(confidence, correct, edges, weight)
    expected = differences(lambda w: histogram_loss(w, correct, edges, weight)[0], confidence, 1e-6)
    np.testing.assert_allclose(gradient[inside], expected[inside], atol=1e-8)


def test_histogram_gradient_is_zero_in_a_balanced_bin():
    value, gradient = histogram_loss(np.array([0.5, 0.5]), np.array([True, False]), np.array([0.0, 1.0]))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


@settings(max_examples=examples(50))
@given(outcomes())
def test_kde_value_is_the_metric(sample):
    confidence, correct, _ = sample
    assert kde_loss(confidence, correct)[0] == pytest.approx(metrics.ece_kde(correct, confidence), abs=1e-12)


def quadrature_loss(confidence, correct, bandwidth, weight, n_cells=20_000):
    """The definition on a fine grid, without spreading samples onto it; for bandwidths of at most a third."""
    x = (np.arange(n_cells) + 0.5) / n_cells
    gap = np.zeros(n_cells)
    for w, c, a in zip(confidence, correct, weight, strict=True):
        for image in (w, -w, 2 - w):
            first, last = np.searchsorted(x, (image - 3 * bandwidth, image + 3 * bandwidth))
            near = x[first:last]
            gap[first:last] += a * (near - c) * (1 - ((near - image) / (3 * bandwidth)) ** 2) ** 3
    return np.abs(gap).sum() / n_cells * 35 / 32 / (3 * bandwidth) / weight.sum()


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_kde_gradient(rng, bandwidth, weighted):
    """Also at and near 0 and 1, where half of the gradient comes from the mirror images."""
    confidence = np.concatenate((rng.beta(4, 2, 20), 1 - rng.random(10) * bandwidth, [1 - 1e-3, 1e-3, 1.0, 0.0]))
    correct = rng.random(len(confidence)) < 0.7
    weight = rng.random(len(confidence)) if weighted else np.ones(len(confidence))
    value, gradient = kde_loss(confidence, correct, bandwidth, weight if weighted else None)
    assert value == pytest.approx(quadrature_loss(confidence, correct, bandwidth, weight), rel=1e-4)
    np.testing.assert_array_equal(gradient[-2:], 0.0)  # even about 0 and 1
    expected = differences(lambda w: quadrature_loss(w, correct, bandwidth, weight), confidence, 1e-6)
    scale = np.abs(gradient).max()
    np.testing.assert_allclose(gradient[:-2] / scale, expected[:-2] / scale, atol=2e-3)


@pytest.mark.compiled
def test_kde_gradient_along_a_direction(rng):
    """Moving many confidences at once averages over the grid's cells."""
    confidence = rng.beta(5, 1.5, 5000)
    correct = rng.random(5000) < confidence**1.5
    direction = rng.standard_normal(5000) * confidence * (1 - confidence)
    _, gradient = kde_loss(confidence, correct, 0.05)
    step = 1e-3
    rise = kde_loss(confidence + step * direction, correct, 0.05)[0]
    rise -= kde_loss(confidence - step * direction, correct, 0.05)[0]
    assert gradient @ direction == pytest.approx(rise / (2 * step), rel=1e-3, abs=1e-6)


def test_kde_gradient_without_bandwidth():
    value, gradient = kde_loss(np.full(4, 0.9), np.array([True, False, False, False]))
    assert value == pytest.approx(0.65)
    np.testing.assert_allclose(gradient, 0.25)


@pytest.mark.compiled
def test_kde_loss_falls_by_descent(rng):
    confidence = rng.beta(5, 1.5, 2000)
    correct = rng.random(2000) < confidence**2
    before, gradient = kde_loss(confidence, correct)
    after, _ = kde_loss(np.clip(confidence - 0.02 * np.sign(gradient), 0, 1), correct)
    assert after < before - 0.01
