"""Every metric against a plain-loop transcription of its definition, and at its edges."""

import math

import naive
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_metric_kernels import outcomes

from veridical import metrics
from veridical.metrics.binned import bin_edges
from veridical.metrics.kde import ReflectingGrid


@settings(max_examples=examples(150))
@given(outcomes(), st.integers(1, 20), st.sampled_from(["mass", "width"]), st.sampled_from([1, 2, "max"]))
def test_ece(sample, n_bins, binning, norm):
    confidence, correct, _ = sample
    edges = naive.equal_mass_edges(confidence, n_bins) if binning == "mass" else np.linspace(0, 1, n_bins + 1)
    np.testing.assert_array_equal(bin_edges(confidence, n_bins, binning), edges)
    error = metrics.ece(correct, confidence, n_bins=n_bins, binning=binning, norm=norm)
    assert error == pytest.approx(naive.ece(confidence, correct, edges, norm), abs=1e-12)


@settings(max_examples=examples(100))
@given(outcomes(), st.integers(1, 8))
def test_debiased_ece(sample, n_bins):
    confidence, correct, _ = sample
    edges = naive.equal_mass_edges(confidence, n_bins)
    error = metrics.debiased_ece(correct, confidence, n_bins=n_bins)
    assert error**2 == pytest.approx(naive.debiased_ece(confidence, correct, edges) ** 2, abs=1e-12)


def test_classwise_ece(rng):
    probs, labels = rng.dirichlet(np.ones(4), 50), rng.integers(0, 4, 50)
    expected = np.mean([naive.ece(p, labels == l, naive.equal_mass_edges(p, 5)) for l, p in enumerate(probs.T)])
    assert metrics.classwise_ece(labels, probs, n_bins=5) == pytest.approx(expected)


@settings(max_examples=examples(100))
@given(outcomes())
def test_ks_error(sample):
    confidence, correct, _ = sample
    assert metrics.ks_error(correct, confidence) == pytest.approx(naive.ks_error(confidence, correct), abs=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("bandwidth", [0.004, 0.05, 0.3, 0.6, 1.7])
@pytest.mark.parametrize("ends", [(), (0.0, 1.0)])
def test_ece_kde(rng, bandwidth, ends):
    """Including kernels that are wider than [0, 1], whose mirror images are mirrored again."""
    confidence = np.concatenate((rng.beta(4, 2, 18), ends))
    correct = rng.random(len(confidence)) < 0.6
    expected = naive.ece_kde(confidence, correct, bandwidth, 3000)
    assert metrics.ece_kde(correct, confidence, bandwidth=bandwidth) == pytest.approx(expected, abs=2e-5)


def test_ece_kde_bandwidth(rng):
    confidence, correct = rng.random(30), rng.random(30) < 0.5
    bandwidth = naive.kde_bandwidth(confidence, correct)
    expected = metrics.ece_kde(correct, confidence, bandwidth=bandwidth)
    assert metrics.ece_kde(correct, confidence) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shift", [1e-3, 1e-6, 1e-9])
def test_ece_kde_of_a_narrow_cluster_keeps_its_shape(rng, shift):
    """The grid scales with the data, so a small interval has the same relative accuracy."""
    spread, correct = rng.random(200), rng.random(200) < 0.5
    wide = metrics.ece_kde(correct, 0.5 + 1e-2 * spread)
    narrow = metrics.ece_kde(correct, 0.5 + shift * spread)
    assert narrow == pytest.approx(wide, abs=6e-3)


def test_density_integrates_to_the_number_of_samples(rng):
    confidence = rng.random(50)
    grid = ReflectingGrid.around(confidence, 0.2)
    masses = np.zeros((1, grid.n_cells + 1))
    masses[0, [0, 3, grid.n_cells]] = 1.0, 2.0, 4.0
    smoothed = grid.smooth(masses, grid.kernel_spectrum())[0]
    assert smoothed.sum() - (smoothed[0] + smoothed[-1]) / 2 == pytest.approx(7.0)
    assert smoothed.min() > -1e-12


@pytest.mark.compiled
def test_smooth_ece_is_the_error_at_its_own_bandwidth(rng):
    confidence = rng.beta(4, 2, 25)
    correct = rng.random(25) < confidence**2
    sigma = metrics.smooth_ece(correct, confidence)
    assert naive.smooth_ece_at(confidence, correct, sigma, 1000) == pytest.approx(sigma, abs=1e-4)


@pytest.mark.compiled
def test_smooth_ece_of_a_large_calibrated_sample_is_small(rng):
    confidence = rng.random(400_000)
    assert metrics.smooth_ece(rng.random(400_000) < confidence, confidence) < 6e-3


@settings(max_examples=examples(100))
@given(outcomes(max_size=15))
def test_selective(sample):
    confidence, correct, doubt = sample
    assert metrics.aurc(correct, confidence, doubt=doubt) == pytest.approx(naive.aurc(correct, doubt), abs=1e-9)
    if 0 < correct.sum() < len(correct):
        expected = naive.error_auroc(correct, -confidence)
        assert metrics.error_auroc(correct, confidence) == pytest.approx(expected)


def test_proper_scores(rng):
    probs, labels = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)
    losses = [-math.log(p[y]) for p, y in zip(probs, labels, strict=True)]
    squares = [sum((p[l] - (l == y)) ** 2 for l in range(3)) for p, y in zip(probs, labels, strict=True)]
    assert metrics.nll(labels, probs) == pytest.approx(np.mean(losses))
    assert metrics.brier(labels, probs) == pytest.approx(np.mean(squares))
    assert metrics.accuracy(labels, probs) == np.mean(probs.argmax(axis=1) == labels)


