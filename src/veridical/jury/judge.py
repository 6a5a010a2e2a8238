"""``judge``: labels and confidences from votes, without known labels."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical._progress import Progress, check_progress
from veridical.combine import Consensus
from veridical.combine.across_samples.votes import consensus_of_votes
from veridical.combine.combined import Floats, Labels
from veridical.errors import CampsWarning, ParameterError
from veridical.jury.ballots import Ballots, ballots_of_labels, ballots_of_predictions
from veridical.jury.columns import columns_of_frame, read_columns
from veridical.jury.dawid_skene import fit_dawid_skene
from veridical.jury.findings import find_jurors_to_check, notes_on_findings
from veridical.jury.gold import LEAST_GOLD, GoldChoice, calibrate_on_gold
from veridical.jury.jurors import describe_jurors, is_counted
from veridical.jury.known_answers import match_gold, read_gold, warn_of_gold
from veridical.jury.notes import (
    note_on_confidence,
    notes_on_different_answers,
    notes_on_mismatch,
    notes_on_single_votes,
)
from veridical.jury.pairs import count_distinct, error_correlation, pairs_of
from veridical.jury.result import JuryResult
from veridical.jury.tables import ballots_of_table, check_classes
from veridical.predictions import Predictions
from veridical.predictions.validation import check_seed
from veridical.predictions.votes import Spelling

#: Steps that are reported.
_STEPS = 4


def judge(
    votes: Any,
    gold: Any = None,
    *,
    classes: Sequence[str] | None = None,
    source_names: Sequence[str] | None = None,
    item_ids: Sequence[Any] | None = None,
    normalize: bool = False,
    abstain: Sequence[str] = (),
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> JuryResult:
    """The consensus of jurors who vote: an answer, a confidence and a distribution per item.

    Jurors are weighed by how they agree over all items, copies of a juror count once, and no answer needs to be known;
    see :func:`veridical.consensus`.

    Parameters
    ----------
    votes : path, DataFrame, mapping of columns, array of shape (S, N), or Predictions
        A long table (a file such as ``.csv`` or a DataFrame) with the columns item, source and label, one row per vote.
        A column confidence (0 to 1) makes a vote less sure; instead of a label there may be a column of probabilities
        per class.  Several rows of a source for an item are draws, and their shares one vote.  An empty label is an
        abstention.  An array holds places of classes, -1 for no vote, or names of classes, "" for no vote.
    gold : path, DataFrame, mapping of ids to labels, or array of N labels, optional
        Known answers to some of the items: a table with the columns item and label.  With 10 or more, the confidence is
        calibrated on them.
    classes : sequence of str, optional
        All classes in order; by default those that have votes.  A known answer of another class is an error.
    source_names, item_ids : sequences, optional
        For arrays, which have no names.
    normalize : bool
        Read labels that differ only by case, spaces or final dots as one class.  By default a note lists them.
    abstain : sequence of str
        Labels that are abstentions, beside empty ones, n/a, nan, none and null (which may be named in ``classes``).
    random_state : int
        Decides the folds of the cross-validation on known answers.
    n_threads : int, optional
        Results do not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step.  All pairs of jurors are compared, which takes
        minutes where there are thousands.

    Returns
    -------
    JuryResult

    Warns
    -----
    CampsWarning
        Where the jurors split into camps, and nothing says which is right; answers are then those of the majority.
    GoldWarning
        Where known answers are about items that have no votes, ids match only as numbers, or known answers have no
        more to do with the votes than by chance.

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
    report = check_progress(progress)
    report(0, _STEPS, "read the votes")
    known, spelling = read_gold(gold), Spelling(normalize, abstain)
    ballots = _read_votes(votes, classes, source_names, item_ids, spelling)
    report(1, _STEPS, f"compare {len(ballots.source_names):,} jurors")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CampsWarning)
        consensus = consensus_of_votes(ballots.votes, source_names=ballots.source_names, n_threads=n_threads)
    for warning in caught:
        warnings.warn(warning.message, stacklevel=2)
    answers, notes_on_gold = match_gold(known, ballots, spelling)
    notes_on_gold += notes_on_mismatch(ballots, consensus, answers)
    warn_of_gold(notes_on_gold)
    report(2, _STEPS, "calibrate on known answers")
    probs, choice = _calibrated(ballots, consensus, answers, random_state)
    label = probs.argmax(axis=1) if choice is not None else consensus.prediction
    report(3, _STEPS, "describe the jurors")
    pairs = pairs_of(ballots.votes, consensus.dependence)
    jurors = describe_jurors(ballots, consensus, pairs, answers[ballots.answered], n_threads)
    findings = find_jurors_to_check(ballots.votes, consensus, jurors, pairs, label, ballots.class_names)
    notes = [
        *ballots.notes,
        *notes_on_single_votes(ballots, consensus.weights),
        *notes_on_gold,
        *(str(warning.message) for warning in caught),
        *notes_on_findings(findings, ballots.n_votes),
        *notes_on_different_answers(label, answers[ballots.answered]),
        note_on_confidence(choice, answers),
    ]
    report(_STEPS, _STEPS, "done")
    counted = np.array([is_counted(juror) for juror in jurors])
    return JuryResult(
        ballots.item_ids,
        ballots.class_names,
        **_answers(ballots, consensus, probs, label),
        gold=answers,
        jurors=jurors,
        jurors_to_check=findings,
        dependence=pairs.dependence,
        distinct_jurors_overall=count_distinct(pairs.dependence, counted),
        error_correlation=error_correlation(ballots.votes, answers[ballots.answered], counted),
        consensus=consensus,
        calibration=choice,
        notes=tuple(notes),
        files=ballots.files,
    )


