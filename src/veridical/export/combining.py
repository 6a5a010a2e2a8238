"""Ways of combining sources as ONNX graphs: the formulas of :mod:`veridical.combine`.

Tensors are (samples, sources, classes) and (samples, classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.backends.namespace import LABEL_MARGIN
from veridical.combine.across_samples.factor import COPIES
from veridical.combine.across_samples.weights import counted_sources, is_mean
from veridical.combine.base import Combiner
from veridical.combine.log_pool import FLOORS
from veridical.combine.registry import COMBINERS
from veridical.combine.truth_discovery import make_options
from veridical.export.graph import Graph, Tensor
from veridical.predictions import Predictions
from veridical.predictions.sums import SUM_TOLERANCE, tolerance_of

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Truth vectors (N, L) and HV (N, 1)."""

    probs: Tensor
    hv: Tensor


def project(z: Tensor, winner: Tensor, margin: float) -> Tensor:
    """The nearest point of the simplex where the winner, a mask (N, L), leads by ``margin``.

    With the other classes in falling order, the level they are cut at is the largest of the means of the winner's
    score, less the margin, and the first k of them.
    """
    graph = z.graph
    n_classes = graph.n_classes
    own = z.where(winner, 0.0).sum(1) - margin
    others = graph.constant(-1.0).where(winner, z)
    ordered = graph.node("TopK", others, graph.constant([n_classes], "int64"), n_outputs=2, axis=1)[0]
    sums = graph.op("CumSum", ordered, graph.constant(1, "int64"))
    means = (sums + own) / graph.constant(np.arange(2, n_classes + 2))
    level = means.max(1).at_least(own)
    return (level + margin).where(winner, others.at_most(level))