def test_calibrated_nll_undoes_a_temperature(rng):
    logits = 3 * rng.standard_normal((2000, 4))
    calibrated = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (calibrated.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1)
    sharp = calibrated**4 / (calibrated**4).sum(axis=1, keepdims=True)
    assert metrics.calibrated_nll(labels, sharp) == pytest.approx(metrics.calibrated_nll(labels, calibrated), abs=1e-6)
    assert metrics.calibrated_nll(labels, sharp) == pytest.approx(metrics.nll(labels, calibrated), abs=0.01)
    assert metrics.nll(labels, sharp) > metrics.nll(labels, calibrated) + 0.2


def test_calibrated_nll_at_its_bounds():
    """The best temperature is 0 if all are right and infinite if all are wrong; both stop at their bounds."""
    probs = np.tile([0.6, 0.4], (10, 1))
    assert metrics.calibrated_nll(np.zeros(10, int), probs) == pytest.approx(math.log1p((2 / 3) ** 100))
    assert metrics.calibrated_nll(np.ones(10, int), probs) == pytest.approx(math.log1p((3 / 2) ** 0.01))


CONFIDENCE_METRICS = [name for name, metric in metrics.METRICS.items() if not metric.needs_vectors]
CALIBRATION_ERRORS = [name for name in CONFIDENCE_METRICS if metrics.METRICS[name].is_calibration_error]


@pytest.mark.parametrize("name", CALIBRATION_ERRORS)
@pytest.mark.parametrize("right", [True, False])
def test_one_sample(name, right):
    gap = 0.0 if name == "debiased_ece" else abs(0.7 - right)  # one sample has no variance
    assert getattr(metrics, name)([right], [0.7]) == pytest.approx(gap)


@pytest.mark.parametrize("name", CALIBRATION_ERRORS)
@pytest.mark.parametrize("confidence", [0.0, 0.1, 0.25, 0.7, 1.0])
@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong_at_one_confidence(name, confidence, right):
    expected = abs(confidence - right)
    assert getattr(metrics, name)([right] * 40, [confidence] * 40) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["ece", "ks_error", "smooth_ece", "ece_kde", "debiased_ece"])
@pytest.mark.parametrize("right", [True, False])
def test_all_right_or_all_wrong(name, right, rng):
    """All gaps have one sign, so they add up; only smoothing near 0 and 1, and squaring, move the sum."""
    confidence = rng.random(60)
    gaps = np.abs(confidence - right)
    value = getattr(metrics, name)([right] * 60, confidence)
    if name == "debiased_ece":
        assert gaps.mean() < value <= np.sqrt((gaps**2).mean())
    else:
        assert value == pytest.approx(gaps.mean(), abs=0.02 if name == "ece_kde" else 1e-7)


@pytest.mark.parametrize("name", CALIBRATION_ERRORS)
def test_error_is_zero_at_one_calibrated_confidence(name):
    assert getattr(metrics, name)([True, True, True, False] * 10, [0.75] * 40) == pytest.approx(0.0, abs=1e-12)


def test_bandwidth_of_no_or_one_right_sample_is_zero():
    confidence = [0.2, 0.5, 0.9]
    for right in ([False, False, False], [False, True, False]):
        assert metrics.ece_kde(right, confidence) == pytest.approx(abs(np.mean(confidence) - np.mean(right)))


def test_bandwidth_of_equal_confidences_is_zero():
    """The mean of three times 0.1 is not 0.1 in floating point; the difference is not a bandwidth."""
    assert metrics.ece_kde([True, True, True, False], [0.1] * 4) == pytest.approx(0.65)


