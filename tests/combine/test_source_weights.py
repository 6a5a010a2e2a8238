"""Truth discovery with weights of the sources."""

import numpy as np
import pytest
from conftest import examples, load_logits, softmax
from ensembles import random_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from test_consensus import mixed_ensemble, with_gaps
from test_twin import assert_same_as_twin

import veridical as vd
from veridical.errors import ParameterError, ShapeError


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("keep_label", [True, False])
@pytest.mark.parametrize(("n_sources", "n_classes"), [(3, 2), (5, 10), (17, 10), (3, 48), (7, 100)])
def test_weighted_discovery_agrees_with_its_twin(rng, dtype, keep_label, n_sources, n_classes):
    probs = random_ensemble(rng, n_sources, 6, n_classes, dtype)
    weights = rng.uniform(0.2, 3.0, n_sources)
    if n_sources > 3:  # of two sources with unequal weights one becomes the truth, up to rounding
        weights[0] = 0.0
    assert_same_as_twin(probs, accuracy_preserving=keep_label, source_weights=weights)


def test_weights_of_one_change_nothing(rng):
    probs = random_ensemble(rng, 6, 50, 4)
    plain, weighted = vd.discover(probs), vd.discover(probs, source_weights=np.ones(6))
    np.testing.assert_allclose(weighted.probs, plain.probs, atol=1e-12)
    np.testing.assert_allclose(weighted.hv, plain.hv, atol=1e-12)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_whole_weights_are_copies(seed, gaps):
    rng = np.random.default_rng(seed)
    probs = random_ensemble(rng, 4, 20, 3)
    probs = with_gaps(probs, rng) if gaps else probs
    n_copies = rng.integers(1, 4, 4)
    weighted = vd.discover(probs, source_weights=n_copies, accuracy_preserving=False, missing="skip")
    copied = vd.discover(np.repeat(probs, n_copies, axis=0), accuracy_preserving=False, missing="skip")
    several = (~np.isnan(probs[:, :, 0])).sum(axis=0) > 1
    np.testing.assert_allclose(weighted.probs[several], copied.probs[several], atol=1e-8)
    np.testing.assert_allclose(weighted.hv[several], copied.hv[several], atol=1e-8)


def test_sources_of_weight_zero_are_left_out(rng):
    probs = random_ensemble(rng, 5, 40, 3)
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    weighted = vd.discover(probs, source_weights=weights, accuracy_preserving=False)
    without = vd.discover(probs[:4], accuracy_preserving=False)
    np.testing.assert_allclose(weighted.probs, without.probs, atol=1e-10)
    assert not weighted.reliability[4].any()


def test_sources_count_equally_where_only_those_of_weight_zero_are_present(rng):
    probs = random_ensemble(rng, 4, 3, 3)
    probs[:2, 0] = np.nan
    weighted = vd.discover(probs, source_weights=[1, 1, 0, 0], missing="skip", accuracy_preserving=False)
    np.testing.assert_allclose(weighted.probs[0], probs[2:, 0].mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 0.3, 1.0])
def test_labels_of_the_mean_are_kept_with_any_weights(rng, scale):
    probs = random_ensemble(rng, 5, 200, 4)
    truth = vd.discover(probs, source_weights=scale * rng.uniform(0.0, 1.0, 5))
    np.testing.assert_array_equal(truth.probs.argmax(axis=1), probs.mean(axis=0).argmax(axis=1))
    np.testing.assert_allclose(truth.probs.sum(axis=1), 1.0)
    assert np.isfinite(truth.hv).all()


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ([1, 1], ShapeError, "one weight per source"),
        ([1, -1, 1], ParameterError, "source 1 is -1"),
        ([1, np.nan, 1], ParameterError, r"from 0 to 1e\+30"),
        ([0, 0, 0], ParameterError, "all source weights are 0"),
    ],
)
def test_bad_weights_are_refused(rng, weights, error, words):
    with pytest.raises(error, match=words):
        vd.discover(random_ensemble(rng, 3, 4, 2), source_weights=weights)


def test_consensus_says_how_many_sources_each_counts_as(rng):
    probs, _ = mixed_ensemble(rng)
    consensus = vd.consensus(np.concatenate([probs, probs[:1], probs[:1]]))
    weights = consensus.source_weights
    np.testing.assert_allclose(weights, consensus.shares * consensus.distinct_sources[0])
    alone = vd.consensus(probs).source_weights
    assert weights[[0, 5, 6]].sum() == pytest.approx(alone[0], abs=1e-6)


def test_truth_on_the_consensus_starts_from_its_weights(rng):
    probs, labels = mixed_ensemble(rng)
    fitted = vd.Identity(combine="consensus").fit(probs, labels)
    expected = vd.discover(probs, source_weights=vd.consensus(probs).source_weights)
    np.testing.assert_allclose(fitted.combine_new(probs).truth.probs, expected.probs, atol=1e-9)


def test_truth_logit_gains_from_the_weights_of_the_consensus():
    logits, labels = load_logits("cifar100-mixed-3")
    probs = softmax(logits)
    losses = {}
    for combine in ("mean", "aconsensus"):
        fitted = vd.TruthLogit(combine=combine).fit(probs[:, ::2], labels[::2])
        right = fitted.predict(probs[:, 1::2]) == labels[1::2]
        confidence = fitted.predict_confidence(probs[:, 1::2])
        losses[combine] = np.square(confidence - right).mean()
    assert losses["aconsensus"] < losses["mean"]
