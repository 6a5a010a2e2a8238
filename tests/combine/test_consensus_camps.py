"""Camps: sources that agree only among themselves are reported, and nobody is believed over the other."""

import warnings

import numpy as np
import pytest
from conftest import load_logits, softmax

import veridical as vd
from veridical.errors import CampsWarning


@pytest.fixture(scope="module")
def cifar10():
    """(20, 2000, 10) alike networks, and labels."""
    logits, labels = load_logits("cifar10-resnet8-de")
    return softmax(logits[:, :2000]), labels[:2000]


@pytest.fixture(scope="module")
def cifar100():
    """(3, 1500, 100): two good networks and a poor one (the second)."""
    logits, labels = load_logits("cifar100-mixed-3")
    return softmax(logits), labels


def accuracy(probs, labels):
    return (probs.argmax(axis=1) == labels).mean()


@pytest.mark.parametrize(("n_honest", "n_permuted"), [(3, 2), (3, 3), (2, 3), (8, 4)])
def test_sources_with_the_same_permutation_are_a_camp(cifar10, n_honest, n_permuted):
    probs, labels = cifar10
    permuted = np.roll(probs[n_honest : n_honest + n_permuted], 3, axis=2)
    everyone = np.concatenate([probs[:n_honest], permuted])
    names = [f"honest{s}" for s in range(n_honest)] + [f"permuted{s}" for s in range(n_permuted)]
    with pytest.warns(CampsWarning, match="2 camps .*permuted0, permuted1") as caught:
        consensus = vd.consensus(vd.Predictions(everyone, source_names=names))
    assert caught[0].filename == __file__
    np.testing.assert_allclose(consensus.probs, everyone.mean(axis=0), atol=1e-12)
    np.testing.assert_array_equal(consensus.weights, 1.0)
    by_first = {camp.names[0]: camp for camp in consensus.camps}
    assert set(by_first) == {"honest0", "permuted0"}
    assert by_first["honest0"].sources == tuple(range(n_honest))
    assert by_first["permuted0"].names == tuple(names[n_honest:])
    assert accuracy(by_first["honest0"].probs, labels) > 0.8
    assert accuracy(by_first["permuted0"].probs, labels) < 0.1
    np.testing.assert_allclose(by_first["honest0"].probs.sum(axis=1), 1.0)
    assert "camps, so this is the mean" in repr(consensus)
    assert repr(by_first["honest0"]).startswith("Camp(honest0, ")


def test_three_camps_are_told_apart(cifar10):
    probs, _ = cifar10
    everyone = np.concatenate([np.roll(probs[3 * camp : 3 * camp + 3], 3 * camp, axis=2) for camp in range(3)])
    with pytest.warns(CampsWarning, match="3 camps"):
        consensus = vd.consensus(everyone)
    assert sorted(camp.sources for camp in consensus.camps) == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]


@pytest.mark.parametrize("n_honest", [10, 18])
def test_small_minority_is_not_a_camp(cifar10, n_honest):
    probs, labels = cifar10
    everyone = np.concatenate([probs[:n_honest], np.roll(probs[n_honest : n_honest + 2], 3, axis=2)])
    consensus = vd.consensus(everyone)
    assert consensus.shares[n_honest:].sum() < 0.01
    assert accuracy(consensus.probs, labels) == pytest.approx(accuracy(probs[:n_honest].mean(axis=0), labels), abs=0.01)


@pytest.mark.parametrize("n_fooled", [4, 5, 6])
def test_sources_fooled_by_the_same_samples_are_a_camp(cifar10, n_fooled):
    probs, labels = cifar10
    rng = np.random.default_rng(0)
    fooling = rng.random(len(labels)) < 0.4
    everyone = probs[:9].copy()
    wrong = np.eye(10)[(labels[fooling] + 1) % 10]
    everyone[:n_fooled, fooling] = 0.2 * everyone[:n_fooled, fooling] + 0.8 * wrong
    with pytest.warns(CampsWarning):
        consensus = vd.consensus(everyone)
    assert sorted(camp.sources for camp in consensus.camps) == [tuple(range(n_fooled)), tuple(range(n_fooled, 9))]


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.0])
def test_noisy_copies_of_a_poor_source_do_not_win(cifar100, spread):
    """Five noisy copies of the poor network agree among themselves, about little: they hardly vary."""
    probs, labels = cifar100
    rng = np.random.default_rng(1)
    logs = np.log(np.maximum(probs[1], 1e-13))
    noisy = softmax(logs + spread * rng.standard_normal((5, *logs.shape)))
    consensus = vd.consensus(np.concatenate([probs, noisy]))
    assert not consensus.camps
    assert accuracy(consensus.probs, labels) > accuracy(probs.mean(axis=0), labels) - 0.01
    assert consensus.shares[[0, 2]].sum() > 0.8


def test_camps_do_not_depend_on_copies_or_order(cifar10):
    probs, _ = cifar10
    everyone = np.concatenate([probs[:3], np.roll(probs[3:5], 3, axis=2)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CampsWarning)
        plain = vd.consensus(everyone)
        order = np.array([4, 0, 3, 1, 2])
        moved = vd.consensus(everyone[order])
        copied = vd.consensus(np.concatenate([everyone, everyone[4:5], everyone[4:5]]))
    assert {frozenset(order[list(camp.sources)]) for camp in moved.camps} == {frozenset(c.sources) for c in plain.camps}
    evidence = [camp.evidence for camp in plain.camps]
    np.testing.assert_allclose([camp.evidence for camp in copied.camps], evidence, rtol=1e-6)


def test_copies_of_one_source_are_not_a_camp(cifar10):
    probs, labels = cifar10
    permuted = np.roll(probs[3:4], 3, axis=2)
    consensus = vd.consensus(np.concatenate([probs[:3], permuted, permuted, permuted]))
    assert not consensus.camps
    assert accuracy(consensus.probs, labels) > 0.8


def test_guessing_sources_are_not_camps():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        guesses = rng.dirichlet(np.ones(4), (8, 200))
        assert not vd.consensus(guesses).camps
