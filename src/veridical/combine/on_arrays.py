"""Combining arrays of other libraries where they are.

Functions here have the names of those that they stand in for; see :func:`veridical.backends.also_foreign`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veridical.backends.foreign import Foreign
from veridical.backends.truth import LABEL_MARGIN, ArrayTruth, at_label, project, softmax, widest_float
from veridical.combine.across_samples.on_arrays import weighted_mean
from veridical.combine.across_samples.weights import counted_sources, is_mean
from veridical.combine.array_inputs import LoadedArrays, load_arrays
from veridical.combine.combiner import Combiner
from veridical.combine.registry import COMBINERS
from veridical.combine.source_weights import check_source_weights
from veridical.combine.truth import Truth
from veridical.combine.truth_discovery import MOST_TRACED
from veridical.predictions import Predictions
from veridical.predictions.inputs import check_has_sources
from veridical.predictions.validation import LARGEST_COUNT, check_flag, check_integer, check_real


def discover(
    foreign: Foreign,
    *,
    kind: Any = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = True,
    tol: float = math.exp(-8),
    max_iter: int = 20,
    missing: Any = "raise",
    source_weights: Any = None,
    trace: bool = False,
    n_threads: int | None = None,
) -> Truth:
    """Truth discovery as :func:`veridical.discover`, on the device of the arrays."""
    check_has_sources(foreign.values, kind)
    loaded = load_arrays(foreign, kind, sources_axis, missing)
    weights = None
    if source_weights is not None:
        no_samples = Predictions(np.empty((loaded.probs.shape[0], 0, 2)))
        weights = loaded.constant(check_source_weights(source_weights, no_samples))
    truth = loaded.truth(
        source_weights=weights,
        keep_label=check_flag(accuracy_preserving, "accuracy_preserving"),
        tol=check_real(tol, "tol", 0.0),
        max_iter=check_integer(max_iter, "max_iter", 0, MOST_TRACED if trace else LARGEST_COUNT),
        trace=check_flag(trace, "trace"),
    )
    result = Truth(*truth)
    return result if len(loaded.sample_shape) == 1 else result.in_shape(loaded.sample_shape, loaded.xp.reshape)


class CombinedArrays:
    """One vector per sample on a device, with the truth of the same samples where it is needed.

    Twin of :class:`veridical.combine.Combined`.
    """

    def __init__(self, loaded: LoadedArrays, combiner: Combiner, *, missing: str) -> None:
        self.loaded, self.xp, self.missing = loaded, loaded.xp, missing
        self.n_sources = loaded.probs.shape[0]
        self._source_weights: Any = None
        self._truth: ArrayTruth | None = None
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
        """The consensus with fitted weights."""
        loaded, xp = self.loaded, self.xp
        assert combiner.weights is not None
        assert combiner.dependence is not None
        if is_mean(combiner.weights, combiner.dependence):
            return self._combine(Combiner("mean"))
        probs, _ = weighted_mean(loaded, combiner.weights, combiner.dependence)
        self._source_weights = loaded.constant(counted_sources(combiner.weights, combiner.dependence))
        if not COMBINERS[combiner.name].keeps_labels:
            return probs, xp.argmax(probs, axis=1)
        return project(xp, probs, loaded.prediction, LABEL_MARGIN), loaded.prediction

    def _discover(self, *, keep_label: bool = True, max_iter: int = 20, source_weights: Any = None) -> ArrayTruth:
        return self.loaded.truth(
            source_weights=source_weights, keep_label=keep_label, tol=float(np.exp(-8)), max_iter=max_iter
        )

    @property
    def confidence(self) -> Any:
        """(N,) combined probability of the predicted label, in float64 where the device has it."""
        top = widest_float(self.xp, at_label(self.xp, self.probs, self.prediction))
        return self.xp.minimum(top, self.xp.ones_like(top))

    @property
    def truth(self) -> ArrayTruth:
        """Truth discovery with the mean's label kept."""
        if self._truth is None:  # not a cached property: torch.compile does not take its lock
            self._truth = self._discover(source_weights=self._source_weights)
        return self._truth

    @property
    def hv(self) -> Any:
        """(N,) HV, scaled up by S / (sources present) where some are absent."""
        hv = widest_float(self.xp, self.truth.hv)
        if self.missing == "skip":
            hv = hv * self.n_sources / self.xp.sum(self.xp.astype(self.loaded.present, hv.dtype), axis=0)
        return hv
