"""Tables of votes as predictions, for every command that takes those."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical._atomic import as_path
from veridical.combine.combined import Labels
from veridical.errors import AmbiguousInputWarning, ParameterError, ShapeError, shown, warn_caller
from veridical.jury.ballots import Ballots
from veridical.jury.columns import LABEL, as_ids, column, has_column, read_columns
from veridical.jury.known_answers import match_gold, read_gold, warn_of_gold
from veridical.jury.tables import ballots_of_table, check_classes
from veridical.predictions import Predictions
from veridical.predictions.classes import ClassIndices
from veridical.predictions.votes import Spelling

_MOST_NUMBERS = 1 << 29


def load_votes(
    path: str | os.PathLike[str],
    gold: Any = None,
    *,
    classes: Sequence[str] | None = None,
    normalize: bool = False,
    abstain: Sequence[str] = (),
) -> Predictions:
    """A long table of votes (item, source, label) as :class:`veridical.Predictions`, one vector per source and item.

    Parameters
    ----------
    path : path
        A table such as a ``.csv``, as in :func:`veridical.judge`.  Items are samples, their ids the sample ids.
    gold : path or mapping of id and label, optional
        Known answers; they become the labels.
    classes : sequence of str, optional
        All classes in order; by default those that have votes.  A known answer of another class is an error.
    normalize, abstain
        As in :func:`veridical.judge`.

    Returns
    -------
    Predictions
        Items without votes are left out.  Votes that are mostly absent should rather go to
        :func:`veridical.judge`, which never makes vectors of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> import veridical as vd
    >>> rows = ["item,source,label", "q1,a,yes", "q1,b,no", "q2,a,yes", "q2,b,yes"]
    >>> _ = Path("votes.csv").write_text("\\n".join(rows))
    >>> votes = vd.load_votes("votes.csv", gold={"q1": "yes"})
    >>> votes.class_names, votes.source_names
    (('no', 'yes'), ('a', 'b'))
    """
    where = as_path(path)
    known = read_gold(gold)
    if isinstance(known, list):
        raise ParameterError(f"gold is {shown(gold)}; give a table, or a mapping of ids to labels.")
    spelling, columns, names = Spelling(normalize, abstain), read_columns(where), check_classes(classes)
    ballots = ballots_of_table(columns, str(where), classes=names, spelling=spelling, files=[where])
    if has_column(columns, LABEL):
        for note in spelling.read(as_ids(column(columns, LABEL, str(where))), names)[1]:
            warn_caller(f"{where}: {note}", AmbiguousInputWarning)
    if known is None:
        return predictions_of(ballots)
    answers, notes = match_gold(known, ballots, spelling)
    warn_of_gold(notes)
    return predictions_of(ballots, answers)


def predictions_of(ballots: Ballots, answers: Labels | None = None) -> Predictions:
    """The votes as an array (S, N, L), NaN where a source has none; answers are places of classes, -1 for none."""
    votes = ballots.votes
    if int(np.prod(votes.shape, dtype=object)) > _MOST_NUMBERS:
        n_sources, n_items, n_classes = votes.shape
        raise ShapeError(
            f"{n_sources} sources, {n_items} items and {n_classes} classes are too many for vectors; use "
            "'veridical jury' or veridical.judge, which take votes as they are."
        )
    probs = np.full(votes.shape, np.nan, np.float32)
    probs[votes.sources, votes.items] = 0.0
    probs[votes.sources[votes.entries], votes.items[votes.entries], votes.labels] = votes.values
    ids = [ballots.item_ids[n] for n in ballots.answered]
    labels = None if answers is None else ClassIndices(answers[ballots.answered])
    predictions = Predictions(
        probs,
        labels,
        source_names=ballots.source_names,
        class_names=ballots.class_names,
        sample_ids=ids,
    )
    predictions.is_votes = bool((votes.values == 1.0).all())
    predictions.files = ballots.files
    return predictions
