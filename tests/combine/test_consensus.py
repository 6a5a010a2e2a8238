"""The consensus of sources: its formulas, what it must not react to, and what it does on real ensembles."""

import numpy as np
import pytest
from conftest import examples, load_logits, softmax
from ensembles import random_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_consensus import correlations, distinctness_of, factor, weighted_mean

import veridical as vd
from veridical.combine.across_samples import weights
from veridical.combine.across_samples.passes import gather_sums
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.errors import LongComputationWarning, MissingSourceError, NotNormalisedError, ParameterError


def mixed_ensemble(rng, n_samples=400, n_classes=4, noise=(0.5, 0.8, 1.0, 1.5, 2.5)):
    """Sources of different quality that see the same truth, with errors of their own; and the labels."""
    labels = rng.integers(0, n_classes, n_samples)
    logits = 2.5 * np.eye(n_classes)[labels]
    return np.stack([softmax(logits + scale * rng.standard_normal(logits.shape)) for scale in noise]), labels


def with_gaps(probs, rng, share=0.4):
    """The same predictions with sources absent at random, one at least present for each sample."""
    gaps = rng.random(probs.shape[:2]) < share
    gaps[rng.integers(0, len(probs), probs.shape[1]), np.arange(probs.shape[1])] = False
    return np.where(gaps[:, :, None], np.nan, probs)


def nll(probs, labels):
    return -np.log(probs[np.arange(len(labels)), labels]).mean()


@pytest.fixture(scope="module")
def cifar100():
    """(3, 1500, 100): two good networks and a poor one (the second)."""
    logits, labels = load_logits("cifar100-mixed-3")
    return softmax(logits), labels


@pytest.mark.parametrize("gaps", [False, True])
def test_consensus_follows_its_formulas(rng, gaps):
    probs = mixed_ensemble(rng, n_samples=60)[0][:4]
    probs = with_gaps(probs, rng) if gaps else probs
    consensus = vd.consensus(probs)
    correlation, counts = correlations(probs)
    skill, dependence = factor(correlation, counts)
    n_samples = np.diag(counts)
    independence = np.array(distinctness_of(dependence))
    typical = (independence * n_samples) @ skill / (independence @ n_samples)
    skill = (n_samples * skill + 10 * typical) / (n_samples + 10)
    np.testing.assert_allclose(consensus.skill, skill, atol=1e-5)
    np.testing.assert_allclose(consensus.weights, -np.log(1 - skill**2), atol=1e-4)
    np.testing.assert_allclose(consensus.dependence, dependence, atol=1e-5)
    np.testing.assert_array_equal(consensus.n_samples, n_samples)
    for n in range(60):
        rows = [None if np.isnan(row[0]) else row for row in probs[:, n]]
        z, effective = weighted_mean(rows, consensus.weights, consensus.dependence)
        np.testing.assert_allclose(consensus.probs[n], z, atol=1e-12)
        assert consensus.distinct_sources[n] == pytest.approx(effective, abs=1e-12)
    np.testing.assert_array_equal(consensus.prediction, consensus.probs.argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_correlations_agree_with_loops(rng, dtype):
    probs = mixed_ensemble(rng, n_samples=50, n_classes=3)[0].astype(dtype)
    sums, complete = gather_sums(SourcesInMemory(vd.Predictions(probs), vd.Identity()))
    exact = probs.astype(np.float64)
    correlation, counts = correlations(exact / exact.sum(axis=-1, keepdims=True))
    assert complete
    np.testing.assert_allclose(sums.correlations().correlation, correlation, atol=1e-6)
    np.testing.assert_array_equal(sums.counts, counts)


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_consensus_follows_permutations(seed, gaps):
    rng = np.random.default_rng(seed)
    probs, _ = mixed_ensemble(rng, n_samples=120)
    probs = with_gaps(probs, rng) if gaps else probs
    sources, samples, classes = (rng.permutation(size) for size in probs.shape)
    plain = vd.consensus(probs)
    moved = vd.consensus(probs[sources][:, samples][:, :, classes])
    np.testing.assert_allclose(moved.probs, plain.probs[samples][:, classes], atol=1e-8)
    np.testing.assert_allclose(moved.skill, plain.skill[sources], atol=1e-8)
    np.testing.assert_allclose(moved.dependence, plain.dependence[sources][:, sources], atol=1e-8)
    np.testing.assert_allclose(moved.distinct_sources, plain.distinct_sources[samples], atol=1e-6)


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans(), st.sampled_from([np.float32, np.float64]))
def test_copies_change_nothing(seed, n_copies, gaps, dtype):
    rng = np.random.default_rng(seed)
    probs = mixed_ensemble(rng, n_samples=80)[0].astype(dtype)
    probs = with_gaps(probs, rng) if gaps else probs
    copied = int(rng.integers(len(probs)))
    plain = vd.consensus(probs)
    crowded = vd.consensus(np.concatenate([probs, *[probs[copied : copied + 1]] * n_copies]))
    np.testing.assert_allclose(crowded.probs, plain.probs, atol=1e-6)
    np.testing.assert_allclose(crowded.skill[: len(probs)], plain.skill, atol=1e-6)
    np.testing.assert_allclose(crowded.distinct_sources, plain.distinct_sources, rtol=1e-5)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_sources_without_information_have_no_weight(seed, gaps):
    rng = np.random.default_rng(seed)
    probs, _ = mixed_ensemble(rng, n_samples=150)
    probs = with_gaps(probs, rng) if gaps else probs
    uniform = np.full_like(probs[0], 0.25)
    constant = np.tile(rng.dirichlet(np.ones(4)), (150, 1))
    consensus = vd.consensus(np.stack([*probs, uniform, constant]))
    np.testing.assert_array_equal(consensus.weights[5:], 0.0)
    plain = vd.consensus(probs)
    np.testing.assert_allclose(consensus.weights[:5], plain.weights, atol=1e-9)
    np.testing.assert_allclose(consensus.probs, plain.probs, atol=1e-9)
    np.testing.assert_allclose(consensus.distinct_sources, plain.distinct_sources, atol=1e-9)


