"""The consensus of sparse votes: the same as that of the one-hot array, without ever making it."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_consensus import weighted_mean

import veridical as vd
from veridical.combine.across_samples.combiners import ConsensusMean
from veridical.combine.across_samples.factor import Evidence, Factor, shrunk_skill
from veridical.combine.across_samples.passes import gather_sums
from veridical.combine.across_samples.votes import (
    consensus_of_votes,
    distributions_of_shares,
    sort_votes,
    sums_of_votes,
    weighted_votes,
)
from veridical.combine.across_samples.weights import weigh_sources
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.errors import CampsWarning, MissingSourceError


def crowd(rng, n_items=300, n_sources=12, n_classes=3, per_item=5):
    """(items, sources, labels of votes, truth): sources of different accuracy, some items for each."""
    truth = rng.integers(0, n_classes, n_items)
    accuracy = np.linspace(0.4, 0.95, n_sources)
    sources = np.concatenate([rng.permutation(n_sources)[:per_item] for _ in range(n_items)])
    items = np.repeat(np.arange(n_items), per_item)
    right = rng.random(len(items)) < accuracy[sources]
    labels = np.where(right, truth[items], (truth[items] + rng.integers(1, n_classes, len(items))) % n_classes)
    return items, sources, labels, truth


def one_hot(items, sources, labels, shape):
    """(S, N, L): shares of each source's votes, NaN where it has none."""
    array = np.zeros(shape)
    np.add.at(array, (sources, items, labels), 1.0)
    with np.errstate(invalid="ignore"):
        return array / array.sum(axis=2, keepdims=True)


@settings(max_examples=examples(30))
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.booleans())
def test_votes_agree_with_the_dense_array(seed, per_item, several_draws):
    rng = np.random.default_rng(seed)
    items, sources, labels, _ = crowd(rng, n_items=60, n_sources=6, per_item=per_item)
    if several_draws:
        again = rng.integers(0, len(items), 40)
        items, sources = np.append(items, items[again]), np.append(sources, sources[again])
        labels = np.append(labels, rng.integers(0, 3, 40))
    votes = sort_votes(items, sources, labels, (6, 60, 3))
    dense = one_hot(items, sources, labels, (6, 60, 3))
    sparse_sums = sums_of_votes(votes)
    in_memory = SourcesInMemory(vd.Predictions(dense), AbsentSkipped())
    dense_sums = gather_sums(in_memory)[0].shifted_to(sparse_sums.shift)
    np.testing.assert_allclose(sparse_sums.products, dense_sums.products, atol=1e-9)
    np.testing.assert_allclose(sparse_sums.squares, dense_sums.squares, atol=1e-9)
    np.testing.assert_array_equal(sparse_sums.counts, dense_sums.counts)
    expected, consensus = weigh_sources(dense_sums, of_votes=True), consensus_of_votes(votes)
    np.testing.assert_allclose(consensus.skill, expected.skill, atol=1e-6)
    np.testing.assert_allclose(consensus.weights, expected.weights, atol=1e-6)
    combiner, loaded = ConsensusMean.of(expected.weights, expected.dependence), in_memory.few
    shares, effective = combiner.formula(np, loaded), loaded.per_sample(combiner.shares(loaded)[1])
    np.testing.assert_allclose(consensus.distinct_sources, effective, atol=1e-5)
    np.testing.assert_allclose(consensus.probs, distributions_of_shares(shares, effective), atol=1e-5)


@pytest.mark.parametrize("spread", [0.0, 0.48])
def test_skill_of_votes_is_shrunk_by_its_formula(rng, spread):
    skill, n_votes = 0.5 + spread * np.linspace(-1, 1, 30), rng.integers(3, 60, 30).astype(float)
    evidence = Evidence(np.eye(30), np.diag(n_votes / (n_votes + 10)), np.eye(30), n_votes, np.ones(30))
    shrunk = shrunk_skill(Factor(skill, np.eye(30)), evidence, of_votes=True)
    shares = n_votes / (n_votes + 10) / (n_votes / (n_votes + 10)).sum()
    mean = shares @ skill
    variance = (1 - mean**2) ** 2
    between = shares @ (skill - mean) ** 2 - variance * (shares / n_votes).sum()
    n_added = variance / max(between, 0.03)
    assert (n_added > 15) == (spread == 0)
    np.testing.assert_allclose(shrunk, (n_votes * skill + max(n_added, 10) * mean) / (n_votes + max(n_added, 10)))