def _read_votes(
    votes: Any,
    classes: Sequence[str] | None,
    source_names: Sequence[str] | None,
    item_ids: Sequence[Any] | None,
    spelling: Spelling,
) -> Ballots:
    class_names = check_classes(classes)
    if isinstance(votes, (Ballots, Predictions)):
        if not classes is source_names is item_ids is None:
            raise ParameterError(
                f"{type(votes).__name__} name their classes, sources and items; leave classes, source_names and "
                "item_ids out."
            )
        return votes if isinstance(votes, Ballots) else ballots_of_predictions(votes)
    is_table = isinstance(votes, (str, os.PathLike, Mapping)) or hasattr(votes, "columns")
    if not is_table:
        return ballots_of_labels(votes, class_names, source_names, item_ids, spelling)
    if source_names is not None or item_ids is not None:
        raise ParameterError("a table names its items and sources; leave source_names and item_ids out.")
    if isinstance(votes, (str, os.PathLike)):
        path = Path(votes)
        return ballots_of_table(read_columns(path), str(path), classes=class_names, spelling=spelling, files=[path])
    columns = votes if isinstance(votes, Mapping) else columns_of_frame(votes)
    return ballots_of_table(columns, "the table of votes", classes=class_names, spelling=spelling)


def _calibrated(
    ballots: Ballots, consensus: Consensus, answers: Labels, random_state: int
) -> tuple[Floats, GoldChoice | None]:
    """Distributions of the answered items, calibrated where enough answers are known."""
    probs = np.asarray(consensus.probs, np.float64)
    own = answers[ballots.answered]
    items = np.flatnonzero(own >= 0)
    if len(items) < LEAST_GOLD:
        return probs, None
    return calibrate_on_gold(probs, lambda: fit_dawid_skene(ballots.votes).probs, items, own[items], random_state)


def _answers(ballots: Ballots, consensus: Consensus, probs: Floats, label: Labels) -> dict[str, Any]:
    """What is known of every item, also of those without votes."""
    n_answered = len(ballots.answered)

    def of_all(values: Any, without_votes: float) -> Any:
        column = np.full((len(ballots.item_ids), *values.shape[1:]), without_votes, values.dtype)
        column[ballots.answered] = values
        return column

    return {
        "probs": of_all(probs, np.nan),
        "label": of_all(label.astype(np.int64), -1),
        "confidence": of_all(probs[np.arange(n_answered), label], np.nan),
        "distinct_jurors": of_all(consensus.distinct_sources, 0),
        "n_votes": of_all(np.bincount(ballots.votes.items, minlength=n_answered).astype(np.int64), 0),
    }
