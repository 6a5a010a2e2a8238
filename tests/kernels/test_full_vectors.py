"""Calibrated scores put back into whole distributions, with scores down to the smallest subnormal number."""

import naive
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from veridical._kernels.full_vectors import replace_confidence

MARGIN = 1e-6

#: Scores that a softmax returns for classes far behind: subnormal, barely normal, small, ordinary.
TAILS = st.one_of(
    st.sampled_from([0.0, 5e-324, 1e-323, 1e-320, 2.2e-308, 1e-307, 1e-300, 1e-45, 1e-38, 1e-30, 1e-12]),
    st.floats(0.0, 1.0),
    st.floats(-745.0, 0.0).map(np.exp),
)


@st.composite
def rows_with_tails(draw):
    """(row, winner): a distribution whose largest score is the winner's."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    tail = np.array(draw(st.lists(TAILS, min_size=1, max_size=6)))
    tail *= 0.5 / max(1.0, tail.sum())
    winner = draw(st.integers(0, len(tail)))
    return np.insert(tail, winner, 1.0 - tail.sum()).astype(dtype), winner


@settings(max_examples=examples(2000))
@given(rows_with_tails(), st.floats(0.0, 1.0))
def test_replace_confidence_keeps_rows_on_the_simplex(case, confidence):
    row, winner = case
    result = row[None].copy()
    replace_confidence(result, np.array([winner]), np.array([confidence]), MARGIN)
    assert np.isfinite(result).all()
    assert (result >= 0).all()
    assert result.sum(dtype=np.float64) == pytest.approx(1.0, abs=1e-6)
    assert (result[0, winner] > np.delete(result[0], winner)).all()
    expected = naive.full_vector(row.tolist(), winner, confidence, MARGIN)
    np.testing.assert_allclose(result[0], expected, atol=1e-12 if row.dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_replace_confidence_keeps_the_ratios_of_subnormal_scores(dtype):
    smallest = np.finfo(dtype).smallest_subnormal
    rows = np.array([[1, smallest, dtype(3) * smallest, 0]], dtype=dtype)
    replace_confidence(rows, np.array([0]), np.array([0.6]), MARGIN)
    np.testing.assert_allclose(rows, [[0.6, 0.1, 0.3, 0.0]], rtol=1e-6)
