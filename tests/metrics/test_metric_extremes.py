"""Extreme weights, masked arrays, foreign types and arrays in place of options."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veridical import errors, metrics

#: Weights that happen to sum to 1 are as good as others here.
pytestmark = pytest.mark.filterwarnings("ignore::veridical.errors.AmbiguousInputWarning")

PROBS = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
LABELS = np.array([0, 1, 1, 0, 0])
CORRECT = PROBS.argmax(axis=1) == LABELS
CONFIDENCE = PROBS.max(axis=1)
BY_CONFIDENCE = [name for name, metric in metrics.METRICS.items() if not metric.needs_vectors]
#: Metrics in which the weights' sum plays no part, so that a common factor changes nothing.
SCALE_FREE = {
    "ece": {"binning": "width"},
    "classwise_ece": {"binning": "width"},
    "smooth_ece": {},
    "ks_error": {},
    "nll": {},
    "brier": {},
    "accuracy": {},
    "calibrated_nll": {},
    "error_auroc": {},
}


class Unconvertible:
    """An object whose conversion to an array fails."""

    def __array__(self, *_, **__):
        raise RuntimeError("on another device\nsecond line")


@pytest.mark.parametrize("factor", [1e308, 1e300, 1e-300, 5e-324])
@pytest.mark.parametrize("name", SCALE_FREE)
def test_extreme_weights_equal_ordinary_ones(name, factor):
    metric = metrics.METRICS[name].function
    ordinary = metric(LABELS, PROBS, sample_weight=np.full(5, 0.25), **SCALE_FREE[name])
    extreme = metric(LABELS, PROBS, sample_weight=np.full(5, factor), **SCALE_FREE[name])
    assert extreme == pytest.approx(ordinary, abs=1e-12)


@pytest.mark.parametrize("name", ["ece", "classwise_ece"])
def test_huge_weights_count_many_repetitions(name):
    metric = metrics.METRICS[name].function
    many = metric(LABELS, PROBS, sample_weight=np.full(5, 1e9), n_bins=3)
    assert metric(LABELS, PROBS, sample_weight=np.full(5, 1e308), n_bins=3) == pytest.approx(many, abs=1e-6)


extreme_weights = st.lists(
    st.sampled_from([0.0, 5e-324, 1e-310, 1e-200, 0.5, 1.0, 3.0, 2.0**53, 1e20, 1e200, 1e308]), min_size=5, max_size=5
).filter(any)


@pytest.mark.parametrize("name", metrics.METRICS)
@given(extreme_weights)
def test_extreme_weights_give_a_value_in_range(name, weights):
    metric = metrics.METRICS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", errors.AmbiguousInputWarning)
        value = metric.function(LABELS, PROBS, sample_weight=weights)
    if not np.isnan(value):
        assert 0 <= value <= metric.highest + 1e-12
    else:  # undefined only where all that counts is right, or all is wrong
        assert name == "error_auroc"
        counted = CORRECT[np.array(weights) > 0]
        assert counted.all() or not counted.any()


@given(extreme_weights)
def test_extreme_weights_give_a_curve_and_edges(weights):
    edges = metrics.bin_edges(CONFIDENCE, 3, weight=weights)
    assert np.all(np.diff(edges) >= 0)
    curve = metrics.reliability_curve(LABELS, PROBS, n_bins=3, sample_weight=weights)
    filled = curve.counts > 0
    assert np.isfinite(curve.counts).all()
    assert np.all((curve.accuracy[filled] >= 0) & (curve.accuracy[filled] <= 1 + 1e-12))
    assert np.all(curve.low[filled] <= curve.high[filled])


def test_largest_gap_of_a_bin_of_tiny_weight():
    """Its mean confidence is 0.7, not the rounding of 0.7 times the smallest float."""
    gap = metrics.ece([True, False], [0.9, 0.7], n_bins=10, binning="width", norm="max", sample_weight=[1, 5e-324])
    assert gap == pytest.approx(0.7)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_masked_arrays_are_rejected(name):
    metric = metrics.METRICS[name].function
    hidden = [False, True, False, False, False]
    with pytest.raises(errors.LabelError, match="labels: a masked array would lose its mask"):
        metric(np.ma.array(LABELS, mask=hidden), PROBS)
    with pytest.raises(errors.DtypeError, match="probs: a masked array would lose its mask"):
        metric(LABELS, np.ma.masked_greater(PROBS, 0.85))
    with pytest.raises(errors.DtypeError, match="sample_weight: a masked array"):
        metric(LABELS, PROBS, sample_weight=np.ma.array(np.ones(5), mask=hidden))


@pytest.mark.parametrize("name", BY_CONFIDENCE)
def test_masked_outcomes_are_rejected(name):
    with pytest.raises(errors.DtypeError, match="y_true: a masked array"):
        metrics.METRICS[name].function(np.ma.array(CORRECT, mask=[1, 0, 0, 0, 0]), CONFIDENCE)


def test_objects_that_are_not_arrays_are_rejected():
    for call in (
        lambda bad: metrics.ece(LABELS, bad),
        lambda bad: metrics.ece(bad, PROBS),
        lambda bad: metrics.ece(bad, CONFIDENCE),
        lambda bad: metrics.ece(LABELS, PROBS, sample_weight=bad),
        lambda bad: metrics.reliability_curve(LABELS, PROBS, edges=bad),
        lambda bad: metrics.noise_floor("ece", bad),
        lambda bad: metrics.bin_edges(bad),
    ):
        with pytest.raises(errors.InvalidInputError, match=r"type Unconvertible .*on another device") as caught:
            call(Unconvertible())
        assert "\n" not in str(caught.value)


def test_tensors_that_numpy_cannot_read_are_rejected():
    torch = pytest.importorskip("torch")
    probs = torch.tensor(PROBS)
    for tensor, problem in ((probs.to_sparse(), "a sparse or quantised tensor"), (probs.to("meta"), "a meta tensor")):
        with pytest.raises(errors.DtypeError, match=f"probs is {problem}"):
            metrics.ece(LABELS, tensor)


def test_tensors_give_the_figures_of_arrays():
    torch = pytest.importorskip("torch")
    probs = torch.tensor(PROBS)
    for tensor in (probs, probs.clone().requires_grad_()):
        assert metrics.ece(torch.tensor(LABELS), tensor) == metrics.ece(LABELS, PROBS)


@pytest.mark.parametrize("option", [np.array([1, 2]), np.ones((2, 2)), np.array([]), [1], np.timedelta64(3), 10**400])
def test_options_that_are_not_scalars_are_rejected(option):
    for call in (
        lambda: metrics.ece(LABELS, PROBS, n_bins=option),
        lambda: metrics.ece(LABELS, PROBS, norm=option),
        lambda: metrics.ece(CORRECT, CONFIDENCE, binning=option),
        lambda: metrics.ece_kde(LABELS, PROBS, bandwidth=option),
        lambda: metrics.summary(LABELS, PROBS, floors=option),
        lambda: metrics.summary(LABELS, PROBS, intervals=option),
        lambda: metrics.summary(LABELS, PROBS, confidence_level=option),
        lambda: metrics.bootstrap("ece", LABELS, PROBS, n_resamples=option),
        lambda: metrics.noise_floor("ece", CONFIDENCE, n_draws=option),
        lambda: metrics.noise_floor(option, CONFIDENCE),
        lambda: metrics.predictive_uncertainty(np.stack((PROBS, PROBS)), sources_axis=option),
    ):
        with pytest.raises(errors.ParameterError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_quantiles_must_be_a_list_of_numbers():
    for quantiles in (np.array(0.5), np.array([1], dtype="m8[s]"), ["a"], {"a": 1}, [0.5, np.nan], [[0.5]]):
        with pytest.raises(errors.InvalidInputError, match="quantile"):
            metrics.noise_floor("ece", CONFIDENCE, quantiles=quantiles, n_draws=2)


def test_labels_in_half_precision_are_accepted():
    assert metrics.accuracy(LABELS.astype(np.float16), PROBS) == metrics.accuracy(LABELS, PROBS)
