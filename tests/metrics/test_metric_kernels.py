"""Metric kernels against their plain-loop twins."""

import naive
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical._kernels.binning import (
    all_probabilities,
    bin_sums,
    histogram_gradient,
    largest_cumulative_gap,
)
from veridical._kernels.cells import add_to_cells
from veridical._kernels.density import absolute_integral, gather_slopes, spread_onto_grid
from veridical._kernels.outcomes import count_distribution

# Multiples of 1/15 and of 1/8 are where bins meet, and where ties are.
CONFIDENCES = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 1.0, *np.linspace(0, 1, 16), *np.linspace(0, 1, 9), np.nextafter(0.2, 0)])
)


@st.composite
def outcomes(draw, max_size=40):
    """(confidence, correct, weight) with ties, edges and zero weights."""
    n = draw(st.integers(1, max_size))
    confidence = np.array(draw(st.lists(CONFIDENCES, min_size=n, max_size=n)), dtype=np.float64)
    correct = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weight = np.array(draw(st.lists(st.floats(0, 3), min_size=n, max_size=n)))
    return confidence, correct, weight


@settings(max_examples=examples(150))
@given(outcomes(), st.integers(1, 20), st.booleans(), st.booleans())
def test_bin_sums(sample, n_bins, equal_width, weighted):
    confidence, correct, weight = sample
    edges = np.linspace(0, 1, n_bins + 1)
    if not equal_width:
        edges = np.asarray(naive.equal_mass_edges(confidence, n_bins))
    sums, fine = bin_sums(confidence, correct, weight if weighted else None, edges, equal_width)
    assert fine
    expected = naive.bin_sums(confidence, correct, weight if weighted else np.ones(len(weight)), edges)
    np.testing.assert_allclose(sums, expected, atol=1e-12)


def test_equal_width_bins_for_every_edge():
    for n_bins in range(1, 130):
        edges = np.linspace(0, 1, n_bins + 1)
        confidence = np.unique(np.clip([np.nextafter(edges, -1), edges, np.nextafter(edges, 2)], 0, 1))
        correct = np.zeros(len(confidence), dtype=bool)
        guessed, _ = bin_sums(confidence, correct, None, edges, True)
        searched, _ = bin_sums(confidence, correct, None, edges, False)
        np.testing.assert_array_equal(guessed, searched)


def test_bin_sums_of_several_blocks(rng):
    confidence, correct = rng.random(5000), rng.random(5000) < 0.5
    edges = np.linspace(0, 1, 8)
    sums, _ = bin_sums(confidence, correct, None, edges, True)
    np.testing.assert_allclose(sums, naive.bin_sums(confidence, correct, np.ones(5000), edges), rtol=1e-12)


@settings(max_examples=examples(100))
@given(outcomes(), st.integers(1, 8))
def test_histogram_gradient(sample, n_bins):
    confidence = sample[0]
    edges, per_bin = np.linspace(0.2, 0.8, n_bins + 1), np.arange(n_bins, dtype=np.float64)
    gradient = np.empty(len(confidence))
    histogram_gradient(confidence, edges, per_bin, gradient)
    np.testing.assert_array_equal(gradient, [naive.bin_of(w, edges) for w in confidence])


@settings(max_examples=examples(100))
@given(outcomes())
def test_largest_cumulative_gap(sample):
    confidence, correct, _ = sample
    order = np.argsort(confidence)
    gap = largest_cumulative_gap(confidence[order], correct[order], None) / len(confidence)
    assert gap == pytest.approx(naive.ks_error(confidence, correct), abs=1e-12)


@settings(max_examples=examples(100))
@given(outcomes(), st.sampled_from([1, 2, 7, 15, 30, 60, 1920]), st.sampled_from([20, 36]))
def test_add_to_cells(sample, n_cells, bits):
    confidence, correct, _ = sample
    edges = np.linspace(0, 1, n_cells + 1)
    low = np.rint(edges[:-1] * 2.0**bits).astype(np.int64)
    sums = np.zeros((4, n_cells), dtype=np.int64)
    add_to_cells(confidence, correct, edges, low, 2.0**bits, sums)
    np.testing.assert_array_equal(sums, naive.cell_sums(confidence, correct, n_cells, bits))