class Sources:
    """The sources of a graph, and what follows from them.

    Parameters
    ----------
    graph : Graph
    scores : Tensor
        (N, S, L) float64 of the kind that ``kind`` names.
    kind : {"probs", "logits", "log_probs", "binary"}
    n_sources : int
    dtype : str
        The precision that the numbers had.
    skip_missing : bool
        Whether a source may be absent for a sample (a row of NaN).

    Attributes
    ----------
    probs : Tensor
        (N, S, L) distributions; 0 where a source is absent.
    present : Tensor, or None
        (N, S) ones and zeros; None where every source is present for every sample.
    valid : Tensor
        (N, 1): whether every source is a distribution, or absent where that is allowed.
    """

    def __init__(
        self, graph: Graph, scores: Tensor, kind: str, n_sources: int, dtype: str, *, skip_missing: bool
    ) -> None:
        self.graph, self.n_sources = graph, n_sources
        self.present: Tensor | None = None
        absent: Tensor | None = None
        if skip_missing:
            absent = scores.is_nan().cast("float64").sum(2) > graph.n_classes - 0.5
            self.present = (1.0 - absent.cast("float64")).squeeze(2)
            scores = graph.constant(0.0).where(absent, scores)
        probs = scores.softmax(2) if kind == "logits" else scores.exp() if kind == "log_probs" else scores
        if absent is not None and kind in ("logits", "log_probs"):
            probs = graph.constant(0.0).where(absent, probs)
        sums = probs.sum(2)
        self.valid = self._are_valid(probs, sums, absent)
        #: Labels are those of the probabilities as they are; added up in the order of the sources, as everywhere.
        parts = graph.node("Split", probs, n_outputs=n_sources, axis=1, num_outputs=n_sources)
        total = parts[0] if n_sources == 1 else graph.op("Sum", *parts)
        self.label = (total.squeeze(1) / self.count).argmax(1)
        # Scaled only where they are off by more than rounding, as everywhere.
        inexact = graph.op("And", (sums - 1.0).abs() > 16 * float(np.finfo(dtype).eps), sums > 0.0)
        self.probs = probs if kind == "logits" else probs / sums.where(inexact, 1.0)

    def _are_valid(self, probs: Tensor, sums: Tensor, absent: Tensor | None) -> Tensor:
        """(N, 1): whether samples are what the calibrator takes; written so that NaN, which sums pass on, is not."""
        both = self.graph.op
        valid = both("And", (sums - 1.0).abs() <= _tolerance(self.graph.n_classes), probs.min(2) >= 0.0)
        if absent is not None:
            valid = both("Or", valid, absent)
        every = valid.cast("float64").sum(1).squeeze(2) > self.n_sources - 0.5
        return every if absent is None else both("And", every, self.count > 0.0)

    @cached_property
    def count(self) -> Any:
        """How many sources are present: a number, or (N, 1)."""
        return float(self.n_sources) if self.present is None else self.present.sum(1)

    @cached_property
    def winner(self) -> Tensor:
        """(N, L) mask: the label of the mean."""
        return self.mask(self.label)

    def mask(self, label: Tensor) -> Tensor:
        """(N, L): where each sample's label is."""
        return self.graph.op("Equal", label, self.graph.constant(np.arange(self.graph.n_classes), "int64"))

    @cached_property
    def plain_mean(self) -> Tensor:
        """(N, L) mean of the sources."""
        mean: Tensor = self.probs.sum(1, keepdims=False) / self.count
        return mean

    @cached_property
    def mean(self) -> Tensor:
        """(N, L) mean of the sources, its label leading strictly."""
        return project(self.plain_mean.normalised(), self.winner, LABEL_MARGIN)

    def of_present(self, weights: Floats) -> Tensor:
        """Weights of the sources that are present: (S,), or (N, S)."""
        constant = self.graph.constant(weights)
        return constant if self.present is None else self.present * constant

    def shares(self, weights: Floats | Tensor) -> Tensor:
        """Weights (S,) or (N, S) as shares of those present, (S,) or (N, S), equal ones where all of them weigh 0."""
        if self.present is None and not isinstance(weights, Tensor):
            return self.graph.constant(weights / weights.sum())
        own = weights if isinstance(weights, Tensor) else self.of_present(weights)
        total = own.sum(1)
        return own.where(total > 0.0, self.of_present(np.ones(self.n_sources))).normalised()

    def weighted(self, weights: Floats | Tensor) -> Tensor:
        """(N, L) weighted mean of the sources that are present."""
        return (self.probs * self.shares(weights).unsqueeze(-1)).sum(1, keepdims=False)

    def logs(self, floor: float) -> Tensor:
        """(N, S, L) logarithms of probabilities that are not below the floor."""
        return self.probs.at_least(floor).log()

    @cached_property
    def geometric_mean(self) -> Tensor:
        """(N, L) normalised geometric mean of the sources."""
        equal = self.shares(np.ones(self.n_sources)).unsqueeze(-1)
        return (self.logs(FLOORS[1]) * equal).sum(1, keepdims=False).softmax()

    def discover(self, *, keep_label: bool = True, influence: Floats | None = None) -> Truth:
        """Truth discovery: as many updates as there may be, of which those after a sample came to rest do nothing."""
        options = make_options(_ANY, skip_missing=False)
        counts = self.of_present(np.ones(self.n_sources)) if influence is None else self._influence(influence)
        z = self.plain_mean if influence is None else self.weighted(influence)
        if influence is not None and keep_label:
            z = project(z, self.winner, 0.0)
        # Two equal sources pull equally from both sides: the mean stays.
        resting = None if self.present is None or influence is not None else self.count <= 2.0
        n_updates = options.max_iter if self.n_sources > 2 or influence is not None else 0
        for update in range(n_updates + 1):
            weight, hv, at_zero = self._reliabilities(z, counts, options.tiny)
            if update == n_updates:
                break
            resting = at_zero if resting is None else self.graph.op("Or", resting, at_zero)
            target = (self.probs * weight.unsqueeze(-1)).sum(1, keepdims=False) / weight.sum(1)
            if keep_label:
                target = project(target, self.winner, 0.0)
            target = z.where(resting, target.at_least(0.0))
            step = target - z
            z, resting = target, self.graph.op("Or", resting, (step * step).sum(1) < options.tol)
        truth = z.normalised()
        return Truth(project(truth, self.winner, LABEL_MARGIN) if keep_label else truth, hv)

    def _influence(self, weights: Floats) -> Tensor:
        """Weights of the present sources, scaled to two where they sum to less; ones where all of them weigh 0."""
        if self.present is None:
            return self.graph.constant(weights * max(2.0 / weights.sum(), 1.0))
        own = self.of_present(weights)
        total = own.sum(1)
        scale = (2.0 / self.graph.constant(1.0).where(total <= 0.0, total)).at_least(1.0)
        return (own * scale).where(total > 0.0, self.present)

    def _reliabilities(self, z: Tensor, counts: Tensor, tiny: float) -> tuple[Tensor, Tensor, Tensor]:
        """Weights (N, S), HV (N, 1), and whether a source is at distance 0 (N, 1)."""
        graph = self.graph
        difference = self.probs - z.unsqueeze(1)
        distance = (difference * difference).sum(2, keepdims=False)
        equal = distance < tiny
        distance = graph.constant(0.0).where(equal, distance)
        total = (distance * counts).sum(1)
        ratio = total / graph.constant(1.0).where(equal, distance)
        weight = counts * graph.constant(0.0).where(equal, ratio.at_least(1.0).log())
        hv = (distance * weight).sum(1)
        indicator = counts * equal.cast("float64")
        at_zero = indicator.sum(1) > 0.0
        return indicator.where(at_zero, weight), hv, at_zero


