"""Compiled truth discovery against its plain-loop twin."""

import math

import naive
import numpy as np
import pytest
from conftest import examples
from ensembles import random_ensemble, tied_ensembles
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd

TOLERANCE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 2e-5}


def assert_same_as_twin(probs, kind="probs", scores=None, **options):
    truth = vd.discover(probs if scores is None else scores, kind=kind, trace=True, **options)
    keep_label = options.pop("accuracy_preserving", True)
    atol = TOLERANCE[truth.probs.dtype]
    for n in range(probs.shape[1]):
        twin = naive.discover_sample(probs[:, n], keep_label=keep_label, **options)
        assert truth.prediction[n] == twin.label
        np.testing.assert_allclose(truth.probs[n], twin.z, atol=atol)
        np.testing.assert_allclose(truth.hv[n], twin.hv, atol=atol)
        np.testing.assert_allclose(truth.trace[:, n], twin.trace, atol=atol)
        assert truth.n_iter[n] == twin.n_iter
        assert truth.converged[n] == twin.converged
        np.testing.assert_allclose(truth.reliability[:, n], twin.reliability, atol=50 * atol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keep_label", [True, False])
@pytest.mark.parametrize(
    ("n_sources", "n_classes"),
    [(1, 2), (2, 2), (3, 2), (3, 3), (5, 10), (17, 10), (16, 16), (33, 47), (3, 48), (7, 100), (20, 130)],
)
def test_random_ensembles(rng, dtype, keep_label, n_sources, n_classes):
    """Both layouts in cache, with and without padding."""
    probs = random_ensemble(rng, n_sources, 6, n_classes, dtype)
    assert_same_as_twin(probs, accuracy_preserving=keep_label)


@pytest.mark.parametrize("n_classes", [3, 60])
@pytest.mark.parametrize("options", [{"max_iter": 0}, {"max_iter": 1}, {"tol": 0.0, "max_iter": 6}, {"tol": 1e-12}])
def test_stopping(rng, options, n_classes):
    assert_same_as_twin(random_ensemble(rng, 5, 10, n_classes), **options)


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [4, 70])
def test_kinds(rng, kind, dtype, n_classes):
    logits = (3 * rng.standard_normal((4, 8, n_classes))).astype(dtype)
    probs = np.asarray([[naive.softmax(row.astype(float).tolist()) for row in source] for source in logits])
    scores = logits if kind == "logits" else np.log(probs).astype(dtype)
    assert_same_as_twin(probs, kind, scores)


@settings(max_examples=examples(300))
@given(tied_ensembles(), st.booleans())
def test_ties(probs, keep_label):
    """Exact and near ties: the answer is the twin's wherever the path to it is not decided by rounding."""
    truth = vd.discover(probs, accuracy_preserving=keep_label, tol=0.0, max_iter=1)
    for n in range(probs.shape[1]):
        twin = naive.discover_sample(probs[:, n], keep_label=keep_label, tol=0.0, max_iter=1)
        assert truth.prediction[n] == twin.label
        distances = [math.dist(twin.z, row) for row in probs[:, n].astype(float).tolist()]
        if min(distances) > 1e-2:  # next to a source its weight is a matter of rounding
            np.testing.assert_allclose(truth.probs[n], twin.z, atol=1e-4)


def test_float16_is_read_exactly(rng):
    half = random_ensemble(rng, 5, 30, 10, np.float16)
    from_half, from_single = (
        vd.discover(half),
        vd.discover(half.astype(np.float32) / half.sum(-1, keepdims=True, dtype=np.float32)),
    )
    assert from_half.probs.dtype == np.float32
    np.testing.assert_allclose(from_half.probs, from_single.probs, atol=1e-6)


@pytest.mark.parametrize("n_classes", [5, 80])
def test_vectorised_twin_agrees(rng, n_classes):
    """The peer that benchmarks time computes the same thing."""
    probs = random_ensemble(rng, 6, 30, n_classes, spread=3.0)
    truth = vd.discover(probs)
    truths, reliabilities, variances = naive.discover_by_numpy(probs)
    np.testing.assert_allclose(truth.probs, truths, atol=1e-10)
    np.testing.assert_allclose(truth.reliability, reliabilities, atol=1e-10)
    np.testing.assert_allclose(truth.hv, variances, atol=1e-10)
