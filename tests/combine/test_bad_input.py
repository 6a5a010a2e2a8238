"""What discover refuses, by name, place and value."""

import naive
import numpy as np
import pytest
from conftest import examples
from ensembles import random_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical import errors


@pytest.fixture(params=[4, 60], ids=["few classes", "many classes"])
def probs(request, rng):
    return random_ensemble(rng, 3, 5, request.param)


def test_order_of_reports(rng):
    """The first bad sample is reported, whichever thread finds another one first."""
    probs = random_ensemble(rng, 3, 2000, 4)
    probs[2, 1700, 0] = probs[1, 900, 0] = -1
    for _ in range(5):
        with pytest.raises(errors.NegativeProbabilityError, match="source 1, sample 900"):
            vd.discover(probs)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_discover_rejects_values_that_are_not_finite(probs, value, kind):
    scores = probs if kind == "probs" else np.log(probs)
    scores[1, 4, 2] = value
    with pytest.raises(errors.NotFiniteError, match=f"source 1, sample 4: .* of class 2 is {value}"):
        vd.discover(scores, kind=kind)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_discover_rejects_values_that_are_not_finite_log_probs(probs, value):
    scores = np.log(probs)
    scores[1, 4, 2] = value
    with pytest.raises(errors.NotFiniteError, match="the log-probability of class 2"):
        vd.discover(scores, kind="log_probs")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [89.4, 266.9, 300.0, 710.0, 1e4])
def test_log_probs_far_above_zero(dtype, value):
    scores = np.array([[[0.0, value]]], dtype=dtype)
    with pytest.raises(errors.NotNormalisedError, match="source 0, sample 0"):
        vd.discover(scores, kind="log_probs")


def test_all_minus_infinity(probs):
    scores = np.log(probs)
    scores[0, 0] = -np.inf
    with pytest.raises(errors.NotNormalisedError, match=r"source 0, sample 0: .* sum to 0"):
        vd.discover(scores, kind="log_probs")


def test_negative_that_looks_like_rounding(probs):
    probs[2, 1, 0] += probs[2, 1, 3] + 1e-7
    probs[2, 1, 3] = -1e-7
    with pytest.raises(errors.NegativeProbabilityError, match=r"class 3 is -1e-07; .* rounding: clip at 0"):
        vd.discover(probs)


def test_logits_given_as_probabilities(probs):
    with pytest.raises(errors.NegativeProbabilityError, match=r'kind="logits"'):
        vd.discover(np.log(probs))
    with pytest.raises(errors.NotNormalisedError, match=r'sum to .* kind="logits"'):
        vd.discover(probs * 7)


def test_logits_given_as_log_probabilities(rng):
    with pytest.raises(errors.NotNormalisedError, match=r'log-probabilities sum to .* kind="logits"'):
        vd.discover(rng.standard_normal((3, 5, 4)), kind="log_probs")


@pytest.mark.parametrize("total", [100, 255])
def test_percentages_and_bytes_are_to_be_divided(probs, total):
    scores = probs * total
    with pytest.raises(
        errors.NotNormalisedError, match="divide each row by its sum, or pass renormalize=True"
    ) as caught:
        vd.discover(scores)
    assert "logits" not in str(caught.value)
    renormalized = vd.Predictions(scores, renormalize=True)
    np.testing.assert_allclose(renormalized.values, scores / scores.sum(axis=-1, keepdims=True), rtol=1e-6)
    vd.discover(renormalized)


@pytest.mark.parametrize(
    ("scores", "kind", "message"),
    [
        ([[0.5, 0.2], [0, 0]], "probs", "source 0, sample 1: the probabilities are all 0, and have no sum"),
        ([[0.5, -0.2], [1, 0]], "probs", "source 0, sample 0: the probability of class 1 is -0.2"),
        ([[0.5, np.nan], [1, 0]], "probs", "source 0, sample 0: the probability of class 1 is nan"),
        ([[0.5, 2.0], [1, -1]], "logits", "kind='logits' has none"),
    ],
)
def test_rows_that_have_no_sum_are_not_renormalized(scores, kind, message):
    with pytest.raises(errors.InvalidInputError, match=message):
        vd.Predictions(scores, kind=kind, renormalize=True)


def test_renormalized_predictions_keep_absent_rows():
    renormalized = vd.Predictions([[[3, 1], [np.nan, np.nan]], [[1, 1], [0, 2]]], renormalize=True)
    np.testing.assert_array_equal(renormalized.values, [[[0.75, 0.25], [np.nan, np.nan]], [[0.5, 0.5], [0, 1]]])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 2e-3), (np.float32, 1e-4), (np.float64, 1e-5)])
