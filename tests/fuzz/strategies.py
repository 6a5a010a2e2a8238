"""What users pass: ensembles, labels, options, names, and everything that is none of these.

A :class:`Case` holds arguments that belong together, so that many calls get past the first check; a test then replaces
some of them by odd values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

KINDS = ("probs", "logits", "log_probs")
Draw = Callable[[st.SearchStrategy[Any]], Any]

# Odd values -----------------------------------------------------------------------------------------------------------


class Hostile:
    """An object that lets nothing be made of it."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("this is not an array")

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


def odd_arrays() -> st.SearchStrategy[Any]:
    """Arrays of shapes, types and contents that are nearly right, or not at all."""
    builders = (
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
    )
    return st.sampled_from(builders).map(lambda build: build())


def odd_values() -> st.SearchStrategy[Any]:
    """Anything."""
    objects: tuple[Callable[[], Any], ...] = (
        lambda: None, Hostile, object, dict, list, set, tuple, lambda: [[1, 2], [3]], lambda: {"a": 1}, lambda: {1, 2},
        lambda: [None], lambda: ["a"], lambda: [b"a"], lambda: b"\xff", lambda: slice("a", None), lambda: ...,
        lambda: np.random.default_rng(0), lambda: np.random.RandomState(0), lambda: range(10**12), lambda: iter([1]),
        lambda: (n for n in (1, 2)), lambda: len, lambda: type, lambda: Exception("odd"), lambda: [[[]]], lambda: [{}],
        lambda: memoryview(b"abcd"), lambda: bytearray(b"abc"), lambda: nested(200), lambda: np.dtype("f4"),
    )  # fmt: skip
    return st.one_of(
        st.sampled_from(NUMBERS),
        st.sampled_from(NAMES),
        odd_arrays(),
        st.sampled_from(objects).map(lambda make: make()),
    )


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# Arguments that belong together ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An ensemble in some form, and arrays that fit it."""

    ensemble: Any
    scores: Any
    kind: str
    labels: Any
    vectors: Any
    confidence: Any
    outcomes: Any
    n_sources: int
    n_classes: int

    @property
    def n_samples(self) -> int:
        return len(self.confidence)


def _softmax(scores: Any) -> Any:
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=0.0))
    return scores / scores.sum(axis=-1, keepdims=True)


