"""Samples that belong together: their numbers, resamples of whole groups, and correlated outcomes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.errors import ParameterError, ShapeError
from veridical.metrics.groups import correlation_within_groups, draw_counts, draw_uniforms, group_codes
from veridical.metrics.sample import Sample


@pytest.mark.parametrize(
    ("groups", "codes"),
    [
        (None, None),
        ([5, 2, 5], [1, 0, 1]),
        (["b", "a", "b"], [1, 0, 1]),
        (np.array(["b", 3, "None"], dtype=object), [2, 0, 1]),  # as text: "3" < "None" < "b"
        ([True, False, True], [1, 0, 1]),
        ([0.5, 0.5, -1.0], [1, 1, 0]),
    ],
)
def test_groups_are_numbered_in_their_order(groups, codes):
    numbered = group_codes(groups, 3)
    assert numbered is None if codes is None else numbered.tolist() == codes


@pytest.mark.parametrize("groups", [[1, 2], [[1, 2, 3]], 7])
def test_one_group_per_sample_is_needed(groups):
    with pytest.raises(ShapeError, match=r"groups have shape .*; give one group per sample, shape \(3,\)"):
        group_codes(groups, 3)


@pytest.mark.parametrize("missing", [None, float("nan"), np.datetime64("NaT")])
def test_missing_groups_are_refused(missing):
    with pytest.raises(ParameterError, match="groups: the id of sample 1 is"):
        group_codes(np.array([1, missing, 2], dtype=object), 3)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 99), st.data())
def test_groups_are_drawn_as_a_whole(groups, seed, data):
    group = np.array(groups)
    n_samples = len(group)
    counted = np.array(sorted(data.draw(st.sets(st.integers(0, n_samples - 1), min_size=1))))
    counts = draw_counts(np.random.default_rng(seed), counted, group, n_samples)
    outside = np.setdiff1d(np.arange(n_samples), counted)
    assert not counts[outside].any()
    different = np.unique(group[counted])
    per_group = [np.unique(counts[counted[group[counted] == code]]) for code in different]
    assert all(len(each) == 1 for each in per_group)
    assert sum(each[0] for each in per_group) == len(different)


@given(st.integers(1, 50), st.integers(0, 99))
def test_samples_without_groups_are_drawn_with_replacement(n_samples, seed):
    counted = np.arange(0, n_samples, 2)
    counts = draw_counts(np.random.default_rng(seed), counted, None, n_samples)
    assert counts.sum() == len(counted)
    assert not counts[1::2].any()


def correlation_by_loops(confidence, correct, group):
    """The same from the definition: the mean product of standardised residuals over ordered pairs of one group."""
    edges = np.quantile(confidence, np.linspace(0, 1, 11)[1:-1])
    bins = [sum(edge < each for edge in edges) for each in confidence]
    residuals = correct - confidence
    means = {b: np.mean([r for r, own in zip(residuals, bins, strict=True) if own == b]) for b in set(bins)}
    standard = [(r - means[b]) / np.sqrt(c * (1 - c)) for r, b, c in zip(residuals, bins, confidence, strict=True)]
    products = [
        standard[i] * standard[j]
        for i in range(len(group))
        for j in range(len(group))
        if i != j and group[i] == group[j]
    ]
    return min(max(np.mean(products), 0.0), 0.95) if products else 0.0


@given(st.integers(0, 999), st.integers(1, 12))
@settings(max_examples=30)
def test_correlation_is_the_mean_product_of_pairs(seed, n_groups):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.2, 0.95, 40)
    group = rng.integers(0, n_groups, 40)
    shared = rng.random(n_groups)[group]
    correct = np.where(rng.random(40) < 0.7, shared, rng.random(40)) < confidence
    value = correlation_within_groups(Sample(confidence, correct), group)
    assert value == pytest.approx(correlation_by_loops(confidence, correct, group), abs=1e-9)


def test_groups_of_one_have_no_correlation():
    sample = Sample(np.array([0.6, 0.7, 0.8]), np.array([True, False, True]))
    assert correlation_within_groups(sample, np.arange(3)) == 0.0


def test_sure_samples_have_no_correlation():
    sample = Sample(np.ones(4), np.ones(4, bool))
    assert correlation_within_groups(sample, np.zeros(4, int)) == 0.0


def test_repeated_outcomes_have_the_largest_correlation():
    rng = np.random.default_rng(0)
    right = rng.random(200) < 0.6
    sample = Sample(np.full(1000, 0.6), np.repeat(right, 5))
    assert correlation_within_groups(sample, np.repeat(np.arange(200), 5)) == 0.95


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_uniform_numbers_have_the_correlation_of_their_outcomes(correlation):
    group = np.repeat(np.arange(20_000), 2)
    uniforms = draw_uniforms(np.random.default_rng(1), group, correlation, 40_000)
    outcomes = (uniforms < 0.5).reshape(-1, 2)
    assert np.corrcoef(outcomes.T)[0, 1] == pytest.approx(correlation, abs=0.02)
    # Whatever the correlation, each number is uniform.
    np.testing.assert_allclose(np.quantile(uniforms, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


def test_uniform_numbers_without_groups_are_those_of_the_generator():
    expected = np.random.default_rng(3).random(5)
    np.testing.assert_array_equal(draw_uniforms(np.random.default_rng(3), None, 0.9, 5), expected)
    np.testing.assert_array_equal(draw_uniforms(np.random.default_rng(3), np.zeros(5, int), 0.0, 5), expected)
