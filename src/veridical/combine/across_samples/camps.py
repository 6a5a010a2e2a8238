"""Camps: groups of sources that agree among themselves more than with the consensus of all."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veridical.combine.across_samples.factor import (
    FEW_SAMPLES,
    MOST_SKILL,
    Evidence,
    Factor,
    distinctness_of,
    fit_factor,
    suspected_copies,
    updated_loadings,
)
from veridical.combine.truth import Floats
from veridical.errors import CampsWarning
from veridical.predictions.validation import Array

Sources = npt.NDArray[np.intp]

#: A camp with at least this share of the strongest camp's evidence makes it undecidable which one is right.
_RIVAL = 1 / 3
#: A source belongs to a camp where its shared variance is more than so many standard errors of a correlation.
_STANDARD_ERRORS = 3.0
#: Camps are compared, not reported to many digits.
_TOLERANCE = 1e-5
_MOST_CAMPS = 8
_POWER_STEPS, _LOADING_STEPS = 30, 100


@dataclass(frozen=True, repr=False, eq=False)
class Camp:
    """Sources that agree among themselves more than with the others.

    Attributes
    ----------
    sources : tuple of int
        Indices of its sources.
    names : tuple of str
        What its sources are called.
    evidence : float
        How many distinct, skilled and sharp sources it holds; comparable between the camps of one consensus.
    skill, weights : (S,) float64
        As in :class:`Consensus`, from this camp's sources alone; zero for all others.
    probs : (N, L) array
        The consensus of this camp's sources alone; where none of them is present, of all that are.
    """

    sources: tuple[int, ...]
    names: tuple[str, ...]
    evidence: float
    skill: Floats
    weights: Floats
    probs: Array

    def __repr__(self) -> str:
        return f"Camp({', '.join(self.names)}; evidence {self.evidence:.3g})"


@dataclass(frozen=True)
class Part:
    """Some of the sources, and the factor that they have in common."""

    sources: Sources
    factor: Factor
    members: Sources
    strength: float


def choose_factor(evidence: Evidence, n_threads: int | None) -> tuple[Factor, tuple[Part, ...]]:
    """The common factor of the sources, and the camps if it cannot be known which of them is right.

    The factor of all sources follows the camp that sways most pairs.  What is left of the correlations has a second
    factor; sources that load on it more than on the first are a camp of their own, and so on within both parts.  Of
    several camps the one with the most evidence is followed, unless another has a third of its evidence or more.
    """
    whole = np.arange(len(evidence.correlation))
    main = fit_factor(evidence, n_threads)
    parts = sorted(_split(whole, main, evidence, n_threads), key=lambda part: -part.strength)
    if len(parts) == 1:
        return main, ()
    rivals = [part for part in parts if part.strength >= _RIVAL * parts[0].strength and len(part.members) > 1]
    if len(rivals) > 1:
        return main, tuple(rivals)
    shares = main.weights * main.distinctness
    if 2 * shares[parts[0].sources].sum() >= shares.sum():
        return main, ()
    return _extended(parts[0], evidence), ()


def _split(sources: Sources, factor: Factor, evidence: Evidence, n_threads: int | None) -> list[Part]:
    """The sources in parts, none of which holds a further camp."""
    parts: list[Part] = []
    waiting = [(sources, factor)]
    while waiting:
        part, factor = waiting.pop()
        own = evidence.of(part)
        apart = _second_camp(own, factor, n_threads)
        together = np.setdiff1d(np.arange(len(part)), apart)
        if not (_distinct(own, apart) and _distinct(own, together)) or len(parts) + len(waiting) + 2 > _MOST_CAMPS:
            parts.append(_described(part, factor, own, float(evidence.n_samples.max())))
            continue
        camps = (apart, together)
        waiting += [(part[camp], fit_factor(own.of(camp), n_threads, _TOLERANCE)) for camp in camps]
    return parts


def _distinct(evidence: Evidence, sources: Sources) -> bool:
    """Whether there are at least two sources that are not exact copies of each other."""
    pairs = np.ix_(sources, sources)
    return bool((evidence.correlation[pairs] < 1.0).any())


def _significant(loadings: Floats, n_samples: Floats) -> npt.NDArray[np.bool_]:
    """Which sources share more with a factor than chance allows."""
    shared: npt.NDArray[np.bool_] = np.square(loadings) > _STANDARD_ERRORS / np.sqrt(np.maximum(n_samples, 1.0))
    return shared


def _second_camp(evidence: Evidence, factor: Factor, n_threads: int | None) -> Sources:
    """Sources that share more with each other than with the factor, near-copies counted once."""
    copies = suspected_copies(evidence)
    distinctness = distinctness_of(copies)
    skill = factor.skill
    # The start: the direction of the largest positive residuals.
    pairs = np.multiply.outer(-skill, skill)
    pairs += evidence.correlation
    np.maximum(pairs, 0.0, out=pairs)
    pairs *= evidence.visible
    pairs *= distinctness
    for row, of_source in zip(pairs, copies, strict=True):  # of thousands of sources, matrices are large
        row *= 1.0 - of_source
    loadings = pairs.sum(axis=1)
    for _ in range(_POWER_STEPS):
        size = float(np.sqrt(loadings @ loadings))
        if size == 0.0:
            return np.zeros(0, np.intp)
        loadings = pairs @ (loadings / size)
    del pairs
    loadings = np.minimum(loadings / loadings.max(), 1.0)
    for _ in range(_LOADING_STEPS):
        before = loadings
        loadings = updated_loadings(evidence, copies, distinctness, skill, loadings, 1.0, n_threads)
        if np.abs(loadings - before).max() < _TOLERANCE:
            break
    camp = np.flatnonzero((loadings > skill) & _significant(loadings, evidence.n_samples))
    own = np.ix_(camp, camp)
    visible = evidence.visible[own]
    counts = FEW_SAMPLES * visible / (1.0 - visible) * (1.0 - copies[own])
    counts *= distinctness[camp, None] * distinctness[camp]
    residual = evidence.correlation[own] - skill[camp, None] * skill[camp]
    established = _is_established(counts, residual, loadings[camp], float(distinctness.sum()))
    return camp if established else np.zeros(0, np.intp)


def _is_established(counts: Floats, residual: Floats, loadings: Floats, n_sources: float) -> bool:
    """Whether the residual correlations within a camp are larger than the best direction in noise would give.

    The noise of a correlation over n samples has a standard deviation of at most n^(-1/2).  The largest eigenvalue of
    a symmetric matrix of unit noise between S sources is about 2 S^(1/2); three standard errors on top of it are asked
    for.
    """
    direction = loadings[:, None] * loadings
    signal = float((counts * residual * direction).sum())
    noise = float(np.sqrt(2.0 * (counts * np.square(direction)).sum()))
    return signal > (_STANDARD_ERRORS + 2.0 * float(np.sqrt(n_sources))) * noise


def _described(sources: Sources, factor: Factor, evidence: Evidence, most_samples: float) -> Part:
    """A part with its members and its evidence.

    Evidence is the sum of weights over distinct members, each times its variance, which for a calibrated source is
    what it knows beyond the base rates, and times how often it is present.
    """
    member = _significant(factor.skill, evidence.n_samples)
    strength = factor.weights * factor.distinctness * evidence.variance * evidence.n_samples
    return Part(
        sources, factor, sources[member], float(strength[member].sum() / most_samples) if member.sum() > 1 else 0.0
    )


def _extended(part: Part, evidence: Evidence) -> Factor:
    """The factor of a part with the skill and dependence of all other sources with regard to it."""
    correlation, among = evidence.correlation, part.sources
    pull = evidence.visible[:, among] * (part.factor.distinctness * part.factor.skill)
    size = pull @ part.factor.skill
    skill = (pull * correlation[:, among]).sum(axis=1) / np.where(size > 0, size, 1.0)
    skill[among] = part.factor.skill
    np.clip(skill, 0.0, MOST_SKILL, out=skill)
    unexplained = np.sqrt(1.0 - np.square(skill))
    shared = (correlation - skill[:, None] * skill) / (unexplained[:, None] * unexplained)
    dependence = np.clip(shared, 0.0, 1.0) ** 4 * evidence.seen
    np.fill_diagonal(dependence, 1.0)
    return Factor(skill, dependence)


class CampWeights(NamedTuple):
    """With what the members of a camp make a consensus of their own: zero skill and weight for all other sources."""

    members: Sources
    strength: float
    skill: Floats
    weights: Floats
    dependence: Floats

    def names(self, source_names: Sequence[str] | None) -> tuple[str, ...]:
        """What the members are called; their numbers where sources have no names."""
        return tuple(str(s) if source_names is None else source_names[s] for s in self.members.tolist())


def warn_of_camps(source_names: Sequence[str] | None, camps: tuple[CampWeights, ...], stacklevel: int = 3) -> None:
    """Say which sources are in which camp, if there are camps."""
    if not camps:
        return
    camps_in_words = " | ".join(", ".join(camp.names(source_names)) for camp in camps)
    warnings.warn(
        f"the sources split into {len(camps)} camps that agree only among themselves ({camps_in_words}); unlabelled "
        "predictions do not say which is right, so the mean is returned; look at the camps, or use labels to weigh "
        "the sources.",
        CampsWarning,
        stacklevel=stacklevel,
    )


def camp_weights(part: Part, n_sources: int) -> CampWeights:
    """The weights of a camp's members alone."""
    skill, weights, dependence = np.zeros(n_sources), np.zeros(n_sources), np.eye(n_sources)
    own = np.isin(part.sources, part.members)
    skill[part.members] = part.factor.skill[own]
    weights[part.members] = part.factor.weights[own]
    dependence[np.ix_(part.members, part.members)] = part.factor.dependence[np.ix_(own, own)]
    return CampWeights(part.members, part.strength, skill, weights, dependence)