def test_permuted_and_random_sources_have_little_weight(cifar100):
    probs, labels = cifar100
    rng = np.random.default_rng(0)
    permuted = [probs[0][:, rng.permutation(100)], probs[2][:, rng.permutation(100)]]
    guesses = softmax(3 * rng.standard_normal((3, *probs.shape[1:])))
    consensus = vd.consensus(np.stack([*probs, *permuted, *guesses]))
    assert consensus.shares[3:].sum() < 0.01
    np.testing.assert_allclose(nll(consensus.probs, labels), nll(vd.consensus(probs).probs, labels), atol=0.005)


@pytest.mark.parametrize("n_sources", [1, 2])
@pytest.mark.parametrize("gaps", [False, True])
def test_one_or_two_sources_give_the_mean(rng, n_sources, gaps):
    probs = random_ensemble(rng, n_sources, 40, 5)
    probs = with_gaps(probs, rng) if gaps else probs
    consensus = vd.consensus(probs)
    np.testing.assert_allclose(consensus.probs, np.nanmean(probs, axis=0), atol=1e-12)
    np.testing.assert_array_equal(consensus.prediction, np.nanmean(probs, axis=0).argmax(axis=1))


def test_one_sample_and_no_samples(rng):
    probs = random_ensemble(rng, 4, 1, 3)
    np.testing.assert_allclose(vd.consensus(probs).probs, probs.mean(axis=0))
    assert vd.consensus(probs[:, :0]).probs.shape == (0, 3)


def test_alike_sources_stay_at_the_mean():
    logits, labels = load_logits("cifar10-resnet8-de")
    probs = softmax(logits)
    mean = nll(probs.mean(axis=0), labels)
    assert nll(vd.consensus(probs).probs, labels) == pytest.approx(mean, abs=0.001)
    many = np.concatenate([probs, np.repeat(probs[3:4], 20, axis=0)])
    assert nll(many.mean(axis=0), labels) > mean + 0.01
    assert nll(vd.consensus(many).probs, labels) == pytest.approx(mean, abs=0.001)


def test_copies_of_a_poor_source_change_nothing(cifar100):
    probs, labels = cifar100
    mean = probs.mean(axis=0)
    plain = vd.consensus(probs)
    assert nll(plain.probs, labels) < nll(mean, labels) - 0.2
    # On 1,500 samples the standard error of a difference in accuracy is about half a point.
    assert (plain.prediction == labels).mean() >= (mean.argmax(axis=1) == labels).mean() - 0.005
    for source in range(3):
        for n_copies in (1, 3, 5, 10):
            crowded = vd.consensus(np.concatenate([probs, np.repeat(probs[source : source + 1], n_copies, axis=0)]))
            np.testing.assert_allclose(crowded.probs, plain.probs, atol=1e-6)
    assert plain.skill[1] < 0.4 < 0.8 < plain.skill[[0, 2]].min()


def test_kinds_and_layouts_agree(rng):
    probs, _ = mixed_ensemble(rng)
    expected = vd.consensus(probs).probs
    for consensus in (
        vd.consensus(np.log(probs) + 3.0, kind="logits"),
        vd.consensus(np.log(probs), kind="log_probs"),
        vd.consensus(probs.swapaxes(0, 1), sources_axis=1),
        vd.consensus(list(probs)),
        vd.consensus(vd.Predictions(probs)),
    ):
        np.testing.assert_allclose(consensus.probs, expected, atol=1e-9)
    np.testing.assert_allclose(vd.consensus(probs.astype(np.float32)).probs, expected, atol=1e-5)
    assert vd.consensus(probs.astype(np.float16)).probs.dtype == np.float32


@pytest.mark.parametrize("n_threads", [2, 3])
def test_number_of_threads_does_not_matter(rng, n_threads):
    probs = random_ensemble(rng, 6, 20_000, 10, np.float32)
    single, several = vd.consensus(probs, n_threads=1), vd.consensus(probs, n_threads=n_threads)
    np.testing.assert_array_equal(single.probs, several.probs)
    np.testing.assert_array_equal(single.dependence, several.dependence)


