"""Arguments that belong together, so that many calls get past the first check: ensembles, labels, confidences.

A test replaces some of them by odd values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import veridical as vd
from veridical.errors import VeridicalError

KINDS = ("probs", "logits", "log_probs")
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Case:
    """An ensemble in some form, and arrays that fit it."""

    ensemble: Any
    scores: Any
    kind: str
    labels: Any
    #: (N,) the places of the classes that ``labels`` are about.
    places: Any
    vectors: Any
    confidence: Any
    outcomes: Any
    n_sources: int
    n_classes: int

    @property
    def n_samples(self) -> int:
        return len(self.places)


def _softmax(scores: Any) -> Any:
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
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


def _new_source(rng: np.random.Generator, values: Any) -> Any:
    """The first source has predictions for the last quarter of the samples only, which may have no labels."""
    values = values.copy()
    values[0, : values.shape[1] * 3 // 4] = np.nan
    return values


#: What may be wrong with the numbers; most often nothing.
FLAWS: dict[str, Callable[[np.random.Generator, Any], Any]] = {
    "none": lambda rng, values: values,
    "absent": _absent,
    "a source absent": _source_absent,
    "new source": _new_source,
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
    "tensor": lambda values: LIBRARIES["torch"](values),
    "tensor with gradient": lambda values: LIBRARIES["torch"](values).requires_grad_(),
    "tensors": lambda values: [LIBRARIES["torch"](source) for source in values],
    "bfloat16": lambda values: LIBRARIES["torch"](values).bfloat16(),
    "JAX array": lambda values: LIBRARIES["jax"](values),
    "JAX arrays by name": lambda values: {f"source {s}": LIBRARIES["jax"](each) for s, each in enumerate(values)},
    "strict array": lambda values: LIBRARIES["array_api_strict"](values),
    "container": lambda values: _container(values),
}


def _tensor(values: Any) -> Any:
    import torch

    return torch.from_numpy(np.array(values))


def _jax_array(values: Any) -> Any:
    import jax

    # As it is, because jax.numpy would compile a conversion, but for what JAX makes float32 and warns of.
    array = np.array(values)
    with np.errstate(over="ignore", under="ignore"):
        return jax.device_put(array.astype(np.float32) if array.dtype == np.float64 else array)


def _strict_array(values: Any) -> Any:
    import array_api_strict

    return array_api_strict.asarray(np.array(values, np.float64 if np.asarray(values).dtype.kind == "f" else np.int64))


#: Arrays of other libraries.
LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda values: values,
    "torch": _tensor,
    "jax": _jax_array,
    "array_api_strict": _strict_array,
}


def _container(values: Any) -> Any:
    """The container that functions make of arrays, if these numbers are probabilities."""
    try:
        return vd.Predictions(values, sample_ids=[f"id {n}" for n in range(values.shape[1])])
    except VeridicalError:
        return values


def _series(labels: Any) -> Any:
    return pytest.importorskip("pandas").Series(labels, name="label")


#: The forms in which labels may be passed.
LABEL_FORMS: dict[str, Callable[[Any], Any]] = {
    "array": lambda labels: labels,
    "list": lambda labels: labels.tolist(),
    "some unlabelled": lambda labels: np.where(np.arange(len(labels)) % 3 == 1, -1, labels),
    "nearly all unlabelled": lambda labels: np.where(np.arange(len(labels)) < 2, labels, -1),
    "first half": lambda labels: np.where(np.arange(len(labels)) < len(labels) / 2, labels, -1),
    "none labelled": lambda labels: np.full_like(labels, -1),
    "one class": lambda labels: np.zeros_like(labels),
    "floats": lambda labels: labels.astype(np.float64),
    "missing": lambda labels: np.where(labels == 0, np.nan, labels),
    "bytes": lambda labels: labels.astype(np.uint8),
    "names": lambda labels: np.array([f"class {label}" for label in labels], dtype=np.str_),
    "series": _series,
    "one-hot": lambda labels: np.eye(7)[labels],
    "column": lambda labels: labels[:, None],
    "tensor": _tensor,
    "JAX array": _jax_array,
    "too large": lambda labels: labels + 5,
    "too few": lambda labels: labels[1:],
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
    if draw(st.integers(0, 15)) == 0:  # declared as something else, which may be suspected or not be noticed at all
        kind = draw(st.sampled_from(KINDS))
    form = draw(often("array", FORMS, 1))
    labels = rng.integers(0, shape[-1], n_samples)
    library = LIBRARIES[draw(often("numpy", LIBRARIES, 3))]
    return Case(
        ensemble=FORMS[form](values),
        scores=values,
        kind=kind,
        places=labels,
        labels=LABEL_FORMS[draw(often("array", LABEL_FORMS, 2))](labels),
        vectors=library(vectors),
        confidence=library(vectors.max(axis=-1) if n_samples else np.empty(0)),
        outcomes=library(rng.random(n_samples) < 0.7),
        n_sources=shape[0],
        n_classes=shape[-1],
    )