@settings(max_examples=examples(100))
@given(outcomes(), st.integers(1, 12), st.booleans())
def test_spread_onto_grid(sample, n_cells, weighted):
    confidence, correct, weight = sample
    masses = np.zeros((2, n_cells + 1))
    spread_onto_grid(confidence, correct, weight if weighted else None, 0.0, float(n_cells), masses)
    used = weight if weighted else np.ones(len(weight))
    expected = naive.spread_onto_grid(confidence, correct, used, 0.0, float(n_cells), n_cells + 1)
    np.testing.assert_allclose(masses, expected, atol=1e-12)
    assert masses[0].sum() == pytest.approx(used.sum())


VALUES = st.lists(st.one_of(st.floats(-2, 2), st.just(0.0)), min_size=2, max_size=6)


@settings(max_examples=examples(60))
@given(VALUES)
def test_absolute_integral(values):
    integral = absolute_integral(np.array(values), np.empty(len(values)))
    assert integral == pytest.approx(naive.absolute_integral(values), abs=1e-5)


def test_absolute_integral_derivative(rng):
    values, slopes, step = rng.standard_normal(30), np.empty(30), 1e-6
    absolute_integral(values, slopes)
    for j in range(30):
        up, down = values.copy(), values.copy()
        up[j] += step
        down[j] -= step
        rise = absolute_integral(up, np.empty(30)) - absolute_integral(down, np.empty(30))
        assert slopes[j] == pytest.approx(rise / (2 * step), abs=1e-5)


def test_gather_slopes_of_a_smooth_function(rng):
    """cos(pi x) and cos(2 pi x) are even about 0 and 1, as smoothed masses are."""
    n_cells = 400
    nodes = np.linspace(0, 1, n_cells + 1)
    rows = np.stack((np.cos(np.pi * nodes), np.cos(2 * np.pi * nodes)))
    confidence = np.concatenate((rng.random(50), [0.0, 1.0]))
    correct, weight = rng.random(52) < 0.5, rng.random(52)
    gradient = np.empty(52)
    gather_slopes(confidence, correct, weight, 0.0, float(n_cells), rows, gradient)
    first, second = -np.pi * np.sin(np.pi * confidence), -2 * np.pi * np.sin(2 * np.pi * confidence)
    np.testing.assert_allclose(gradient, weight * (first - correct * second), atol=1e-3)


@pytest.mark.parametrize("confidence", [[0.3], [0.0, 1.0], [0.5] * 6, [0.9, 0.2, 1.0, 0.7, 0.05, 0.0, 0.6, 0.6]])
def test_count_distribution(confidence):
    chances = np.empty(len(confidence) + 1)
    count_distribution(np.array(confidence), chances)
    np.testing.assert_allclose(chances, naive.count_distribution(confidence), atol=1e-14)


@pytest.mark.parametrize(
    ("bad", "fine"),
    [(0.5, True), (np.nan, False), (-1e-300, False), (1 + 1e-15, False), (np.inf, False), (-1e300, False)],
)
def test_all_probabilities(bad, fine):
    values = np.linspace(0, 1, 100)
    values[57] = bad
    assert all_probabilities(values) == fine


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e300, 1e300, 1.5, -0.5])
@pytest.mark.parametrize("equal_width", [True, False])
def test_bad_numbers_are_reported(bad, equal_width):
    """Whatever the value, it is counted in some bin: no memory outside the sums is touched."""
    values = np.linspace(0, 1, 100)
    values[57] = bad
    sums, fine = bin_sums(values, np.zeros(100, dtype=bool), None, np.linspace(0, 1, 4), equal_width)
    assert not fine
    assert sums[0].sum() == 100
