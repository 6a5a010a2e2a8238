"""Opt and pTDE: the formula, the start, the steps, and the paper's setting."""

import numpy as np
import pytest
from calibration_cases import labelled_ensemble
from conftest import softmax
from scipy.stats import multivariate_normal

import veridical as vd
from veridical import metrics
from veridical.calibrate import PAPER_SETTING
from veridical.calibrate.descent import significant_kde_loss
from veridical.calibrate.starting_point import BinnedGaps, posterior_mean, tempered_accuracy
from veridical.combine import fit_combiner
from veridical.errors import ParameterError, UnknownNameError
from veridical.metrics.gradients import kde_loss

VARIANTS = (vd.OptHist, vd.OptKDE, vd.PTDEHist, vd.PTDE)


def under_confident(rng, n_samples=4000):
    """Scores v whose accuracy is v + 0.1, and whether each was right."""
    score = rng.uniform(0.4, 0.88, n_samples)
    return score, rng.random(n_samples) < score + 0.1


def test_closed_form_makes_every_bin_s_sum_zero(rng):
    probs, labels = labelled_ensemble(rng, n_samples=600)
    calibrator = vd.PTDEHist(start="closed-form", hv_gain=0.7).fit(probs, labels)
    mean = vd.discover(probs, max_iter=0)
    score = mean.probs.max(axis=1)
    correct = mean.prediction == labels
    hv = vd.discover(probs).hv
    unit = np.quantile(hv, 0.99)
    assert calibrator.hv_unit_ == pytest.approx(unit)
    bins = np.searchsorted(calibrator.edges_, score, side="left")
    raw = score - calibrator.psi_[bins] * (1 + 0.7 * np.minimum(hv / unit, 1))
    np.testing.assert_allclose(np.bincount(bins, raw - correct), 0.0, atol=1e-9)
    np.testing.assert_allclose(calibrator.predict_confidence(probs), np.clip(raw, 0, 1), atol=1e-12)


def test_bins_are_closed_on_the_right_and_the_ends_catch_the_rest(rng):
    calibrator = vd.OptHist(n_bins=2, start="closed-form")
    top = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    calibrator.fit(np.column_stack((top, 1 - top)), [0, 1, 1, 0, 0])
    (edge,) = calibrator.edges_
    low, high = calibrator.psi_
    new = np.array([0.5001, edge, np.nextafter(edge, 1), 0.999])
    confidence = calibrator.predict_confidence(np.column_stack((new, 1 - new)))
    np.testing.assert_allclose(confidence, np.clip(new - np.array([low, low, high, high]), 0, 1), atol=1e-9)


def test_shrinkage_follows_what_is_expected_where_it_is_right_and_the_bins_where_it_is_not(rng):
    score, correct = under_confident(rng)
    bins = np.digitize(score, np.quantile(score, np.arange(1, 15) / 15))
    ones, expected = np.ones(len(score)), score + 0.1
    gaps = BinnedGaps.measure(score, correct, bins, 15)
    plain, shrunk = gaps.closed_form(ones), gaps.shrunk(ones, score, expected)
    assert np.square(shrunk + 0.1).mean() < 0.5 * np.square(plain + 0.1).mean()
    # Accuracy 0.9 below 0.6 and 0.3 above, which is not what was expected.
    stepped = rng.random(len(score)) < np.where(score < 0.6, 0.9, 0.3)
    gaps = BinnedGaps.measure(score, stepped, bins, 15)
    np.testing.assert_allclose(gaps.shrunk(ones, score, expected), gaps.closed_form(ones), atol=0.04)


