"""The accuracy-preserving projection."""

import naive
import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from veridical.combine import keep_labels
from veridical.errors import LabelError, ParameterError


def nearest_by_solver(z, c):
    """min |x - z|^2 on the simplex with x_c >= x_l, by a general solver."""
    n = len(z)
    others = [l for l in range(n) if l != c]
    constraints = [
        {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(n)},
        {"type": "ineq", "fun": lambda x: x[c] - x[others], "jac": lambda x: np.eye(n)[c] - np.eye(n)[others]},
    ]
    answer = minimize(
        lambda x: ((x - z) ** 2).sum(), np.full(n, 1 / n), jac=lambda x: 2 * (x - z), method="SLSQP",
        bounds=[(0, 1)] * n, constraints=constraints, options={"ftol": 1e-16, "maxiter": 500},
    )  # fmt: skip
    return answer.x


@pytest.mark.parametrize("n_classes", [2, 3, 5, 12])
def test_equals_the_quadratic_program(rng, n_classes):
    for concentration in (0.3, 1.0, 5.0):
        rows = rng.dirichlet(np.full(n_classes, concentration), size=15)
        labels = rng.integers(0, n_classes, size=15)
        projected = keep_labels(rows, labels, margin=0.0)
        for z, c, found in zip(rows, labels, projected, strict=True):
            expected = nearest_by_solver(z, c)
            assert ((found - z) ** 2).sum() <= ((expected - z) ** 2).sum() + 1e-9
            np.testing.assert_allclose(found, expected, atol=2e-5)


@settings(max_examples=examples(500))
@given(st.data())
def test_equals_its_twin(data):
    n_classes = data.draw(st.integers(2, 8))
    votes = data.draw(st.lists(st.integers(0, 5), min_size=n_classes, max_size=n_classes).filter(any))
    z = [vote / sum(votes) for vote in votes]
    c = data.draw(st.integers(0, n_classes - 1))
    margin = data.draw(st.sampled_from([0.0, 1e-6, 1e-2]))
    projected = keep_labels([z], [c], margin=margin)[0]
    np.testing.assert_allclose(projected, naive.project(z, c, margin), atol=1e-14)
    assert projected.sum() == pytest.approx(1, abs=1e-12)
    assert (projected >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_label_leads_strictly(rng, dtype):
    rows = rng.dirichlet(np.full(300, 0.05), size=200).astype(dtype)
    labels = rng.integers(0, 300, size=200)
    projected = keep_labels(rows, labels)
    assert projected.dtype == dtype
    leads = projected[np.arange(200), labels]
    others = projected.copy()
    others[np.arange(200), labels] = -1
    assert (leads > others.max(axis=1)).all()
    again = keep_labels(projected, labels)
    np.testing.assert_allclose(again, projected, atol=1e-6)


def test_leaves_winners_alone_and_its_input(rng):
    rows = rng.dirichlet(np.ones(4), size=10)
    before = rows.copy()
    np.testing.assert_array_equal(keep_labels(rows, rows.argmax(axis=1)), rows)
    keep_labels(rows, rows.argmin(axis=1))
    np.testing.assert_array_equal(rows, before)


def test_bad_input():
    with pytest.raises(LabelError, match="label of sample 0 is 3"):
        keep_labels([[0.5, 0.5]], [3])
    with pytest.raises(ParameterError, match="margin is -1"):
        keep_labels([[0.5, 0.5]], [0], margin=-1)