def _usual(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return _softmax(2 * rng.standard_normal(shape[1:]) + rng.standard_normal(shape))


def _one_hot(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.eye(shape[-1])[rng.integers(0, shape[-1], shape[:-1])]


def _ties(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    votes = rng.integers(0, 3, shape) + np.eye(shape[-1])[0]
    return votes / votes.sum(axis=-1, keepdims=True)


def _tiny(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    probs = _one_hot(rng, shape)
    return np.where(probs == 0, rng.choice([0.0, 5e-324, 1e-310, 1e-300, 1e-45], shape), probs)


#: Ways to fill an ensemble with probabilities.
FILLINGS = {
    "usual": _usual,
    "one-hot": _one_hot,
    "ties": _ties,
    "tiny": _tiny,
    "unanimous": lambda rng, shape: np.broadcast_to(_usual(rng, (1, *shape[1:])), shape).copy(),
    "uniform": lambda rng, shape: np.full(shape, 1 / max(shape[-1], 1)),
    "sharp": lambda rng, shape: _softmax(300 * rng.standard_normal(shape)),
}


def _absent(rng: np.random.Generator, values: Any) -> Any:
    values = values.copy()
    values[rng.random(values.shape[:-1]) < 0.3] = np.nan
    return values


def _with_one(number: float) -> Callable[[np.random.Generator, Any], Any]:
    def put(rng: np.random.Generator, values: Any) -> Any:
        values = values.copy()
        if values.size:
            values.reshape(-1)[rng.integers(values.size)] = number
        return values

    return put


def _source_absent(rng: np.random.Generator, values: Any) -> Any:
    values = values.copy()
    values[:1] = np.nan
    return values


#: What may be wrong with the numbers; most often nothing.
FLAWS: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "none": lambda rng, values: values,
    "absent": _absent,
    "a source absent": _source_absent,
    "all absent": lambda rng, values: np.full_like(values, np.nan),
    "nan": _with_one(np.nan),
    "infinite": _with_one(np.inf),
    "minus infinity": _with_one(-np.inf),
    "huge": _with_one(1e300),
    "negative": _with_one(-1e-3),
}
#: The forms in which an ensemble may be passed.
FORMS: dict[str, Callable[[Any], Any]] = {
    "array": lambda values: values,
    "Fortran": np.asfortranarray,
    "read-only": lambda values: _read_only(values),
    "reversed": lambda values: values[:, ::-1],
    "lists": lambda values: values.tolist(),
    "list of arrays": list,
    "dictionary": lambda values: {f"source {s}": source for s, source in enumerate(values)},
    "one source": lambda values: values[0],
    "dense": lambda values: values[:, :, None, None],
    "steps": lambda values: values[:, None],
    "one class": lambda values: values[..., 1],
    "data frames": lambda values: [_frame(source) for source in values],
    "swapped bytes": lambda values: values.astype(values.dtype.newbyteorder()),
}


def _read_only(values: Any) -> Any:
    values = values.copy()
    values.flags.writeable = False
    return values


def _frame(source: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(source, index=[f"row {n}" for n in range(len(source))])


def often(usual: Any, others: Any, weight: int = 4) -> st.SearchStrategy[Any]:
    """``usual`` in ``weight`` of ``weight + 1`` cases, otherwise one of ``others``."""
    return st.sampled_from([usual] * weight * max(len(list(others)), 1) + list(others))


@st.composite
def cases(draw: Draw, most_samples: int = 70) -> Case:
    """Ensembles of all kinds, forms and types, with labels; most are valid."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_samples = draw(st.sampled_from([n for n in (0, 1, 2, 3, 12, 12, 40, 70) if n <= most_samples]))
    shape = (draw(st.sampled_from((1, 2, 3, 5))), n_samples, draw(st.sampled_from((2, 3, 7))))
    kind = draw(st.sampled_from(KINDS))
    values = FILLINGS[draw(st.sampled_from(sorted(FILLINGS)))](rng, shape)
    vectors = values[0].copy()
    if kind != "probs":
        with np.errstate(divide="ignore"):
            values = np.log(values)
        if kind == "logits":
            values = np.clip(values, -745, 0) + rng.choice([0.0, 5.0, 740.0])
    with np.errstate(invalid="ignore", over="ignore"):
        values = FLAWS[draw(often("none", FLAWS))](rng, values)
        values = values.astype(draw(st.sampled_from(("f8", "f4", "f2"))))
    form = draw(often("array", FORMS, 1))
    labels = rng.integers(0, shape[-1], n_samples)
    confidence = vectors.max(axis=-1) if n_samples else np.empty(0)
    return Case(
        FORMS[form](values), values, kind, labels, vectors, confidence, rng.random(n_samples) < 0.7, shape[0], shape[-1]
    )


# Arguments by name ----------------------------------------------------------------------------------------------------


def _choice(*names: Any) -> Callable[[Case], st.SearchStrategy[Any]]:
    return lambda case: st.sampled_from(names)


def _weights(case: Case) -> st.SearchStrategy[Any]:
    n = case.n_samples
    numbers = [
        None,
        np.ones(n),
        np.full(n, 1e308),
        np.full(n, 5e-324),
        np.arange(n),
        np.zeros(n),
        np.r_[1e308, np.ones(n)][:n],
    ]
    return st.sampled_from(numbers)


_METRICS = (
    "ece",
    "ece_kde",
    "nll",
    "brier",
    "accuracy",
    "ks_error",
    "aurc",
    "error_auroc",
    "smooth_ece",
    "debiased_ece",
)
_LABEL_FREE = ("mean", "tde", "atde", "consensus", "members", "temperature", "ts", "ptde", "irova", "no such method")

#: What a parameter of this name usually gets, as a strategy that depends on the case.
PARAMETERS: dict[str, Callable[[Case], st.SearchStrategy[Any]]] = {
    "ax": _choice(None),
    "accuracy_preserving": _choice(True, False),
    "bandwidth": _choice(None, 0.1, 1e-300, 1e300, float("inf")),
    "batch_size": _choice(None, 1, 7, 10**6),
    "binning": _choice("mass", "width"),
    "candidates": _choice(None, ["temperature"], [("mean", "temperature")], ["mean", "irova"]),
    "chosen": _choice(None, "mean"),
    "classes": lambda case: _names(case.n_classes, "class"),
    "client": _choice(None),
    "class_axis": _choice(None, -1, 2),
    "class_names": lambda case: _names(case.n_classes, "class"),
    "combine": _choice("mean", "atde", "linear-pool", "log-pool", "consensus"),
    "confidence": lambda case: st.just(case.confidence),
    "confidence_level": _choice(0.95, 0.0, 1.0, 1e-300),
    "correct": lambda case: st.just(case.outcomes),
    "doubt": lambda case: st.sampled_from([None, case.confidence, np.zeros(case.n_samples)]),
    "edges": _choice(None, [0.0, 0.5, 1.0], [0, 1]),
    "floors": _choice(False, True),
    "gold": lambda case: st.sampled_from([None, {}, {"item 0": "class 0"}, dict(enumerate(case.labels.tolist()))]),
    "groups": lambda case: st.sampled_from(
        [None, np.arange(case.n_samples) // 2, [0] * case.n_samples, _numbered("group", case.n_samples)]
    ),
    "hist_rate": _choice(0.05, 0.0, 1e9),
    "hist_steps": _choice(0, 3),
    "hv": lambda case: st.just(1 - case.confidence),
    "hv_gain": _choice(0.25, 0.0, 1e9),
    "hv_scale": _choice("quantile", "fitted", "raw"),
    "intervals": _choice(False, True),
    "item_ids": lambda case: st.sampled_from([None, list(range(case.n_samples)), _numbered("item", case.n_samples)]),
    "kde_rate": _choice(0.5, 0.0, 1e9),
    "kde_steps": _choice(None, 0, 3),
    "keep_labels": _choice(True, False),
    "kind": lambda case: often(case.kind, (None, *KINDS, "binary", "labels")),
    "inspection": lambda case: st.just(case.ensemble),
    "labels": lambda case: st.just(case.labels),
    "legend": _choice(True, False),
    "loss": _choice("nll", "mse"),
    "loss_bins": _choice("scores", "fixed", "moving"),
    "lowest": _choice(None, 0.0, 0.5),
    "margin": _choice(1e-6, 0.0, 0.1),
    "matrix": lambda case: st.just(np.eye(case.n_sources)),
    "max_iter": _choice(20, 0, 1, 1000),
    "method": _choice(*_LABEL_FREE),
    "methods": lambda case: st.lists(st.sampled_from(_LABEL_FREE), min_size=1, max_size=2),
    "metric": _choice(*_METRICS),
    "missing": _choice("skip", "raise"),
    "most": _choice(None, 1, 100),
    "n_bins": _choice(15, 1, 2, 1000),
    "n_cells": _choice(15360, 1, 100),
    "n_draws": _choice(1, 20),
    "n_folds": _choice(2, 5),
    "n_knots": _choice(6, 3, 50),
    "n_resamples": _choice(1, 20),
    "n_splits": _choice(1, 2),
    "n_threads": _choice(None, 1, 2, 10**6),
    "names": lambda case: _names(case.n_sources, "source"),
    "norm": _choice(1, 2, "max"),
    "objective": _choice("confidence", "distribution"),
    "off_diagonal": _choice(10.0, 0.0, 1e9),
    "penalty": _choice(1.0, 0.0, 1e9),
    "predictions": lambda case: st.just(case.ensemble),
    "probs": lambda case: st.just(case.vectors),
    "progress": _choice(None),
    "quantiles": _choice((0.05, 0.5, 0.95), (), (0, 1)),
    "random_state": lambda case: st.sampled_from([0, 1, None, 2**32]),
    "sample_ids": lambda case: st.sampled_from([None, list(range(case.n_samples)), _numbered("id", case.n_samples)]),
    "sample_shape": _choice(None),
    "sample_weight": _weights,
    "side": _choice("all", "right", "wrong"),
    "significance": _choice(2.0, 0.0, 1e9),
    "size": _choice(0.5, 0.1, 0.999),
    "source_weights": lambda case: st.sampled_from([None, np.ones(case.n_sources), np.arange(case.n_sources)]),
    "source_names": lambda case: _names(case.n_sources, "source"),
    "sources_axis": lambda case: often(0, (None, 1, 2)),
    "start": _choice("shrunk", "closed-form", "zero"),
    "step_rule": _choice("normalised", "plain"),
    "title": lambda case: st.sampled_from(("A title", *NAMES)),
    "tol": _choice(1e-3, 0.0, 1.0),
    "trace": _choice(False, True),
    "values": lambda case: st.just(case.ensemble),
    "votes": lambda case: st.sampled_from([_votes(case), case.scores, {"item 0": {"juror 0": "class 0"}}]),
    "walk_forward": lambda case: st.sampled_from(
        [None, np.arange(case.n_samples) // 3, [0] * case.n_samples, _numbered("day", case.n_samples)]
    ),
    "weight": _weights,
    "y_true": lambda case: st.just(case.labels),
}  # fmt: skip


def _votes(case: Case) -> Any:
    """(jurors, items) the classes that sources name, -1 where they are absent."""
    absent = ~np.isfinite(case.scores).all(axis=-1)
    return np.where(absent, -1, np.nan_to_num(case.scores).argmax(axis=-1))


def _numbered(word: str, count: int) -> list[str]:
    return [f"{word} {n}" for n in range(count)]


def _names(count: int, word: str) -> st.SearchStrategy[Any]:
    """No names, usual ones, or hard ones."""
    hard = st.lists(st.sampled_from(NAMES), min_size=count, max_size=count, unique=True)
    return st.one_of(st.none(), st.just(_numbered(word, count)), hard)


#: Optional parameters that every call gets: without them it would be refused at once, or take seconds.
ALWAYS = (
    "labels",
    "probs",
    "kind",
    "confidence",
    "correct",
    "n_resamples",
    "n_draws",
    "n_splits",
    "floors",
    "intervals",
)


@st.composite
def arguments(draw: Draw, function: Any, case: Case, own: dict[str, Any] | None = None) -> dict[str, Any]:
    """Keyword arguments for ``function``: what it needs, some options, and in half of the cases an odd value or two."""
    parameters = inspect.signature(function).parameters.values()
    result: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        needed = parameter.default is parameter.empty or parameter.name in ALWAYS
        if needed or draw(st.integers(0, 3)) == 0:
            in_own = own is not None and parameter.name in own
            strategy = own[parameter.name] if in_own else PARAMETERS[parameter.name](case)
            result[parameter.name] = draw(strategy)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 1, 2)))):
        result[draw(st.sampled_from(sorted(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)))] = draw(
            odd_values()
        )
    return result
