"""Ways of combining sources as ONNX graphs: the formulas of :mod:`veridical.combine` for samples with all sources.

Tensors are (samples, sources, classes) and (samples, classes).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.combine.across_samples.weights import counted_sources, is_mean
from veridical.combine.combiner import Combiner
from veridical.combine.pools import FLOORS
from veridical.combine.projection import LABEL_MARGIN
from veridical.combine.registry import COMBINERS
from veridical.combine.truth_discovery import make_options
from veridical.export.graph import Graph, Tensor
from veridical.predictions import Predictions

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
    kind : {"probs", "logits", "log_probs"}
    n_sources : int
    """

    def __init__(self, graph: Graph, scores: Tensor, kind: str, n_sources: int) -> None:
        self.graph, self.n_sources = graph, n_sources
        probs = scores.softmax(2) if kind == "logits" else scores.exp() if kind == "log_probs" else scores
        self.probs = probs.normalised(2)
        # Labels are those of the probabilities as they are; added up in the order of the sources, as everywhere.
        parts = graph.node("Split", probs, n_outputs=n_sources, axis=1, num_outputs=n_sources)
        total = parts[0] if n_sources == 1 else graph.op("Sum", *parts)
        self.label = total.squeeze(1).argmax(1)

    @cached_property
    def winner(self) -> Tensor:
        """(N, L) mask: the label of the mean."""
        return self.mask(self.label)

    def mask(self, label: Tensor) -> Tensor:
        """(N, L): where each sample's label is."""
        return self.graph.op("Equal", label, self.graph.constant(np.arange(self.graph.n_classes), "int64"))

    @cached_property
    def mean(self) -> Tensor:
        """(N, L) mean of the sources, its label leading strictly."""
        return project(self.weighted(np.ones(self.n_sources)).normalised(), self.winner, LABEL_MARGIN)

    def weighted(self, weights: Floats) -> Tensor:
        """(N, L) weighted mean of the sources."""
        shares = self.graph.constant((weights / weights.sum())[:, None])
        return (self.probs * shares).sum(1, keepdims=False)

    def logs(self, floor: float) -> Tensor:
        """(N, S, L) logarithms of probabilities that are not below the floor."""
        return self.probs.at_least(floor).log()

    @cached_property
    def geometric_mean(self) -> Tensor:
        """(N, L) normalised geometric mean of the sources."""
        return (self.logs(FLOORS[1]).sum(1, keepdims=False) / float(self.n_sources)).softmax()

    def discover(self, *, keep_label: bool = True, influence: Floats | None = None) -> Truth:
        """Truth discovery: as many updates as there may be, of which those after a sample came to rest do nothing."""
        weights = np.ones(self.n_sources) if influence is None else influence * max(2.0 / influence.sum(), 1.0)
        options = make_options(_ANY, skip_missing=False)
        counts = self.graph.constant(weights)
        z = self.weighted(weights)
        if influence is not None and keep_label:
            z = project(z, self.winner, 0.0)
        resting: Tensor | None = None
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
        """Truth discovery with the mean's label kept."""
        return self.sources.discover(influence=self.influence)


def combine(combiner: Combiner, sources: Sources) -> CombinedSources:
    """The sources combined as a calibrator combines them."""
    name, weights, dependence = combiner.name, combiner.weights, combiner.dependence
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
    weights: Any = combiner.weights
    if combiner.name == "linear-pool":
        return sources.weighted(weights), None
    if combiner.dependence is not None:
        counted = counted_sources(weights, combiner.dependence)
        return sources.weighted(counted), counted
    floor: Any = combiner.floor
    plain = sources.weighted(np.ones(sources.n_sources)).at_least(floor).log()
    exponents = sources.graph.constant(weights[:, None])
    logs = (sources.logs(floor) * exponents).sum(1, keepdims=False) + plain * combiner.mean_weight
    return logs.softmax(), None
