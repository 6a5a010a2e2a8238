"""What a user should know of a jury's answers, a sentence each."""

from __future__ import annotations

import numpy as np

from veridical.combine import Consensus
from veridical.combine.across_samples.votes import Votes, counts_of_votes
from veridical.combine.combined import Floats, Labels
from veridical.jury.ballots import Ballots
from veridical.jury.gold import LEAST_GOLD, GoldChoice

#: What was measured on eight sets of votes with known answers, see benchmarks/jury.py.
_UNCALIBRATED = (
    "The confidence is made of weighted shares of votes.  On eight sets of votes with known answers it was off by 8 "
    "points on average (2 to 18); give gold labels for about 100 items to calibrate it."
)

#: Fleiss' kappa of jurors who agree on something: 0.09 in a crowd that is a third useless, below 0.02 by chance.
_SOME_AGREEMENT = 0.03


def notes_on_single_votes(ballots: Ballots, weights: Floats) -> list[str]:
    """Which sources have one vote, and what it counts."""
    single = np.flatnonzero(np.bincount(ballots.votes.sources, minlength=len(ballots.source_names)) == 1)
    if not single.size:
        return []
    have = "source has" if single.size == 1 else "sources have"
    counted = "one vote shows no skill"
    if not weights[single].any():
        counted += ", so that it counts only on items without the vote of a juror with a weight"
    return [f"{single.size} {have} one vote (the first is {ballots.source_names[int(single[0])]}): {counted}."]


def notes_on_mismatch(ballots: Ballots, consensus: Consensus, answers: Labels) -> list[str]:
    """A question about the ids, if the known answers have no more to do with the votes than by chance.

    Chance is what known answers in a random order would give.  The question is asked only if the jurors agree beyond
    chance, and their confidence is far above that.
    """
    own = answers[ballots.answered]
    items = np.flatnonzero(own >= 0)
    if len(items) < LEAST_GOLD:
        return []
    label, gold = consensus.prediction[items], own[items]
    accuracy = float((label == gold).mean())
    n_classes = len(ballots.class_names)
    shares = [np.bincount(labels, minlength=n_classes) / len(items) for labels in (label, gold)]
    chance = float(shares[0] @ shares[1])
    confidence = float(consensus.probs[items, label].mean())
    as_by_chance = accuracy <= chance + 1.64 * _standard_error(chance, len(items))
    unexpected = accuracy < confidence - 2.0 * _standard_error(confidence, len(items))
    if not (as_by_chance and unexpected and agreement_beyond_chance(ballots.votes) > _SOME_AGREEMENT):
        return []
    return [
        f"the jury's answers are right for {100 * accuracy:.0f}% of the {len(items)} gold items, and known answers in "
        f"random order would give {100 * chance:.0f}%, although the jurors agree with each other; are the ids of the "
        "gold file those of the votes?"
    ]


def agreement_beyond_chance(votes: Votes) -> float:
    """Fleiss' kappa of the votes: 0 for jurors who agree by chance, 1 for those who always do."""
    counts = counts_of_votes(votes, np.ones(len(votes.items)))
    n_votes = counts.sum(axis=1)
    n_pairs = float((n_votes * (n_votes - 1.0)).sum())
    if n_pairs <= 0:
        return 0.0
    agreement = float((np.square(counts).sum() - np.square(votes.values).sum()) / n_pairs)
    chance = float(np.square(counts.sum(axis=0) / n_votes.sum()).sum())
    return (agreement - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def _standard_error(share: float, n: int) -> float:
    return float(np.sqrt(share * (1 - share) / n))


def note_on_confidence(choice: GoldChoice | None, answers: Labels) -> str:
    """How far the confidence can be trusted."""
    n_gold = int((answers >= 0).sum())
    if choice is None and n_gold:
        few = f"{n_gold} known answer{'s are' if n_gold > 1 else ' is'} too few to calibrate on"
        return f"{few} ({LEAST_GOLD} are needed).  {_UNCALIBRATED}"
    if choice is None:
        return f"No answers are known.  {_UNCALIBRATED}"
    error = _standard_error(choice.accuracy, choice.n_gold)
    return (
        f"The confidence is calibrated on {choice.n_gold} known answers ({choice.method}); on answers left out of the "
        f"fit {100 * choice.accuracy:.1f} ± {100 * error:.1f}% of the labels are right, and the NLL is "
        f"{choice.nll[choice.method]:.3f} (uncalibrated: {choice.nll['consensus']:.3f}).  {_calibration_error(choice)}"
    )


def _calibration_error(choice: GoldChoice) -> str:
    """What the left-out answers say of the calibration."""
    highest = choice.ece_floor.quantiles[0.95]
    n, mean = choice.n_gold, choice.ece_floor.mean
    floor = f"{n} answers show {100 * mean:.1f}% on average and up to {100 * highest:.1f}%"
    shown = f"Their ECE is {100 * choice.ece:.1f}%; of a perfectly calibrated confidence, {floor}"
    if choice.ece <= highest:
        return f"{shown}: they show no miscalibration."
    return f"{shown}: the confidence is not calibrated; look at the report, or find more known answers."


def notes_on_different_answers(label: Labels, answers: Labels) -> list[str]:
    """That known answers are not written over the jury's, where they differ; (N,) labels, -1 for none."""
    both = (label >= 0) & (answers >= 0)
    n_different = int((label != answers)[both].sum())
    if not n_different:
        return []
    differ = "differ" if n_different > 1 else "differs"
    return [
        f"{n_different} of the {int(both.sum())} known answers {differ} from the jury's, which known answers do not "
        "replace (the column gold has them)."
    ]
