"""What can be evaluated: the sources alone, ways to combine them, and calibrators."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical.calibrate import Calibrator, calibrators
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, check_choice
from veridical.truth import Truth, discover

#: Ways to combine sources that need no labels: name -> (title, one line).
COMBINERS = {
    "mean": ("DE", "Mean of the sources: the deep (or snapshot) ensemble."),
    "tde": ("TDE", "Truth discovery; may change labels."),
    "atde": ("aTDE", "Truth discovery that keeps the mean's labels."),
}
#: All sources, one row each.
MEMBERS = "members"

#: Short names for what people ask for.
ALIASES = {"de": "mean", "se": "mean", "ptde": "ptde-kde", "ts": "temperature", "opt": "opt-kde"}


def resolve_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Canonical names, in order; an unknown one is answered with the list."""
    known = [MEMBERS, *COMBINERS, *calibrators()]
    return tuple(
        dict.fromkeys(check_choice(ALIASES.get(name.lower(), name.lower()), known, "method") for name in names)
    )


def title_of(method: str) -> str:
    """How tables call a method."""
    return COMBINERS[method][0] if method in COMBINERS else method


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
    chosen = calibrators()[check_choice(ALIASES.get(method, method), calibrators(), "calibrator")]
    takes = inspect.signature(chosen).parameters
    given = {"missing": "skip", "random_state": random_state, **parameters}
    unknown = [name for name in parameters if name not in takes]
    if unknown:
        check_choice(unknown[0], takes, f"parameter of {method}")
    return chosen(**{name: value for name, value in given.items() if name in takes})
