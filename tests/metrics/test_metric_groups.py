"""Samples that belong together: their numbers, resamples of whole groups, and correlated outcomes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical.errors import ParameterError, ShapeError
from veridical.metrics.groups import GroupCorrelation, draw_counts, draw_uniforms, group_codes
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
    """From the definition: variance of the groups' sums of standardised residuals, as that of pairs that agree."""
    edges = np.quantile(confidence, np.linspace(0, 1, 11)[1:-1])
    bins = [sum(edge < each for edge in edges) for each in confidence]
    residuals = correct - confidence
    means = {b: np.mean([r for r, own in zip(residuals, bins, strict=True) if own == b]) for b in set(bins)}
    standard = [(r - means[b]) / np.sqrt(c * (1 - c)) for r, b, c in zip(residuals, bins, confidence, strict=True)]
    sums = {code: sum(s for s, own in zip(standard, group, strict=True) if own == code) for code in set(group)}
    sizes = [list(group).count(code) for code in sums]
    size = sum(n * n for n in sizes) / sum(sizes)
    if size == 1 or len(sizes) == 1:
        return 0.0
    n_groups = sum(sizes) / size
    ratio = sum(s * s for s in sums.values()) / len(group) * n_groups / (n_groups - 1)
    return min(max((ratio - 1) / (size - 1), 0.0), 0.95)


@given(st.integers(0, 999), st.integers(1, 12))
@settings(max_examples=30)
def test_correlation_is_that_of_sums_over_groups(seed, n_groups):
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(0.2, 0.95, 40)
    group = rng.integers(0, n_groups, 40)
    shared = rng.random(n_groups)[group]
    correct = np.where(rng.random(40) < 0.7, shared, rng.random(40)) < confidence
    value = GroupCorrelation.of(Sample(confidence, correct, group=group)).correlation
    assert value == pytest.approx(correlation_by_loops(confidence, correct, group), abs=1e-9)


@pytest.mark.parametrize("n_groups", [5, 40])
def test_correlation_of_few_groups_is_estimated_without_bias(n_groups):
    rng, estimates = np.random.default_rng(2), []
    for _ in range(400):
        group = np.repeat(np.arange(n_groups), 20)
        uniform = draw_uniforms(rng, GroupCorrelation(group, 1 + 19 * 0.3, 20.0, np.inf), 20 * n_groups)
        sample = Sample(np.full(len(group), 0.5), uniform < 0.5, group=group)
        estimates.append((GroupCorrelation.of(sample).ratio - 1) / 19)
    assert np.mean(estimates) == pytest.approx(0.3, abs=4 * np.std(estimates) / 20)


def test_fewer_groups_leave_more_correlations_possible():
    rng, spreads = np.random.default_rng(0), []
    for n_groups in (4, 400):
        noise = GroupCorrelation(np.arange(n_groups), 1 + 19 * 0.2, 20.0, n_groups - 1.0)
        spreads.append(np.ptp(np.quantile([noise.draw(rng) for _ in range(500)], [0.05, 0.95])))
    assert spreads[0] > 5 * spreads[1]


def test_groups_of_one_have_no_correlation():
    noise = GroupCorrelation.of(Sample(np.array([0.6, 0.7, 0.8]), np.array([True, False, True]), group=np.arange(3)))
    assert (noise.correlation, noise.draw(np.random.default_rng(0)), noise.inflation) == (0.0, 0.0, 1.0)


def test_one_group_tells_nothing_about_others():
    noise = GroupCorrelation.of(Sample(np.full(9, 0.7), np.arange(9) < 5, group=np.zeros(9, int)))
    assert noise.draw(np.random.default_rng(0)) == 0.95


def test_sure_samples_have_no_correlation():
    assert GroupCorrelation.of(Sample(np.ones(4), np.ones(4, bool), group=np.zeros(4, int))).correlation == 0.0


def test_repeated_outcomes_have_the_largest_correlation():
    right = np.random.default_rng(0).random(200) < 0.6
    sample = Sample(np.full(1000, 0.6), np.repeat(right, 5), group=np.repeat(np.arange(200), 5))
    assert GroupCorrelation.of(sample).correlation == 0.95


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
def test_uniform_numbers_have_the_correlation_of_their_outcomes(correlation):
    group = np.repeat(np.arange(20_000), 2)
    uniforms = draw_uniforms(np.random.default_rng(1), GroupCorrelation(group, 1 + correlation, 2.0, np.inf), 40_000)
    outcomes = (uniforms < 0.5).reshape(-1, 2)
    assert np.corrcoef(outcomes.T)[0, 1] == pytest.approx(correlation, abs=0.02)
    # Whatever the correlation, each number is uniform.
    np.testing.assert_allclose(np.quantile(uniforms, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)


@pytest.mark.parametrize("correlation", [0.1, 0.5])
@pytest.mark.parametrize("confidences", [[0.9], [0.03], [0.5, 0.8, 0.99]])
def test_outcomes_far_from_one_half_are_as_correlated_as_those_observed(confidences, correlation):
    rng, group = np.random.default_rng(4), np.repeat(np.arange(50_000), 2)
    confidence = rng.choice(confidences, len(group))
    sample = Sample(confidence, rng.random(len(group)) < confidence, group=group)
    noise = replace(GroupCorrelation.of(sample), ratio=1 + correlation, freedom=np.inf)
    outcomes = draw_uniforms(rng, noise, len(group)) < confidence
    products = np.prod(((outcomes - confidence) / np.sqrt(confidence * (1 - confidence))).reshape(-1, 2), axis=1)
    assert products.mean() == pytest.approx(correlation, abs=4 * products.std() / np.sqrt(50_000))


def test_uniform_numbers_without_groups_are_those_of_the_generator():
    expected = np.random.default_rng(3).random(5)
    independent = GroupCorrelation(np.arange(5), 1.0, 1.0, 4.0)
    for noise in (GroupCorrelation(None), independent):
        np.testing.assert_array_equal(draw_uniforms(np.random.default_rng(3), noise, 5), expected)
