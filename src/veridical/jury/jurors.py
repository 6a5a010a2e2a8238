"""Jurors: how good each one is, how much its votes count, and whom it repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridical.combine import Consensus
from veridical.combine.across_samples.votes import Votes
from veridical.combine.combined import Floats, Labels
from veridical.jury.ballots import Ballots
from veridical.jury.pairs import LEAST_VOTES, Pairs


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
    agreement : float
        Share of its votes that are the jury's answer.
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
    agreement: float
    accuracy: float | None
    n_gold: int
    n_shared: int = 0


def is_counted(juror: Juror) -> bool:
    """Whether enough is known of a juror to count it among the distinct ones."""
    return juror.n_votes >= LEAST_VOTES and juror.weight > 0


def describe_jurors(
    ballots: Ballots, consensus: Consensus, pairs: Pairs, label: Labels, answers: Labels
) -> tuple[Juror, ...]:
    """Every source of votes; ``label`` and ``answers`` are those of the answered items, -1 where not known."""
    votes, names = ballots.votes, ballots.source_names
    n_votes = np.bincount(votes.sources, minlength=votes.shape[0])
    agreement, _ = _share_of_votes(votes, label)
    accuracy, n_gold = _share_of_votes(votes, answers)
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
            float(agreement[s]),
            float(accuracy[s]) if n_gold[s] else None,
            int(n_gold[s]),
            int(pairs.n_shared[s]),
        )
        jurors.append(juror)
    return tuple(jurors)


def _share_of_votes(votes: Votes, labels: Labels) -> tuple[Floats, Labels]:
    """(S,) share of each source's votes that are these labels, among items that have one, and how many those are."""
    known = labels[votes.items] >= 0
    n_known = np.bincount(votes.sources[known], minlength=votes.shape[0])
    same = votes.labels == labels[votes.items[votes.entries]]
    agreed = np.bincount(votes.sources[votes.entries[same]], weights=votes.values[same], minlength=votes.shape[0])
    return agreed / np.maximum(n_known, 1), n_known
