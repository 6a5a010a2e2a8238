"""Long tables of votes: one row per vote, with the item, the source, and a label or a probability for each class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from veridical.combine.combined import Floats
from veridical.errors import (
    FileFormatError,
    LabelError,
    NotFiniteError,
    NotNormalisedError,
    ParameterError,
    ShapeError,
    shown,
)
from veridical.jury.ballots import Ballots, make_ballots
from veridical.jury.columns import (
    CONFIDENCE,
    ITEM,
    LABEL,
    RESERVED,
    SOURCE,
    Columns,
    as_ids,
    check_lengths,
    column,
    has_column,
    one_of,
)
from veridical.predictions.sample_ids import as_id
from veridical.predictions.validation import check_names, entries_of
from veridical.predictions.votes import DEFAULT_SPELLING, MOST_CLASSES, Spelling, in_order

#: How far from one the probabilities of a row may sum.
_SUM_TOLERANCE = 1e-3
#: More probabilities than this are not made of votes with a confidence.
_MOST_NUMBERS = 1 << 26
#: Prefix of a column that holds the probability of the class named after it.
PROBABILITY = "p_"


def ballots_of_table(
    columns: Columns,
    where: str,
    *,
    classes: Sequence[str] | None = None,
    spelling: Spelling = DEFAULT_SPELLING,
    files: Sequence[Path] = (),
) -> Ballots:
    """Votes of a long table.

    Parameters
    ----------
    columns : mapping of str to sequence
    where : str
        What the table is called in a message.
    classes : sequence of str, optional
        All classes, in order; a vote for any other is an error.  By default the classes are those that have votes.
    spelling : Spelling
        Which labels are abstentions, and which are one.
    """
    check_lengths(columns, where)
    ids, names = (as_ids(column(columns, name, where)) for name in (ITEM, SOURCE))
    for what, values in (("item", ids), ("source", names)):
        if "" in values:
            raise FileFormatError(
                f"row {values.index('') + 1} of {where} has no {what}; name it, or leave the row out."
            )
    item_ids, items = _numbered(ids)
    source_names, sources = _numbered(names)
    if has_column(columns, LABEL):
        class_names, rows, labels, values, notes = _labels(columns, where, classes, spelling)
    else:
        class_names, rows, labels, values, notes = _probabilities(columns, where, classes)
    notes += _repeated(items, sources, rows, item_ids, source_names)
    entries = (items[rows], sources[rows], labels, values)
    return make_ballots(entries, item_ids, source_names, class_names, notes, files)


def check_classes(classes: Any) -> list[str] | None:
    """Names of all classes as text, each once."""
    if classes is None:
        return None
    # No more than shows that there are too many, however long the names go on.
    names = [as_id(name) for name in islice(entries_of(classes, "classes is"), MOST_CLASSES + 1)]
    if len(names) > MOST_CLASSES:
        raise ParameterError(f"classes has more than {MOST_CLASSES:,} names; give the classes of one question.")
    check_names(names, len(names), "class")
    return names


def _numbered(names: Sequence[str]) -> tuple[list[str], Any]:
    """The different names in order of appearance, and the place of each row's name."""
    places: dict[str, int] = {}
    rows = np.fromiter((places.setdefault(name, len(places)) for name in names), np.int64, len(names))
    return list(places), rows


def _labels(
    columns: Columns, where: str, classes: Sequence[str] | None, spelling: Spelling
) -> tuple[list[str], Any, Any, Any, list[str]]:
    """Classes; row, label and value of each vote; notes."""
    texts, notes = spelling.read(as_ids(column(columns, LABEL, where)), classes)
    class_names = [*classes] if classes is not None else in_order({*texts} - {""})
    places = {name: l for l, name in enumerate(class_names)} | {"": -1}
    unknown = next((row for row, text in enumerate(texts) if text not in places), None)
    if unknown is not None:
        item = as_id(column(columns, ITEM, where)[unknown])
        raise LabelError(
            f"row {unknown + 1} of {where}: the vote on item {item} is {texts[unknown]!r}, and the classes are "
            f"{', '.join(class_names)[:200]}; correct the vote, or give all classes."
        )
    labels = np.fromiter((places[text] for text in texts), np.int64, len(texts))
    rows = np.flatnonzero(labels >= 0)
    if len(rows) < len(labels):
        n = len(labels) - len(rows)
        notes.append(f"{n} row{'s have' if n > 1 else ' has'} no label: abstentions, which are not votes.")
    if not has_column(columns, CONFIDENCE):
        return class_names, rows, labels[rows], np.ones(len(rows)), notes
    confidence = _numbers(column(columns, CONFIDENCE, where), where, "the confidence", 1.0)
    wrong = np.flatnonzero(~((confidence >= 0) & (confidence <= 1)))
    if wrong.size:
        raise NotFiniteError(
            f"row {wrong[0] + 1} of {where}: the confidence is {confidence[wrong[0]]:g}; it is a number from 0 to 1."
        )
    return class_names, *_spread(rows, labels[rows], confidence[rows], len(class_names)), notes


