"""Pairs of jurors: on how many items they have met, and what can be said of their dependence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veridical.combine.across_samples.factor import distinctness_of
from veridical.combine.across_samples.votes import Indices, Votes
from veridical.combine.combined import Floats, Labels

#: With fewer votes the skill of a juror, and with fewer shared items the dependence of two, is mostly chance.
LEAST_VOTES = 20
_ROWS_IN_BLOCK = 256


class Pairs(NamedTuple):
    """What is known of the dependence of jurors on each other.

    Attributes
    ----------
    dependence : (S, S) float32
        That of the consensus; NaN for jurors with fewer than 20 shared items.
    nearest : (S,) int64
        The other juror that each depends on most; -1 where no other shares 20 items with it.
    n_shared : (S,) int64
        How many items each shares with that one.
    """

    dependence: npt.NDArray[np.float32]
    nearest: Labels
    n_shared: Labels


def pairs_of(votes: Votes, dependence: Floats) -> Pairs:
    """The dependence of those pairs that have met often enough, block by block of jurors."""
    from scipy.sparse import csr_array

    n_sources, n_items, _ = votes.shape
    present = csr_array((np.ones(len(votes.items), np.int32), (votes.sources, votes.items)), shape=(n_sources, n_items))
    known = np.full((n_sources, n_sources), np.nan, np.float32)
    nearest, n_shared = np.full(n_sources, -1, np.int64), np.zeros(n_sources, np.int64)
    for first in range(0, n_sources, _ROWS_IN_BLOCK):
        rows = np.arange(first, min(first + _ROWS_IN_BLOCK, n_sources))
        counts = (present[rows] @ present.T).toarray()
        often = counts >= LEAST_VOTES
        known[rows] = np.where(often, dependence[rows], np.nan)
        often[np.arange(len(rows)), rows] = False
        # Of jurors with the same dependence, such as 0, the one with the most shared items.
        rank = np.where(often, dependence[rows].round(6) + 1e-12 * counts, -1.0)
        best = rank.argmax(axis=1)
        has_met = rank[np.arange(len(rows)), best] >= 0
        nearest[rows] = np.where(has_met, best, -1)
        n_shared[rows] = np.where(has_met, counts[np.arange(len(rows)), best], 0)
    np.fill_diagonal(known, 1.0)
    return Pairs(known, nearest, n_shared)


def count_distinct(dependence: npt.NDArray[np.float32], counted: npt.NDArray[np.bool_]) -> float | None:
    """How many distinct jurors the ``counted`` ones amount to, copies counted once; None without any.

    The sum of a_s, what share of a distinct juror each is if all of them vote: 1 / k for each of k copies.  Jurors
    whose errors correlate because the same items are difficult for them are distinct all the same.
    """
    places = np.flatnonzero(counted)
    if not places.size:
        return None
    return float(distinctness_of(np.nan_to_num(dependence[np.ix_(places, places)]).astype(np.float64)).sum())


class ErrorCorrelation(NamedTuple):
    """How far the errors of jurors go together, where answers are known.

    Attributes
    ----------
    mean : float
        Mean correlation of the errors of two jurors.
    n_independent : float
        S / (1 + (S - 1) mean), by Kish's formula: so many jurors with independent errors would be worth as much.
    n_jurors : int
        S, the jurors that the mean is about.

    Examples
    --------
    >>> import veridical as vd
    >>> jury = vd.load_demo_jury().select(samples=slice(300))
    >>> errors = vd.judge(jury, gold=jury.labels).error_correlation
    >>> errors.n_jurors, errors.n_independent < 4
    (29, True)
    """

    mean: float
    n_independent: float
    n_jurors: int


def error_correlation(votes: Votes, answers: Labels, counted: npt.NDArray[np.bool_]) -> ErrorCorrelation | None:
    """Over the ``counted`` jurors' pairs that share 20 known ``answers`` (-1: none); None without any such pair."""
    from scipy.sparse import csr_array

    n_sources, n_items, _ = votes.shape
    right = np.bincount(
        votes.entries, votes.values * (votes.labels == answers[votes.items[votes.entries]]), len(votes.items)
    )
    known = (answers[votes.items] >= 0) & counted[votes.sources]
    sources, items, wrong = votes.sources[known], votes.items[known], 1.0 - right[known]
    present, errors, squares = (
        csr_array((values, (sources, items)), shape=(n_sources, n_items))
        for values in (np.ones(len(wrong)), wrong, np.square(wrong))
    )
    total, n_pairs, has_met = 0.0, 0, np.zeros(n_sources, np.bool_)
    for first in range(0, n_sources, _ROWS_IN_BLOCK):
        rows = slice(first, min(first + _ROWS_IN_BLOCK, n_sources))
        counts, own, others, own_squares, other_squares, products = (
            (left[rows] @ right.T).toarray()
            for left, right in (
                (present, present),
                (errors, present),
                (present, errors),
                (squares, present),
                (present, squares),
                (errors, errors),
            )
        )
        variances = (counts * own_squares - own**2) * (counts * other_squares - others**2)
        compared = (counts >= LEAST_VOTES) & (variances > 0)
        compared &= np.arange(n_sources) > np.arange(rows.start, rows.stop)[:, None]
        total += float(((counts * products - own * others)[compared] / np.sqrt(variances[compared])).sum())
        n_pairs += int(compared.sum())
        has_met[rows] |= compared.any(axis=1)
        has_met |= compared.any(axis=0)
    if not n_pairs:
        return None
    mean, n_jurors = total / n_pairs, int(has_met.sum())
    return ErrorCorrelation(mean, n_jurors / (1.0 + (n_jurors - 1) * max(mean, 0.0)), n_jurors)


class MainAnswers(NamedTuple):
    """Every juror's answers, those of a juror in the order of the items: the label with the largest share of a vote."""

    starts: Indices
    items: Indices
    labels: Indices

    @classmethod
    def of(cls, votes: Votes) -> MainAnswers:
        """The answers of all jurors."""
        order = np.lexsort((-votes.values, votes.entries))
        _, firsts = np.unique(votes.entries[order], return_index=True)
        labels = votes.labels[order[firsts]]
        by_source = np.argsort(votes.sources, kind="stable")
        starts = np.searchsorted(votes.sources[by_source], np.arange(votes.shape[0] + 1))
        return cls(starts.astype(np.int64), votes.items[by_source], labels[by_source])

    def of_source(self, source: int) -> tuple[Indices, Indices]:
        """The items that one juror has voted on, and its answers."""
        own = slice(int(self.starts[source]), int(self.starts[source + 1]))
        return self.items[own], self.labels[own]

    def same(self, first: int, second: int) -> tuple[int, int]:
        """On how many items two jurors have given the same answer, and how many they share."""
        (items, labels), (other_items, other_labels) = self.of_source(first), self.of_source(second)
        _, places, other_places = np.intersect1d(items, other_items, assume_unique=True, return_indices=True)
        return int((labels[places] == other_labels[other_places]).sum()), len(places)
