"""Metrics against the figures that other authors' code gave on real ensembles."""

import numpy as np
import pytest
from conftest import REAL_ENSEMBLES, load_golden, load_logits, softmax

import veridical as vd
from veridical import metrics

FIGURES = {
    "ece_kde": (metrics.ece_kde, 1e-4),
    "ece_mass15": (metrics.ece, 1e-6),
    "ece_width15": (lambda y, p: metrics.ece(y, p, binning="width"), 1e-6),
    "ks": (metrics.ks_error, 1e-6),
    "nll": (metrics.nll, 1e-6),
    "mse": (metrics.brier, 1e-6),
    "acc": (metrics.accuracy, 1e-6),
}


def load(name):
    """(probabilities (S, N, L), labels, golden figures)."""
    logits, labels = load_logits(name)
    return softmax(logits), labels, load_golden(name)


def assert_figures(labels, probs, golden):
    for name, (metric, tolerance) in FIGURES.items():
        assert metric(labels, probs) == pytest.approx(golden[name], abs=tolerance), name


@pytest.fixture(scope="module", params=REAL_ENSEMBLES)
def ensemble(request):
    return load(request.param)


@pytest.mark.compiled
class TestGolden:
    def test_mean(self, ensemble):
        probs, labels, golden = ensemble
        mean = probs.mean(axis=0)
        assert_figures(labels, mean, golden["mean"])
        assert_figures(labels[1::2], mean[1::2], golden["mean_odd"])

    def test_truth_discovery(self, ensemble):
        probs, labels, golden = ensemble
        truth = vd.discover(probs, accuracy_preserving=False, tol=0, max_iter=6)
        assert_figures(labels, truth.probs, golden["tde_6_updates"])

    def test_scaled_temperatures(self, ensemble):
        """The temperatures and weights are theirs, so that only the metrics are compared."""
        probs, labels, golden = ensemble
        odd, golden = probs.mean(axis=0)[1::2], golden["posthoc_fit_on_even_eval_on_odd"]
        scaled = {name: softmax(np.log(odd) / golden[name]["temperature"]) for name in ("ts_mse", "ts_ce")}
        a, b, c = golden["ets_mse"]["weights"]
        scaled["ets_mse"] = a * scaled["ts_mse"] + b * odd + c / odd.shape[1]
        for name, vectors in scaled.items():
            assert_figures(labels[1::2], vectors, golden[name])

    def test_confidences_give_the_same_figures(self, ensemble):
        probs, labels, golden = ensemble
        mean = probs.mean(axis=0)
        right, confidence = mean.argmax(axis=1) == labels, mean.max(axis=1)
        for name in ("ece_kde", "ece_mass15", "ece_width15", "ks", "acc"):
            metric, tolerance = FIGURES[name]
            assert metric(right, confidence) == pytest.approx(golden["mean"][name], abs=tolerance)

    def test_summary_has_the_papers_columns(self, ensemble):
        probs, labels, golden = ensemble
        table = metrics.summary(labels, probs.mean(axis=0), floors=False)
        assert [row.metric for row in table] == ["ece_kde", "ece", "nll", "brier", "ks_error", "accuracy"]
        assert table["brier"].value == pytest.approx(golden["mean"]["mse"], abs=1e-6)


@pytest.mark.compiled
def test_uncertainty_detects_errors_of_the_shipped_ensemble():
    probs, labels, _ = load("cifar10-resnet8-de")
    uncertainty = metrics.predictive_uncertainty(probs)
    assert uncertainty.hv.mean() == pytest.approx(vd.discover(probs).hv.mean())
    np.testing.assert_allclose(
        uncertainty.total_entropy, uncertainty.member_entropy + uncertainty.mutual_information, atol=1e-12
    )
    mean = probs.mean(axis=0)
    for doubt in (uncertainty.total_entropy, uncertainty.mutual_information, uncertainty.hv):
        assert metrics.error_auroc(labels, mean, doubt=doubt) > 0.8
        assert metrics.aurc(labels, mean, doubt=doubt) < 1 - metrics.accuracy(labels, mean)
