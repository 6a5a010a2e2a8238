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
from veridical.jury.ids import as_id, in_order
from veridical.predictions.arrays import as_array, is_missing
from veridical.predictions.sample_ids import check_sample_ids
from veridical.predictions.validation import as_numbers, check_names, entries_of
from veridical.predictions.votes import DEFAULT_SPELLING, Spelling

#: More names than this are not classes.
MOST_CLASSES = 1 << 20
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
    notes = []
    n_without_votes = len(item_ids) - len(answered)
    if n_without_votes:
        first = item_ids[int(np.setdiff1d(np.arange(len(item_ids)), answered)[0])]
        notes.append(
            f"{n_without_votes} item{'s have' if n_without_votes > 1 else ' has'} no vote (the first is {first}); "
            "such items get no answer."
        )
    return notes


def ballots_of_labels(
    labels: Any,
    class_names: Sequence[str] | None,
    source_names: Sequence[str] | None,
    item_ids: Sequence[Any] | None,
    spelling: Spelling = DEFAULT_SPELLING,
) -> Ballots:
    """Ballots of an array (S, N): places of classes, -1 where a source has no vote; or names of classes, "" there."""
    array = as_array(labels, "the votes", "give one label per source and item, shape (S, N)")
    if array.ndim != 2 or not array.size:
        raise ShapeError(f"the votes have shape {array.shape}; give one label per source and item, shape (S, N).")
    notes: list[str] = []
    if array.dtype.kind in "US" or array.dtype.kind == "O":
        if class_names is None:
            _reject_rows_of_a_table(array)
        array, class_names, notes = _places_of(array, class_names, spelling)
    numbers = as_numbers(array, "the votes")
    if numbers.dtype.kind not in "iu":
        raise LabelError(f"the votes have dtype {numbers.dtype}; give integers, with -1 where a source has no vote.")
    n_classes = len(class_names) if class_names is not None else max(int(numbers.max()) + 1, 2)
    wrong = np.argwhere((numbers < -1) | (numbers >= min(n_classes, MOST_CLASSES)))
    if wrong.size:
        s, n = wrong[0].tolist()
        raise LabelError(
            f"the vote of source {s} on item {n} is {numbers[s, n]}; classes go from 0 to "
            f"{min(n_classes, MOST_CLASSES) - 1}, and -1 stands for no vote."
        )
    n_sources, n_items = numbers.shape
    names = check_names(source_names, n_sources, "source") or tuple(str(s) for s in range(n_sources))
    ids = range(n_items) if item_ids is None else entries_of(item_ids, "item_ids are", f"a list of {n_items} ids")
    # No more than shows that there are too many, however long the ids go on.
    listed = [name if is_missing(name) else as_id(name) for name in islice(ids, n_items + 1)]
    ids = check_sample_ids(listed, n_items, "item_ids").tolist()
    sources, items = np.nonzero(numbers >= 0)
    entries = (
        items.astype(np.int64),
        sources.astype(np.int64),
        numbers[sources, items].astype(np.int64),
        np.ones(len(items)),
    )
    classes = [str(l) for l in range(n_classes)] if class_names is None else [*class_names]
    return make_ballots(entries, ids, names, classes, notes)


def _reject_rows_of_a_table(array: npt.NDArray[Any]) -> None:
    """Raise if texts look like rows (item, source, label), which would be read as votes on three items."""
    if array.shape[1] not in _COLUMNS_OF_A_TABLE:
        return
    columns = [{as_id(label) for label in column} - {""} for column in array.T.tolist()]
    if len(set.union(*columns)) < sum(map(len, columns)):  # a label occurs in two columns
        return
    raise ShapeError(
        f"the votes look like {len(array)} row{'s' * (len(array) > 1)} of a table with {len(columns)} columns (no text "
        "is in two of them); give a table as a DataFrame or as {'item': [...], 'source': [...], 'label': [...]}, or "
        "name the classes with classes= if these are labels of shape (S, N)."
    )


def _places_of(
    array: npt.NDArray[Any], class_names: Sequence[str] | None, spelling: Spelling
) -> tuple[npt.NDArray[np.int64], list[str], list[str]]:
    """Names of classes as places, -1 for abstentions; the names of all classes; notes."""
    labels, notes = spelling.read([as_id(label) for label in array.ravel().tolist()], class_names)
    names = [*class_names] if class_names is not None else in_order({*labels} - {""})
    places = {name: l for l, name in enumerate(names)} | {"": -1}
    unknown = next((place for place, label in enumerate(labels) if label not in places), None)
    if unknown is not None:
        s, n = divmod(unknown, array.shape[1])
        raise LabelError(
            f"the vote of source {s} on item {n} is {labels[unknown]!r}, and the classes are: {', '.join(names)[:200]}."
        )
    return np.array([places[label] for label in labels], np.int64).reshape(array.shape), names, notes


def ballots_of_predictions(predictions: Any) -> Ballots:
    """Ballots of probability vectors: a vote is a share for each class."""
    from veridical.combine.in_memory import probabilities

    n_sources, n_items, n_classes = predictions.n_sources, predictions.n_samples, predictions.n_classes
    probs = probabilities(predictions, slice(0, n_items))
    sources, items, labels = np.nonzero(np.nan_to_num(probs) > 0)
    entries = (
        items.astype(np.int64),
        sources.astype(np.int64),
        labels.astype(np.int64),
        probs[sources, items, labels],
    )
    ids = getattr(predictions, "sample_ids", None)
    return make_ballots(
        entries,
        [str(n) for n in range(n_items)] if ids is None else [as_id(name) for name in ids],
        predictions.source_names or [str(s) for s in range(n_sources)],
        predictions.class_names or [str(l) for l in range(n_classes)],
        files=predictions.files,
    )
