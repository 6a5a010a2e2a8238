"""Skill and dependence of sources from how they vary together, without labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from veridical._parallel import run_blocks
from veridical.combine.across_samples.sums import Correlations
from veridical.combine.truth import Floats

#: Fewer shared samples than this say little of a pair of sources, or of a source.
FEW_SAMPLES = 10.0
#: No source explains more than 96 % of the variance of what they all see: it would outweigh all others together.
MOST_SKILL = 0.98
#: Before anything is known of the common factor, sources count as copies to this power of their correlation.
_SUSPICION = 8
#: Skill updates for each update of the dependence.
_UPDATES = 5
MOST_ROUNDS, _FULL_STEPS = 200, 20
_TOLERANCE = 1e-9
_ROWS_IN_BLOCK = 256
#: The variance of the skills of voters is at least this: with few of them its estimate may be 0.
_LEAST_SPREAD = 0.03
#: A dependence above this is that of exact copies, apart from rounding.
COPIES = 1.0 - 1e-9


class Factor(NamedTuple):
    """A common factor: the correlation (S,) of each source with it, and the dependence (S, S) of the sources."""

    skill: Floats
    dependence: Floats

    @property
    def distinctness(self) -> Floats:
        """(S,) the share of a distinct source that each amounts to: 1 / k for k copies."""
        return distinctness_of(self.dependence)

    @property
    def weights(self) -> Floats:
        """(S,) weight of each source, apart from its dependence on others."""
        return weights_of_skill(self.skill)


class Evidence(NamedTuple):
    """What a fit looks at: the correlations (S, S), and how far each of them can be believed.

    ``visible`` is n / (n + 10) for n shared samples: the weight of a pair in least squares, where its sampling error
    adds to an error of the model as large as that of 10 samples.  ``seen`` is 1 - exp(-n / 10), how surely agreement
    is not chance: independent sources that agree on 9 of 10 samples agree on n samples in a row with about this
    probability's complement.  ``n_samples`` (S,) is how many samples each source has, ``variance`` (S,) its mean
    squared distance from its own mean vector.
    """

    correlation: Floats
    visible: Floats
    seen: Floats
    n_samples: Floats
    variance: Floats

    def of(self, sources: np.ndarray) -> Evidence:
        """The evidence on some of the sources; the same object for all of them in order, whose matrices are large."""
        if np.array_equal(sources, np.arange(len(self.correlation))):
            return self
        pairs = np.ix_(sources, sources)
        correlation, visible, seen = (np.ascontiguousarray(matrix[pairs]) for matrix in self[:3])
        return Evidence(correlation, visible, seen, self.n_samples[sources], self.variance[sources])


def distinctness_of(dependence: Floats) -> Floats:
    """(S,) what share of a distinct source each source amounts to where all are present."""
    single = 1.0 / (dependence > COPIES).sum(axis=1)
    distinctness: Floats = single / (dependence @ single)
    return distinctness


def distinctness_among(xp: Any, dependence: Any, present: Any) -> Any:
    """(S, n) what share of a distinct source each source amounts to among those present, ones and zeros (S, n).

    a_s = c_s / sum_t c_t rho_st, with c_s = 1 / k for each of k exact copies: those are one source, for each other and
    for any third source that depends on them.
    """
    copies = xp.astype(dependence > COPIES, present.dtype) @ present
    single = present / xp.maximum(copies, xp.ones_like(copies))
    return single / xp.where(single > 0, dependence @ single, xp.ones_like(single))


def weights_of_skill(skill: Floats) -> Floats:
    """-ln(1 - skill^2): the logarithm of a source's variance over the part of it that the others do not explain."""
    weights: Floats = -np.log1p(-np.square(skill))
    return weights


def evidence_of(correlations: Correlations) -> Evidence:
    """How far each correlation can be believed."""
    counts = correlations.counts
    seen = np.where(correlations.copies, 1.0, -np.expm1(-counts / FEW_SAMPLES))
    visible = counts / (counts + FEW_SAMPLES)
    return Evidence(correlations.correlation, visible, seen, np.diag(counts).copy(), correlations.variance)


