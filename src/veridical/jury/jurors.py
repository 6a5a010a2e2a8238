"""Jurors: how good each one is, how much its votes count, and whom it repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from veridical.combine import Consensus
from veridical.combine.across_samples.votes import Votes, counts_of_votes, shares_of_votes
from veridical.combine.combined import Floats, Labels
from veridical.jury.ballots import Ballots
from veridical.jury.pairs import LEAST_VOTES, Pairs

#: Shares of votes that are closer are equal.
_ROUNDING = 1e-9
#: Votes are compared with the others' answers in blocks of so many numbers.
_MOST_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Juror:
    """One source of votes.

    Attributes
    ----------
    name : str
    skill : float or None
        Correlation with what all jurors see, from 0 to 0.98; None with fewer than 20 votes, which cannot show it.
    weight : float
        How much one vote of this juror counts: 2 is twice as much as the average vote, 0 not at all.  Jurors who copy
        each other share the weight of one.
    dependence : float or None
        The largest dependence on another juror with whom it shares 20 items or more, from 0 (errors of its own) to 1
        (a copy); None where there is no such juror.
    depends_on : str or None
        Who that is; None where the dependence is 0 or not known.
    n_votes : int
    agreement : float or None
        Share of its votes that are the answer of the other jurors, weighed as they are, its own vote left out; among
        several answers with equal weights, a part of one.  None where no other vote counts on its items.
    agreement_interval : tuple of two floats, or None
        The exact (Clopper-Pearson) 95% interval of that share.
    accuracy : float or None
        Share of its votes that are right, where answers are known.
    n_gold : int
        Votes on items whose answer is known.
    n_shared : int
        Items that it shares with the juror of ``dependence``; 0 where that is None.

    Examples
    --------
    >>> import veridical as vd
    >>> juror = vd.judge(vd.load_demo_jury().select(samples=slice(300))).ranked_jurors()[0]
    >>> bool(0 < juror.skill < 1), juror.n_votes <= 300
    (True, True)
    """

    name: str
    skill: float | None
    weight: float
    dependence: float | None
    depends_on: str | None
    n_votes: int
    agreement: float | None
    agreement_interval: tuple[float, float] | None
    accuracy: float | None
    n_gold: int
    n_shared: int = 0


def is_counted(juror: Juror) -> bool:
    """Whether enough is known of a juror to count it among the distinct ones."""
    return juror.n_votes >= LEAST_VOTES and juror.weight > 0


def describe_jurors(
    ballots: Ballots, consensus: Consensus, pairs: Pairs, answers: Labels, n_threads: int | None = None
) -> tuple[Juror, ...]:
    """Every source of votes; ``answers`` are those of the answered items, -1 where not known."""
    votes, names = ballots.votes, ballots.source_names
    n_votes = np.bincount(votes.sources, minlength=votes.shape[0])
    agreed, n_compared = agreement_with_others(votes, consensus, n_threads)
    lowest, highest = _interval_of_share(agreed, n_compared)
    accuracy, n_gold = share_of_votes(votes, answers)
    typical = float(n_votes @ consensus.weights / max(n_votes.sum(), 1)) or 1.0
    jurors = []
    for s, name in enumerate(names):
        nearest = int(pairs.nearest[s])
        dependence = None if nearest < 0 else float(consensus.dependence[s, nearest])
        juror = Juror(
            name,
            float(consensus.skill[s]) if n_votes[s] >= LEAST_VOTES else None,
            float(consensus.weights[s] / typical),
            dependence,
            names[nearest] if dependence else None,
            int(n_votes[s]),
            float(agreed[s] / n_compared[s]) if n_compared[s] else None,
            (float(lowest[s]), float(highest[s])) if n_compared[s] else None,
            float(accuracy[s]) if n_gold[s] else None,
            int(n_gold[s]),
            int(pairs.n_shared[s]),
        )
        jurors.append(juror)
    return tuple(jurors)


def share_of_votes(votes: Votes, labels: Labels) -> tuple[Floats, Labels]:
    """(S,) share of each source's votes that are these labels, among items that have one, and how many those are."""
    known = labels[votes.items] >= 0
    n_known = np.bincount(votes.sources[known], minlength=votes.shape[0])
    same = votes.labels == labels[votes.items[votes.entries]]
    agreed = np.bincount(votes.sources[votes.entries[same]], weights=votes.values[same], minlength=votes.shape[0])
    return agreed / np.maximum(n_known, 1), n_known


def agreement_with_others(votes: Votes, consensus: Consensus, n_threads: int | None = None) -> tuple[Floats, Floats]:
    """(S,) how many votes of each source are the answer of the others, and on how many items the others have one."""
    shares, _ = shares_of_votes(votes, consensus.weights, consensus.dependence, n_threads)
    totals, firsts = counts_of_votes(votes, shares), np.searchsorted(votes.entries, np.arange(len(votes.items) + 1))
    agreed, compared = np.zeros(len(votes.items)), np.zeros(len(votes.items), np.bool_)
    step = max(_MOST_NUMBERS // votes.shape[2], 1)
    for first in range(0, len(votes.items), step):
        last = min(first + step, len(votes.items))
        own = slice(firsts[first], firsts[last])
        entries, labels, values = votes.entries[own], votes.labels[own], votes.values[own]
        others = totals[votes.items[first:last]]
        others[entries - first, labels] -= values * shares[entries]
        most = others.max(axis=1, keepdims=True)
        compared[first:last] = most[:, 0] > _ROUNDING
        is_answer = others >= most - _ROUNDING
        equal = values * is_answer[entries - first, labels] / is_answer.sum(axis=1)[entries - first]
        agreed[first:last] = np.bincount(entries - first, equal, last - first)
    n_sources = votes.shape[0]
    counted = (np.bincount(votes.sources, each, n_sources) for each in (agreed * compared, compared))
    of_source, n_compared = (count.astype(np.float64, copy=False) for count in counted)
    return of_source, n_compared


def _interval_of_share(count: Floats, total: Floats) -> tuple[Floats, Floats]:
    """The exact 95% intervals of shares of independent votes."""
    rest = total - count
    with np.errstate(invalid="ignore"):
        low = np.where(count > 0, betaincinv(count, rest + 1, 0.025), 0.0)
        high = np.where(rest > 0, betaincinv(count + 1, rest, 0.975), 1.0)
    return low, high
