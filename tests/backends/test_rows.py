"""Functions of rows, from which the formulas of calibrators are written, against their plain twins in every library."""

import array_api_compat
import array_api_strict
import jax
import naive
import numpy as np
import pytest
import torch
from ensembles import random_ensemble

from veridical.backends import rows
from veridical.backends.namespace import LABEL_MARGIN

LIBRARIES = {
    "numpy": (np, np.array),
    "torch": (array_api_compat.array_namespace(torch.zeros(1)), torch.tensor),
    "jax": (jax.numpy, jax.numpy.asarray),
    "strict": (array_api_strict, array_api_strict.asarray),
}
EVERY_LIBRARY = pytest.mark.parametrize("library", LIBRARIES)
ATOL = {"jax": 1e-6}


def computed(library, function, *arrays):
    """``function(xp, *arrays)`` of a library, as NumPy's array."""
    xp, make = LIBRARIES[library]
    return np.asarray(function(xp, *map(make, arrays)))


def hard_rows(rng):
    """Ordinary rows, one-hot and tied ones, and some that leave next to nothing to the others."""
    probs = random_ensemble(rng, 1, 40, 5)[0]
    probs[:5], probs[5] = np.eye(5), 0.2
    probs[6], probs[7] = [1.0, 5e-324, 0, 0, 0], [1 - 1e-9, 1e-9, 0, 0, 0]
    return probs


@EVERY_LIBRARY
def test_confidences_become_vectors(library, rng):
    probs = hard_rows(rng)
    labels, confidence = probs.argmax(axis=1), rng.uniform(0, 1, 40)
    confidence[8:10] = 0.0, 1.0
    result = computed(library, rows.with_confidence, probs, labels, confidence)
    result = computed(library, rows.with_leading_labels, result, labels)
    np.testing.assert_allclose(result.sum(axis=1), 1.0, atol=1e-6)
    lead = result[np.arange(40), labels] - np.where(np.eye(5, dtype=bool)[labels], -1, result).max(axis=1)
    assert (lead > LABEL_MARGIN / 2).all()
    expected = [
        naive.full_vector(list(map(float, row)), c, w, LABEL_MARGIN)
        for row, c, w in zip(probs, labels, np.minimum(confidence, 1 - LABEL_MARGIN), strict=True)
    ]
    ordinary = np.arange(40) != 6
    np.testing.assert_allclose(result[ordinary], np.array(expected)[ordinary], atol=ATOL.get(library, 1e-12))
    assert result[6, 1:] == pytest.approx((1 - result[6, 0]) / 4)  # what no precision holds decides nothing


@EVERY_LIBRARY
def test_labels_lead_the_nearest_vectors(library, rng):
    probs = np.concatenate([hard_rows(rng)] * 2)
    labels = rng.integers(0, 5, len(probs))
    result = computed(library, rows.with_leading_labels, probs, labels)
    expected = [naive.project(list(row), c, LABEL_MARGIN) for row, c in zip(probs, labels, strict=True)]
    np.testing.assert_allclose(result, expected, rtol=0, atol=ATOL.get(library, 1e-12))


def test_many_rows_are_projected_by_the_kernel(rng):
    probs, labels = random_ensemble(rng, 1, 3000, 8)[0], rng.integers(0, 8, 3000)
    together = rows.with_leading_labels(np, probs.copy(), labels)
    parts = [rows.with_leading_labels(np, probs[i : i + 10].copy(), labels[i : i + 10]) for i in range(0, 3000, 10)]
    np.testing.assert_allclose(together, np.concatenate(parts), rtol=0, atol=1e-15)


@EVERY_LIBRARY
@pytest.mark.parametrize("n_knots", [1, 2, 5, 9])
def test_interpolation(library, n_knots, rng):
    knots, values = np.cumsum(rng.uniform(0.05, 0.1, n_knots)), rng.random(n_knots)
    scores = np.concatenate((knots, rng.random(40), [0.0, 1.0])).reshape(-1, 1)
    result = computed(library, rows.interpolate, scores, knots, values)
    np.testing.assert_allclose(result, np.interp(scores, knots, values), rtol=0, atol=ATOL.get(library, 1e-12) * 10)


@EVERY_LIBRARY
def test_interpolation_of_columns(library, rng):
    parts = [np.array([0.2, 0.8]), np.array([0.5]), np.array([0.1, 0.1 + 1e-9, 0.9])]
    knots, values = np.concatenate(parts), np.array([0.0, 1.0, 0.3, 0.1, 0.6, 0.7])
    starts = np.array([0, 2, 3, 6])
    scores = np.concatenate([rng.random((25, 3)), np.repeat(knots[:, None], 3, axis=1), [[0.0] * 3, [1.0] * 3]])
    xp, make = LIBRARIES[library]
    result = np.asarray(rows.interpolate_columns(xp, make(scores), starts, knots, values, make))
    expected = [np.interp(scores[:, l], part, values[starts[l] : starts[l + 1]]) for l, part in enumerate(parts)]
    clear = (scores > 0.1 + 1e-6) | (library != "jax")  # in single precision, 1e-9 is nothing
    np.testing.assert_allclose(
        np.where(clear, result, 0), np.where(clear, np.stack(expected, axis=1), 0), atol=ATOL.get(library, 1e-6)
    )


@EVERY_LIBRARY
@pytest.mark.parametrize("n_edges", [0, 1, 7])
def test_values_of_bins(library, n_edges, rng):
    edges, values = np.sort(rng.random(n_edges)).astype(np.float32).astype(float), rng.random(n_edges + 1)
    scores = np.concatenate((edges, rng.random(30), [0.0, 1.0]))
    result = computed(library, rows.value_of_bin, scores, edges, values)
    np.testing.assert_allclose(result, values[np.searchsorted(edges, scores)], rtol=1e-6)


@EVERY_LIBRARY
def test_logistic_functions(library):
    scores = np.array([-800.0, -3.0, 0.0, 3.0, 800.0])
    np.testing.assert_allclose(
        computed(library, rows.sigmoid, scores), [0, 0.04742587, 0.5, 0.95257413, 1], rtol=1e-6, atol=1e-30
    )
    probs = np.array([0.0, 0.2, 0.5, 1.0])
    np.testing.assert_allclose(
        computed(library, rows.logit, probs), [-13.81551, -1.386294, 0, 13.81551], rtol=1e-2, atol=1e-6
    )


def test_products_are_those_of_one_row(rng):
    many, matrix = rng.random((700, 30)), rng.random((20, 30))
    alone = np.concatenate([rows.product(np, row[None], matrix) for row in many])
    np.testing.assert_allclose(rows.product(np, many, matrix), alone, rtol=1e-14)