@pytest.mark.parametrize("right", [True, False])
def test_selective_metrics_of_all_right_or_all_wrong(right):
    assert math.isnan(metrics.error_auroc([right] * 3, [0.5, 0.6, 0.7]))
    assert metrics.aurc([right] * 3, [0.5, 0.6, 0.7]) == pytest.approx(0.0 if right else 1.0)


def test_nll_of_probability_zero_is_infinite():
    probs = [[1.0, 0.0], [0.5, 0.5]]
    assert metrics.nll([1, 0], probs) == math.inf
    assert metrics.calibrated_nll([1, 0], probs) == math.inf
    assert metrics.nll([1, 0], probs, sample_weight=[0, 1]) == pytest.approx(math.log(2))
    assert metrics.brier([1, 0], probs) == pytest.approx(1.25)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_metric_accepts_absent_classes(name, rng):
    """Class 2 neither occurs nor is predicted."""
    probs = np.column_stack((rng.uniform(0.3, 0.6, 40), rng.uniform(0.3, 0.6, 40), np.full(40, 0.05)))
    probs /= probs.sum(axis=1, keepdims=True)
    value = metrics.METRICS[name].function(rng.integers(0, 2, 40), probs)
    assert np.isfinite(value)
    assert value >= 0


@pytest.mark.parametrize("name", metrics.METRICS)
def test_one_sample_with_vectors(name):
    value = metrics.METRICS[name].function([1], [[0.25, 0.75]])
    expected = {"nll": -math.log(0.75), "calibrated_nll": -math.log(0.75), "brier": 0.125, "accuracy": 1.0, "aurc": 0.0}
    if name == "error_auroc":
        assert math.isnan(value)
    elif name == "debiased_ece":
        assert value == 0.0
    else:
        assert value == pytest.approx(expected.get(name, 0.25))


def test_top_label_of_two_classes(rng):
    """A third class of probability 0 changes nothing."""
    p = rng.random(100)
    two, labels = np.column_stack((p, 1 - p)), rng.integers(0, 2, 100)
    three = np.column_stack((two, np.zeros(100)))
    for name in ("ece", "ece_kde", "ks_error", "smooth_ece", "debiased_ece", "accuracy", "brier", "nll", "aurc"):
        metric = getattr(metrics, name)
        assert metric(labels, two) == pytest.approx(metric(labels, three), abs=1e-12)


def test_debiased_error_by_effective_size():
    """Fractional weights have no scale; equal ones are none at all, and a bin of one sample still has no error."""
    rng = np.random.default_rng(4)
    confidence = rng.beta(4, 1, 60)
    correct = rng.random(60) < 0.6
    plain = metrics.debiased_ece(correct, confidence, binning="width")
    assert plain > 0.1
    for scale in (1 / 61, 1 / 7, 1e-200):
        weighted = metrics.debiased_ece(correct, confidence, binning="width", sample_weight=np.full(60, scale))
        assert weighted == pytest.approx(plain)
    weight = rng.random(60)
    expected = 0.0
    for low, high in ((0, 0.5), (0.5, 1)):
        inside = (confidence > low) & (confidence <= high)
        w, share = weight[inside], weight[inside].sum() / weight.sum()
        accuracy = np.average(correct[inside], weights=w)
        variance = accuracy * (1 - accuracy) / (w.sum() ** 2 / (w**2).sum() - 1)
        expected += share * ((np.average(confidence[inside], weights=w) - accuracy) ** 2 - variance)
    error = metrics.debiased_ece(correct, confidence, n_bins=2, binning="width", sample_weight=weight)
    assert error == pytest.approx(np.sqrt(expected))
    assert metrics.debiased_ece([False], [0.9], sample_weight=[0.3]) == 0.0
    negligible = metrics.debiased_ece([True, False], [0.1, 0.9], n_bins=2, binning="width", sample_weight=[0.5, 1e-200])
    assert negligible == 0.0


def test_ece_kde_of_very_wide_kernels_is_uniform():
    """P is 1 and A the accuracy: what remains is the integral of |x - 0.75|."""
    correct, confidence = [True, True, True, False], [0.6, 0.7, 0.8, 0.9]
    for bandwidth in (50.0, 1e3, 1e12, np.inf):
        assert metrics.ece_kde(correct, confidence, bandwidth=bandwidth) == pytest.approx(0.3125, abs=1e-5)
    near, beyond = (metrics.ece_kde(correct, confidence, bandwidth=width) for width in (85.0, 1e3))
    assert near == pytest.approx(beyond, abs=1e-8)
