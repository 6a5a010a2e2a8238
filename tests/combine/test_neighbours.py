"""A sample has the same label and numbers alone, among others, and under another order of classes and sources."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical.combine import COMBINERS
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory

NAMES = tuple(COMBINERS)


def hard_inputs(kind, rng, n_samples=200, n_sources=5, n_classes=4):
    """Votes, forests of few trees, scores that are 0 and 1 up to rounding, near-ties, and ordinary ones."""
    shape = n_sources, n_samples, n_classes
    if kind == "votes":
        return np.eye(n_classes)[rng.integers(0, n_classes, shape[:2])]
    if kind == "forests":
        return rng.multinomial(4, np.full(n_classes, 1 / n_classes), shape[:2]) / 4
    if kind == "near ties":
        probs = 1 / n_classes + 1e-16 * rng.integers(-1, 2, shape)
        return probs / probs.sum(axis=2, keepdims=True)
    probs = rng.dirichlet(np.full(n_classes, 0.3 if kind == "sure" else 2.0), shape[:2])
    return np.where(probs > 1 - 1e-3, 1.0, probs) / np.where(probs > 1 - 1e-3, 1.0, probs).sum(axis=2, keepdims=True)


def fitted(name, probs, labels):
    combiner = COMBINERS[name]()
    combiner.fit(vd.Predictions(probs), labels, AbsentSkipped())
    return combiner


def combined(combiner, probs):
    result = combiner.combine_in_memory(SourcesInMemory(vd.Predictions(probs), AbsentSkipped()))
    return result.probs, result.prediction


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["votes", "forests", "sure", "near ties", "ordinary"])
@pytest.mark.parametrize("name", NAMES)
def test_one_by_one_equals_the_batch(name, kind, dtype, rng):
    probs = hard_inputs(kind, rng, n_sources=6).astype(dtype)  # six: sums that differ may have means that do not
    combiner = fitted(name, probs, rng.integers(0, 4, 200))
    vectors, labels = combined(combiner, probs)
    tolerance = 1e-12 if dtype == np.float64 else 3e-6
    for size in (1, 3, 64):
        for start in range(0, 200, max(size, 5)):
            part = slice(start, start + size)
            alone, own_labels = combined(combiner, probs[:, part])
            np.testing.assert_array_equal(own_labels, labels[part])
            np.testing.assert_allclose(alone, vectors[part], rtol=0, atol=tolerance)


@pytest.mark.parametrize("n_samples", [50, 3000])
@pytest.mark.parametrize("name", NAMES)
def test_equal_samples_have_equal_numbers(name, n_samples, rng):
    patterns = hard_inputs("votes", rng, 7)
    which = rng.integers(0, 7, n_samples)
    probs = patterns[:, which]
    vectors, labels = combined(fitted(name, probs, rng.integers(0, 4, n_samples)), probs)
    for pattern in range(7):
        same = np.flatnonzero(which == pattern)
        np.testing.assert_array_equal(vectors[same], vectors[same[:1]].repeat(len(same), axis=0))
        assert len(set(labels[same])) == 1


@settings(max_examples=examples(20))
@given(st.sampled_from(NAMES), st.sampled_from(["forests", "sure", "ordinary"]), st.integers(0, 2**32 - 1))
def test_orders_of_classes_sources_and_samples_commute(name, kind, seed):
    rng = np.random.default_rng(seed)
    probs, labels = hard_inputs(kind, rng, 80), rng.integers(0, 4, 80)
    vectors, predicted = combined(fitted(name, probs, labels), probs)
    classes, sources, samples = rng.permutation(4), rng.permutation(5), rng.permutation(80)
    # Folds of cross-validations are made in the order of the samples: weights are fitted in the same one.
    moved = probs[sources][:, :, classes]
    combiner = fitted(name, moved, np.argsort(classes)[labels])
    moved_vectors, moved_labels = combined(combiner, moved[:, samples])
    tied = np.sort(probs.mean(axis=0), axis=1)
    tied = (tied[:, -1] - tied[:, -2] < 1e-4) | (np.diff(np.sort(vectors, axis=1)[:, -2:], axis=1)[:, 0] < 1e-4)
    clear = ~tied[samples]
    np.testing.assert_array_equal(classes[moved_labels][clear], predicted[samples][clear])
    tolerance = 1e-5 if COMBINERS[name].has_weights else 1e-9
    np.testing.assert_allclose(moved_vectors[clear], vectors[samples][clear][:, classes], rtol=0, atol=tolerance)
