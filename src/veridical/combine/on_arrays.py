"""Combining arrays of other libraries: checked, and computed where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from veridical.arrays.foreign import Foreign, results_from_host, to_host
from veridical.arrays.truth import (
    LABEL_MARGIN,
    ArrayTruth,
    at_label,
    discover_arrays,
    label_of_mean,
    project,
    widest_float,
)
from veridical.combine.combiner import Combiner
from veridical.combine.consensus_blocks import sample_weights
from veridical.combine.consensus_weights import counted_sources, is_mean
from veridical.combine.registry import COMBINERS
from veridical.combine.truth_discovery import Truth, discover
from veridical.errors import DtypeError, ShapeError
from veridical.predictions.validation import KINDS, check_choice, check_integer, check_real, tolerance_of


class InvalidOnDeviceError(Exception):
    """Some numbers are not valid; the host says which."""


@dataclass(frozen=True)
class LoadedArrays:
    """Probabilities (S, N, L) of another library, checked, rows summing to one; 0 where a source is absent."""

    xp: Any
    probs: Any
    present: Any
    prediction: Any
    traced: bool

    def truth(
        self, *, source_weights: Any = None, keep_label: bool = True, tol: float, max_iter: int, trace: bool = False
    ) -> ArrayTruth:
        """Truth discovery."""
        return discover_arrays(
            self.xp, self.probs, self.present, self.prediction, source_weights=source_weights, keep_label=keep_label,
            tol=tol, max_iter=max_iter, trace=trace, traced=self.traced,
        )  # fmt: skip

    def constant(self, values: Any) -> Any:
        """Numbers of a fitted method as an array beside the probabilities."""
        array = np.asarray(values, dtype=np.float64)
        return self.xp.asarray(array.tolist(), dtype=self.probs.dtype, device=self.probs.device)


def load_arrays(
    foreign: Foreign, kind: str | None = None, sources_axis: int | None = None, missing: str = "raise"
) -> LoadedArrays:
    """Check predictions and find the labels of their mean, all on their device."""
    xp, values = foreign.namespace, foreign.values
    kind = check_choice("probs" if kind is None else kind, KINDS, "kind")
    check_choice(missing, ("raise", "skip"), "missing")
    values = _source_first(xp, values, 0 if sources_axis is None else sources_axis)
    given = values.dtype
    values = xp.astype(values, xp.float64 if given == xp.float64 else xp.float32, copy=False)
    absent = xp.all(xp.isnan(values), axis=2)
    present = ~absent
    blank = xp.zeros_like(values) if kind != "probs" else xp.full_like(values, 1 / values.shape[2])
    filled = xp.where(absent[:, :, None], blank, values)
    probs = _probabilities(xp, filled, kind)
    exact = _exact_probabilities(xp, filled, kind)
    sums = xp.sum(probs, axis=2)
    off = xp.abs(sums - 1)
    if not foreign.traced:
        valid = xp.all((probs >= 0) & xp.isfinite(probs), axis=2) & (off <= _tolerance(xp, given, values.shape[2]))
        if kind == "logits":
            valid = valid & xp.all(xp.isfinite(filled), axis=2)
        enough = xp.any(present, axis=0) if missing == "skip" else xp.all(present, axis=0)
        if not bool(xp.all(valid)) or not bool(xp.all(enough)):
            raise InvalidOnDeviceError
    uneven = off > 16 * float(xp.finfo(probs.dtype).eps)
    probs = xp.where(uneven[:, :, None], probs / sums[:, :, None], probs)
    prediction = label_of_mean(xp, exact, present)
    probs = xp.where(absent[:, :, None], xp.zeros_like(probs), probs)
    return LoadedArrays(xp, probs, present, prediction, foreign.traced)


def _source_first(xp: Any, values: Any, sources_axis: Any) -> Any:
    if values.ndim == 2:
        values = values[None, ...]
    if values.ndim != 3:
        raise ShapeError(
            f"the array of predictions has {values.ndim} dimensions (shape {tuple(values.shape)}); give shape "
            "(sources, samples, classes)."
        )
    axis = check_integer(sources_axis, "sources_axis", 0, 2)
    if not xp.isdtype(values.dtype, ("real floating", "integral", "bool")):
        raise DtypeError(f"the array of predictions has dtype {values.dtype}; give real numbers.")
    order = {0: (0, 1, 2), 1: (1, 0, 2), 2: (2, 0, 1)}[axis]
    values = values if axis == 0 else xp.permute_dims(values, order)
    if values.shape[2] < 2 or values.shape[0] < 1:
        raise ShapeError(
            f"the array of predictions has shape {tuple(values.shape)}; at least one source and two classes are needed."
        )
    return values


def _tolerance(xp: Any, dtype: Any, n_classes: int) -> float:
    name = str(dtype).rpartition(".")[2]
    known = name if name in ("float16", "float32", "float64") else "float16" if "float" in name else "float64"
    return tolerance_of(np.dtype(known), n_classes)


def _probabilities(xp: Any, scores: Any, kind: str) -> Any:
    if kind == "probs":
        return scores
    if kind == "log_probs":
        return xp.exp(scores)
    return softmax(xp, scores)


def softmax(xp: Any, scores: Any) -> Any:
    """Over the last axis."""
    exponentials = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return exponentials / xp.sum(exponentials, axis=-1, keepdims=True)


def _exact_probabilities(xp: Any, scores: Any, kind: str) -> Any:
    """What labels are decided on: in float64; sums of exponentials do not depend on the order of the classes."""
    if kind == "probs":
        return scores
    wide = widest_float(xp, scores)
    if kind == "log_probs":
        return xp.exp(wide)
    exponentials = xp.exp(wide - xp.max(wide, axis=-1, keepdims=True))
    return exponentials / xp.sum(xp.sort(exponentials, axis=-1), axis=-1, keepdims=True)


def discover_foreign(foreign: Foreign, options: dict[str, Any]) -> Truth:
    """:func:`veridical.discover` for an array of another library; the result is of the same library."""
    if not foreign.takes_array_path:
        return results_from_host(discover(to_host(foreign.values), **options), foreign)
    try:
        loaded = load_arrays(foreign, options["kind"], options["sources_axis"], options["missing"])
    except InvalidOnDeviceError:
        return results_from_host(discover(to_host(foreign.values), **options), foreign)  # which raises, in words
    weights = options["source_weights"]
    if weights is not None:
        weights = loaded.constant(to_host(weights))
    truth = loaded.truth(
        source_weights=weights,
        keep_label=bool(options["accuracy_preserving"]),
        tol=check_real(options["tol"], "tol", 0.0),
        max_iter=check_integer(options["max_iter"], "max_iter", 0),
        trace=options["trace"],
    )
    return Truth(**vars(truth))


class CombinedArrays:
    """One vector per sample on a device, with the truth of the same samples where it is needed.

    Twin of :class:`veridical.combine.Combined`.
    """

    def __init__(self, loaded: LoadedArrays, combiner: Combiner, *, missing: str) -> None:
        self.loaded, self.xp, self.missing = loaded, loaded.xp, missing
        self.n_sources = loaded.probs.shape[0]
        self._source_weights: Any = None
        self.probs, self.prediction = self._combine(combiner)

    def _combine(self, combiner: Combiner) -> tuple[Any, Any]:
        loaded, xp = self.loaded, self.xp
        if combiner.name in ("mean", "atde", "tde"):
            truth = self._discover(keep_label=combiner.name != "tde", max_iter=0 if combiner.name == "mean" else 20)
            return truth.probs, xp.argmax(truth.probs, axis=1) if combiner.name == "tde" else loaded.prediction
        assert combiner.weights is not None
        present = xp.astype(loaded.present, loaded.probs.dtype)
        if combiner.dependence is not None:
            return self._combine_consensus(combiner)
        weights = loaded.constant(combiner.weights)[:, None] * present
        if combiner.name == "linear-pool":
            total = xp.sum(weights, axis=0)
            equal = present / xp.sum(present, axis=0)
            shares = xp.where(total > 0, weights / xp.where(total > 0, total, xp.ones_like(total)), equal)
            probs = xp.sum(shares[:, :, None] * loaded.probs, axis=0)
        else:
            mean = xp.sum(loaded.probs, axis=0) / xp.sum(present, axis=0)[:, None]
            logs = xp.log(xp.maximum(loaded.probs, xp.full_like(loaded.probs, combiner.floor)))
            mean_log = xp.log(xp.maximum(mean, xp.full_like(mean, combiner.floor)))
            probs = softmax(xp, xp.sum(weights[:, :, None] * logs, axis=0) + combiner.mean_weight * mean_log)
        return probs, xp.argmax(probs, axis=1)

    def _combine_consensus(self, combiner: Combiner) -> tuple[Any, Any]:
        """The consensus with fitted weights, of sources that are all present."""
        loaded, xp = self.loaded, self.xp
        assert combiner.weights is not None
        assert combiner.dependence is not None
        if is_mean(combiner.weights, combiner.dependence):
            return self._combine(Combiner("mean"))
        shares, _ = sample_weights(combiner.weights, combiner.dependence, np.ones((self.n_sources, 1)))
        probs = xp.sum(loaded.constant(shares)[:, :, None] * loaded.probs, axis=0)
        self._source_weights = loaded.constant(counted_sources(combiner.weights, combiner.dependence))
        if not COMBINERS[combiner.name].keeps_labels:
            return probs, xp.argmax(probs, axis=1)
        return project(xp, probs, loaded.prediction, LABEL_MARGIN), loaded.prediction

    def _discover(self, *, keep_label: bool = True, max_iter: int = 20, source_weights: Any = None) -> ArrayTruth:
        return self.loaded.truth(
            source_weights=source_weights, keep_label=keep_label, tol=float(np.exp(-8)), max_iter=max_iter
        )

    @cached_property
    def confidence(self) -> Any:
        """(N,) combined probability of the predicted label."""
        top = at_label(self.xp, self.probs, self.prediction)
        return self.xp.minimum(top, self.xp.ones_like(top))

    @cached_property
    def truth(self) -> ArrayTruth:
        """Truth discovery with the mean's label kept."""
        return self._discover(source_weights=self._source_weights)

    @cached_property
    def hv(self) -> Any:
        """(N,) HV, scaled up by S / (sources present) where some are absent."""
        hv = self.truth.hv
        if self.missing == "skip":
            hv = hv * self.n_sources / self.xp.sum(self.xp.astype(self.loaded.present, hv.dtype), axis=0)
        return hv
