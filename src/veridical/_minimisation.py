"""Minimising a smooth loss within bounds, saying so where a fit ran out of steps, and finding a zero."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._parallel import single_threaded_blas
from veridical.errors import NotConvergedWarning

Floats = npt.NDArray[np.float64]

#: A line search may fail for want of digits; where the loss still falls by more than this, it failed too early.
_STEEP = 1e-4


def warn_not_converged(what: str, n_steps: int) -> None:
    """Say that ``what`` was still moving after as many steps as it may take."""
    warnings.warn(
        f"the fit of {what} was not at its optimum after {n_steps} steps; the last values are used (are there enough "
        "samples, and do the sources differ?).",
        NotConvergedWarning,
        stacklevel=2,
    )


def minimise(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: list[tuple[float, float]],
    what: str,
    **options: Any,
) -> tuple[float, Floats]:
    """The lowest value and where it is, by L-BFGS within bounds.

    Parameters
    ----------
    objective : callable
        Point -> (loss, gradient), in units of one sample's loss.
    start : (K,) array
    bounds : K pairs
    what : str
        What is fitted, for the warning where the optimum was not reached.
    options
        Those of SciPy's ``L-BFGS-B``.
    """
    from scipy.optimize import minimize

    # L-BFGS-B factorises a small matrix in every step; threads of BLAS take ten times as long for it on a busy machine.
    with single_threaded_blas():
        found: Any = minimize(  # type: ignore[call-overload]
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
    point = np.asarray(found.x, dtype=np.float64)
    lowest, highest = np.asarray(bounds).T
    # How far a unit step downhill leads without leaving the bounds: zero in every direction at the optimum.
    downhill = np.clip(point - found.jac, lowest, highest) - point
    ran_out = found.status == 1
    if ran_out or (not found.success and np.abs(downhill).max() > _STEEP):
        warn_not_converged(what, int(found.nit))
    return float(found.fun), point


def zero_between(function: Callable[..., float], low: float, high: float, *data: Any, tolerance: float) -> float:
    """Where ``function(x, *data)`` is 0; it has different signs at the ends.

    Arrays are passed as ``data``: SciPy puts the function into a reference cycle, which keeps what it encloses in
    memory until the garbage collector runs.
    """
    from scipy.optimize import brentq

    return float(brentq(function, low, high, args=data, xtol=tolerance))
