"""Post-hoc baselines against the figures that their authors' code gave (fitted on even samples, scored on odd)."""

import numpy as np
import pytest
from conftest import REAL_ENSEMBLES, load_golden, load_logits, softmax

import veridical as vd
from veridical import metrics
from veridical.calibrate.isotonic import TIE_BREAKER

pytestmark = pytest.mark.compiled

METRIC_TOLERANCE = 2e-4


@pytest.fixture(params=REAL_ENSEMBLES)
def halves(request):
    """(mean on even samples, labels, mean on odd samples, labels, golden figures)."""
    logits, labels = load_logits(request.param)
    golden = load_golden(request.param)["posthoc_fit_on_even_eval_on_odd"]
    mean = softmax(logits).mean(axis=0)
    return mean[::2], labels[::2], mean[1::2], labels[1::2], golden


def scores(probs, labels, confidence=None):
    """The golden files' metrics."""
    confidence = probs.max(axis=1) if confidence is None else confidence
    correct = probs.argmax(axis=1) == labels
    return {
        "ece_kde": metrics.ece_kde(correct, confidence),
        "ece_mass15": metrics.ece(correct, confidence),
        "ece_width15": metrics.ece(correct, confidence, binning="width"),
        "ks": metrics.ks_error(correct, confidence),
        "nll": float(-np.log(probs[np.arange(len(labels)), labels]).mean()),
        "mse": float((np.square(probs).sum(axis=1) - 2 * probs[np.arange(len(labels)), labels] + 1).mean()),
        "acc": float(correct.mean()),
    }


def assert_scores(ours, golden):
    for name, value in ours.items():
        assert value == pytest.approx(golden[name], abs=METRIC_TOLERANCE), name


def squared_error(probs, labels):
    """Calibration loss that TS and ETS minimise."""
    return float((np.square(probs).sum(axis=1) - 2 * probs[np.arange(len(labels)), labels] + 1).mean())


@pytest.mark.parametrize(("loss", "key"), [("mse", "ts_mse"), ("nll", "ts_ce")])
def test_temperature(halves, loss, key):
    mean, labels, odd, odd_labels, golden = halves
    calibrator = vd.Temperature(loss=loss).fit(mean, labels)
    assert calibrator.temperature_ == pytest.approx(golden[key]["temperature"], abs=1e-3)
    assert_scores(scores(calibrator.predict_proba(odd), odd_labels), golden[key])


def test_ensemble_temperature(halves):
    mean, labels, odd, odd_labels, golden = halves
    calibrator = vd.EnsembleTemperature().fit(mean, labels)
    fitted = calibrator.weights_
    # Their optimiser stops near the optimum, ours solves for it: the calibration loss must not be higher.
    scaled = vd.Temperature(loss="mse").fit(mean, labels).predict_proba(mean)
    theirs = np.array(golden["ets_mse"]["weights"])
    mixtures = [w[0] * scaled + w[1] * mean + w[2] / mean.shape[1] for w in (fitted, theirs)]
    assert squared_error(mixtures[0], labels) <= squared_error(mixtures[1], labels) + 1e-9
    np.testing.assert_allclose(fitted, theirs, atol=0.02)
    assert_scores(scores(calibrator.predict_proba(odd), odd_labels), golden["ets_mse"])


def test_irm(halves):
    mean, labels, odd, odd_labels, golden = halves
    calibrator = vd.IRM().fit(mean, labels)
    raw = np.interp(odd, calibrator.thresholds_, calibrator.values_) + TIE_BREAKER * odd
    # Golden NLL and MSE are of the unnormalised output, the rest of the normalised confidence.
    assert_scores(scores(raw, odd_labels, calibrator.predict_confidence(odd)), golden["irm"])


def test_irova(halves):
    mean, labels, odd, odd_labels, golden = halves
    calibrator = vd.IROvA().fit(mean, labels)
    assert_scores(scores(calibrator.predict_proba(odd), odd_labels), golden["irova_normalised"])


def test_spline_before_clipping(halves):
    mean, labels, odd, odd_labels, golden = halves
    calibrator = vd.Spline().fit(mean, labels)
    golden = golden["spline_natural_6"]
    raw = np.interp(odd.max(axis=1), calibrator.scores_, calibrator.recalibrated_)
    np.testing.assert_allclose(raw[:10], golden["first10_odd"], atol=1e-6)
    assert raw.mean() == pytest.approx(golden["mean_confidence"], abs=1e-6)
    # Scores above one are dropped by the golden equal-width bins; KS has no such trouble.
    correct = odd.argmax(axis=1) == odd_labels
    order = np.argsort(raw, kind="stable")
    ks = np.abs(np.cumsum((raw - correct)[order])).max() / len(raw)
    assert ks == pytest.approx(golden["ks"], abs=METRIC_TOLERANCE)
    inside = raw <= 1
    edges = np.linspace(0, 1, 16)
    bins = np.clip(np.searchsorted(edges, raw[inside], side="left") - 1, 0, 14)
    gaps = np.bincount(bins, (raw - correct)[inside], 15)
    assert np.abs(gaps).sum() / len(raw) == pytest.approx(golden["ece_width15"], abs=METRIC_TOLERANCE)
    np.testing.assert_allclose(calibrator.predict_confidence(odd), np.clip(raw, 0, 1), atol=1e-12)


def test_scores_beyond_the_calibration_range_go_to_the_end_bins():
    rng = np.random.default_rng(0)
    top = np.concatenate((rng.uniform(0.5, 0.9, 1000), np.full(200, 0.95)))
    probs, labels = np.column_stack((top, 1 - top)), (rng.random(1200) > top).astype(int)
    new = np.array([0.94, 0.95, 0.97, 1.0])
    rows = np.column_stack((new, 1 - new))
    histogram = vd.HistogramBinning().fit(probs, labels)
    assert histogram.edges_[-1] < 0.9
    in_last_bin = top > histogram.edges_[-1]
    np.testing.assert_array_equal(histogram.predict_confidence(rows), np.full(4, (labels[in_last_bin] == 0).mean()))
    opt = vd.OptHist(start="closed-form").fit(probs, labels)
    np.testing.assert_allclose(opt.predict_confidence(rows), np.clip(new - opt.psi_[-1], 0, 1))
    assert opt.psi_[-1] != 0
