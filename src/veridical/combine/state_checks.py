"""Checks of a fitted state that was read from a file; each raises ValueError."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Nothing that a fit leaves behind is larger than this.
LARGEST = 1e12


def check_number(value: Any, what: str, lowest: float = -LARGEST, highest: float = LARGEST) -> None:
    """``value`` must be one number from ``lowest`` to ``highest``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not lowest <= value <= highest:
        raise ValueError(f"{what} is {value!r}, not a finite number from {lowest:g} to {highest:g}")


def check_array(
    value: Any, what: str, shape: tuple[int, ...], lowest: float = -LARGEST, highest: float = LARGEST
) -> None:
    """``value`` must be an array of float64 of this shape (-1 for any length), with numbers in this range."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        raise ValueError(f"{what} is not an array of numbers")
    if len(value.shape) != len(shape) or any(n not in (-1, m) for n, m in zip(shape, value.shape, strict=True)):
        raise ValueError(f"{what} has shape {value.shape} where {shape} is needed")
    if not ((value >= lowest) & (value <= highest)).all():
        raise ValueError(f"{what} is not made of finite numbers from {lowest:g} to {highest:g}")


def check_rising(value: Any, what: str, gap: float = 0.0) -> None:
    """Each entry must be above the one before, by more than ``gap``."""
    if (np.diff(value) <= gap).any():
        raise ValueError(f"{what} does not rise")