def _numbers(values: Sequence[Any], where: str, what: str, blank: float) -> Floats:
    """A column of numbers; ``blank`` stands for empty cells."""
    numbers: Floats = np.full(len(values), blank)
    for row, value in enumerate(values):
        if as_id(value) == "":
            continue
        try:
            numbers[row] = float(value)
        except Exception:  # an object may raise anything
            raise FileFormatError(f"row {row + 1} of {where}: {what} is {shown(value)}; write a number.") from None
    return numbers


def _spread(rows: Any, labels: Any, confidence: Any, n_classes: int) -> tuple[Any, Any, Any]:
    """Opinions of labels with a confidence; the rest of it is shared equally by the other classes."""
    if len(rows) * n_classes > _MOST_NUMBERS:
        raise ShapeError(
            f"{len(rows):,} votes with a confidence have too many probabilities of {n_classes:,} classes; leave the "
            "confidences out, or judge a part of the items at a time."
        )
    others = np.repeat(((1.0 - confidence) / max(n_classes - 1, 1))[:, None], n_classes, axis=1)
    others[np.arange(len(rows)), labels] = confidence
    vote, label = np.nonzero(others)
    return rows[vote], label.astype(np.int64), others[vote, label]


def _probabilities(
    columns: Columns, where: str, classes: Sequence[str] | None
) -> tuple[list[str], Any, Any, Any, list[str]]:
    """The same for a column of probabilities per class; a row without any is an abstention."""
    named = [name for name in columns if name.lower() not in RESERVED]
    have_prefix = all(name.startswith(PROBABILITY) for name in named)
    class_names = [name.removeprefix(PROBABILITY) for name in named] if have_prefix else named
    if len(named) < 2:
        raise FileFormatError(
            f"{where} has no column label and fewer than two columns of probabilities (columns: "
            f"{', '.join(columns)[:200]}); name the column of votes {one_of(LABEL)}, or write one column of "
            "probabilities per class."
        )
    if classes is not None and [*classes] != class_names:
        raise LabelError(
            f"the columns of {where} are {', '.join(class_names)[:100]}, and the classes are "
            f"{', '.join(classes)[:100]}; name the columns after the classes."
        )
    values = np.column_stack([_numbers(columns[name], where, name, math.nan) for name in named])
    absent: Any = np.isnan(values).all(axis=1)
    _check_rows(values, absent, named, where)
    kept = np.where(absent[:, None], 0.0, values)
    rows, labels = np.nonzero(kept)
    n = int(absent.sum())
    notes = [f"{n} row{'s have' if n > 1 else ' has'} no probabilities: abstentions."] if n else []
    return class_names, rows, labels.astype(np.int64), kept[rows, labels], notes


def _check_rows(values: Any, absent: Any, names: Sequence[str], where: str) -> None:
    bad = ~absent[:, None] & ~((values >= 0) & (values <= 1 + _SUM_TOLERANCE))
    if bad.any():
        row, l = np.argwhere(bad)[0].tolist()
        raise NotFiniteError(
            f"row {row + 1} of {where}: {names[l]} is {values[row, l]:g}; probabilities are numbers from 0 to 1."
        )
    off = np.flatnonzero(~absent & (np.abs(np.nan_to_num(values).sum(axis=1) - 1.0) > _SUM_TOLERANCE))
    if off.size:
        total = values[off[0]].sum()
        raise NotNormalisedError(
            f"row {off[0] + 1} of {where}: the probabilities sum to {total:g}; divide them by their sum."
        )


def _repeated(items: Any, sources: Any, rows: Any, item_ids: Sequence[str], source_names: Sequence[str]) -> list[str]:
    """Notes on sources that have several rows for an item."""
    voted = np.unique(rows)
    _, first, counts = np.unique(
        items[voted] * len(source_names) + sources[voted], return_index=True, return_counts=True
    )
    several = np.flatnonzero(counts > 1)
    if not several.size:
        return []
    row = voted[first[several[np.argmin(first[several])]]]
    have = "pairs of item and source have" if several.size > 1 else "pair of item and source has"
    return [
        f"{several.size} {have} several votes (the first is {source_names[sources[row]]} on {item_ids[items[row]]}): "
        "they count as draws, and their shares as one vote."
    ]
