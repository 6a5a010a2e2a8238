"""Labels of logits and log-probabilities whose mean ties, or nearly does, against the definition in float64."""

import numpy as np
import pytest
from conftest import INTERPRETED
from scipy.special import softmax

import veridical as vd
from veridical.combine.truth_discovery import discover_with_mean

N_SAMPLES = 50 if INTERPRETED else 4000


def mean_in_float64(scores, kind):
    """(N, L): probabilities in float64, added up in the order of the sources; absent sources are left out."""
    scores = scores.astype(np.float64)
    present = ~np.isnan(scores[..., :1])
    if kind == "logits":
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        # From the smallest to the largest, so that the order of the classes does not matter.
        probs = exponentials / np.sort(exponentials, axis=-1).sum(axis=-1, keepdims=True)
    else:
        probs = np.exp(scores)
    total = np.zeros(scores.shape[1:])
    for source, here in zip(probs, present, strict=True):
        total += np.where(here, source, 0.0)
    return total / present.sum(axis=0)


def nearly_tied_logits(rng, n_sources, n_classes, dtype):
    """Sources that exchange the scores of their two best classes, changed by a few units of rounding or not at all."""
    logits = rng.normal(size=(n_sources, N_SAMPLES, n_classes)) * 3
    order = np.argsort(logits[0], axis=-1)
    rows = np.arange(N_SAMPLES)
    for s in range(n_sources):
        logits[s] = logits[0]
        if s % 2:
            first, second = order[:, -1], order[:, -2]
            logits[s, rows, first], logits[s, rows, second] = logits[0, rows, second], logits[0, rows, first]
    if n_sources % 2:
        logits[-1, rows, order[:, -1]] = logits[-1, rows, order[:, -2]]
    logits = logits.astype(dtype)
    nudges = rng.integers(-2, 3, logits.shape) * (rng.random((1, N_SAMPLES, 1)) < 0.7)
    return (logits * (1 + nudges * np.finfo(dtype).eps)).astype(dtype)


def as_kind(logits, kind, dtype):
    if kind == "logits":
        return logits
    wide = logits.astype(np.float64)
    return (wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))).astype(dtype)


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n_sources", "n_classes"), [(1, 2), (2, 2), (2, 10), (3, 5), (5, 60), (4, 300)])
def test_labels_are_those_of_the_float64_mean(rng, n_sources, n_classes, dtype, kind):
    scores = as_kind(nearly_tied_logits(rng, n_sources, n_classes, dtype), kind, dtype)
    truth = vd.discover(scores, kind=kind)
    np.testing.assert_array_equal(truth.prediction, mean_in_float64(scores, kind).argmax(axis=1))
    np.testing.assert_array_equal(truth.probs.argmax(axis=1), truth.prediction)
    assert np.isfinite(truth.probs).all()
    assert np.isfinite(truth.hv).all()


def test_labels_of_near_ties_with_missing_sources(rng):
    scores = nearly_tied_logits(rng, 4, 7, np.float32)
    scores[rng.random((4, N_SAMPLES)) < 0.3] = np.nan
    scores[0, np.isnan(scores[..., 0]).all(axis=0)] = 0.0
    truth = vd.discover(scores, kind="logits", missing="skip")
    np.testing.assert_array_equal(truth.prediction, mean_in_float64(scores, "logits").argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_exact_ties_go_to_the_lowest_index(rng, n_classes, dtype):
    """Two sources with the same logits but for the two best, which change places."""
    first = (rng.normal(size=(N_SAMPLES, n_classes)) * 3).astype(dtype)
    second = first.copy()
    rows = np.arange(N_SAMPLES)
    best, next_best = np.argsort(first, axis=1)[:, [-1, -2]].T
    second[rows, best], second[rows, next_best] = first[rows, next_best], first[rows, best]
    truth = vd.discover(np.stack([first, second]), kind="logits")
    np.testing.assert_array_equal(truth.prediction, np.minimum(best, next_best))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_labels_agree_with_scipy_unless_its_own_rounding_decides(rng, dtype):
    scores = nearly_tied_logits(rng, 3, 20, dtype)
    mean = softmax(scores.astype(np.float64), axis=-1).mean(axis=0)
    top, second = np.sort(mean, axis=1)[:, [-1, -2]].T
    clear = top - second > 32 * np.finfo(np.float64).eps * top
    assert clear.any()
    truth = vd.discover(scores, kind="logits")
    np.testing.assert_array_equal(truth.prediction[clear], mean.argmax(axis=1)[clear])


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("n_classes", [3, 60])
def test_mean_from_the_pass_of_the_truth_equals_the_mean_alone(rng, n_classes, kind):
    scores = nearly_tied_logits(rng, 4, n_classes, np.float32)
    scores = softmax(scores, axis=-1) if kind == "probs" else scores
    scores[1, ::7] = np.nan
    predictions = vd.Predictions(scores, kind=kind)
    truth, mean = discover_with_mean(predictions, "skip", None)
    np.testing.assert_array_equal(mean, vd.discover(predictions, missing="skip", max_iter=0).probs)
    expected = vd.discover(predictions, missing="skip")
    for name in ("probs", "reliability", "hv", "prediction", "n_iter", "converged"):
        np.testing.assert_array_equal(getattr(truth, name), getattr(expected, name))
