"""How far each source is to be trusted, from sums over unlabelled samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.backends.namespace import source_sums
from veridical.combine.across_samples.camps import CampWeights, camp_weights, choose_factor
from veridical.combine.across_samples.factor import (
    MOST_ROUNDS,
    MOST_SKILL,
    distinctness_among,
    evidence_of,
    shrunk_skill,
    weights_of_skill,
)
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.truth import Floats
from veridical.errors import LongComputationWarning, warn_caller

#: With fewer sources none can be told from the others, and of more a fit takes minutes.
_LEAST_SOURCES, _MANY_SOURCES = 3, 4000


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


def weigh_sources(sums: ConsensusSums, n_threads: int | None = None, *, of_votes: bool = False) -> SourceWeights:
    """Skill, weight and dependence of the sources; nothing here depends on the number of samples.

    ``of_votes`` says how skills are shrunk, see ``shrunk_skill``.
    """
    n_sources = len(sums.counts)
    if n_sources > _MANY_SOURCES:
        warn_caller(
            f"the consensus compares the {n_sources * (n_sources - 1) // 2:,} pairs of {n_sources:,} sources up to "
            f"{MOST_ROUNDS} times, which takes minutes; leave out the sources with the fewest predictions.",
            LongComputationWarning,
        )
    correlations = sums.correlations()
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


def sample_shares(xp: Any, weights: Any, dependence: Any, present: Any) -> tuple[Any, Any]:
    """Shares (S, n) of the sources that are present, and how many distinct sources with weight they amount to.

    The share of source s is proportional to w_s a_s, with a_s from :func:`distinctness_among` the sources in
    ``present``, (S, n) ones and zeros.  If only sources without weight are present, they share by a_s.
    """
    distinctness = distinctness_among(xp, dependence, present)
    weight = weights[:, None]
    shares = weight * distinctness
    none = source_sums(xp, shares) <= 0
    shares = xp.where(none, distinctness, shares)
    counted = xp.where(none | (weight > 0), distinctness, xp.zeros_like(distinctness))
    return shares / source_sums(xp, shares), source_sums(xp, counted)


def is_mean(weights: Floats, dependence: Floats) -> bool:
    """Whether these are the weights of the plain mean."""
    return bool((weights == 1.0).all() and np.array_equal(dependence, np.eye(len(weights))))


def counted_sources(weights: Floats, dependence: Floats) -> Floats:
    """(S,) how many sources each counts as in truth discovery: shares of as many as are distinct."""
    shares, n_distinct = sample_shares(np, weights, dependence, np.ones((len(weights), 1)))
    counted: Floats = shares[:, 0] * n_distinct[0]
    return counted
