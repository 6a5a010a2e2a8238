"""The vectorised logarithm and exponential against the C library's."""

import numpy as np
import pytest
from conftest import INTERPRETED

from veridical._kernels.elementary import exp_in_place, log_into

SIZE = 500 if INTERPRETED else 50_000


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log(rng, dtype):
    info = np.finfo(dtype)
    exponents = rng.uniform(np.log(float(info.tiny)) + 1, np.log(float(info.max)) - 1, SIZE)
    values = np.concatenate([np.exp(exponents).astype(dtype), np.linspace(0.4, 2.5, 99, dtype=dtype), [info.tiny, 1]])
    values = values.astype(dtype)
    found = np.empty_like(values)
    log_into(values, found)
    exact = np.log(values.astype(np.longdouble))
    assert (np.abs(found - exact) <= 2 * info.eps * np.maximum(np.abs(exact), 0.5)).all()


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87), (np.float64, -708)])
def test_exp(rng, dtype, lowest):
    values = np.concatenate([rng.uniform(lowest, -lowest, SIZE), [0.0, lowest, -lowest, 1.0]]).astype(dtype)
    found = values.copy()
    exp_in_place(found)
    exact = np.exp(values.astype(np.longdouble))
    assert (np.abs(found - exact) <= 2 * np.finfo(dtype).eps * exact).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_at_the_ends(dtype):
    values = np.array([-np.inf, -1e4, np.nan, 0.0, 1e3, 1e30, np.inf], dtype=dtype)
    exp_in_place(values)
    np.testing.assert_array_equal(values, np.array([0, 0, np.nan, 1, np.inf, np.inf, np.inf], dtype=dtype))