def _tolerance(n_classes: int) -> float:
    """How far from one a sum may be: that of the coarsest precision, as numbers may have been stored in any."""
    return max(tolerance_of(np.dtype(np.float64), n_classes, name) for name in SUM_TOLERANCE)


#: Stands for any predictions in double precision: no option of truth discovery that matters here depends on them.
_ANY = Predictions(np.full((1, 1, 2), 0.5))


@dataclass(frozen=True)
class CombinedSources:
    """One vector per sample (N, L), its label (N, 1), and the sources it was made of."""

    probs: Tensor
    label: Tensor
    sources: Sources
    influence: Floats | None = None

    @cached_property
    def winner(self) -> Tensor:
        """(N, L) mask of the label."""
        return self.sources.mask(self.label)

    @cached_property
    def confidence(self) -> Tensor:
        """(N, 1) combined probability of the label."""
        return self.probs.where(self.winner, 0.0).sum(1).at_most(1.0)

    @cached_property
    def truth(self) -> Truth:
        """Truth discovery with the mean's label kept; HV is scaled up where sources are absent."""
        truth, sources = self.sources.discover(influence=self.influence), self.sources
        return truth if sources.present is None else Truth(truth.probs, truth.hv * sources.n_sources / sources.count)


def combine(combiner: Combiner, sources: Sources) -> CombinedSources:
    """The sources combined as a calibrator combines them."""
    name, weights, dependence = combiner.name, *(getattr(combiner, name, None) for name in ("weights", "dependence"))
    if name == "mean" or (weights is not None and dependence is not None and is_mean(weights, dependence)):
        return CombinedSources(sources.mean, sources.label, sources)
    if name in ("tde", "atde"):
        probs = sources.discover(keep_label=name == "atde").probs
        return CombinedSources(probs, sources.label if name == "atde" else probs.argmax(1), sources)
    probs, influence = _weighted(combiner, sources)
    if not COMBINERS[name].keeps_labels:
        return CombinedSources(probs, probs.argmax(1), sources, influence)
    return CombinedSources(project(probs, sources.winner, LABEL_MARGIN), sources.label, sources, influence)


def _weighted(combiner: Combiner, sources: Sources) -> tuple[Tensor, Any]:
    """A pool or the consensus, and with which weights truth is discovered on it."""
    state: Any = combiner
    weights: Any = state.weights
    if combiner.name == "linear-pool":
        return sources.weighted(weights), None
    if combiner.name != "log-pool":
        return _consensus(weights, state.dependence, sources), counted_sources(weights, state.dependence)
    floor: Any = state.floor
    exponents = sources.of_present(weights).unsqueeze(-1)
    logs = (sources.logs(floor) * exponents).sum(1, keepdims=False)
    return (logs + sources.plain_mean.at_least(floor).log() * state.mean_weight).softmax(), None


def _consensus(weights: Floats, dependence: Floats, sources: Sources) -> Tensor:
    """The mean with shares w_s a_s, a_s how distinct a source is from the others that are present."""
    if sources.present is None:
        return sources.weighted(counted_sources(weights, dependence))
    graph, present = sources.graph, sources.present
    copies = graph.op("MatMul", present, (dependence > COPIES).T.astype(np.float64))
    single = present / copies.at_least(1.0)
    shared = graph.op("MatMul", single, dependence.T)
    independence = single / shared.where(single > 0.0, 1.0)
    own = independence * graph.constant(weights)
    return sources.weighted(own.where(own.sum(1) > 0.0, independence))
