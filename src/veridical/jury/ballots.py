"""Votes with the names of their items, sources and classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.combine.across_samples.votes import Indices, Votes, sort_shares
from veridical.combine.combined import Floats
from veridical.errors import LabelError, MissingSourceError, ShapeError
from veridical.predictions.arrays import as_array, is_missing
from veridical.predictions.sample_ids import as_id, check_sample_ids
from veridical.predictions.validation import check_names, entries_of
from veridical.predictions.votes import DEFAULT_SPELLING, Spelling, places_of_labels

#: More probabilities than this are not made of votes.
_MOST_NUMBERS = 1 << 29
#: How many columns a table of votes mostly has: item, source, label and perhaps confidence.
_COLUMNS_OF_A_TABLE = (3, 4)


@dataclass(frozen=True, repr=False, eq=False)
class Ballots:
    """Votes of sources on items, with everybody's name; nothing has the size of sources times items.

    Attributes
    ----------
    votes : Votes
        On the answered items.
    item_ids : tuple of str
        All items, also those without votes.
    answered : (n,) int64
        Places in ``item_ids`` of the items that ``votes`` are about.
    source_names, class_names : tuple of str
    notes : tuple of str
        What was noticed while reading: abstentions, several votes of one source on one item, and the like.
    files : tuple of Path
    """

    votes: Votes
    item_ids: tuple[str, ...]
    answered: Indices
    source_names: tuple[str, ...]
    class_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    files: tuple[Path, ...] = field(default=())

    @property
    def n_votes(self) -> int:
        """Pairs of an item and a source that has a vote on it."""
        return len(self.votes.items)

    def __repr__(self) -> str:
        return (
            f"Ballots({self.n_votes} votes of {len(self.source_names)} sources on {len(self.item_ids)} items, "
            f"{len(self.class_names)} classes)"
        )


def make_ballots(
    entries: tuple[Indices, Indices, Indices, Floats],
    item_ids: Sequence[str],
    source_names: Sequence[str],
    class_names: Sequence[str],
    notes: Sequence[str] = (),
    files: Sequence[Path] = (),
) -> Ballots:
    """Ballots of item, source, label and value of each vote; several votes of a source on an item become shares."""
    items, sources, labels, values = entries
    if len(class_names) < 2:
        only = f" ({class_names[0]})" if class_names else ""
        raise LabelError(f"the votes have {len(class_names)} class{only}; at least two are needed: give classes=.")
    answered, places = np.unique(items, return_inverse=True)
    if not answered.size:
        raise MissingSourceError("no item has a vote; at least one is needed.")
    shape = (len(source_names), len(answered), len(class_names))
    if len(answered) * len(class_names) > _MOST_NUMBERS:
        raise ShapeError(
            f"{len(answered):,} items of {len(class_names):,} classes have too many probabilities; judge a part of the "
            "items at a time."
        )
    votes = sort_shares(places.astype(np.int64), sources, labels, values, shape)
    notes = [*notes, *_notes_on_items(item_ids, answered)]
    return Ballots(
        votes, tuple(item_ids), answered, tuple(source_names), tuple(class_names), tuple(notes), tuple(files)
    )


def _notes_on_items(item_ids: Sequence[str], answered: Indices) -> list[str]:
    without = np.setdiff1d(np.arange(len(item_ids)), answered)
    if not without.size:
        return []
    have = "items have" if without.size > 1 else "item has"
    first = item_ids[int(without[0])]
    return [f"{without.size} {have} no vote (the first is {first}); such items get no answer."]


def ballots_of_labels(
    labels: Any,
    class_names: Sequence[str] | None,
    source_names: Sequence[str] | None,
    item_ids: Sequence[Any] | None,
    spelling: Spelling = DEFAULT_SPELLING,
) -> Ballots:
    """Ballots of an array (S, N): places of classes, -1 where a source has no vote; or names of classes, "" there."""
    if class_names is None:
        _reject_rows_of_a_table(as_array(labels, "the votes", "give one label per source and item, shape (S, N)"))
    numbers, known, notes = places_of_labels(labels, class_names, spelling, "item")
    n_classes = max(int(numbers.max(initial=0)) + 1, 2) if known is None else len(known)
    n_sources, n_items = numbers.shape
    names = check_names(source_names, n_sources, "source") or tuple(str(s) for s in range(n_sources))
    ids = range(n_items) if item_ids is None else entries_of(item_ids, "item_ids are", f"a list of {n_items} ids")
    # No more than shows that there are too many, however long the ids go on.
    listed = [name if is_missing(name) else as_id(name) for name in islice(ids, n_items + 1)]
    ids = check_sample_ids(listed, n_items, "item_ids").tolist()
    sources, items = np.nonzero(numbers >= 0)
    entries = items, sources, numbers[sources, items].astype(np.int64), np.ones(len(items))
    return make_ballots(entries, ids, names, known or [str(l) for l in range(n_classes)], notes)


def _reject_rows_of_a_table(array: npt.NDArray[Any]) -> None:
    """Raise if texts look like rows (item, source, label), which would be read as votes on three items."""
    if array.dtype.kind not in "USO" or array.ndim != 2 or array.shape[1] not in _COLUMNS_OF_A_TABLE:
        return
    columns = [{as_id(label) for label in column} - {""} for column in array.T.tolist()]
    if len(set.union(*columns)) < sum(map(len, columns)):  # a label occurs in two columns
        return
    raise ShapeError(
        f"the votes look like {len(array)} row{'s' * (len(array) > 1)} of a table with {len(columns)} columns (no text "
        "is in two of them); give a table as a DataFrame or as {'item': [...], 'source': [...], 'label': [...]}, or "
        "name the classes with classes= if these are labels of shape (S, N)."
    )


def ballots_of_predictions(predictions: Any) -> Ballots:
    """Ballots of probability vectors: a vote is a share for each class."""
    from veridical.combine.in_memory import probabilities

    n_sources, n_items, n_classes = predictions.n_sources, predictions.n_samples, predictions.n_classes
    probs = probabilities(predictions, slice(0, n_items))
    sources, items, labels = np.nonzero(np.nan_to_num(probs) > 0)
    entries = items, sources, labels, probs[sources, items, labels]
    ids = getattr(predictions, "sample_ids", None)
    return make_ballots(
        entries,
        [str(n) for n in range(n_items)] if ids is None else [as_id(name) for name in ids],
        predictions.source_names or [str(s) for s in range(n_sources)],
        predictions.class_names or [str(l) for l in range(n_classes)],
        files=predictions.files,
    )
