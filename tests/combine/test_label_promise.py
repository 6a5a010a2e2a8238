"""aTDE keeps every label of the mean, strictly, whatever the input."""

import naive
import numpy as np
import pytest
from conftest import examples, load_golden, load_logits
from ensembles import random_ensemble, tied_ensembles
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd


def assert_promise_kept(truth):
    top = truth.probs.max(axis=1, keepdims=True)
    assert (truth.probs.argmax(axis=1) == truth.prediction).all()
    assert ((truth.probs == top).sum(axis=1) == 1).all(), "the maximum is shared"


@settings(max_examples=examples(1000))
@given(tied_ensembles(), st.sampled_from([0, 1, 2, 20]))
def test_labels_are_kept_in_random_ensembles(probs, max_iter):
    truth = vd.discover(probs, max_iter=max_iter)
    assert_promise_kept(truth)
    expected = [naive.mean_label(probs[:, n].astype(np.float64)) for n in range(probs.shape[1])]
    assert truth.prediction.tolist() == expected
    assert np.isfinite(truth.probs).all()
    assert (truth.probs >= 0).all()
    np.testing.assert_allclose(truth.probs.sum(axis=1), 1.0, atol=1e-6)


@settings(max_examples=examples(300))
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 10, 47, 48, 200]), st.sampled_from(["logits", "log_probs"]))
def test_labels_are_kept_in_random_logits(seed, n_classes, kind):
    rng = np.random.default_rng(seed)
    scores = np.log(random_ensemble(rng, rng.integers(1, 9), 4, n_classes)).round(int(rng.integers(0, 4)))
    if kind == "log_probs":
        scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True))
    dtype = rng.choice([np.float32, np.float64])
    assert_promise_kept(vd.discover(scores.astype(dtype), kind=kind))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3, 10, 64, 1000])
def test_everything_tied(dtype, n_classes):
    """Unanimous uniform sources: every class ties, the lowest is the label."""
    probs = np.full((4, 3, n_classes), 1 / n_classes).astype(dtype)
    truth = vd.discover(probs)
    assert_promise_kept(truth)
    assert (truth.prediction == 0).all()


@pytest.mark.compiled
def test_poor_source_changes_no_label():
    """One source at 12% accuracy among two at 75%: vanilla TDE changes a fifth of the labels, aTDE none."""
    logits, labels = load_logits("cifar100-mixed-3")
    golden = load_golden("cifar100-mixed-3")
    for dtype in (np.float16, np.float32, np.float64):
        converted = logits.astype(dtype)
        truth = vd.discover(converted, kind="logits")
        assert_promise_kept(truth)
        assert (truth.prediction == labels).mean() == golden["mean"]["acc"]
        vanilla = vd.discover(converted, kind="logits", accuracy_preserving=False, tol=0, max_iter=6)
        assert (vanilla.probs.argmax(axis=1) != vanilla.prediction).sum() == golden["atde_changed"]
