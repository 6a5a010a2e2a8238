"""Bad input raises a named exception; the message names the problem, the place and what to do."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from veridical import errors, metrics

PROBS = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
LABELS = np.array([0, 1, 1])
RIGHT = np.array([True, True, False])
CONFIDENCE = np.array([0.7, 0.6, 0.5])


def with_value(index, value, array=PROBS):
    changed = np.array(array, dtype=np.float64)
    changed[index] = value
    return changed


BAD_VECTORS = {
    "too few labels": ((LABELS[:2], PROBS), errors.LabelError, "2 labels for 3 samples"),
    "label out of range": (([0, 1, 2], PROBS), errors.LabelError, "sample 2 is 2"),
    "negative label": (([0, -1, 1], PROBS), errors.LabelError, "sample 1 is -1"),
    "labels of text": ((["a", "b", "a"], PROBS), errors.LabelError, "dtype"),
    "booleans as labels": ((RIGHT, PROBS), errors.LabelError, "bool"),
    "NaN": ((LABELS, with_value((1, 0), np.nan)), errors.NotFiniteError, "sample 1"),
    "infinity": ((LABELS, with_value((1, 0), np.inf)), errors.NotFiniteError, "sample 1"),
    "both infinities": ((LABELS, with_value(1, [np.inf, -np.inf])), errors.NotFiniteError, "sample 1"),
    "huge numbers": ((LABELS, with_value(1, 1e308)), errors.NotNormalisedError, "sample 1"),
    "negative probability": ((LABELS, with_value((2, 1), -0.5)), errors.NegativeProbabilityError, "sample 2"),
    "not normalised": ((LABELS, with_value((0, 0), 0.9)), errors.NotNormalisedError, "sample 0"),
    "logits": ((LABELS, 5 * PROBS), errors.NotNormalisedError, "take their softmax first"),
    "one class": ((LABELS, PROBS[:, :1]), errors.ShapeError, "1 class"),
    "an ensemble": ((LABELS, np.stack((PROBS, PROBS))), errors.ShapeError, "3 dimensions"),
    "no samples": ((LABELS[:0], PROBS[:0]), errors.ShapeError, "empty"),
    "text": ((LABELS, [["a", "b"]] * 3), errors.DtypeError, "dtype"),
}
BAD_CONFIDENCES = {
    "lengths differ": ((RIGHT[:2], CONFIDENCE), errors.ShapeError, "lengths differ"),
    "integers beside confidences": ((LABELS, CONFIDENCE), errors.LabelError, "booleans"),
    "NaN": ((RIGHT, with_value(1, np.nan, CONFIDENCE)), errors.NotFiniteError, "sample 1"),
    "above one": ((RIGHT, with_value(1, 1.2, CONFIDENCE)), errors.ConfidenceError, "sample 1 is 1.2"),
    "below zero": ((RIGHT, with_value(2, -0.1, CONFIDENCE)), errors.ConfidenceError, "sample 2 is -0.1"),
    "no samples": ((RIGHT[:0], CONFIDENCE[:0]), errors.ShapeError, "empty"),
}


@pytest.mark.parametrize("name", metrics.METRICS)
@pytest.mark.parametrize("case", BAD_VECTORS)
def test_metric_rejects_bad_distributions(name, case):
    arguments, error, message = BAD_VECTORS[case]
    with pytest.raises(error, match=message):
        metrics.METRICS[name].function(*arguments)


@pytest.mark.parametrize("name", [name for name, metric in metrics.METRICS.items() if not metric.needs_vectors])
@pytest.mark.parametrize("case", BAD_CONFIDENCES)
def test_metric_rejects_bad_confidences(name, case):
    arguments, error, message = BAD_CONFIDENCES[case]
    with pytest.raises(error, match=message):
        metrics.METRICS[name].function(*arguments)


@pytest.mark.parametrize("name", [name for name, metric in metrics.METRICS.items() if metric.needs_vectors])
def test_metric_of_distributions_rejects_confidences(name):
    with pytest.raises(errors.ShapeError, match=f"{name}|nll"):
        metrics.METRICS[name].function(RIGHT, CONFIDENCE)
    with pytest.raises(errors.ShapeError, match=name):
        metrics.noise_floor(name, CONFIDENCE)


@pytest.mark.parametrize("name", metrics.METRICS)
@pytest.mark.parametrize(
    ("weight", "message"),
    [([1, 1], "shape"), ([1, -1, 1], "sample 1 is -1"), ([0, 0, 0], "all"), ([1, np.nan, 1], "nan")],
)
def test_metric_rejects_bad_weights(name, weight, message):
    with pytest.raises(errors.InvalidInputError, match=message):
        metrics.METRICS[name].function(LABELS, PROBS, sample_weight=weight)


@pytest.mark.parametrize(
    "metric", [metrics.ece, metrics.classwise_ece, metrics.debiased_ece, metrics.reliability_curve]
)
@pytest.mark.parametrize("n_bins", [0, -3, 2.5, "15", True])
def test_metric_rejects_bad_number_of_bins(metric, n_bins):
    with pytest.raises(errors.ParameterError, match="n_bins"):
        metric(LABELS, PROBS, n_bins=n_bins)


def test_unknown_name_is_an_error_with_the_known_ones():
    with pytest.raises(errors.UnknownNameError, match="mass, width"):
        metrics.ece(LABELS, PROBS, binning="adaptive")
    for call in (
        lambda: metrics.noise_floor("mce", CONFIDENCE),
        lambda: metrics.bootstrap("mce", LABELS, PROBS),
        lambda: metrics.compare("mce", LABELS, PROBS, PROBS),
        lambda: metrics.get_metric("mce"),
    ):
        with pytest.raises(errors.UnknownNameError, match="ece_kde, ece, nll"):
            call()
    with pytest.raises(errors.UnknownNameError, match="basic, percentile"):
        metrics.bootstrap("ece", LABELS, PROBS, method="bca", n_resamples=2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"n_bins": 0}, errors.ParameterError, "n_bins"),
        ({"n_bins": 2.5}, errors.ParameterError, "n_bins"),
        ({"binning": "adaptive"}, errors.UnknownNameError, "mass, width"),
        ({"confidence": [0.5, np.nan]}, errors.NotFiniteError, "sample 1"),
        ({"confidence": [0.5, 1.5]}, errors.ConfidenceError, "sample 1 is 1.5"),
        ({"confidence": ["a", "b"]}, errors.DtypeError, "confidence"),
        ({"confidence": PROBS}, errors.ShapeError, "confidence"),
        ({"confidence": []}, errors.ShapeError, "empty"),
        ({"weight": [1.0]}, errors.ShapeError, "sample_weight"),
        ({"weight": [1.0, -1.0, 1.0]}, errors.InvalidInputError, "sample 1 is -1"),
    ],
)
@pytest.mark.parametrize("binning", ["mass", "width"])
def test_bin_edges_reject_bad_input(change, error, message, binning):
    with pytest.raises(error, match=message):
        metrics.bin_edges(**{"confidence": CONFIDENCE, "binning": binning, **change})


def test_bin_edges_accept_lists_and_rounded_ones():
    np.testing.assert_array_equal(
        metrics.bin_edges([0.2, 0.6, 0.4], n_bins=2, weight=[1, 1, 2]),
        metrics.bin_edges([0.2, 0.4, 0.4, 0.6], n_bins=2),
    )
    above_one = np.nextafter(np.float32(1), np.float32(2))
    edges = metrics.bin_edges(np.array([0.5, above_one, above_one, above_one], dtype=np.float32), n_bins=2)
    np.testing.assert_array_equal(edges, [0, 1, 1])


@pytest.mark.parametrize(
    "edges", ["ab", [0, "x", 1], [0, np.nan, 1], [[0, 1]], [0, 0.5], 0.5, [[0, 1], [1]], [0, 0.6, 0.4, 1]]
)
def test_reliability_curve_rejects_bad_edges(edges):
    with pytest.raises(errors.InvalidInputError, match="edges"):
        metrics.reliability_curve(LABELS, PROBS, edges=edges)


@pytest.mark.parametrize("norm", [0, 3, "l1", True, None, np.array([1, 2]), [1]])
def test_ece_rejects_unknown_norm(norm):
    with pytest.raises(errors.ParameterError, match="1, 2, 'max'"):
        metrics.ece(LABELS, PROBS, norm=norm)


@pytest.mark.parametrize("bandwidth", [-0.1, np.nan, "wide"])
def test_ece_kde_rejects_bad_bandwidth(bandwidth):
    with pytest.raises(errors.ParameterError, match="bandwidth"):
        metrics.ece_kde(LABELS, PROBS, bandwidth=bandwidth)


@pytest.mark.parametrize("metric", [metrics.error_auroc, metrics.aurc])
def test_metric_rejects_bad_doubt(metric):
    with pytest.raises(errors.ShapeError, match="doubt"):
        metric(LABELS, PROBS, doubt=[1.0, 2.0])
    with pytest.raises(errors.NotFiniteError, match="doubt of sample 1"):
        metric(LABELS, PROBS, doubt=[1.0, np.nan, 2.0])


def test_resampling_rejects_bad_options():
    with pytest.raises(errors.ParameterError, match="n_resamples"):
        metrics.bootstrap("ece", LABELS, PROBS, n_resamples=0)
    with pytest.raises(errors.ParameterError, match="n_draws"):
        metrics.noise_floor("ece", CONFIDENCE, n_draws=0)
    with pytest.raises(errors.ParameterError, match="confidence_level"):
        metrics.bootstrap("ece", LABELS, PROBS, confidence_level=95, n_resamples=2)
    with pytest.raises(errors.ParameterError, match="random_state"):
        metrics.bootstrap("ece", LABELS, PROBS, random_state="seed", n_resamples=2)
    with pytest.raises(errors.ParameterError, match="quantile"):
        metrics.noise_floor("ece", CONFIDENCE, quantiles=[1.5])
    with pytest.raises(errors.ParameterError, match=r"quantiles is 0\.5"):
        metrics.noise_floor("ece", CONFIDENCE, quantiles=0.5)
    with pytest.raises(errors.ShapeError, match="confidence has shape"):
        metrics.noise_floor("ece", 0.5)
    with pytest.raises(errors.ParameterError, match="has no option 'bins'; it has: n_bins, binning, norm"):
        metrics.bootstrap("ece", LABELS, PROBS, bins=3)


def test_compare_rejects_different_lengths():
    with pytest.raises(errors.LabelError, match="3 labels for 2 samples"):
        metrics.compare("ece", LABELS, PROBS, PROBS[:2])


def test_ece_rejects_bad_values_in_long_arrays():
    """Long arrays are checked by another, compiled path."""
    confidence = np.full((1 << 19) + 10, 0.5)
    confidence[-1] = 1.5
    for binning in ("mass", "width"):
        with pytest.raises(errors.ConfidenceError, match=f"sample {len(confidence) - 1} is 1.5"):
            metrics.ece(np.ones(len(confidence), dtype=bool), confidence, binning=binning)


@pytest.mark.parametrize("case", BAD_CONFIDENCES)
def test_ece_of_equal_width_rejects_bad_confidences(case):
    """The kernel checks the numbers while it adds them up."""
    arguments, error, message = BAD_CONFIDENCES[case]
    with pytest.raises(error, match=message):
        metrics.ece(*arguments, binning="width")


def test_import_of_metrics_is_lazy():
    code = (
        "import sys; from veridical import metrics; names = list(metrics.METRICS); dir(metrics); "
        "assert 'numba' not in sys.modules and 'scipy' not in sys.modules; "
        "from veridical.metrics import ece, summary; assert callable(summary) and callable(ece)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_message_says_what_to_do_with_logits_and_many_bins():
    with pytest.raises(errors.NotNormalisedError, match="if these are unnormalised scores, take their softmax first"):
        metrics.ece([0, 1], [[2.0, 3.0], [1.0, 5.0]])
    with pytest.raises(errors.ParameterError, match="n_bins is 1000000000; give a whole number from 1 to 1,000,000"):
        metrics.ece([0, 1], [[0.5, 0.5], [0.2, 0.8]], n_bins=10**9, binning="width")


def test_rows_of_frames_in_another_order_are_warned_about(rng):
    probs, labels = pd.DataFrame(rng.dirichlet(np.ones(3), 40)), pd.Series(rng.integers(0, 3, 40))
    with pytest.warns(errors.UnmatchedIdWarning, match=r"in another order, .* give y_true\.loc\[probs\.index\]"):
        metrics.ece(labels, probs[::-1])
    expected = metrics.ece(labels, probs)
    assert metrics.ece(labels.loc[probs.index[::-1]], probs[::-1]) == pytest.approx(expected, abs=1e-12)
    assert metrics.ece(labels.set_axis(range(5, 45)), probs) == expected  # rows of another table
