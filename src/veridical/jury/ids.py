"""Ids of items: text, whatever they were in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from veridical.predictions.arrays import is_missing
from veridical.predictions.sample_ids import text_of_id

#: Types whose values are equal only where their texts are: objects of others may do anything when they are compared.
_SHARED = frozenset({int, str, np.int32, np.int64, np.str_})


def as_id(value: Any) -> str:
    """An id as text: without spaces around it, whole numbers without a point; empty where there is none.

    Examples
    --------
    >>> as_id(7.0), as_id(" q1 "), as_id(None)
    ('7', 'q1', '')
    """
    if is_missing(value):
        return ""
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return text_of_id(value, "an id or a label").strip()


def as_ids(values: Iterable[Any]) -> list[str]:
    """:func:`as_id` of each; equal values share one text, since a table names an item once for each vote on it.

    Examples
    --------
    >>> as_ids([7, 7.0, " q1 "])
    ['7', '7', 'q1']
    """
    texts: dict[tuple[type, Any], str] = {}

    def text_of(value: Any) -> str:
        if type(value) not in _SHARED:
            return as_id(value)
        key = type(value), value
        if key not in texts:
            texts[key] = as_id(value)
        return texts[key]

    return [text_of(value) for value in values]


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


def in_order(names: set[str]) -> list[str]:
    """Names of classes in the order of their numbers where all are whole numbers, else alphabetically."""
    whole = all(re.fullmatch(r"[+-]?\d{1,100}", name) for name in names)
    return sorted(names, key=lambda name: (int(name), name)) if whole else sorted(names)