def test_shares_of_votes_follow_the_formula(rng):
    items, sources, labels, _ = crowd(rng, n_items=30)
    votes = sort_votes(items, sources, labels, (12, 30, 3))
    weights = np.where(rng.random(12) < 0.5, rng.random(12), 0.0)
    dependence = rng.random((12, 12))
    dependence[3] = dependence[4]
    dependence = np.maximum(dependence, dependence.T)
    dependence[3, 4] = dependence[4, 3] = 1.0
    np.fill_diagonal(dependence, 1.0)
    probs, effective = weighted_votes(votes, weights, dependence, None)
    dense = one_hot(items, sources, labels, (12, 30, 3))
    for n in range(30):
        rows = [None if np.isnan(row[0]) else row for row in dense[:, n]]
        z, expected = weighted_mean(rows, weights, dependence)
        np.testing.assert_allclose(probs[n], z, atol=1e-12)
        assert effective[n] == pytest.approx(expected)


def test_consensus_of_votes_is_better_than_the_majority(rng):
    items, sources, labels, truth = crowd(rng, n_items=3000)
    consensus = consensus_of_votes(sort_votes(items, sources, labels, (12, 3000, 3)))
    majority = np.zeros((3000, 3))
    np.add.at(majority, (items, labels), 1.0)
    assert (consensus.prediction == truth).mean() > (majority.argmax(axis=1) == truth).mean() + 0.03
    assert np.corrcoef(consensus.skill, np.arange(12))[0, 1] > 0.9


def test_distributions_of_shares_follow_their_formula():
    probs = distributions_of_shares(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1.0, 3.0]))
    # One vote, and 1.25 more spread over two classes: 1.625 and 0.625 of 2.25.
    first, second = (1.625 / 2.25) ** 1.35, (0.625 / 2.25) ** 1.35
    np.testing.assert_allclose(probs, [[first / (first + second), second / (first + second)], [0.5, 0.5]])


def test_votes_of_one_source_are_less_sure_than_of_many():
    shares = np.array([[0.8, 0.2], [0.8, 0.2]])
    few, many = distributions_of_shares(shares, np.array([1.0, 50.0]))[:, 0]
    assert 0.5 < few < 0.8 < many


def test_order_of_votes_does_not_matter(rng):
    items, sources, labels, _ = crowd(rng)
    order = rng.permutation(len(items))
    plain = consensus_of_votes(sort_votes(items, sources, labels, (12, 300, 3)))
    moved = consensus_of_votes(sort_votes(items[order], sources[order], labels[order], (12, 300, 3)))
    np.testing.assert_array_equal(plain.probs, moved.probs)


def test_item_without_votes_is_named(rng):
    items, sources, labels, _ = crowd(rng)
    with pytest.raises(MissingSourceError, match="sample 7"):
        sort_votes(items[items != 7], sources[items != 7], labels[items != 7], (12, 300, 3))


def test_camps_of_voters_are_named(rng):
    items, sources, labels, _ = crowd(rng, n_items=2000, per_item=12)
    labels = np.where(sources % 2 == 0, labels, (labels + 1) % 3)
    with pytest.warns(CampsWarning, match=r"5, 7, 9, 11 \| 2, 4, 6, 8, 10"):
        consensus = consensus_of_votes(sort_votes(items, sources, labels, (12, 2000, 3)))
    assert len(consensus.camps) == 2
    np.testing.assert_allclose(consensus.camps[0].probs.sum(axis=1), 1.0)


@pytest.mark.compiled
def test_many_sources_are_never_made_dense(rng):
    """800 sources and 20,000 items: the array would have 48 million numbers, the consensus holds S^2 ones."""
    items, sources, labels, truth = crowd(rng, n_items=20_000, n_sources=800, per_item=5)
    consensus = consensus_of_votes(sort_votes(items, sources, labels, (800, 20_000, 3)))
    assert not consensus.camps
    assert (consensus.prediction == truth).mean() > 0.85
