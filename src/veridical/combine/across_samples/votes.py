"""The consensus of votes that are mostly absent: many sources, each with a label for a few items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._kernels.votes import add_pairs, share_votes
from veridical._parallel import run_blocks
from veridical.combine.across_samples.camps import warn_of_camps
from veridical.combine.across_samples.consensus import Consensus, ConsensusVectors, consensus_with
from veridical.combine.across_samples.factor import COPIES
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.across_samples.weights import weigh_sources
from veridical.combine.truth import Floats
from veridical.predictions.validation import reject_sample_without_sources

Indices = npt.NDArray[np.int64]

_ITEMS_IN_BLOCK = 1 << 14
#: See :func:`distributions_of_shares`.
_PRIOR_VOTES, _SHARPNESS = 1.25, 1.35


@dataclass(frozen=True)
class Votes:
    """Votes sorted by item; memory grows with the votes, not with sources times items.

    Attributes
    ----------
    items, sources : (P,) int64
        One entry for each item and source that has voted on it.
    entries : (V,) int64
        Which of those a vote belongs to.
    labels : (V,) int64
    values : (V,) float64
        What share of the source's vote goes to the label: 1 for a single vote.
    shape : (S, N, L)
    """

    items: Indices
    sources: Indices
    entries: Indices
    labels: Indices
    values: Floats
    shape: tuple[int, int, int]

    @property
    def starts(self) -> Indices:
        """(N + 1,) where each item's entries start."""
        return np.searchsorted(self.items, np.arange(self.shape[1] + 1)).astype(np.int64)


def sort_votes(items: Indices, sources: Indices, labels: Indices, shape: tuple[int, int, int]) -> Votes:
    """Votes in the order of the items; several votes of a source on one item become shares of one."""
    return sort_shares(items, sources, labels, np.ones(len(items)), shape)


def sort_shares(
    items: Indices, sources: Indices, labels: Indices, values: Floats, shape: tuple[int, int, int]
) -> Votes:
    """The same of labels with positive values, as in a vote with a confidence: shares are proportional to them."""
    n_sources, n_items, n_classes = shape
    keys, entries = np.unique(items * n_sources + sources, return_inverse=True)
    # The same label twice from one source is one vote of twice the value.
    cells, places = np.unique(entries * n_classes + labels, return_inverse=True)
    sums = np.bincount(places, weights=values, minlength=len(cells))
    entries, labels = np.divmod(cells, n_classes)
    totals = np.bincount(entries, weights=sums, minlength=len(keys))
    votes = Votes(keys // n_sources, keys % n_sources, entries, labels, sums / totals[entries], shape)
    absent = np.flatnonzero(np.bincount(votes.items, minlength=n_items) == 0)
    if absent.size:
        reject_sample_without_sources(int(absent[0]))
    return votes


def sums_of_votes(votes: Votes) -> ConsensusSums:
    """The sums of the consensus, pair by pair of the votes on an item: memory S^2 beyond the votes."""
    n_sources, _, n_classes = votes.shape
    sums = ConsensusSums.zeros(n_sources, n_classes)
    np.add.at(sums.shift, (votes.sources[votes.entries], votes.labels), votes.values)
    sums.shift /= np.maximum(np.bincount(votes.sources, minlength=n_sources), 1)[:, None]
    firsts = np.searchsorted(votes.entries, np.arange(len(votes.items) + 1))
    add_pairs(
        votes.starts,
        votes.sources,
        firsts,
        votes.labels,
        votes.values,
        sums.shift,
        sums.counts,
        sums.products,
        sums.squares,
    )
    # With m_s the mean: (p_s - m_s) . (p_t - m_t) = p_s . p_t - p_s . m_t - m_s . p_t + m_s . m_t.
    sums.products += np.tril(sums.products, -1).T
    sums.products += sums.counts * (sums.shift @ sums.shift.T)
    sums.squares += sums.counts * np.einsum("sl,sl->s", sums.shift, sums.shift)[:, None]
    return sums


def shares_of_votes(
    votes: Votes, weights: Floats, dependence: Floats, n_threads: int | None = None
) -> tuple[Floats, Floats]:
    """(P,) share of each source's vote in its item, and (N,) the number of distinct sources."""
    n_items, starts = votes.shape[1], votes.starts
    shares, distinct = np.empty(len(votes.items)), np.empty(n_items)
    run_blocks(
        lambda part: share_votes(starts, votes.sources, weights, dependence, COPIES, part, shares, distinct),
        [(first, min(first + _ITEMS_IN_BLOCK, n_items)) for first in range(0, n_items, _ITEMS_IN_BLOCK)],
        n_threads,
    )
    return shares, distinct


def counts_of_votes(votes: Votes, shares: Floats) -> Floats:
    """(N, L) sums of the votes for each class, (P,) ``shares`` each."""
    _, n_items, n_classes = votes.shape
    cells = votes.items[votes.entries] * n_classes + votes.labels
    counts = np.bincount(cells, weights=votes.values * shares[votes.entries], minlength=n_items * n_classes)
    return counts.astype(np.float64, copy=False).reshape(n_items, n_classes)


def weighted_votes(votes: Votes, weights: Floats, dependence: Floats, n_threads: int | None) -> tuple[Floats, Floats]:
    """(N, L) shares of the votes with the sources' weights, and (N,) the number of distinct sources."""
    shares, distinct = shares_of_votes(votes, weights, dependence, n_threads)
    return counts_of_votes(votes, shares), distinct


def distributions_of_shares(shares: Floats, distinct_sources: Floats) -> Floats:
    """Shares of m distinct votes with c more votes spread over all classes, made sharper.

    Shares of few votes reach 0 and 1 by chance: (m z + c / L) / (m + c) is their expectation under a Dirichlet prior
    of weight c.  Shares of many votes are less sure than the label is: several sources that agree are better evidence
    than any of them, which a power of the distribution stands for.  Weight and power were chosen on
    eight sets of votes, of language models and people, with known answers.
    """
    m = distinct_sources[:, None]
    smooth = (m * shares + _PRIOR_VOTES / shares.shape[1]) / (m + _PRIOR_VOTES)
    sharp: Floats = smooth**_SHARPNESS
    sharp /= sharp.sum(axis=1, keepdims=True)
    return sharp


def consensus_of_votes(votes: Votes, *, source_names: Any = None, n_threads: int | None = None) -> Consensus:
    """As :func:`veridical.consensus`, ``probs`` by :func:`distributions_of_shares`, and skill shrunk as of votes."""
    weights = weigh_sources(sums_of_votes(votes), n_threads, of_votes=True)
    warn_of_camps(source_names, weights.camps)
    shares, distinct = weighted_votes(votes, weights.weights, weights.dependence, n_threads)
    of_camps = (weighted_votes(votes, camp.weights, camp.dependence, n_threads) for camp in weights.camps)
    vectors = ConsensusVectors(
        distributions_of_shares(shares, distinct),
        shares.argmax(axis=1),
        distinct,
        tuple(distributions_of_shares(*shares_of_camp) for shares_of_camp in of_camps),
    )
    return consensus_with(weights, vectors, source_names)
