"""What is loaded, checked, renormalised and labelled in cache, against plain loops over the same numbers."""

from types import SimpleNamespace

import naive
import numpy as np
import pytest
from conftest import examples
from ensembles import random_ensemble
from entry_points import callable_from_python
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical._kernels import discovery, loading
from veridical._kernels.arguments import Layout, Options
from veridical._kernels.loading import allocate_group

load_group = callable_from_python(loading.load_group)
check_sample = callable_from_python(loading.check_sample)
renormalise_sample = callable_from_python(loading.renormalise_sample)
winner_of_mean = callable_from_python(discovery.winner_of_mean)


def options(dtype, **changes):
    """What the kernels need to know about the dtype, and some choices."""
    eps = float(np.finfo(dtype).eps)
    chosen = dict.fromkeys(Options._fields, 0) | {"eps": eps, "rounding": 16 * eps, "near": 4}
    return Options(**chosen | {"exact_scores": True, "skip_missing": False} | changes)


def memory_of(values, sources_first):
    """The numbers as they lie in memory as (S, N, L) or as (N, S, L), and the layout that finds them."""
    stored = np.ascontiguousarray(values if sources_first else values.swapaxes(0, 1))
    strides = [step // stored.itemsize for step in stored.strides[:2]]
    return stored.reshape(-1), Layout(0, *(strides if sources_first else strides[::-1]), *values.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sources_first", [True, False])
def test_load_group_reads_and_sums_a_part_of_the_samples(rng, sources_first, dtype):
    n_sources, _, n_classes = shape = (5, 7, 6)
    values = random_ensemble(rng, *shape, dtype)
    values[rng.random(shape[:2]) < 0.2] = np.nan
    flat, layout = memory_of(values, sources_first)
    first, size = 2, 4
    group = allocate_group(size, n_sources, n_classes, dtype)
    # What an earlier group left behind must be overwritten.
    for array in group:
        array[:] = 0.5
    group.present[:, n_sources:] = 0
    group.scores[:] = 0
    load_group(flat, layout, first, size, group)
    for i in range(size):
        expected = [naive.as_probabilities(values[s, first + i].tolist(), "probs") for s in range(n_sources)]
        assert group.present[i, :n_sources].tolist() == [row is not None for row in expected]
        plain = np.array([row or [0.0] * n_classes for row in expected])
        np.testing.assert_array_equal(group.scores[i, :n_sources, :n_classes], plain)
        tolerance = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(group.totals[i, :n_classes], plain.sum(axis=0), rtol=tolerance)
        np.testing.assert_allclose(group.sums[i, :n_sources], plain.sum(axis=1), rtol=tolerance)
        assert not group.below[i, :n_sources].any()


ENTRIES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0 + 1e-4, -0.25, 1e-7, np.nan, 2.0])


@st.composite
def one_sample(draw):
    """(S, 1, L) scores, most of which are not distributions."""
    n_sources, n_classes = draw(st.integers(1, 5)), draw(st.integers(2, 4))
    one_row = st.one_of(
        st.lists(ENTRIES, min_size=n_classes, max_size=n_classes),
        st.just([1.0] + [0.0] * (n_classes - 1)),
        st.just([np.nan] * n_classes),
    )
    return np.array([[row] for row in draw(st.lists(one_row, min_size=n_sources, max_size=n_sources))])


@settings(max_examples=examples(500))
@given(values=one_sample(), skip_missing=st.booleans())
def test_check_sample_agrees_with_the_definition(values, skip_missing):
    n_sources, _, n_classes = values.shape
    flat, layout = memory_of(values, True)
    group = allocate_group(1, n_sources, n_classes, np.float64)
    load_group(flat, layout, 0, 1, group)
    tolerance = 1e-3
    chosen = options(np.float64, tolerance=tolerance, skip_missing=skip_missing)
    valid, exact = check_sample(group.present[0], group.sums[0], group.below[0], n_sources, chosen)
    rows = [naive.as_probabilities(values[s, 0].tolist(), "probs") for s in range(n_sources)]
    assert valid == (naive.first_fault(rows, tolerance, skip_missing)[0] == "fine")
    if valid:
        assert exact == all(abs(sum(row) - 1) <= 16 * np.finfo(np.float64).eps for row in rows if row)


def test_renormalise_sample_scales_every_present_source_to_sum_one(rng):
    values = rng.random((4, 1, 5)) + 0.1
    values[2] = np.nan
    flat, layout = memory_of(values, True)
    group = allocate_group(1, 4, 5, np.float64)
    load_group(flat, layout, 0, 1, group)
    renormalise_sample(group.scores[0], group.present[0], group.sums[0])
    for s, scaled in enumerate(group.scores[0, :4, :5]):
        total = sum(values[s, 0])
        np.testing.assert_allclose(scaled, [0.0 if s == 2 else value / total for value in values[s, 0]], rtol=1e-15)


@st.composite
def near_ties(draw):
    """Scores (S, L) that differ in their last bits, and their mean as a careless sum would give it."""
    n_sources, n_classes = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    step = float(np.finfo(dtype).eps)
    near = st.integers(-3, 3).map(lambda k: 0.25 * (1 + k * step))
    one_row = st.lists(near, min_size=n_classes, max_size=n_classes)
    scores = np.array(draw(st.lists(one_row, min_size=n_sources, max_size=n_sources)), dtype)
    wrong = np.array(draw(st.lists(st.integers(-2, 2), min_size=n_classes, max_size=n_classes)))
    return SimpleNamespace(
        scores=scores, mean=(scores.mean(axis=0, dtype=np.float64) * (1 + wrong * step)).astype(dtype)
    )


@settings(max_examples=examples(300))
@given(case=near_ties())
def test_winner_of_mean_decides_near_ties_by_the_exact_mean(case):
    scores, mean = case.scores, case.mean
    bits = mean.view(f"i{mean.itemsize}")
    arguments = mean, bits, scores.dtype.type(len(scores))
    expected = naive.mean_label(scores.tolist())
    chosen = options(scores.dtype)
    assert winner_of_mean(scores, *arguments, chosen) == expected


def test_winner_of_mean_leaves_near_ties_open_where_scores_are_not_exact():
    mean = np.array([0.4, 0.4, 0.2])
    arguments = np.tile(mean, (2, 1)), mean, mean.view(np.int64), 2.0
    assert winner_of_mean(*arguments, options(np.float64, exact_scores=False)) == -1
    assert winner_of_mean(*arguments, options(np.float64)) == 0
