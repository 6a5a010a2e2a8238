"""Isotonic steps and splines against scikit-learn and NumPy; what a saved calibrator must contain."""

import json

import numpy as np
import pytest
from ensembles import random_ensemble
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline
from sklearn.isotonic import IsotonicRegression

import veridical as vd
from veridical.calibrate.isotonic import check_steps, fit_steps, fit_weighted_steps
from veridical.combine.state_checks import check_array, check_number, check_rising
from veridical.errors import LongComputationWarning

#: Scores with ties, and whether each was right.
PAIRS = st.lists(st.tuples(st.integers(0, 20).map(lambda k: k / 20), st.booleans()), min_size=1, max_size=60)


def expected_steps(scores, right, weight=None):
    return IsotonicRegression(out_of_bounds="clip").fit(scores, right.astype(float), sample_weight=weight)


@given(PAIRS)
def test_steps_are_those_of_scikit_learn(pairs):
    scores, right = np.array([s for s, _ in pairs]), np.array([r for _, r in pairs])
    thresholds, values = fit_steps(scores.copy(), scores[right])
    at = np.linspace(0, 1, 41)
    np.testing.assert_allclose(np.interp(at, thresholds, values), expected_steps(scores, right).predict(at), atol=1e-9)
    check_steps(thresholds, values)


@given(PAIRS, st.data())
def test_weighted_steps_are_those_of_repeated_scores(pairs, data):
    scores, right = np.array([s for s, _ in pairs]), np.array([r for _, r in pairs])
    weight = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(pairs), max_size=len(pairs))))
    thresholds, values = fit_weighted_steps(scores, right, weight.astype(float))
    repeated = fit_steps(np.repeat(scores, weight), np.repeat(scores, weight)[np.repeat(right, weight)])
    at = np.linspace(0, 1, 41)
    np.testing.assert_allclose(np.interp(at, thresholds, values), np.interp(at, *repeated), atol=1e-9)
    expected = expected_steps(scores, right, weight).predict(at)
    np.testing.assert_allclose(np.interp(at, thresholds, values), expected, atol=1e-9)


def test_ties_are_broken_by_the_score():
    calibrator = vd.IRM().fit(np.full((1, 40, 4), 0.25), np.arange(40) % 4)
    combined = calibrator.combine_new(vd.Predictions([[[0.1, 0.2, 0.3, 0.4]]]))
    np.testing.assert_allclose(np.diff(calibrator.formula(np, combined)), 1e-10, rtol=1e-5)


@pytest.mark.parametrize(
    ("thresholds", "values", "words"),
    [
        ([0.1, 0.9], [0.6, 0.5], "the fitted steps do not rise from 0 to 1"),
        ([], [], "the fitted steps do not rise"),
        ([0.9, 0.1], [0.5, 0.6], "thresholds_"),
        ([0.1, 0.9], [0.5, 1.5], "values_"),
        ([0.1, 0.9], [0.5], "values_"),
        ([0.1, np.nan], [0.5, 0.6], "thresholds_"),
    ],
)
def test_steps_that_do_not_rise_are_rejected(thresholds, values, words):
    with pytest.raises(ValueError, match=words):
        check_steps(np.array(thresholds), np.array(values))


def test_parts_of_a_state_are_checked():
    check_array(np.array([0.0, 1.0]), "a", (2,), 0.0, 1.0)
    check_rising(np.array([0.0, 1.0]), "a")
    for bad in ([0.0, 0.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match="a"):
            check_rising(np.array(bad), "a")
    check_number(1.5, "b")
    for wrong in ("1.5", None, True, float("nan")):
        with pytest.raises(ValueError, match="b"):
            check_number(wrong, "b")


# --- splines


def test_spline_is_the_least_squares_natural_spline():
    rng = np.random.default_rng(2)
    probs = random_ensemble(rng, 1, 200, 3)[0]
    labels = np.array([rng.choice(3, p=row) for row in probs**0.7 / (probs**0.7).sum(axis=1, keepdims=True)])
    fitted = vd.Spline().fit(probs[None], labels)
    confidence = probs.max(axis=1)
    order = np.argsort(confidence)
    gaps = (probs.argmax(axis=1) == labels)[order] - confidence[order]
    knots = np.linspace(0, 1, fitted.n_knots)
    basis = CubicSpline(knots, np.eye(fitted.n_knots), bc_type="natural")
    percentiles = np.arange(200) / 199
    coefficients = np.linalg.lstsq(basis(percentiles), np.cumsum(gaps) / 200, rcond=None)[0]
    expected = np.clip(confidence[order] + basis(percentiles, 1) @ coefficients, 0, 1)
    np.testing.assert_allclose(fitted.predict_confidence(probs[None])[order], expected, atol=1e-9)


def test_spline_of_one_sample_changes_nothing():
    fitted = vd.Spline().fit(np.array([[[0.7, 0.3]]]), [0])
    assert fitted.predict_confidence(np.array([[[0.7, 0.3]]]))[0] == pytest.approx(0.7)


# --- saved states of auto


@pytest.fixture(scope="module")
def saved_auto(tmp_path_factory):
    rng = np.random.default_rng(0)
    probs = random_ensemble(rng, 2, 60, 3)
    labels = [rng.choice(3, p=row) for row in probs.mean(axis=0)]
    path = tmp_path_factory.mktemp("auto") / "auto.json"
    vd.Auto(n_folds=2).fit(probs, labels).save(path)
    return json.loads(path.read_text())


def entries(content, name):
    """All dictionaries of a document that have an entry of this name."""
    if isinstance(content, dict):
        here = [content] if name in content else []
        return here + [entry for value in content.values() for entry in entries(value, name)]
    return [entry for value in content for entry in entries(value, name)] if isinstance(content, list) else []


def test_saved_auto_is_read_back(saved_auto, tmp_path):
    (tmp_path / "auto.json").write_text(json.dumps(saved_auto))
    loaded = vd.load_calibrator(tmp_path / "auto.json")
    assert loaded.table_ == entries(saved_auto, "table_")[0]["table_"]
    assert (loaded.best_.combine, loaded.best_.name) in [(row["combine"], row["method"]) for row in loaded.table_]


@pytest.mark.parametrize(
    ("method", "n_classes", "cost"),
    [
        (vd.IROvA, 100_001, "100,001 isotonic regressions, .* irm"),
        (vd.MatrixScaling, 2001, "4,004,001 numbers, .* vector"),
    ],
)
def test_fits_of_minutes_say_what_they_cost_before_they_begin(method, n_classes, cost):
    with pytest.raises(LongComputationWarning, match=cost):  # warnings are errors in tests
        method().fit(np.full((1, 2, n_classes), 1 / n_classes), [0, 1])
