"""What can be evaluated: the sources alone, ways to combine them, and calibrators."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical.calibrate import Calibrator, calibrators, full_name
from veridical.combine import Truth, discover
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, check_choice

#: Ways to combine sources that need no labels: name -> (title, one line).
COMBINERS = {
    "mean": ("DE", "Mean of the sources: the deep (or snapshot) ensemble."),
    "tde": ("TDE", "Truth discovery; may change labels."),
    "atde": ("aTDE", "Truth discovery that keeps the mean's labels."),
}
#: All sources, one row each.
MEMBERS = "members"


def canonical(name: str) -> str:
    """The one spelling of a method: ``mean``, ``temperature``, or ``log-pool+matrix`` for a method on a pool."""
    pooled, plus, method = name.strip().rpartition("+")
    method = full_name(method)
    if not plus:
        return check_choice(method, [MEMBERS, *COMBINERS, *calibrators()], "method")
    chosen = calibrators()[check_choice(method, calibrators(), "method")]
    return f"{check_choice(full_name(pooled), chosen.combinations, f'combine for {method}')}+{method}"


def resolve_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Canonical names, in order and each once; an unknown one is answered with the list."""
    return tuple(dict.fromkeys(canonical(name) for name in names))


def title_of(method: str) -> str:
    """How tables call a method."""
    return COMBINERS[method][0] if method in COMBINERS else method.replace("+", " + ")


def combine(predictions: Predictions, method: str, n_threads: int | None = None) -> Truth:
    """One of ``COMBINERS`` as a :class:`Truth`; the mean is truth discovery without updates."""
    keep_label = method != "tde"
    max_iter = 0 if method == "mean" else 20
    return discover(predictions, accuracy_preserving=keep_label, max_iter=max_iter, missing="skip", n_threads=n_threads)


def source_probs(predictions: Predictions, s: int, n_threads: int | None = None) -> tuple[Array, Array]:
    """Probabilities of one source, and the samples it says something about."""
    values = next(source for k, source in enumerate(predictions) if k == s)
    here = np.flatnonzero(~np.isnan(values[:, 0].astype(np.float32)))
    only = Predictions([values[here] if here.size < len(values) else values], kind=predictions.kind)
    probs = discover(only, accuracy_preserving=False, max_iter=0, n_threads=n_threads).probs
    return probs, here


def make_calibrator(method: str, random_state: int, **parameters: Any) -> Calibrator:
    """A calibrator by name; absent sources are left out, and ``random_state`` goes to those that have one."""
    pooled, plus, name = canonical(method).rpartition("+")
    chosen = calibrators()[check_choice(name, calibrators(), "calibrator")]
    takes = inspect.signature(chosen).parameters
    for parameter in parameters:
        check_choice(parameter, takes, f"parameter of {name}")
    given = {"missing": "skip", "random_state": random_state, **({"combine": pooled} if plus else {}), **parameters}
    return chosen(**{key: value for key, value in given.items() if key in takes})
