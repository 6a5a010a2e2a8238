"""How far each source is to be trusted, from sums over unlabelled samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veridical.combine.across_samples.camps import CampWeights, camp_weights, choose_factor
from veridical.combine.across_samples.factor import (
    MOST_SKILL,
    distinctness_of,
    evidence_of,
    shrunk_skill,
    weights_of_skill,
)
from veridical.combine.across_samples.passes import (
    SuspectError,
    sample_weights,
    sums_of_complete,
    sums_with_gaps,
    weighted_means,
)
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.combined import Floats
from veridical.combine.truth_discovery import Missing, discover
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

#: With fewer sources none can be told from the others.
_LEAST_SOURCES = 3


@dataclass(frozen=True, repr=False, eq=False)
class SourceWeights:
    """How far each source is to be trusted, and how far it repeats others: what a consensus is made with.

    Attributes
    ----------
    skill : (S,) float64
        Correlation of each source with what they all see, from 0 to 0.98.
    weights : (S,) float64
        -ln(1 - skill^2); all one where the mean is used instead.
    dependence : (S, S) float64
        What two sources share beyond that, from 0 to 1 (copies).
    n_samples : (S,) int64
        How many samples each source was seen in.
    camps : tuple of CampWeights
        Where it cannot be known which of several camps is right.
    """

    skill: Floats
    weights: Floats
    dependence: Floats
    n_samples: npt.NDArray[np.int64]
    camps: tuple[CampWeights, ...] = ()

    @property
    def is_mean(self) -> bool:
        """Whether these are the weights of the plain mean."""
        return is_mean(self.weights, self.dependence)


def gather_sums(predictions: Predictions, missing: Missing, n_threads: int | None) -> tuple[ConsensusSums, bool]:
    """The sums over all samples, and whether every source is present in all of them; the numbers are checked."""
    sums = sums_of_complete(predictions, n_threads)
    if sums is not None:
        return sums, True
    # Computing the mean names what is wrong with the first bad row; what it accepts are absent sources.
    discover(predictions, max_iter=0, missing=missing, n_threads=n_threads)
    return sums_with_gaps(predictions, n_threads), False


def weigh_sources(sums: ConsensusSums, n_threads: int | None = None, *, of_votes: bool = False) -> SourceWeights:
    """Skill, weight and dependence of the sources; nothing here depends on the number of samples.

    ``of_votes`` says how skills are shrunk, see ``shrunk_skill``.
    """
    correlations = sums.correlations()
    n_sources = len(correlations.variance)
    n_samples = sums.n_samples.astype(np.int64)
    del sums  # with thousands of sources, the memory of its matrices is needed below
    if n_sources < _LEAST_SOURCES:
        skill = np.full(n_sources, float(np.sqrt(max(correlations.correlation.min(initial=1.0), 0.0))))
        return SourceWeights(np.minimum(skill, MOST_SKILL), np.ones(n_sources), np.eye(n_sources), n_samples)
    evidence = evidence_of(correlations)
    del correlations
    factor, camps = choose_factor(evidence, n_threads)
    skill = shrunk_skill(factor, evidence, of_votes=of_votes)
    if camps or not skill.any():
        weights_of_camps = tuple(camp_weights(camp, n_sources) for camp in camps)
        return SourceWeights(skill, np.ones(n_sources), np.eye(n_sources), n_samples, weights_of_camps)
    return SourceWeights(skill, weights_of_skill(skill), factor.dependence, n_samples)


def apply_source_weights(
    predictions: Predictions, weights: Floats, dependence: Floats, n_threads: int | None
) -> tuple[Array, Floats]:
    """As :func:`weighted_means`, for predictions whose numbers are valid, with or without absent sources."""
    try:
        return weighted_means(predictions, weights, dependence, n_threads, complete=True)
    except SuspectError:
        return weighted_means(predictions, weights, dependence, n_threads, complete=False)


def is_mean(weights: Floats, dependence: Floats) -> bool:
    """Whether these are the weights of the plain mean."""
    return bool((weights == 1.0).all() and np.array_equal(dependence, np.eye(len(weights))))


def counted_sources(weights: Floats, dependence: Floats) -> Floats:
    """(S,) how many sources each counts as in truth discovery: shares of as many as are distinct."""
    shares, n_distinct = sample_weights(weights, dependence, np.ones((len(weights), 1)))
    counted: Floats = shares[:, 0] * n_distinct[0]
    return counted


def weights_for_sources(weights: Floats, dependence: Floats, known: list[int], n_new: int) -> tuple[Floats, Floats]:
    """Weights and dependence of some of the sources, by number, and of ``n_new`` that nothing is known of.

    A new source has the mean skill of the sources with weight, copies counted once, and depends on no other.
    """
    counted = distinctness_of(dependence) * (weights > 0)
    skill = np.sqrt(-np.expm1(-weights))
    typical = float(counted @ skill / counted.sum()) if counted.any() else 0.0
    extended = np.eye(len(known) + n_new)
    extended[: len(known), : len(known)] = dependence[np.ix_(known, known)]
    return np.append(weights[known], np.full(n_new, weights_of_skill(np.array(typical)))), extended