@pytest.mark.parametrize("gaps", [False, True])
def test_labels_of_the_mean_are_kept_on_request(rng, gaps):
    probs, _ = mixed_ensemble(rng, noise=(0.5, 2.0, 2.0, 2.5, 3.0))
    probs = with_gaps(probs, rng) if gaps else probs
    mean = np.nanmean(probs, axis=0).argmax(axis=1)
    assert (vd.consensus(probs).prediction != mean).any()
    consensus = vd.consensus(probs, accuracy_preserving=True)
    np.testing.assert_array_equal(consensus.prediction, mean)
    np.testing.assert_array_equal(consensus.probs.argmax(axis=1), mean)
    runner_up = np.sort(consensus.probs, axis=1)[:, -2]
    assert (consensus.probs[np.arange(len(mean)), mean] > runner_up).all()


def test_sources_seen_rarely_are_taken_for_typical(rng):
    probs, _ = mixed_ensemble(rng)
    probs[0, 3:] = np.nan
    consensus = vd.consensus(probs)
    typical = consensus.skill[1:].mean()
    assert consensus.n_samples[0] == 3
    assert abs(consensus.skill[0] - typical) < 0.3
    probs[0] = np.nan
    assert vd.consensus(probs).skill[0] == pytest.approx(consensus.skill[1:].mean(), abs=0.02)


def test_rows_lie_on_the_simplex(rng):
    for dtype in (np.float16, np.float32, np.float64):
        probs = with_gaps(mixed_ensemble(rng)[0], rng).astype(dtype)
        consensus = vd.consensus(probs)
        np.testing.assert_allclose(consensus.probs.sum(axis=1), 1.0, atol=1e-6)
        assert (consensus.probs >= 0).all()
        assert consensus.shares.sum() == pytest.approx(1.0)


def test_near_constant_sources_keep_their_digits(rng):
    """A source that hardly moves, but moves with the others, is recognised in single precision."""
    probs, _ = mixed_ensemble(rng, n_samples=2000)
    flat = 0.25 + 1e-4 * (probs[0] - 0.25)
    skill = vd.consensus(np.stack([*probs, flat]).astype(np.float32)).skill
    assert skill[-1] == pytest.approx(skill[0], abs=0.01)


def test_bad_rows_are_named(rng):
    probs, _ = mixed_ensemble(rng)
    probs[2, 7] *= 2
    with pytest.raises(NotNormalisedError, match="source 2, sample 7"):
        vd.consensus(probs)
    probs[2, 7] = np.nan
    with pytest.raises(MissingSourceError, match=r"source 2 .* sample 7"):
        vd.consensus(probs, missing="raise")
    probs[:, 9] = np.nan
    with pytest.raises(MissingSourceError, match="sample 9"):
        vd.consensus(probs)
    with pytest.raises(ParameterError, match="missing"):
        vd.consensus(probs, missing="ignore")


def test_many_sources_are_announced(rng, monkeypatch):
    probs, _ = mixed_ensemble(rng)
    monkeypatch.setattr(weights, "_MANY_SOURCES", 4)
    with pytest.warns(LongComputationWarning, match="compares the 10 pairs of 5 sources up to 200 times") as caught:
        vd.consensus(probs)
    assert caught[0].filename == __file__


def test_text_says_what_was_found(rng):
    probs, _ = mixed_ensemble(rng)
    assert repr(vd.consensus(probs)).startswith("Consensus(5 sources, 400 samples, 4 classes, ")
    assert "distinct" not in repr(vd.consensus(probs[:, :0]))


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 99), max_size=4), st.booleans())
def test_sums_merge_in_any_order(seed, cuts, gaps):
    rng = np.random.default_rng(seed)
    probs, _ = mixed_ensemble(rng, n_samples=100)
    probs = with_gaps(probs, rng) if gaps else probs
    present, filled = ~np.isnan(probs[:, :, 0]), np.nan_to_num(probs)
    whole = ConsensusSums.zeros(5, 4).update(filled, present)
    parts = [
        ConsensusSums.zeros(5, 4, rng.random((5, 4)) if rng.random() < 0.5 else None).update(
            part, None if here.all() else here
        )
        for part, here in zip(*(np.split(array, sorted(cuts), axis=1) for array in (filled, present)), strict=True)
    ]
    rng.shuffle(parts)
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    expected, correlations_of_parts = whole.correlations(), merged.correlations()
    np.testing.assert_allclose(correlations_of_parts.correlation, expected.correlation, atol=1e-9)
    np.testing.assert_array_equal(correlations_of_parts.counts, expected.counts)
    np.testing.assert_allclose(correlations_of_parts.variance, expected.variance, atol=1e-12)
    sums, _ = gather_sums(SourcesInMemory(vd.Predictions(probs), AbsentSkipped()))
    np.testing.assert_allclose(expected.correlation, sums.correlations().correlation, atol=1e-9)
