"""What is loaded, checked, renormalised and labelled in cache, against plain loops over the same numbers."""

import naive
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical._kernels.discovery import winner_of_mean
from veridical._kernels.loading import (
    ABSENT,
    FINE,
    LOG_PROBS,
    LOGITS,
    NOBODY,
    NOT_A_DISTRIBUTION,
    PROBS,
    Layout,
    allocate_group,
    check_sample,
    load_group,
    renormalise_sample,
)

KINDS = {"probs": PROBS, "logits": LOGITS, "log_probs": LOG_PROBS}
STATUS = {"fine": FINE, "no distribution": NOT_A_DISTRIBUTION, "absent": ABSENT, "nobody": NOBODY}
#: (S, N, L) views of one run of memory, by the order of its axes there.
ORDERS = {"SNL": (0, 1, 2), "NSL": (1, 0, 2), "LNS": (2, 1, 0)}


def memory_of(values, order):
    """The numbers as they would lie in memory with the axes in ``order``, and the layout that finds them."""
    axes = ORDERS[order]
    stored = np.ascontiguousarray(values.transpose(axes))
    strides = np.array(stored.strides) // stored.itemsize
    source, sample, per_class = (int(strides[axes.index(axis)]) for axis in range(3))
    return stored.reshape(-1), Layout(0, source, sample, per_class, *values.shape)


def scores_given(rng, kind, shape, dtype):
    logits = rng.normal(size=shape) * 3
    probs = naive_softmax(logits)
    given = {"probs": probs, "logits": logits, "log_probs": np.log(probs)}[kind]
    given[rng.random(shape[:2]) < 0.2] = np.nan
    return given.astype(dtype)


def naive_softmax(logits):
    return np.array([[naive.softmax(row) for row in source] for source in logits])


def in_cache(group, i, by_class, n_sources, n_classes):
    """(S, L) scores of sample i, with the padding cut off."""
    scores = group.scores[i].T if by_class else group.scores[i]
    return scores[:n_sources, :n_classes]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("by_class", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_loaded(rng, kind, order, by_class, dtype):
    n_sources, _, n_classes = shape = (5, 7, 6)
    values = scores_given(rng, kind, shape, dtype)
    flat, layout = memory_of(values, order)
    group = allocate_group(4, n_sources, n_classes, by_class, values)
    first, size = 2, 4
    # What an earlier group left behind must not shine through.
    for array in group:
        array[:] = 0.5
    group.present[:, n_sources:] = 0
    group.scores[:] = 0
    load_group(flat, layout, first, KINDS[kind], by_class, group, np.empty((size, n_classes), dtype))
    tolerance = 8 * np.finfo(dtype).eps
    for i in range(size):
        expected = [naive.as_probabilities(values[s, first + i].tolist(), kind) for s in range(n_sources)]
        found = in_cache(group, i, by_class, n_sources, n_classes)
        assert group.present[i, :n_sources].tolist() == [row is not None for row in expected]
        plain = np.array([row or [0.0] * n_classes for row in expected])
        np.testing.assert_allclose(found, plain, rtol=tolerance, atol=0)
        np.testing.assert_allclose(group.totals[i, :n_classes], plain.sum(axis=0), rtol=tolerance)
        np.testing.assert_allclose(group.sums[i, :n_sources], plain.sum(axis=1), rtol=tolerance)
        assert not group.below[i, :n_sources].any()


ENTRIES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.0 + 1e-4, -0.25, 1e-7, np.nan, 2.0])


@settings(max_examples=examples(500))
@given(data=st.data())
def test_faults_are_found(data):
    n_sources, n_classes = data.draw(st.integers(1, 5)), data.draw(st.integers(2, 4))
    one_row = st.one_of(
        st.lists(ENTRIES, min_size=n_classes, max_size=n_classes),
        st.just([1.0] + [0.0] * (n_classes - 1)),
        st.just([np.nan] * n_classes),
    )
    values = np.array([[row] for row in data.draw(st.lists(one_row, min_size=n_sources, max_size=n_sources))])
    by_class, skip_missing = data.draw(st.booleans()), data.draw(st.booleans())
    tolerance = 1e-3
    flat, layout = memory_of(values, "SNL")
    group = allocate_group(1, n_sources, n_classes, by_class, values)
    load_group(flat, layout, 0, PROBS, by_class, group, np.empty((1, n_classes)))
    status, source, exact = check_sample(
        group.present[0], group.sums[0], group.below[0], n_sources, tolerance, skip_missing
    )
    rows = [naive.as_probabilities(values[s, 0].tolist(), "probs") for s in range(n_sources)]
    fault, culprit = naive.first_fault(rows, tolerance, skip_missing)
    assert (status, source) == (STATUS[fault], culprit)
    if fault == "fine":
        assert exact == all(abs(sum(row) - 1) <= 16 * np.finfo(np.float64).eps for row in rows if row)


@pytest.mark.parametrize("by_class", [False, True])
def test_sources_are_scaled_to_sum_one(rng, by_class):
    values = rng.random((4, 1, 5)) + 0.1
    values[2] = np.nan
    flat, layout = memory_of(values, "SNL")
    group = allocate_group(1, 4, 5, by_class, values)
    load_group(flat, layout, 0, PROBS, by_class, group, np.empty((1, 5)))
    renormalise_sample(group.scores[0], by_class, group.present[0], group.sums[0])
    for s, found in enumerate(in_cache(group, 0, by_class, 4, 5)):
        total = sum(values[s, 0])
        np.testing.assert_allclose(found, [0.0 if s == 2 else value / total for value in values[s, 0]], rtol=1e-15)


@settings(max_examples=examples(300))
@given(data=st.data())
def test_near_ties_are_decided_by_the_exact_mean(data):
    n_sources, n_classes = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 5))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    step = float(np.finfo(dtype).eps)
    near = st.integers(-3, 3).map(lambda k: 0.25 * (1 + k * step))
    rows = data.draw(
        st.lists(st.lists(near, min_size=n_classes, max_size=n_classes), min_size=n_sources, max_size=n_sources)
    )
    scores = np.array(rows, dtype)
    # The mean as a careless sum would give it: last bits wrong, in any direction.
    wrong = np.array(data.draw(st.lists(st.integers(-2, 2), min_size=n_classes, max_size=n_classes)))
    careless = (scores.mean(axis=0, dtype=np.float64) * (1 + wrong * step)).astype(dtype)
    expected = naive.mean_label(scores.tolist())
    assert winner_of_mean(scores, False, careless, dtype(n_sources)) == expected
    assert winner_of_mean(np.ascontiguousarray(scores.T), True, careless, dtype(n_sources)) == expected
