"""Known answers to some of the items: reading them, and matching their ids and labels with those of the votes."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical._names import nearest_name
from veridical.combine.combined import Labels
from veridical.errors import GoldWarning, LabelError, ShapeError
from veridical.jury.ballots import Ballots
from veridical.jury.columns import answers_of, columns_of_frame, read_gold_columns
from veridical.predictions.arrays import as_array, index_of, is_whole_number
from veridical.predictions.sample_ids import as_id
from veridical.predictions.votes import DEFAULT_SPELLING, Spelling

#: Item -> answer, or one answer per item.
KnownAnswers = Mapping[str, str] | Sequence[Any]


def read_gold(gold: Any) -> KnownAnswers | None:
    """Known answers of a table, a mapping, or an array with one per item."""
    if gold is None:
        return None
    if isinstance(gold, (str, os.PathLike)):
        return answers_of(read_gold_columns(Path(gold)), str(gold))
    if hasattr(gold, "columns"):
        return answers_of(columns_of_frame(gold), "the table of gold labels")
    index = index_of(gold)
    if index is not None and hasattr(gold, "tolist"):  # a series whose index is more than a count
        gold = dict(zip(index, gold.tolist(), strict=True))
    if isinstance(gold, Mapping):
        return {as_id(item): as_id(label) for item, label in gold.items()}
    answers = as_array(gold, "gold", "give a table, a mapping of ids to labels, or one label per item")
    if answers.ndim != 1:
        raise ShapeError(f"gold has shape {answers.shape}; give one label per item.")
    return list(answers.tolist())


def match_gold(
    known: KnownAnswers | None, ballots: Ballots, spelling: Spelling = DEFAULT_SPELLING
) -> tuple[Labels, list[str]]:
    """(N,) known answers as places of classes, -1 elsewhere, and notes on ids that do not match as they are."""
    answers = np.full(len(ballots.item_ids), -1, np.int64)
    if known is None:
        return answers, []
    known = _by_item(known, ballots)
    labels, _ = spelling.read([*known.values()], ballots.class_names)
    known = {item: label for item, label in zip(known, labels, strict=True) if label}
    wanted = list(known)
    matched, as_numbers = match_ids(wanted, ballots.item_ids)
    absent = [item for item, place in zip(wanted, matched, strict=True) if place < 0]
    if wanted and len(absent) == len(wanted):
        raise LabelError(
            f"none of the {len(wanted)} gold items is among the votes: gold has {wanted[0]!r} and the votes have "
            f"{ballots.item_ids[0]!r}; use the same ids in both."
        )
    _check_labels(known, ballots.class_names)
    places = {name: l for l, name in enumerate(ballots.class_names)}
    for item, place in zip(wanted, matched, strict=True):
        if place >= 0:
            answers[place] = places[known[item]]
    return answers, _notes_on_ids(absent, as_numbers)


def warn_of_gold(notes: Sequence[str], stacklevel: int = 3) -> None:
    """Warn of what :func:`match_gold` has noticed."""
    for note in notes:
        warnings.warn(note, GoldWarning, stacklevel=stacklevel)


def _by_item(known: KnownAnswers, ballots: Ballots) -> dict[str, str]:
    """Item -> name of a class, where there is an answer."""
    if isinstance(known, Mapping):
        return {item: label for item, label in known.items() if label}
    if len(known) != len(ballots.item_ids):
        raise LabelError(
            f"there are {len(known)} gold labels for {len(ballots.item_ids)} items; give one each or a mapping."
        )
    named = [_class_name(label, ballots) for label in known]
    return {item: label for item, label in zip(ballots.item_ids, named, strict=True) if label}


def _class_name(label: Any, ballots: Ballots) -> str:
    """The name of a class, which an array gives as its place or as its name; empty where there is none."""
    if is_whole_number(label) and -1 <= label < len(ballots.class_names):
        return ballots.class_names[label] if label >= 0 else ""
    return as_id(label)


def _check_labels(known: Mapping[str, str], class_names: Sequence[str]) -> None:
    """Raise if an answer is not a class: mostly one that is spelt in another way."""
    unknown = Counter(label for label in known.values() if label not in class_names)
    if not unknown:
        return
    label, count = unknown.most_common(1)[0]
    first = next(item for item, answer in known.items() if answer == label)
    items = f"{count} of the {len(known)} gold items {'have' if count > 1 else 'has'} the answer {label!r}"
    n_others = len(unknown) - 1
    others = f" (nor {'is' if n_others == 1 else 'are'} {n_others} other answer{'s' * (n_others > 1)})" * (n_others > 0)
    nearest = nearest_name(label, class_names)
    hint = f"the nearest class is {nearest!r}" if nearest else f"the classes are {', '.join(class_names)[:200]}"
    raise LabelError(
        f"{items} (the first is {first}), which is not a class of the votes{others}; {hint}: correct the answers, or "
        "name all classes with classes= if it is one that nobody chose."
    )


def _notes_on_ids(absent: Sequence[str], as_numbers: bool) -> list[str]:
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
    return notes


def canonical_number(text: str) -> str:
    """A whole number without leading zeros, sign or fraction: "007" and "7.0" are "7"; other texts as they are."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else text


def match_ids(wanted: Sequence[str], known: Sequence[str]) -> tuple[list[int], bool]:
    """The place of each wanted id among the known ones, -1 where it is not there, and whether numbers were compared.

    Ids are compared as text.  If none of them is there as text, they are compared as numbers, so that 7, 7.0 and 007
    are the same id.
    """
    places = {name: place for place, name in enumerate(known)}
    matched = [places.get(name, -1) for name in wanted]
    if max(matched, default=0) >= 0:
        return matched, False
    by_number = {canonical_number(name): place for place, name in enumerate(known)}
    if len(by_number) < len(known):  # two ids are the same number
        return matched, False
    matched = [by_number.get(canonical_number(name), -1) for name in wanted]
    return matched, max(matched, default=-1) >= 0