@pytest.mark.parametrize("n_samples", [2000, 40_000])  # all of them, and more than are needed for a temperature
def test_temperature_scaling_says_what_is_expected(rng, n_samples):
    logits = 2 * rng.normal(size=(n_samples, 10))
    true = softmax(logits / 1.7)
    labels = (rng.random((n_samples, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(max=9)
    predictions = vd.Predictions(softmax(logits)[None], labels)
    combined = fit_combiner("mean", predictions, labels, vd.OptHist())[1]
    accuracy = tempered_accuracy(combined, labels)
    expected = true[np.arange(n_samples), combined.prediction]
    assert np.abs(accuracy - expected).mean() < 0.02
    assert abs((accuracy - expected).mean()) < 0.01


def test_expectations_of_few_samples_leave_room(rng):
    probs = np.array([[[0.9, 0.1], [0.2, 0.8]]])
    labels = np.array([0, 1])
    combined = fit_combiner("mean", vd.Predictions(probs, labels), labels, vd.OptHist())[1]
    assert (tempered_accuracy(combined, labels) <= 0.75).all()


def test_posterior_mean_is_that_of_a_gaussian_sequence(rng):
    noise = rng.uniform(0.5, 2.0, 12) * 1e-3
    index = np.arange(12)
    correlated = 0.002 * np.exp(-np.abs(index[:, None] - index) / 2.0)
    gained = 0.0
    for true in rng.multivariate_normal(np.zeros(12), correlated, 50):
        deviation = true + rng.normal(0, np.sqrt(noise))
        result = posterior_mean(deviation, noise)
        gained += np.square(deviation - true).sum() - np.square(result - true).sum()
    assert gained > 0
    # For one strength and reach among those tried, this is K (K + D)^-1 d; the likeliest of them is taken.
    unit = np.exp(np.log(noise).mean())
    candidates = []
    for reach in (1.0, 2.0, 4.0):
        for strength in np.exp(np.linspace(-8, 8, 65)):
            covariance = strength * unit * np.exp(-np.abs(index[:, None] - index) / reach)
            total = covariance + np.diag(noise)
            likelihood = multivariate_normal.logpdf(deviation, cov=total)
            candidates.append((likelihood, covariance @ np.linalg.solve(total, deviation)))
    np.testing.assert_allclose(result, max(candidates, key=lambda pair: pair[0])[1], atol=1e-9)


def test_gradient_without_threshold_is_the_losss(rng):
    confidence, correct = under_confident(rng, 500)
    value, gradient, width = significant_kde_loss(confidence, correct, 0.0)
    expected_value, expected = kde_loss(confidence, correct)
    assert value == pytest.approx(expected_value, rel=1e-12)
    assert width > 0
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


def test_noise_alone_moves_little_and_a_real_gap_does(rng):
    confidence = rng.uniform(0.5, 1, 4000)
    calibrated = rng.random(4000) < confidence
    noise, gap = (
        np.abs(significant_kde_loss(shifted, calibrated, 2.0)[1]).sum()
        for shifted in (confidence, np.clip(confidence - 0.1, 0, 1))
    )
    assert noise < 0.3 * gap


@pytest.mark.parametrize("significance", [0.0, 2.0])
def test_kde_steps_never_raise_the_calibration_loss(rng, significance):
    probs, labels = labelled_ensemble(rng, n_samples=800)
    correct = vd.discover(probs, max_iter=0).prediction == labels
    losses = [
        metrics.ece_kde(
            correct, vd.PTDE(kde_steps=steps, significance=significance).fit(probs, labels).predict_confidence(probs)
        )
        for steps in (0, 1, 2, 5, 20)
    ]
    assert (np.diff(losses) <= 1e-12).all()


@pytest.mark.parametrize("loss_bins", ["scores", "fixed", "moving"])
def test_histogram_steps_descend_from_zero(rng, loss_bins):
    probs, labels = labelled_ensemble(rng, n_samples=800)
    correct = vd.discover(probs, max_iter=0).prediction == labels
    before, after = (
        metrics.ece(
            correct,
            vd.OptHist(start="zero", hist_steps=steps, loss_bins=loss_bins)
            .fit(probs, labels)
            .predict_confidence(probs),
        )
        for steps in (0, 60)
    )
    assert after < 0.7 * before


@pytest.mark.parametrize("n_sources", [2, 3, 20, 200])
@pytest.mark.parametrize("method", VARIANTS)
def test_paper_settings_are_reachable_and_finite(rng, n_sources, method):
    probs, labels = labelled_ensemble(rng, n_sources=n_sources, n_samples=1500, n_classes=3)
    setting = PAPER_SETTING | ({"hv_scale": "raw"} if method.needs_sources else {})
    calibrator = method(**setting, random_state=0).fit(probs, labels)
    assert calibrator.kde_steps is None  # the variant decides: five steps or none
    again = method(**setting, random_state=0).fit(probs, labels)
    assert calibrator.psi_.tobytes() == again.psi_.tobytes()
    confidence = calibrator.predict_confidence(probs)
    assert ((confidence >= 0) & (confidence <= 1)).all()


def test_batches_are_decided_by_random_state(rng):
    probs, labels = labelled_ensemble(rng, n_samples=500)

    def fitted(seed):
        return (
            vd.OptHist(start="zero", hist_steps=5, batch_size=50, random_state=seed).fit(probs, labels).psi_.tobytes()
        )

    assert fitted(1) == fitted(1)
    assert fitted(1) != fitted(2)


def test_hv_counts_only_as_far_as_it_helps(rng):
    # Sources that disagree at random, correctness that does not care: any gain only adds noise.
    probs, labels = labelled_ensemble(rng, n_sources=6, n_samples=3000, right=0.6)
    calibrator = vd.PTDEHist(hv_scale="fitted", start="closed-form").fit(probs, labels)
    fixed = vd.PTDEHist(hv_gain=2.0, start="closed-form").fit(probs, labels)
    correct = vd.discover(probs, max_iter=0).prediction == labels

    def brier(fit):
        return np.square(fit.predict_confidence(probs) - correct).mean()

    assert brier(calibrator) <= brier(fixed)
    without = vd.PTDEHist(hv_gain=0.0).fit(probs, labels)
    expected = vd.OptHist().fit(probs, labels)
    np.testing.assert_array_equal(without.predict_confidence(probs), expected.predict_confidence(probs))


def test_raw_hv_is_the_papers_formula(rng):
    probs, labels = labelled_ensemble(rng, n_sources=3)
    calibrator = vd.PTDEHist(hv_scale="raw").fit(probs, labels)
    score = vd.discover(probs, max_iter=0).probs.max(axis=1)
    psi = calibrator.psi_[np.searchsorted(calibrator.edges_, score, side="left")]
    expected = np.clip(score - psi * (1 + vd.discover(probs).hv), 0, 1)
    np.testing.assert_allclose(calibrator.predict_confidence(probs), expected, atol=1e-12)


def test_hv_of_a_sample_that_lacks_a_source_is_scaled_up(rng):
    probs, labels = labelled_ensemble(rng, n_sources=4)
    calibrator = vd.PTDEHist(hv_scale="raw", missing="skip").fit(probs, labels)
    calibrator.psi_ = np.full_like(calibrator.psi_, 0.01)
    partial = probs.copy()
    partial[2, 5] = np.nan
    hv = vd.discover(partial, missing="skip").hv[5]
    score = np.delete(probs, 2, axis=0)[:, 5].mean(axis=0).max()
    assert calibrator.predict_confidence(partial)[5] == pytest.approx(score - 0.01 * (1 + hv * 4 / 3), abs=1e-12)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"n_bins": 0}, ParameterError),
        ({"start": "middle"}, UnknownNameError),
        ({"hv_scale": "none"}, UnknownNameError),
        ({"hv_gain": -1.0}, ParameterError),
        ({"loss_bins": "w"}, UnknownNameError),
        ({"step_rule": "adam"}, UnknownNameError),
        ({"kde_steps": -1}, ParameterError),
        ({"batch_size": 0}, ParameterError),
        ({"kde_rate": -0.1}, ParameterError),
        ({"random_state": "seed", "batch_size": 10}, ParameterError),
    ],
)
def test_bad_parameters(rng, parameters, error):
    probs, labels = labelled_ensemble(rng, n_samples=50)
    with pytest.raises(error, match=next(iter(parameters)).partition("_")[0]):
        vd.PTDE(**parameters).fit(probs, labels)
