"""The vectorised logarithm and exponential against the C library's."""

import numpy as np
import pytest
from conftest import INTERPRETED
from entry_points import callable_from_python

from veridical._kernels import elementary

SIZE = 500 if INTERPRETED else 50_000

exp_in_place = callable_from_python(elementary.exp_in_place)
log_into = callable_from_python(elementary.log_into)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_is_exact_to_two_units_of_rounding(rng, dtype):
    info = np.finfo(dtype)
    exponents = rng.uniform(np.log(float(info.tiny)) + 1, np.log(float(info.max)) - 1, SIZE)
    values = np.concatenate([np.exp(exponents).astype(dtype), np.linspace(0.4, 2.5, 99, dtype=dtype), [info.tiny, 1]])
    values = values.astype(dtype)
    logs = np.empty_like(values)
    log_into(values, logs)
    exact = np.log(values.astype(np.longdouble))
    assert (np.abs(logs - exact) <= 2 * info.eps * np.maximum(np.abs(exact), 0.5)).all()


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87), (np.float64, -708)])
def test_exp_is_exact_to_two_units_of_rounding(rng, dtype, lowest):
    values = np.concatenate([rng.uniform(lowest, -lowest, SIZE), [0.0, lowest, -lowest, 1.0]]).astype(dtype)
    exponentials = values.copy()
    exp_in_place(exponentials)
    exact = np.exp(values.astype(np.longdouble))
    assert (np.abs(exponentials - exact) <= 2 * np.finfo(dtype).eps * exact).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exp_beyond_the_range_is_zero_infinite_or_nan(dtype):
    values = np.array([-np.inf, -1e4, np.nan, 0.0, 1e3, 1e30, np.inf], dtype=dtype)
    exp_in_place(values)
    np.testing.assert_array_equal(values, np.array([0, 0, np.nan, 1, np.inf, np.inf, np.inf], dtype=dtype))
