"""What users pass to functions, by the names of their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import KINDS, Case, Draw, often
from hypothesis import strategies as st
from odd_values import NAMES, odd_values

import veridical as vd


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


class _OwnCalibrator(vd.calibrate.Calibrator):
    name = "own"
    summary = "The confidence as it is."

    def _fit(self, combined: Any, labels: Any) -> None:
        pass

    def formula(self, xp: Any, combined: Any) -> Any:
        return combined.confidence


class _OwnCombiner(vd.combine.Combiner):
    name = "largest"
    summary = "The largest of the sources' probabilities, scaled to a distribution."

    def formula(self, xp: Any, sources: Any) -> Any:
        return xp.max(sources.probs, axis=0)


def _own_metric(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    return float(np.average(probs, weights=sample_weight))


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
    "combiner": _choice(_OwnCombiner, vd.combine.Combiner, vd.combine.COMBINERS["mean"]),
    "confidence": lambda case: st.just(case.confidence),
    "confidence_level": _choice(0.95, 0.0, 1.0, 1e-300),
    "correct": lambda case: st.just(case.outcomes),
    "doubt": lambda case: st.sampled_from([None, case.confidence, np.zeros(case.n_samples)]),
    "edges": _choice(None, [0.0, 0.5, 1.0], [0, 1]),
    "floors": _choice(False, True),
    "function": _choice(_own_metric, vd.metrics.ece, lambda y_true, probs: 0.0),
    "gold": lambda case: st.sampled_from([None, {}, {"item 0": "class 0"}, dict(enumerate(case.places.tolist()))]),
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
    "limits": _choice(None, (0.0, 1.0), [-1, 3]),
    "lowest": _choice(None, 0.0, 0.5),
    "margin": _choice(1e-6, 0.0, 0.1),
    "matrix": lambda case: st.just(np.eye(case.n_sources)),
    "max_risk": _choice(0.05, 0.5, 1e-9),
    "max_iter": _choice(20, 0, 1, 1000),
    "meaning": _choice("", "What it measures."),
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
    "period_order": _choice("value", "appearance"),
    "plugin": _choice(_OwnCalibrator, _OwnCombiner, _own_metric, vd.Temperature, vd.combine.Combiner, int),
    "predictions": lambda case: st.just(case.ensemble),
    "probs": lambda case: st.just(case.vectors),
    "progress": _choice(None),
    "quantiles": _choice((0.05, 0.5, 0.95), (), (0, 1)),
    "random_state": lambda case: st.sampled_from([0, 1, None, 2**32]),
    "renormalize": _choice(False, True),
    "normalize": _choice(False, True),
    "abstain": _choice((), ("refused",)),
    "class_columns": lambda case: st.one_of(st.none(), _names(case.n_classes, "class")),
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
        name = draw(st.sampled_from(sorted(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)))
        value = draw(odd_values())
        if name != "progress" or not callable(value):  # what a function of the caller's raises is the caller's
            result[name] = value
    return result