def suspected_copies(evidence: Evidence) -> Floats:
    """(S, S) dependence before anything is known of a common factor: close to one only for near-copies."""
    dependence: Floats = np.clip(evidence.correlation, 0.0, 1.0) ** _SUSPICION * evidence.seen
    np.fill_diagonal(dependence, 1.0)
    return dependence


def fit_factor(evidence: Evidence, n_threads: int | None = None, tolerance: float = _TOLERANCE) -> Factor:
    r"""One common factor behind the correlations, with pairs that copy each other left out.

    Alternates between least squares for :math:`R_{st} = \lambda_s \lambda_t`, pairs weighted by
    :math:`a_s a_t (1 - \rho_{st})` (see :func:`distinctness_of`) and by how many samples they share, and

    .. math:: \rho_{st} = \mathrm{clip}\left(\frac{R_{st} - \lambda_s \lambda_t}
              {\sqrt{(1 - \lambda_s^2)(1 - \lambda_t^2)}}, 0, 1\right)^4.

    The fourth power takes small residual correlations for what they mostly are: one factor does not describe the
    sources exactly.
    """
    from veridical._kernels.factor import update_dependence  # loads the compiler

    n_sources = len(evidence.correlation)
    rows = _row_blocks(n_sources)
    dependence, nothing = suspected_copies(evidence), np.zeros(n_sources)
    skill = np.full(n_sources, 0.5)
    for i in range(MOST_ROUNDS):
        before, distinctness = skill, distinctness_of(dependence)
        for _ in range(_UPDATES):
            skill = updated_loadings(evidence, dependence, distinctness, nothing, skill, MOST_SKILL, n_threads)
        # Half steps, later shorter ones: pairs that share few samples can otherwise swing for ever.
        step = min(0.5, 0.5 * _FULL_STEPS / (i + 1))
        changes = run_blocks(
            lambda part: update_dependence(evidence.correlation, evidence.seen, skill, step, part, dependence),  # noqa: B023  called in this round
            rows,
            n_threads,
        )
        if max(*changes, np.abs(skill - before).max()) < tolerance:
            break
    return Factor(skill, dependence)


def updated_loadings(
    evidence: Evidence,
    dependence: Floats,
    distinctness: Floats,
    removed: Floats,
    loadings: Floats,
    most: float,
    n_threads: int | None,
) -> Floats:
    """Loadings after one step towards their least-squares values, at most ``most``."""
    from veridical._kernels.factor import update_loadings  # loads the compiler

    updated = np.empty_like(loadings)
    run_blocks(
        lambda part: update_loadings(
            evidence.correlation, evidence.visible, dependence, distinctness, removed, loadings, part, updated
        ),
        _row_blocks(len(loadings)),
        n_threads,
    )
    return np.minimum(updated, most)


def _row_blocks(n_rows: int) -> list[tuple[int, int]]:
    return [(first, min(first + _ROWS_IN_BLOCK, n_rows)) for first in range(0, n_rows, _ROWS_IN_BLOCK)]


def shrunk_skill(factor: Factor, evidence: Evidence, *, of_votes: bool = False) -> Floats:
    """Skill pulled towards the mean of all, by how few samples a source has; constant sources keep a skill of 0.

    It is as if 10 samples of that mean had been seen; of votes, v samples over the variance between the sources if that
    is more.  The skill of n votes scatters by about v / n, v = (1 - mean^2)^2, on top of that variance.
    """
    n_samples = evidence.n_samples
    constant = (n_samples > 0) & (evidence.variance == 0)
    by_evidence = factor.distinctness * (np.diag(evidence.visible) if of_votes else n_samples) * ~constant
    if not by_evidence.any():
        return factor.skill
    shares = by_evidence / by_evidence.sum()
    typical, n_added = float(shares @ factor.skill), FEW_SAMPLES
    if of_votes:
        of_one_vote = (1.0 - typical**2) ** 2
        between = float(shares @ (np.square(factor.skill - typical) - of_one_vote / np.maximum(n_samples, 1.0)))
        n_added = max(n_added, of_one_vote / max(between, _LEAST_SPREAD))
    return np.where(constant, 0.0, (n_samples * factor.skill + n_added * typical) / (n_samples + n_added))
