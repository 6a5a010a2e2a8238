"""The consensus as a combiner: weights from the agreement of the sources over a set of samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from veridical.combine.across_samples.camps import warn_of_camps
from veridical.combine.across_samples.factor import distinctness_of, weights_of_skill
from veridical.combine.across_samples.passes import gather_sums
from veridical.combine.across_samples.weights import counted_sources, is_mean, sample_shares, weigh_sources
from veridical.combine.base import Combiner, Mean
from veridical.combine.in_memory import CombineOptions, SourcesInMemory
from veridical.combine.sources import Sources
from veridical.combine.state_checks import check_array
from veridical.combine.truth import Floats, Labels
from veridical.predictions import Predictions
from veridical.predictions.validation import Array


class ConsensusMean(Combiner):
    """A weighted mean of the sources, weights from :func:`veridical.consensus`; the plain mean where they form camps.

    Attributes
    ----------
    weights : (S,) float64
    dependence : (S, S) float64
        How far the sources repeat each other.
    """

    name = "consensus"
    summary = "Weighted mean of the sources, weights from their agreement over all samples, copies counted once."
    has_weights = True
    complexity = 1
    _state = ("weights", "dependence")

    weights: Floats
    dependence: Floats

    @classmethod
    def of(cls, weights: Floats, dependence: Floats) -> Self:
        """The combiner with these weights."""
        return cls().with_state(weights=weights, dependence=dependence)

    def fit(self, predictions: Predictions, labels: Labels, options: CombineOptions) -> None:
        sums, _ = gather_sums(SourcesInMemory(predictions.with_unlabelled(), options))
        known = weigh_sources(sums, options.n_threads)
        warn_of_camps(predictions.source_names, known.camps)
        self.weights, self.dependence = known.weights, known.dependence

    def shares(self, sources: Sources) -> tuple[Any, Any]:
        """Shares (S, N) and how many distinct sources (N,) they amount to; (S, 1) and (1,) where all are present."""
        weights, dependence = sources.constant(self.weights), sources.constant(self.dependence)
        return sample_shares(sources.xp, weights, dependence, sources.present_as_numbers)

    def formula(self, xp: Any, sources: Sources) -> Any:
        return sources.weighted(self.shares(sources)[0])

    def combine(self, sources: Sources) -> tuple[Any, Any]:
        return Mean().combine(sources) if self.is_mean else super().combine(sources)

    def _by_kernel(self, sources: SourcesInMemory) -> tuple[Array, Labels] | None:
        return sources.mean if self.is_mean else None

    @property
    def is_mean(self) -> bool:
        """Whether the weights are those of the plain mean."""
        return is_mean(self.weights, self.dependence)

    @property
    def source_weights(self) -> Floats | None:
        return None if self.is_mean else counted_sources(self.weights, self.dependence)

    def for_sources(self, known: list[int], n_new: int) -> Self:
        """A new source has the mean skill of the sources with weight, copies counted once, and depends on no other."""
        counted = distinctness_of(self.dependence) * (self.weights > 0)
        skill = np.sqrt(-np.expm1(-self.weights))
        typical = float(counted @ skill / counted.sum()) if counted.any() else 0.0
        dependence = np.eye(len(known) + n_new)
        dependence[: len(known), : len(known)] = self.dependence[np.ix_(known, known)]
        weights = np.append(self.weights[known], np.full(n_new, weights_of_skill(np.array(typical))))
        return self.with_state(weights=weights, dependence=dependence)

    def check_state(self, n_sources: int) -> None:
        check_array(self.weights, f"the weights of the {self.name}", (n_sources,), 0.0, 10.0)
        check_array(self.dependence, "the dependence of the sources", (n_sources, n_sources), 0.0, 1.0)
        if not (np.diag(self.dependence) == 1.0).all():
            raise ValueError("a source does not depend on itself")


class LabelKeepingConsensusMean(ConsensusMean):
    """The consensus, projected onto the nearest distribution in which the mean's label wins."""

    name = "aconsensus"
    summary = "The consensus, projected so that the mean's labels are kept."
    keeps_labels = True