def test_tolerance_by_dtype(dtype, tolerance):
    within = np.array([[[0.5, 0.5 + 0.4 * tolerance]]] * 3).astype(dtype)
    np.testing.assert_allclose(vd.discover(within).probs.sum(axis=1), 1, atol=1e-6)
    beyond = np.array([[[0.5, 0.5 + 4 * tolerance]]] * 3).astype(dtype)
    with pytest.raises(errors.NotNormalisedError, match=rf"the tolerance for {np.dtype(dtype)}\); divide each row"):
        vd.discover(beyond)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.ones((4, 2)) / 2, errors.ShapeError, r"2 dimensions \(shape \(4, 2\)\); give shape \(sources, samples"),
        (np.ones((1, 2, 3, 4)), errors.ShapeError, "4 dimensions"),
        (np.float64(0.5), errors.ShapeError, "0 dimensions"),
        (np.ones((3, 4, 1)), errors.ShapeError, "1 class .*give both columns"),
        (np.ones((3, 4, 0)), errors.ShapeError, "0 classes"),
        (np.ones((0, 4, 2)), errors.ShapeError, "there are no sources"),
        ([], errors.ShapeError, "dimension"),
        ([np.ones((4, 2)) / 2, np.ones((3, 2)) / 2], errors.ShapeError, r"source 1 has shape \(3, 2\)"),
        ([np.ones((4, 2)) / 2, np.ones(4)], errors.ShapeError, "source 1 has 1 dimension "),
        (np.full((2, 2, 2), None), errors.DtypeError, "dtype object; give real numbers"),
        (np.full((2, 2, 2), "x"), errors.DtypeError, "dtype <U1"),
        (np.ones((2, 2, 2), complex), errors.DtypeError, "complex128"),
        ([[[0.5, 0.5], [1.0]]], errors.ShapeError, "rows of equal length"),
    ],
)  # fmt: skip
def test_wrong_arrays(values, error, message):
    with pytest.raises(error, match=message):
        vd.discover(values)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "percent"}, "kind 'percent' is unknown; choose one of: probs, logits, log_probs"),
        ({"missing": "ignore"}, "missing 'ignore' is unknown; choose one of: raise, skip"),
        ({"tol": -1}, "tol is -1; give a number of at least 0"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"tol": "small"}, "tol is 'small'"),
        ({"max_iter": -1}, "max_iter is -1; give a whole number of at least 0"),
        ({"max_iter": 2.5}, "max_iter is 2.5"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"sources_axis": 3}, "sources_axis is 3"),
    ],
)
def test_wrong_options(probs, options, message):
    with pytest.raises(errors.ParameterError, match=message):
        vd.discover(probs, **options)


def test_contradicting_predictions(probs):
    predictions = vd.Predictions(np.log(probs), kind="logits")
    with pytest.raises(errors.ParameterError, match="kind='probs' contradicts"):
        vd.discover(predictions, kind="probs")
    with pytest.raises(errors.ParameterError, match="leave sources_axis out"):
        vd.discover(predictions, sources_axis=1)


def test_errors_share_a_base():
    assert issubclass(errors.NotNormalisedError, errors.VeridicalError)
    assert issubclass(errors.NotNormalisedError, ValueError)
    assert str(errors.UnknownNameError("a sentence.")) == "a sentence."


@settings(max_examples=examples(200))
@given(data=st.data(), skip_missing=st.booleans())
def test_error_names_the_first_invalid_source(data, skip_missing):
    """The first source that is absent or not a distribution, whichever comes first, as plain loops find it."""
    n_sources, n_classes = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([2, 3, 50]))
    valid, absent = [1.0] + [0.0] * (n_classes - 1), [np.nan] * n_classes
    invalid = [[2.0, *valid[1:]], [-0.5, 1.5, *valid[2:]], [np.nan, 1.0, *valid[2:]], [np.inf, *valid[1:]]]
    row = st.one_of(st.just(valid), st.just(absent), st.sampled_from(invalid))
    rows = data.draw(st.lists(row, min_size=n_sources, max_size=n_sources))
    fault, source = naive.first_fault([naive.as_probabilities(row, "probs") for row in rows], 1e-5, skip_missing)
    probs = np.array(rows)[:, None]
    missing = "skip" if skip_missing else "raise"
    if fault == "fine":
        vd.discover(probs, missing=missing)
        return
    with pytest.raises(errors.VeridicalError) as caught:
        vd.discover(probs, missing=missing)
    assert isinstance(caught.value, errors.MissingSourceError) == (fault in ("absent", "nobody"))
    assert fault == "nobody" or f"source {source}" in str(caught.value)
