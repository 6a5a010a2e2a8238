"""What must hold of truth discovery on any ensemble, and its degenerate cases."""

import numpy as np
import pytest
from conftest import INTERPRETED, examples
from ensembles import random_ensemble, tied_ensembles
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd

SHAPES = [(3, 2), (5, 10), (20, 47), (4, 48), (9, 120)]
N_TRACED = 6 if INTERPRETED else 40


def assert_never_rises(trace):
    """Up to rounding: of HV itself; of the truth, which moves squared distances by eps times their root; and, where
    the truth has all but reached some sources, of distances that are nothing but eps squared, each weighed by a
    logarithm of about 70 and summed over sources.
    """
    eps = np.finfo(trace.dtype).eps
    hv = trace.astype(np.float64)
    rounding = 100 * eps * (hv[:-1] + np.sqrt(hv[:-1])) + 1e4 * eps**2
    assert (hv[1:] <= hv[:-1] + rounding).all()


@pytest.mark.parametrize("keep_label", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n_sources", "n_classes"), SHAPES)
def test_hv_never_increases(rng, n_sources, n_classes, dtype, keep_label):
    for spread in (1e-5, 1e-3, 1.0, 10.0):
        probs = random_ensemble(rng, n_sources, N_TRACED, n_classes, dtype, spread)
        trace = vd.discover(probs, accuracy_preserving=keep_label, tol=0, max_iter=15, trace=True).trace
        assert trace.shape == (16, N_TRACED)
        assert_never_rises(trace)


@settings(max_examples=examples(300))
@given(tied_ensembles(), st.booleans())
def test_hv_never_increases_on_ties(probs, keep_label):
    exact = probs.astype(np.float64) / probs.sum(-1, keepdims=True, dtype=np.float64)
    assert_never_rises(vd.discover(exact, accuracy_preserving=keep_label, tol=0, trace=True).trace)


@pytest.mark.parametrize(("n_sources", "n_classes"), SHAPES)
def test_permutations_permute_the_result(rng, n_sources, n_classes):
    probs = random_ensemble(rng, n_sources, 30, n_classes)
    truth = vd.discover(probs)
    sources, samples, classes = (rng.permutation(size) for size in probs.shape)
    by_source = vd.discover(probs[sources])
    np.testing.assert_allclose(by_source.probs, truth.probs, atol=1e-12)
    np.testing.assert_allclose(by_source.reliability, truth.reliability[sources], atol=1e-9)
    by_sample = vd.discover(probs[:, samples])
    np.testing.assert_array_equal(by_sample.probs, truth.probs[samples])
    np.testing.assert_array_equal(by_sample.hv, truth.hv[samples])
    by_class = vd.discover(probs[:, :, classes])
    np.testing.assert_allclose(by_class.probs, truth.probs[:, classes], atol=1e-12)
    np.testing.assert_allclose(by_class.hv, truth.hv, atol=1e-12)
    np.testing.assert_array_equal(classes[by_class.prediction], truth.prediction)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_sources", "n_classes"), SHAPES)
def test_sample_has_one_answer(rng, n_sources, n_classes, dtype):
    """Duplicated, alone or in a crowd: the same bytes."""
    probs = random_ensemble(rng, n_sources, 25, n_classes, dtype)
    truth = vd.discover(probs)
    again = vd.discover(np.concatenate([probs, probs[:, ::-1]], axis=1))
    np.testing.assert_array_equal(again.probs[:25], truth.probs)
    np.testing.assert_array_equal(again.probs[25:], truth.probs[::-1])
    np.testing.assert_array_equal(again.reliability[:, 25:], truth.reliability[:, ::-1])
    for n in (0, 7, 24):
        alone = vd.discover(probs[:, n : n + 1])
        np.testing.assert_array_equal(alone.probs[0], truth.probs[n])
        assert alone.hv[0] == truth.hv[n]


@settings(max_examples=examples(300))
@given(tied_ensembles(), st.booleans())
def test_result_is_well_formed(probs, keep_label):
    truth = vd.discover(probs, accuracy_preserving=keep_label)
    assert (truth.reliability >= 0).all()
    np.testing.assert_allclose(truth.reliability.sum(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(truth.probs.sum(axis=1), 1, atol=1e-6)
    assert (truth.probs >= 0).all()
    assert (truth.hv >= 0).all()
    for values in (truth.probs, truth.reliability, truth.hv):
        assert np.isfinite(values).all()


@pytest.mark.parametrize("n_sources", [1, 2, 5])
@pytest.mark.parametrize("n_classes", [2, 3, 60])
def test_unanimous(n_sources, n_classes):
    vector = np.arange(1.0, n_classes + 1) / np.arange(1.0, n_classes + 1).sum()
    truth = vd.discover(np.broadcast_to(vector, (n_sources, 4, n_classes)))
    np.testing.assert_allclose(truth.probs, np.broadcast_to(vector, (4, n_classes)), atol=1e-15)
    np.testing.assert_allclose(truth.hv, 0, atol=1e-25)
    np.testing.assert_allclose(truth.reliability, 1 / n_sources, atol=1e-12)
    assert truth.converged.all()


def test_two_sources_meet_at_their_mean(rng):
    probs = random_ensemble(rng, 2, 20, 6)
    truth = vd.discover(probs, accuracy_preserving=False)
    np.testing.assert_allclose(truth.probs, probs.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(truth.reliability, 0.5, atol=1e-12)
    assert truth.converged.all()
    squared = ((probs - probs.mean(axis=0)) ** 2).sum(axis=(0, 2))
    np.testing.assert_allclose(truth.hv, squared * np.log(2), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 64])
def test_source_equal_to_the_truth(n_classes):
    """The mean equals one source: it pulls infinitely, the truth stays, it has all the reliability."""
    probs = np.zeros((3, 1, n_classes))
    probs[:, 0, :3] = [[0.5, 0.25, 0.25], [0.75, 0.25, 0.0], [0.25, 0.25, 0.5]]
    truth = vd.discover(probs, accuracy_preserving=False)
    np.testing.assert_array_equal(truth.probs, probs[0])
    np.testing.assert_array_equal(truth.reliability[:, 0], [1, 0, 0])
    assert truth.converged[0]
    assert truth.n_iter[0] == 0
    assert truth.hv[0] == pytest.approx(2 * 0.125 * np.log(2))


def test_one_hot_votes():
    """A jury of hard votes, as integers: the majority wins."""
    votes = np.zeros((5, 2, 3), dtype=np.int64)
    votes[[0, 1, 2], 0, 1] = votes[[3, 4], 0, 0] = votes[:, 1, 2] = 1
    truth = vd.discover(votes)
    assert truth.prediction.tolist() == [1, 2]
    assert truth.probs[0, 1] > 0.6
    np.testing.assert_allclose(truth.probs[1], [0, 0, 1], atol=1e-6)


@pytest.mark.parametrize("n_sources", [1, 4])
def test_no_samples(n_sources):
    truth = vd.discover(np.empty((n_sources, 0, 3)), trace=True)
    assert truth.probs.shape == (0, 3)
    assert truth.reliability.shape == (n_sources, 0)
    assert truth.trace.shape == (21, 0)
    assert "no samples" in repr(truth)


def test_extreme_scores():
    """Nothing overflows, underflows to NaN or warns."""
    logits = np.array([[[0.0, -1e4, 300.0]], [[1e30, -1e30, 0.0]], [[-5e3, 3.0, 2.0]]])
    for dtype in (np.float32, np.float64):
        truth = vd.discover(logits.astype(dtype), kind="logits")
        assert np.isfinite(truth.probs).all()
    tiny = np.array([[[1.0, 1e-30]], [[1.0, 3e-30]], [[1.0, 1e-38]]], dtype=np.float32)
    assert np.isfinite(vd.discover(tiny).probs).all()
    with np.errstate(divide="ignore"):
        certain = np.log(np.eye(3))[:, None, :]
    assert vd.discover(certain, kind="log_probs").probs.sum() == pytest.approx(1)
