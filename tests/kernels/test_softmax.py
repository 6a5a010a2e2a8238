"""Logits and log-probabilities as probabilities, against plain loops."""

import naive
import numpy as np
import pytest

from veridical._kernels.arguments import LANES, Layout
from veridical._kernels.softmax import probabilities_into, softmax_of_few_classes


def convert(scores, kind, in_lanes=False):
    n_samples, n_classes = scores.shape[1:]
    flat = scores.reshape(-1)
    flat.flags.writeable = False
    out = np.empty_like(scores)
    layout = Layout(0, n_samples * n_classes, n_classes, *scores.shape)
    if in_lanes:
        softmax_of_few_classes(flat, layout, out, np.zeros((n_classes, LANES), out.dtype))
    else:
        probabilities_into(flat, layout, kind == "logits", out, out.view(f"i{out.itemsize}"), out.reshape(-1))
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("n_classes", [2, 7, 700])
def test_probabilities_are_those_of_the_definition(rng, n_classes, kind, dtype):
    logits = rng.normal(size=(2, 9, n_classes)) * 4 - 5
    scores = (logits if kind == "logits" else logits - np.log(np.exp(logits).sum(-1, keepdims=True))).astype(dtype)
    expected = [[naive.as_probabilities(row.tolist(), kind) for row in source] for source in scores]
    # A difference of logits of 30 has an absolute error of 30 units of rounding, and so has its exponential.
    np.testing.assert_allclose(convert(scores, kind), expected, rtol=40 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_samples", [1, LANES, 2 * LANES + 3])
def test_few_classes_give_the_same_in_batches_of_samples(rng, n_samples, dtype):
    scores = (rng.normal(size=(2, n_samples, 7)) * 4 - 5).astype(dtype)
    # Sums of seven numbers differ by the order of their terms.
    np.testing.assert_allclose(convert(scores, "logits", True), convert(scores, "logits"), rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("in_lanes", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_negative_and_of_equal_logits(dtype, in_lanes):
    scores = np.array([[[-3.0, -3.0, -3.0], [-1e30, -2e30, -1e30], [0.0, -0.0, -1000.0]]], dtype)
    expected = [[1 / 3] * 3, [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    np.testing.assert_allclose(convert(scores, "logits", in_lanes)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("in_lanes", [False, True])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_neither_absent_nor_distributions(value, dtype, in_lanes):
    for position in range(3):
        scores = np.zeros((1, 2, 3), dtype)
        scores[0, 0, position] = value
        probs = convert(scores, "logits", in_lanes)
        assert not np.isnan(probs[0, 0]).all()
        assert np.isnan(probs[0, 0].sum())
        np.testing.assert_allclose(probs[0, 1], [1 / 3] * 3, rtol=1e-6)


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_rows_of_nan_stay_rows_of_nan(kind):
    assert np.isnan(convert(np.full((1, 2, 3), np.nan), kind)).all()


def test_absent_rows_of_few_classes_stay_absent():
    scores = np.array([[[np.nan, np.nan], [0.0, 0.0]]])
    np.testing.assert_array_equal(convert(scores, "logits", True), [[[np.nan, np.nan], [0.5, 0.5]]])
