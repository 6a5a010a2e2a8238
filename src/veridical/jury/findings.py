"""Jurors to look at: suspected copies, answers that never vary, and votes that tell nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veridical.combine import Consensus
from veridical.combine.across_samples.votes import Votes
from veridical.combine.across_samples.weights import is_mean
from veridical.combine.combined import Floats, Labels
from veridical.jury.jurors import Juror, share_of_votes
from veridical.jury.pairs import LEAST_VOTES, MainAnswers, Pairs

#: Jurors that depend on each other so much are named as copies, if they agree more than jurors of their accuracy would.
_COPIES = 0.5
#: Chance that any two independent jurors are named as copies.
_ERROR_RATE = 0.01
#: A skill below this is near zero: less than 1 % of the variance.
_NO_SKILL = 0.1
#: A juror who always answers alike is noticed where the jury has so many other answers to its items.
_OTHER_ANSWERS = 3
#: So many jurors of a kind are named in a note.
_MOST_NAMED = 3


@dataclass(frozen=True)
class JurorFinding:
    """A juror to look at.

    Attributes
    ----------
    juror : str
        Its name.
    problem : {"copy", "constant", "no skill"}
    text : str
        What was found, in words.
    n_votes : int
        Its votes.
    other : str or None
        Of a copy, the juror with the same answers.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> truth = np.random.default_rng(0).integers(0, 2, 50)
    >>> result = vd.judge([truth, truth, 1 - truth, truth, np.zeros(50, int)])
    >>> finding = result.jurors_to_check[-1]
    >>> finding.juror, finding.problem, finding.n_votes
    ('4', 'constant', 50)
    """

    juror: str
    problem: str
    text: str
    n_votes: int
    other: str | None = None


def find_jurors_to_check(
    votes: Votes, consensus: Consensus, jurors: Sequence[Juror], pairs: Pairs, label: Labels, class_names: Sequence[str]
) -> tuple[JurorFinding, ...]:
    """Suspected copies, then constant answers, then jurors without skill; those with the most votes first."""
    answers = MainAnswers.of(votes)
    copies = _copies(answers, share_of_votes(votes, label)[0], jurors, pairs, len(class_names))
    enough = [s for s, juror in enumerate(jurors) if juror.n_votes >= LEAST_VOTES]
    # Where the plain mean is returned, no juror could be told from the others.
    skilled = not is_mean(consensus.weights, consensus.dependence)
    low = [s for s in enough if skilled and consensus.skill[s] < _NO_SKILL]
    constant = {s: answer for s in enough if (answer := _only_answer(answers, s, label, class_names)) is not None}
    useless = [s for s in low if s not in constant]
    return (
        *_by_votes(copies),
        *_by_votes([_finding(jurors[s], "constant", f"always {answer!r}") for s, answer in constant.items()]),
        *_by_votes([_finding(jurors[s], "no skill", f"skill {jurors[s].skill:.2f}") for s in useless]),
    )


def _by_votes(findings: Sequence[JurorFinding]) -> list[JurorFinding]:
    return sorted(findings, key=lambda finding: -finding.n_votes)


def _finding(juror: Juror, problem: str, what: str) -> JurorFinding:
    agrees = "" if juror.agreement is None else f", {100 * juror.agreement:.0f}% agree with the other jurors"
    return JurorFinding(juror.name, problem, f"{what}: {juror.n_votes:,} votes{agrees}", juror.n_votes)


def _copies(
    answers: MainAnswers, accuracy: Floats, jurors: Sequence[Juror], pairs: Pairs, n_classes: int
) -> list[JurorFinding]:
    """Jurors that depend on another one, and agree with it more often than is likely by chance.

    Independent jurors of accuracies a and b agree on a share ab + (1 - a)(1 - b) / (L - 1) of the items, errors taken
    to be random and ``accuracy`` to be the share of votes that are the jury's answer; a pair is named if as many equal
    answers would be unlikely in any of the pairs compared.
    """
    from scipy.stats import binom

    close = {
        tuple(sorted((s, int(pairs.nearest[s]))))
        for s, juror in enumerate(jurors)
        if juror.dependence is not None and juror.dependence >= _COPIES
    }
    n_pairs = max((int(np.isfinite(pairs.dependence).sum()) - len(jurors)) // 2, 1)
    findings = []
    for first, second in sorted(close):
        n_same, n_shared = answers.same(first, second)
        a, b = accuracy[first], accuracy[second]
        expected = a * b + (1 - a) * (1 - b) / max(n_classes - 1, 1)
        if n_pairs * binom.sf(n_same - 1, n_shared, expected) > _ERROR_RATE:
            continue
        one, other = jurors[first], jurors[second]
        text = f"same answer as {other.name} on {_percent(n_same, n_shared)} of {n_shared:,} shared items"
        findings.append(JurorFinding(one.name, "copy", text, one.n_votes, other.name))
    return findings


def _percent(part: int, total: int) -> str:
    """A percentage that is 100 only where it is all."""
    return "100%" if part == total else f"{min(100 * part / total, 99.9):.3g}%"


def _only_answer(answers: MainAnswers, source: int, label: Labels, class_names: Sequence[str]) -> str | None:
    """The answer that a juror always gives, to items of which the jury answers some otherwise."""
    items, labels = answers.of_source(source)
    if (labels != labels[0]).any() or (label[items] != labels[0]).sum() < _OTHER_ANSWERS:
        return None
    return class_names[int(labels[0])]


def notes_on_findings(findings: Sequence[JurorFinding], n_votes: int) -> list[str]:
    """A sentence for each kind of finding, with the most striking jurors by name."""
    copies, constant, useless = (
        [finding for finding in findings if finding.problem == problem] for problem in ("copy", "constant", "no skill")
    )
    notes = [
        f"{finding.juror} and {finding.other} gave the {finding.text.replace(f' as {finding.other}', '', 1)}: copies "
        "count once."
        for finding in copies[:_MOST_NAMED]
    ]
    n_more = len(copies) - _MOST_NAMED
    if n_more > 0:
        notes.append(f"{n_more} more pair{'s' * (n_more > 1)} of jurors look{'s' * (n_more == 1)} like copies.")
    if constant:
        named = _named([f"{finding.juror} with {finding.n_votes:,} votes" for finding in constant])
        gives = "jurors give" if len(constant) > 1 else "juror gives"
        notes.append(f"{len(constant)} {gives} one and the same answer to every item ({named}).")
    if useless:
        have = "jurors have" if len(useless) > 1 else "juror has"
        share = 100 * sum(finding.n_votes for finding in useless) / n_votes
        named = _named([finding.juror for finding in useless])
        notes.append(
            f"{len(useless)} {have} a skill near zero with {LEAST_VOTES} votes or more ({named}); {share:.0f}% of all "
            "votes are theirs, and hardly count."
        )
    return notes


def _named(names: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join([*names[:_MOST_NAMED], *["..."] * (len(names) > _MOST_NAMED)])
