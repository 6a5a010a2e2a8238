"""Properties that hold for any input."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_metric_kernels import outcomes

from veridical import metrics
from veridical.metrics.binned import bin_edges, sums_per_bin
from veridical.metrics.sample import Sample

#: Weights that happen to sum to 1 are as good as others here.
pytestmark = pytest.mark.filterwarnings("ignore::veridical.errors.AmbiguousInputWarning")

CONFIDENCE_METRICS = [name for name, metric in metrics.METRICS.items() if not metric.needs_vectors]
CALIBRATION_ERRORS = [name for name in CONFIDENCE_METRICS if metrics.METRICS[name].is_calibration_error]
WITHOUT_HALVES = [name for name in metrics.METRICS if name != "calibrated_nll"]  # its halves depend on the order

same = {"rel": 1e-9, "abs": 1e-9, "nan_ok": True}


@st.composite
def labelled(draw):
    """(labels, probs) with ties between classes and between samples."""
    n, n_classes = draw(st.integers(1, 12)), draw(st.integers(2, 4))
    votes = draw(st.lists(st.lists(st.integers(0, 5), min_size=n_classes, max_size=n_classes), min_size=n, max_size=n))
    probs = np.array(votes, dtype=np.float64) + 0.25
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    return np.array(labels), probs / probs.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", WITHOUT_HALVES)
@settings(max_examples=examples(30))
@given(sample=labelled(), seed=st.integers(0, 10**6))
def test_metric_ignores_the_order_of_samples(name, sample, seed):
    labels, probs = sample
    order = np.random.default_rng(seed).permutation(len(labels))
    metric = metrics.METRICS[name].function
    assert metric(labels[order], probs[order]) == pytest.approx(metric(labels, probs), **same)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_metric_ignores_the_order_of_classes(name, rng):
    probs, labels = rng.dirichlet(np.ones(5), 60), rng.integers(0, 5, 60)
    order = rng.permutation(5)
    metric = metrics.METRICS[name].function
    assert metric(np.argsort(order)[labels], probs[:, order]) == pytest.approx(metric(labels, probs), **same)


@pytest.mark.parametrize("name", WITHOUT_HALVES)
@settings(max_examples=examples(30))
@given(sample=labelled(), seed=st.integers(0, 10**6))
def test_whole_weights_are_repetitions(name, sample, seed):
    labels, probs = sample
    times = np.random.default_rng(seed).integers(0, 4, len(labels))
    times[0] = max(times[0], 1)
    metric = metrics.METRICS[name].function
    repeated = metric(np.repeat(labels, times), np.repeat(probs, times, axis=0))
    assert metric(labels, probs, sample_weight=times) == pytest.approx(repeated, **same)


@pytest.mark.parametrize("n_bins", [1, 4, 15])
def test_whole_weights_are_repetitions_in_larger_samples(n_bins, rng):
    confidence, correct, times = rng.random(200), rng.random(200) < 0.7, rng.integers(0, 4, 200)
    for binning in ("mass", "width"):
        for norm in (1, 2, "max"):
            options = {"n_bins": n_bins, "binning": binning, "norm": norm}
            repeated = metrics.ece(np.repeat(correct, times), np.repeat(confidence, times), **options)
            assert metrics.ece(correct, confidence, sample_weight=times, **options) == pytest.approx(repeated)


@pytest.mark.parametrize("name", ["nll", "brier", "accuracy", "ks_error", "ece", "smooth_ece", "error_auroc"])
def test_fractional_weights_count_by_their_ratios(name, rng):
    probs, labels = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    weight, metric = rng.random(80), metrics.METRICS[name].function
    expected = metric(labels, probs, sample_weight=weight)
    assert metric(labels, probs, sample_weight=weight / weight.sum()) == pytest.approx(expected)


@settings(max_examples=examples(200))
@given(outcomes(), st.integers(1, 20))
def test_error_is_at_least_the_mean_gap(sample, n_bins):
    confidence, correct, _ = sample
    gap = abs(confidence.mean() - correct.mean())
    for binning in ("mass", "width"):
        for norm in (1, 2, "max"):
            assert gap - 1e-12 <= metrics.ece(correct, confidence, n_bins=n_bins, binning=binning, norm=norm) <= 1
    assert gap - 1e-12 <= metrics.ks_error(correct, confidence) <= 1
    assert gap - 1e-7 <= metrics.smooth_ece(correct, confidence) <= 1
    assert 0 <= metrics.ece_kde(correct, confidence) <= 1
    assert metrics.ece(correct, confidence, n_bins=1) == pytest.approx(gap, abs=1e-12)


@settings(max_examples=examples(150))
@given(outcomes(), st.floats(0, 1), st.integers(1, 10))
def test_ece_does_not_fall_when_a_bin_is_split(sample, cut, n_bins):
    confidence, correct, _ = sample
    edges = bin_edges(confidence, n_bins)
    finer = np.sort(np.append(edges, cut))
    checked = Sample(confidence, correct)

    def error(edges):
        _, total, right = sums_per_bin(checked, edges)
        return np.abs(total - right).sum()

    assert error(finer) >= error(edges) - 1e-12


@settings(max_examples=examples(50))
@given(outcomes(), st.integers(1, 7))
def test_ece_does_not_fall_when_bins_are_halved(sample, n_bins):
    confidence, correct, _ = sample
    coarse = metrics.ece(correct, confidence, n_bins=n_bins, binning="width")
    assert metrics.ece(correct, confidence, n_bins=2 * n_bins, binning="width") >= coarse - 1e-12


@pytest.mark.compiled
@pytest.mark.parametrize("name", CALIBRATION_ERRORS)
def test_floor_of_a_calibrated_sample_is_its_error(name, rng):
    """Averaged over 40 calibrated samples, the error is the floor's mean."""
    confidence = rng.beta(5, 1, 2000)
    errors = [getattr(metrics, name)(rng.random(2000) < confidence, confidence) for _ in range(40)]
    floor = metrics.noise_floor(name, confidence, n_draws=100)
    assert np.mean(errors) == pytest.approx(floor.mean, abs=4 * np.std(floor.draws) * np.sqrt(1 / 40 + 1 / 100))
    assert floor.quantiles[0.05] <= floor.quantiles[0.5] < floor.quantiles[0.95]


def test_metric_of_float32_is_close_to_that_of_float64(rng):
    probs, labels = rng.dirichlet(np.ones(4), 500), rng.integers(0, 4, 500)
    for name, metric in metrics.METRICS.items():
        expected = metric.function(labels, probs)
        assert metric.function(labels, probs.astype(np.float32)) == pytest.approx(expected, abs=1e-5), name
        assert metric.function(labels, probs.astype(np.float16)) == pytest.approx(expected, abs=0.02), name


@pytest.mark.compiled
def test_ece_of_large_samples_is_summed_in_blocks(rng):
    """More samples than one block: the same result as in one piece, for any number of threads."""
    n = (1 << 19) + 12345
    confidence = rng.random(n)
    correct = rng.random(n) < confidence
    edges = np.linspace(0, 1, 16)
    which = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, 14)
    expected = np.abs(np.bincount(which, confidence - correct)).sum() / n
    assert metrics.ece(correct, confidence, binning="width") == pytest.approx(expected, abs=1e-12)
    ordered = np.sort(confidence)
    edges = np.concatenate(([0.0], ordered[np.arange(1, 15) * (n // 15)], [1.0]))
    which = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, 14)
    expected = np.abs(np.bincount(which, confidence - correct)).sum() / n
    assert metrics.ece(correct, confidence) == pytest.approx(expected, abs=1e-12)
