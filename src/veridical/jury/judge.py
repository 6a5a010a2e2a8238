"""``judge``: labels and confidences from votes, without known labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical.combine import Consensus
from veridical.combine.across_samples.votes import Votes, consensus_of_votes
from veridical.combine.combined import Floats, Labels
from veridical.errors import CampsWarning, GoldWarning, LabelError, ParameterError, ShapeError
from veridical.jury.ballots import Ballots, ballots_of_labels, ballots_of_predictions
from veridical.jury.columns import answers_of, columns_of_frame, read_columns
from veridical.jury.dawid_skene import fit_dawid_skene
from veridical.jury.gold import LEAST_GOLD, GoldChoice, View, calibrate_on_gold
from veridical.jury.ids import as_id, match_ids
from veridical.jury.result import Juror, JuryResult
from veridical.jury.tables import ballots_of_table, check_classes
from veridical.predictions import Predictions
from veridical.predictions.arrays import as_array
from veridical.predictions.validation import check_seed

#: What was measured on eight sets of votes with known answers, see benchmarks/jury.py.
_UNCALIBRATED = (
    "The confidence is made of weighted shares of votes.  On eight sets of votes with known answers it was off by 8 "
    "points on average (3 to 18); give gold labels for about 100 items to calibrate it."
)


def judge(
    votes: Any,
    gold: Any = None,
    *,
    classes: Sequence[str] | None = None,
    source_names: Sequence[str] | None = None,
    item_ids: Sequence[Any] | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
) -> JuryResult:
    """The consensus of jurors who vote: an answer, a confidence and a distribution per item.

    Jurors are weighed by how they agree over all items, copies of a juror count once, and no answer needs to be known;
    see :func:`veridical.consensus`.

    Parameters
    ----------
    votes : path, DataFrame, mapping of columns, array of shape (S, N), or Predictions
        A long table (``.csv``, ``.parquet`` or a DataFrame) with the columns item, source and label, one row per vote.
        A column confidence (0 to 1) makes a vote less sure; instead of a label there may be a column of probabilities
        per class.  Several rows of a source for an item are draws, and their shares one vote.  An empty label is an
        abstention.  An array holds places of classes, -1 for no vote, or names of classes, "" for no vote.
    gold : path, DataFrame, mapping of ids to labels, or array of N labels, optional
        Known answers to some of the items: a table with the columns item and label.  With 10 or more, the confidence is
        calibrated on them.
    classes : sequence of str, optional
        All classes in order; by default those that occur.
    source_names, item_ids : sequences, optional
        For arrays, which have no names.
    random_state : int
        Decides the folds of the cross-validation on known answers.
    n_threads : int, optional
        Results do not depend on it.

    Returns
    -------
    JuryResult

    Warns
    -----
    CampsWarning
        Where the jurors split into camps, and nothing says which is right; answers are then those of the majority.
    GoldWarning
        Where known answers are about items that have no votes, or ids match only as numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 500)
    >>> votes = np.where(rng.random((5, 500)) < np.array([[0.9], [0.8], [0.7], [0.5], [0.4]]), truth, 2 - truth)
    >>> result = vd.judge(votes)
    >>> bool((result.label == truth).mean() > 0.9)
    True
    >>> result.ranked_jurors()[0].name
    '0'
    """
    check_seed(random_state)
    known = _read_gold(gold)
    ballots = _read_votes(votes, classes, source_names, item_ids, known)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CampsWarning)
        consensus = consensus_of_votes(ballots.votes, source_names=ballots.source_names, n_threads=n_threads)
    for warning in caught:
        warnings.warn(warning.message, stacklevel=2)
    answers, notes = _match_gold(known, ballots)
    for note in notes:
        warnings.warn(note, GoldWarning, stacklevel=2)
    probs, choice = _calibrated(ballots, consensus, answers, random_state)
    notes = [*ballots.notes, *notes, *(str(warning.message) for warning in caught), _trust(choice, answers)]
    return _result(ballots, consensus, probs, answers, choice, notes)


def _read_votes(
    votes: Any,
    classes: Sequence[str] | None,
    source_names: Sequence[str] | None,
    item_ids: Sequence[Any] | None,
    known: Mapping[str, str] | Sequence[Any] | None,
) -> Ballots:
    class_names = check_classes(classes)
    more = [*known.values()] if isinstance(known, Mapping) else []
    if isinstance(votes, (Ballots, Predictions)):
        if not classes is source_names is item_ids is None:
            raise ParameterError(
                f"{type(votes).__name__} name their classes, sources and items; leave classes, source_names and "
                "item_ids out."
            )
        return votes if isinstance(votes, Ballots) else ballots_of_predictions(votes)
    is_table = isinstance(votes, (str, os.PathLike, Mapping)) or hasattr(votes, "columns")
    if not is_table:
        return ballots_of_labels(votes, class_names, source_names, item_ids)
    if source_names is not None or item_ids is not None:
        raise ParameterError("a table names its items and sources; leave source_names and item_ids out.")
    if isinstance(votes, (str, os.PathLike)):
        path = Path(votes)
        return ballots_of_table(read_columns(path), str(path), classes=class_names, more_classes=more, files=[path])
    columns = votes if isinstance(votes, Mapping) else columns_of_frame(votes)
    return ballots_of_table(columns, "the table of votes", classes=class_names, more_classes=more)


def _read_gold(gold: Any) -> dict[str, str] | list[Any] | None:
    """Item -> answer, or one answer per item."""
    if gold is None:
        return None
    if isinstance(gold, (str, os.PathLike)):
        return answers_of(read_columns(Path(gold)), str(gold))
    if hasattr(gold, "columns"):
        return answers_of(columns_of_frame(gold), "the table of gold labels")
    if isinstance(gold, Mapping):
        return {as_id(item): as_id(label) for item, label in gold.items()}
    answers = as_array(gold, "gold", "give a table, a mapping of ids to labels, or one label per item")
    if answers.ndim != 1:
        raise ShapeError(f"gold has shape {answers.shape}; give one label per item.")
    return list(answers.tolist())


def _match_gold(known: Mapping[str, str] | Sequence[Any] | None, ballots: Ballots) -> tuple[Labels, list[str]]:
    """(N,) known answers as places of classes, -1 elsewhere, and what there is to say about them."""
    answers = np.full(len(ballots.item_ids), -1, np.int64)
    if known is None:
        return answers, []
    places = {name: l for l, name in enumerate(ballots.class_names)}
    if not isinstance(known, Mapping):
        if len(known) != len(answers):
            raise LabelError(
                f"there are {len(known)} gold labels for {len(answers)} items; give one each or a mapping."
            )
        named = ["" if label in (-1, None) else _class_name(label, ballots) for label in known]
        known = {item: label for item, label in zip(ballots.item_ids, named, strict=True) if label}
    wanted = list(known)
    matched, as_numbers = match_ids(wanted, ballots.item_ids)
    for item, place in zip(wanted, matched, strict=True):
        if known[item] not in places:
            raise LabelError(
                f"the gold label of item {item} is {known[item]!r}, and the classes are "
                f"{', '.join(ballots.class_names)[:200]}; correct it."
            )
        if place >= 0:
            answers[place] = places[known[item]]
    absent = [item for item, place in zip(wanted, matched, strict=True) if place < 0]
    if wanted and len(absent) == len(wanted):
        raise LabelError(
            f"none of the {len(wanted)} gold items is among the votes: gold has {wanted[0]!r} and the votes have "
            f"{ballots.item_ids[0]!r}; use the same ids in both."
        )
    notes = []
    if as_numbers:
        notes.append(
            "ids of gold items are those of the votes only as numbers (such as 007 and 7); they count as equal."
        )
    if absent:
        notes.append(
            f"{len(absent)} gold item{'s are' if len(absent) > 1 else ' is'} not in the votes (the first is "
            f"{absent[0]}); nothing can be learned from {'them' if len(absent) > 1 else 'it'}."
        )
    return answers, notes


def _class_name(label: Any, ballots: Ballots) -> str:
    """The name of a class, which an array gives as its place or as its name."""
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(ballots.class_names):
        return ballots.class_names[label]
    return as_id(label)


def _calibrated(
    ballots: Ballots, consensus: Consensus, answers: Labels, random_state: int
) -> tuple[Floats, GoldChoice | None]:
    """Distributions of the answered items, calibrated where enough answers are known."""
    probs = np.asarray(consensus.probs, np.float64)
    own = answers[ballots.answered]
    items = np.flatnonzero(own >= 0)
    if len(items) < LEAST_GOLD:
        return probs, None
    model = fit_dawid_skene(ballots.votes)
    view = View.of(probs, model.probs, consensus.effective_sources)
    return calibrate_on_gold(view, items, own[items], random_state)


def _trust(choice: GoldChoice | None, answers: Labels) -> str:
    """How far the confidence can be trusted."""
    n_gold = int((answers >= 0).sum())
    if choice is None and n_gold:
        few = f"{n_gold} known answer{'s are' if n_gold > 1 else ' is'} too few to calibrate on"
        return f"{few} ({LEAST_GOLD} are needed).  {_UNCALIBRATED}"
    if choice is None:
        return f"No answers are known.  {_UNCALIBRATED}"
    error = np.sqrt(choice.accuracy * (1 - choice.accuracy) / choice.n_gold)
    return (
        f"The confidence is calibrated on {choice.n_gold} known answers ({choice.method}); on answers left out of the "
        f"fit {100 * choice.accuracy:.1f} ± {100 * error:.1f}% of the labels are right, and the NLL is "
        f"{choice.nll[choice.method]:.3f} (uncalibrated: {choice.nll['consensus']:.3f})."
    )


def _result(
    ballots: Ballots,
    consensus: Consensus,
    probs: Floats,
    answers: Labels,
    choice: GoldChoice | None,
    notes: Sequence[str],
) -> JuryResult:
    n_items, answered = len(ballots.item_ids), ballots.answered
    everyone = np.full((n_items, len(ballots.class_names)), np.nan)
    everyone[answered] = probs
    label, confidence, effective = np.full(n_items, -1, np.int64), np.full(n_items, np.nan), np.zeros(n_items)
    label[answered] = probs.argmax(axis=1) if choice is not None else consensus.prediction
    confidence[answered] = probs[np.arange(len(answered)), label[answered]]
    effective[answered] = consensus.effective_sources
    n_votes = np.zeros(n_items, np.int64)
    n_votes[answered] = np.bincount(ballots.votes.items, minlength=len(answered))
    return JuryResult(
        ballots.item_ids,
        ballots.class_names,
        everyone,
        label,
        confidence,
        effective,
        n_votes,
        answers,
        _jurors(ballots, consensus, label[answered], answers[answered]),
        consensus,
        choice,
        tuple(notes),
        ballots.files,
    )


def _jurors(ballots: Ballots, consensus: Consensus, label: Labels, answers: Labels) -> tuple[Juror, ...]:
    votes = ballots.votes
    n_votes = np.bincount(votes.sources, minlength=votes.shape[0])
    agreement, _ = _share_of_votes(votes, label)
    accuracy, n_gold = _share_of_votes(votes, answers)
    typical = float(n_votes @ consensus.weights / max(n_votes.sum(), 1)) or 1.0
    nearest, dependence = _nearest(consensus)
    return tuple(
        Juror(
            name,
            float(consensus.skill[s]),
            float(consensus.weights[s] / typical),
            float(dependence[s]),
            ballots.source_names[nearest[s]] if dependence[s] > 0 else None,
            int(n_votes[s]),
            float(agreement[s]),
            float(accuracy[s]) if n_gold[s] else None,
            int(n_gold[s]),
        )
        for s, name in enumerate(ballots.source_names)
    )


def _nearest(consensus: Consensus) -> tuple[Labels, Floats]:
    """The other source that each depends on most, and how much; row by row, without a copy of the matrix."""
    n_sources = len(consensus.skill)
    nearest, dependence = np.zeros(n_sources, np.int64), np.zeros(n_sources)
    for s in range(n_sources):
        row = consensus.dependence[s].copy()
        row[s] = -1.0
        nearest[s] = row.argmax()
        dependence[s] = max(float(row[nearest[s]]), 0.0)
    return nearest, dependence


def _share_of_votes(votes: Votes, labels: Labels) -> tuple[Floats, Labels]:
    """(S,) share of each source's votes that are these labels, among items that have one, and how many those are."""
    known = labels[votes.items] >= 0
    n_known = np.bincount(votes.sources[known], minlength=votes.shape[0])
    same = votes.labels == labels[votes.items[votes.entries]]
    agreed = np.bincount(votes.sources[votes.entries[same]], weights=votes.values[same], minlength=votes.shape[0])
    return agreed / np.maximum(n_known, 1), n_known
