"""Votes: how their labels are read, and votes as predictions, where a source puts all probability on a class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from veridical.errors import AmbiguousInputWarning, LabelError, ParameterError, ShapeError, shown, warn_caller
from veridical.predictions.arrays import Array, as_array, is_whole_number
from veridical.predictions.classes import is_unknown
from veridical.predictions.sample_ids import as_id
from veridical.predictions.validation import check_flag, check_names, entries_of

#: What the columns of a table of votes may be called.
ITEM = ("item", "sample", "task", "question")
SOURCE = ("source", "juror", "worker", "annotator", "model", "judge")
LABEL = ("label", "vote", "answer")
CONFIDENCE = ("confidence",)

#: More numbers than this are not made of votes: they are mostly absent where there are so many.
_MOST_NUMBERS = 1 << 29
#: More names than this are not classes.
MOST_CLASSES = 1 << 20
#: Labels in several spellings that a note lists.
_MOST_LISTED = 5


@dataclass(frozen=True)
class Spelling:
    """Which labels of votes are abstentions, and which are one class.

    Parameters
    ----------
    normalize : bool
        Whether labels that differ by case, spaces or final dots are one class, by its most frequent name.
    abstain : sequence of str
        Labels that are abstentions, beside blank ones; in any spelling.
    """

    normalize: bool = False
    abstain: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_flag(self.normalize, "normalize")
        words = [_plain(str(word)) for word in entries_of(self.abstain, "abstain is")]
        object.__setattr__(self, "abstain", words)

    def read(self, labels: Sequence[str], classes: Sequence[str] | None = None) -> tuple[list[str], list[str]]:
        """The class of each label, "" for abstentions, and notes; the name of one of ``classes`` always counts."""
        counts = Counter(labels)
        names = {name: name for name in classes or ()}
        spellings: dict[str, list[str]] = {}
        for label in sorted(counts, key=lambda label: (label not in names, -counts[label], label)):
            if label in names or not (is_unknown(label) or _plain(label) in self.abstain):
                spellings.setdefault(_plain(label), []).append(label)
        several = [own for own in spellings.values() if len(own) > 1]
        if self.normalize:
            wanted = {_plain(name): name for name in names}
            for plain, own in spellings.items():
                names |= {label: names.get(label) or wanted.get(plain, own[0]) for label in own}
        else:
            names |= {label: label for own in spellings.values() for label in own}
        return [names.get(label, "") for label in labels], self._notes(several, counts)

    def _notes(self, several: Sequence[Sequence[str]], counts: Mapping[str, int]) -> list[str]:
        if not several:
            return []
        groups = [", ".join(f"{label!r} ({counts[label]:,})" for label in own) for own in several]
        listed = "; ".join(groups[:_MOST_LISTED])
        more = f"; and {len(several) - _MOST_LISTED} more" * (len(several) > _MOST_LISTED)
        apart = "they count as different classes, which normalize=True makes one"
        end = "they are read as one" if self.normalize else apart
        return [f"labels that differ only by case, spaces or final dots: {listed}{more}; {end}."]


DEFAULT_SPELLING = Spelling()


def _plain(label: str) -> str:
    """A label without what its spellings differ by."""
    return " ".join(label.split()).casefold().rstrip(". ")


def in_order(names: Iterable[str]) -> list[str]:
    """Names of classes in the order of their numbers where all are whole numbers, else alphabetically."""
    names = set(names)
    whole = all(re.fullmatch(r"[+-]?\d{1,100}", name) for name in names)
    return sorted(names, key=lambda name: (int(name), name)) if whole else sorted(names)


def places_of_labels(
    values: Any, class_names: Sequence[str] | None, spelling: Spelling = DEFAULT_SPELLING, what: str = "sample"
) -> tuple[Array, list[str] | None, list[str]]:
    """(S, N) places of classes, -1 for no vote; the names of all classes, where there are names; and notes.

    ``values`` has shape (S, N): places of classes, -1 for no vote; or names of classes, "" or None for no vote.
    """
    array = as_array(values, "the votes", f"give one label per source and {what}, shape (S, N)")
    names, notes = None if class_names is None else [*class_names], list[str]()
    if array.ndim != 2 or not array.shape[0]:
        raise ShapeError(f"the votes have shape {array.shape}; give one label per source and {what}, shape (S, N).")
    if array.dtype.kind in "USO":
        labels, notes = spelling.read([as_id(cell) for cell in array.ravel().tolist()], class_names)
        names = names or in_order({*labels} - {""})
        places = {name: l for l, name in enumerate(names)} | {"": -1}
        unknown = next((n for n, label in enumerate(labels) if label not in places), None)
        if unknown is not None:
            s, n = divmod(unknown, array.shape[1])
            raise LabelError(
                f"source {s}, {what} {n}: the vote is {labels[unknown]!r}, and the classes are "
                f"{', '.join(names)[:200]}."
            )
        array = np.array([places[label] for label in labels], np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise LabelError(f"the votes have dtype {array.dtype}; give integers, with -1 where a source has no vote.")
    n_classes = min(MOST_CLASSES if names is None else len(names), MOST_CLASSES)
    wrong = np.argwhere((array < -1) | (array >= n_classes))
    if wrong.size:
        s, n = wrong[0].tolist()
        raise LabelError(
            f"source {s}, {what} {n}: the vote is {array[s, n]}; classes go from 0 to {n_classes - 1}, and -1 stands "
            "for no vote."
        )
    return array, names, notes


def vectors_of_votes(
    values: Any, class_names: Sequence[str] | None, sources_axis: int
) -> tuple[Array, Sequence[str] | None]:
    """(S, N, L) float32 with one in the place of each vote, rows of NaN where there is none, and the classes' names."""
    array = as_array(values, "the votes", "give one label per source and sample, shape (sources, samples)")
    class_names = check_names(class_names, len(class_names) if isinstance(class_names, Sized) else 2, "class")
    if not is_whole_number(sources_axis) or sources_axis not in (0, 1):
        raise ParameterError(
            f"sources_axis is {shown(sources_axis)}; votes have shape (sources, samples), or 1 for the other."
        )
    array, names, notes = places_of_labels(array.T if sources_axis == 1 else array, class_names)
    for note in notes:
        warn_caller(note, AmbiguousInputWarning)
    if names is not None and len(names) < 2:
        raise LabelError(f"the votes name {len(names)} class; give all classes as class_names.")
    n_classes = max(int(array.max(initial=0)) + 1, 2) if names is None else len(names)
    if array.size * n_classes > _MOST_NUMBERS:
        raise ShapeError(
            f"{array.shape[0]} sources, {array.shape[1]} samples and {n_classes} classes are too many for vectors; "
            "veridical.judge takes votes as they are."
        )
    probs = np.full((*array.shape, n_classes), np.nan, np.float32)
    probs[array >= 0] = np.eye(n_classes, dtype=np.float32)[array[array >= 0]]
    return probs, names


def is_header_of_votes(names: Sequence[str]) -> bool:
    """Whether a table with these columns has votes and no scores: an item, a source, a label, and nothing else.

    The names are those of :func:`veridical.judge`; a table with sample and source may have scores in the third.
    """
    columns = {name.lower() for name in names}
    has_all = all(columns & set(known) for known in (ITEM, SOURCE, LABEL))
    return (
        has_all
        and columns <= {*ITEM, *SOURCE, *LABEL, *CONFIDENCE}
        and not {"sample", "source"} < columns - {*LABEL[:1]}
    )
