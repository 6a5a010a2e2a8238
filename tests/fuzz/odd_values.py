"""Everything that is not what a function asks for: numbers, names, arrays and objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st


class Hostile:
    """An object that lets nothing be made of it."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("this is not an array")

    def _refuse(self) -> Any:
        raise ZeroDivisionError("this is not a number and has no entries")

    __index__ = __float__ = __len__ = __iter__ = __bool__ = _refuse

    def __repr__(self) -> str:
        raise RuntimeError("this has no representation")


#: Names of sources, classes and files that are hard to print, to store or to tell apart.
NAMES = (
    "cat", "", " ", "0", "1.5", "label", "sample", "source", "kind", "a,b", '"', "'", "=1+1", "../up", "a\nb", "a\tb",
    "\x1b[31mred", "\x00", "\ud800", "\u202egnihton", "é", "e\u0301", "字", "🦉", "<b>bold</b>", "{{ 7 * 7 }}",
    "$x_1$", "%s", "nan", "None", "x" * 3000,
)  # fmt: skip

NUMBERS = (
    0, 1, -1, 2, 3, 15, 10**9, 10**30, -(10**30), 2**31, 2**63, 2**64, 0.0, -0.0, 0.5, 1.0, 1.5, -1.5, 1e-300, 5e-324,
    1e308, float("nan"), float("inf"), float("-inf"), True, False, 1j, np.int8(-1), np.uint64(2**64 - 1),
    np.float16(0.5), np.float32(1e-45), np.bool_(True), np.longdouble(0.5), np.timedelta64(1, "s"),
    np.datetime64("2020-01-01"),
)  # fmt: skip


#: Arrays of shapes, types and contents that are nearly right, or not at all.
_ARRAYS: tuple[Callable[[], Any], ...] = (
    lambda: np.empty(0),
    lambda: np.empty((0, 0)),
    lambda: np.empty((3, 0, 3)),
    lambda: np.empty((0, 4, 3)),
    lambda: np.empty((3, 4, 0)),
    lambda: np.float64(0.5),
    lambda: np.array(0.5),
    lambda: np.ones(1),
    lambda: np.ones((2, 2)),
    lambda: np.ones((2, 2, 2, 2, 2, 2)),
    lambda: np.full((2, 3, 2), np.nan),
    lambda: np.full((2, 3, 2), np.inf),
    lambda: np.full((2, 3, 2), 1e308),
    lambda: np.array([[1.0, 5e-324]] * 3),
    lambda: np.array([None, 1, "a"], dtype=object),
    lambda: np.frompyfunc(lambda _: Hostile(), 1, 1)(np.arange(2)),
    lambda: np.array(["a", "b", "\ud800"]),
    lambda: np.array([b"a", b"b"]),
    lambda: np.array([1j, 2]),
    lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    lambda: np.zeros(3, dtype=[("a", "f4"), ("b", "i4")]),
    lambda: np.ma.masked_array([0.5, 0.5, 0.5], [True, False, False]),
    lambda: np.broadcast_to(np.float32(0.5), (2, 10**4, 2)),
    lambda: np.lib.stride_tricks.as_strided(np.full(2, 0.5), (3, 4, 2), (0, 0, 8)),
    lambda: np.arange(6).reshape(2, 3)[:, ::-1],
    lambda: np.array([2**63, 1], dtype=np.uint64),
    lambda: np.array(["NaT", "2020-01-01"], dtype="datetime64[D]"),
    lambda: np.ma.masked_equal([0, 1, 9], 9),
    lambda: np.full(3, 1e300),
    lambda: pd.array([0, None, 1], dtype="Int64"),
    lambda: pd.DataFrame({"a": pd.array([0.5, None], dtype="Float64"), "b": [0.5, 0.5]}),
)
_OBJECTS: tuple[Callable[[], Any], ...] = (
    lambda: None, Hostile, object, dict, list, set, tuple, lambda: [[1, 2], [3]], lambda: {"a": 1}, lambda: {1, 2},
    lambda: [None], lambda: ["a"], lambda: [b"a"], lambda: b"\xff", lambda: slice("a", None), lambda: ...,
    lambda: np.random.default_rng(0), lambda: np.random.RandomState(0), lambda: range(10**12), lambda: iter([1]),
    lambda: (n for n in (1, 2)), lambda: len, lambda: type, lambda: Exception("odd"), lambda: [[[]]], lambda: [{}],
    lambda: memoryview(b"abcd"), lambda: bytearray(b"abc"), lambda: nested(200), lambda: np.dtype("f4"),
    lambda: np.ma.masked, lambda: pd.NA, lambda: pd.NaT, lambda: [np.ndarray] * 2, lambda: np, lambda: [pd.NA, 1],
)  # fmt: skip


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


#: What makes odd values, each a new one, because some are used up or can be changed.
MAKERS = (*map(_constant, NUMBERS), *map(_constant, NAMES), *_ARRAYS, *_OBJECTS)


def odd_values() -> st.SearchStrategy[Any]:
    """Anything; numbers, names, arrays and objects are equally frequent."""
    made = (st.sampled_from(makers).map(lambda make: make()) for makers in (_ARRAYS, _OBJECTS))
    return st.one_of(st.sampled_from(NUMBERS), st.sampled_from(NAMES), *made)


def mostly(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What fits in four of five cases, otherwise anything; ``strategy | odd_values()`` would have it the other way."""
    return st.integers(0, 4).flatmap(lambda number: odd_values() if number == 4 else strategy)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value
