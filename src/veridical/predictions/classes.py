"""Names of classes: which class a label names, which columns are classes, and in which order sources have them.

Labels, columns of tables and data frames, and the classes of a fit are all matched here, by one rule: an exact name
first, then the value of a number or a truth value ("1.0" is 1, "true" is True), and last, for whole numbers, the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import AmbiguousInputWarning, LabelError, ShapeError, shown, warn_caller
from veridical.predictions.arrays import Array, is_missing, is_whole_number

#: The label of a sample whose label is not known.
UNKNOWN = -1
#: Texts that say so, in any case; those that pandas reads as missing.
BLANKS = ("", "nan", "-nan", "n/a", "na", "#n/a", "#na", "<na>", "none", "null", "nat")
#: Names of columns that are about samples and are no classes unless they are chosen, in whatever case.
NEVER_CLASSES = (
    *("sample", "sample_id", "id", "image_id", "row_id", "index", "source", "group", "groups", "kind", "dtype"),
    *("label", "labels", "target", "targets", "y_true", "true_label", "ground_truth", "fold", "split"),
)
#: How pandas calls an index without a name in a file.
_INDEX = re.compile(r"Unnamed: \d+|__index_level_\d+__")
#: More names than these are not listed.
_MOST_NAMES = 10
_NUMBER = re.compile(r"[+-]?([0-9]{1,18}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_TRUTH = {"true": 1, "false": 0}


@dataclass(frozen=True)
class ClassIndices:
    """Labels that are places of classes already, whatever the classes are called; -1 where they are not known."""

    indices: Array


def is_counting(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2, ...: places, not names."""
    return all(name == str(place) for place, name in enumerate(names))


def is_whole(text: str) -> bool:
    """Whether a text is a whole number of at most 18 digits."""
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None


def is_unknown(entry: Any) -> bool:
    """Whether an entry says that there is no label: blank, None, NaN or a missing value of pandas."""
    return entry.strip().lower() in BLANKS if isinstance(entry, str) else is_missing(entry)


def value_of(entry: Any) -> float | None:
    """The value of a number or a truth value, also where it is written as text; of anything else None."""
    if isinstance(entry, str):
        text = entry.strip()
        if _NUMBER.fullmatch(text):
            return int(text) if is_whole(text) else float(text)
        return _TRUTH.get(text.lower())
    if isinstance(entry, (bool, np.bool_)) or is_whole_number(entry):
        return int(entry)
    if isinstance(entry, np.floating):
        return float(str(entry))  # of less precise numbers 0.1 and not 0.10000000149
    return entry if isinstance(entry, float) else None


class ClassFinder:
    """Finds classes by their names.

    Parameters
    ----------
    n_classes : int
    names : sequence of str, optional
        Without names, classes are called 0, 1, 2, ...
    """

    def __init__(self, n_classes: int, names: Sequence[str] | None = None) -> None:
        self.n_classes, self.names = n_classes, names
        self._exact = {name: place for place, name in enumerate(names or ())}
        values = [value_of(name) for name in names or ()]
        self._by_value: dict[float, list[int]] = {}
        for place, value in enumerate(values):
            if value is not None:
                self._by_value.setdefault(value, []).append(place)
        self._has_truth_values = any(name.strip().lower() in _TRUTH for name in names or ())
        #: Whether a whole number is a place and nothing else.
        self.only_places = not self._by_value or (names is not None and is_counting(names))

    def named(self, entry: Any) -> int | None:
        """The class with this name or this value; None if there is none."""
        if isinstance(entry, str):
            place = self._exact.get(entry, self._exact.get(entry.strip()))
            if place is not None:
                return place
        value = value_of(entry)
        places = [] if value is None or not self.takes(entry) else self._by_value.get(value, [])
        if len(places) > 1:
            first, second = (shown((self.names or ())[place]) for place in places[:2])
            raise LabelError(f"{shown(entry)} is class {first} and class {second}; give classes names of other values.")
        return places[0] if places else None

    def takes(self, entry: Any) -> bool:
        """Whether it is a number, or a truth value where classes are truth values or two."""
        if isinstance(entry, str):
            is_truth_value = entry.strip().lower() in _TRUTH
        else:
            is_truth_value = isinstance(entry, (bool, np.bool_))
        return not is_truth_value or self.n_classes == 2 or self._has_truth_values

    def placed(self, entry: Any) -> int | None:
        """The class at this place, or -1 for a label that is not known; None if it is not a place."""
        value = value_of(entry) if self.takes(entry) else None
        if value is None or not UNKNOWN <= value < self.n_classes or value != int(value):
            return None
        return int(value)

    def listed(self) -> str:
        """The names, for a message."""
        names = list(self.names or ())
        return ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")


def class_indices(labels: Array, n_classes: int, names: Sequence[str] | None) -> npt.NDArray[np.int64]:
    """(N,) labels of any type as indices of classes; -1 where they are not known."""
    finder = ClassFinder(n_classes, names)
    if labels.dtype.kind == "b" and finder.only_places and n_classes != 2:
        raise LabelError(
            f"labels are booleans, which are for two classes, and there are {n_classes}; give integers from 0 to "
            f"{n_classes - 1}."
        )
    if labels.dtype.kind in "iuf" and finder.only_places:
        return _places(labels, n_classes)
    if labels.dtype.kind not in "biufUSO":
        raise LabelError(f"labels have dtype {labels.dtype}; give integers from 0 to {n_classes - 1}.")
    different, entry_of = _different(labels)
    named, placed = dict[int, int](), dict[int, int]()
    indices = np.full(len(different) + 1, UNKNOWN, np.int64)
    wrong = []
    for k, entry in enumerate(different):
        place = finder.named(entry)
        if place is not None:
            indices[k] = place
            if value_of(entry) is not None:
                named[k] = place
        elif not is_unknown(entry):
            place = finder.placed(entry)
            if place is None:
                wrong.append(k)
            elif place != UNKNOWN:
                indices[k] = placed[k] = place
    if wrong:
        n = int(np.flatnonzero(np.isin(entry_of, wrong))[0])
        raise LabelError(_not_a_class(different[entry_of[n]], n, finder))
    if named and placed:
        raise LabelError(_two_readings(different[min(named)], different[min(placed)], finder))
    return indices[entry_of]


def texts_of_labels(
    indices: npt.NDArray[np.int64], n_classes: int, names: Sequence[str] | None
) -> list[int] | list[str]:
    """Labels as they are written to be read again: names where a number might be one, else places."""
    if names is None or ClassFinder(n_classes, names).only_places:
        return list(map(int, indices))
    return [*map([*names, ""].__getitem__, indices.tolist())]  # -1, unknown, is the last


def _places(labels: Array, n_classes: int) -> npt.NDArray[np.int64]:
    """Numbers as places, NaN as -1."""
    if labels.dtype.kind == "f":
        unknown = np.isnan(labels)
        with np.errstate(invalid="ignore"):
            odd = ~unknown & ~((labels == np.floor(labels)) & (np.abs(labels) < np.float64(2**53)))
        if odd.any():
            first = int(np.flatnonzero(odd)[0])
            raise LabelError(
                f"the label of sample {first} is {labels[first]} (dtype {labels.dtype}); give integers from 0 to "
                f"{n_classes - 1}."
            )
        labels = np.where(unknown, UNKNOWN, labels).astype(np.int64)
    outside = np.flatnonzero((labels < UNKNOWN) if labels.dtype.kind == "i" else np.zeros(labels.shape, bool))
    outside = outside if outside.size else np.flatnonzero(labels >= n_classes)
    if outside.size:
        first = int(outside[0])
        raise LabelError(_not_a_class(labels[first], first, ClassFinder(n_classes)))
    return labels.astype(np.int64)


def _different(labels: Array) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """The different entries of labels, and for each label the place of its entry among them."""
    if labels.dtype.kind != "O":
        different, entry_of = np.unique(labels, return_inverse=True)
        entries = different.tolist()
        if labels.dtype.kind == "S":
            entries = [entry.decode("utf-8", "replace") for entry in entries]
        if labels.dtype.kind == "f" and labels.dtype.itemsize < 8:
            entries = list(different)
        return entries, entry_of.reshape(-1)
    places: dict[Any, int] = {}
    rows = np.empty(labels.size, np.intp)
    entries = []
    for n, given in enumerate(labels.ravel().tolist()):
        entry = given.decode("utf-8", "replace") if isinstance(given, bytes) else given
        if is_missing(entry):
            entry = None  # NaN is not equal to itself
        is_plain = isinstance(entry, (str, float, int, np.generic, type(None)))
        key = (type(entry), entry) if is_plain else n
        rows[n] = places.setdefault(key, len(places))
        if rows[n] == len(entries):
            entries.append(entry)
    return entries, rows


def order_of_classes(names: Sequence[str] | None, wanted: Sequence[str] | None, n_classes: int) -> list[int] | None:
    """For each of the wanted classes its place among ``names``; None where these are other classes.

    Classes without names are 0, 1, 2, ... where the others are called by these numbers, and in order otherwise.
    """
    counting = [str(l) for l in range(n_classes)]
    is_named = names is not None and wanted is not None
    finder = ClassFinder(n_classes, counting if names is None else names)
    places = [finder.named(name) for name in (counting if wanted is None else wanted)]
    order = [place for place in places if place is not None]
    if len(order) == n_classes == len(set(order)):
        return order
    return None if is_named else list(range(n_classes))


def is_class_column(name: str) -> bool:
    """Whether a column may be a class, by its name."""
    return name.lower() not in NEVER_CLASSES and _INDEX.fullmatch(name) is None


def columns_of_classes(columns: Sequence[str], where: str) -> list[str]:
    """The columns that may be classes; a warning names those that are left out."""
    classes = list(filter(is_class_column, columns))
    if len(classes) < len(columns):
        left_out = [repr(name) for name in columns if not is_class_column(name)]
        several = len(left_out) > 1
        warn_caller(
            f"{where}: column{'s' * several} {', '.join(left_out)} {'are' if several else 'is'} not read as a class; "
            f"the classes are {ClassFinder(0, classes).listed()}.  Others are chosen with class_columns=, and in "
            "data frames with class_names=.",
            AmbiguousInputWarning,
        )
    return classes


def order_of_columns(columns: Sequence[str] | None, wanted: Sequence[str], where: str) -> list[int] | None:
    """The places of the wanted classes among a source's columns; None if they are in order already."""
    order = None
    if columns is None or len(columns) == len(wanted):
        order = order_of_classes(columns, wanted, len(wanted))
    if order is None:
        own, others = set(columns or ()), set(wanted)
        missing = [name for name in wanted if name not in own]
        extra = [name for name in columns or () if name not in others]
        problem = f"no column {missing[0]!r}" if missing else f"a column {extra[0]!r} that others lack"
        raise ShapeError(
            f"{where} has {problem}; all sources must have one column per class, and its columns are read as the "
            f"classes {ClassFinder(0, columns).listed()}: choose with class_columns=."
        )
    return None if order == list(range(len(order))) else order


def _not_a_class(entry: Any, n: int, finder: ClassFinder) -> str:
    """What to say about a label that is neither a name nor a place."""
    n_classes, value = finder.n_classes, value_of(entry)
    is_whole_value = value is not None and finder.takes(entry) and abs(value) < 2**62 and value == int(value)
    if is_whole_value and finder.only_places:
        return (
            f"the label of sample {n} is {value}; with {n_classes} classes labels go from 0 to {n_classes - 1}, and -1 "
            "where they are not known."
        )
    if finder.names is not None and (isinstance(entry, str) or is_whole_value):
        return f"the label of sample {n} is {shown(entry)}, and the classes are: {finder.listed()}."
    if isinstance(entry, str) and value is None:
        return (
            f"labels are names ({shown(entry)}, ...), and the predictions have no class_names; give integers, or "
            "predictions with class_names."
        )
    return f"the label of sample {n} is {shown(entry)}; give integers from 0 to {n_classes - 1}."


def _two_readings(named: Any, placed: Any, finder: ClassFinder) -> str:
    """What to say where some labels are names, and others can only be places."""
    return (
        f"the label {shown(named)} is the name of a class and the label {shown(placed)} is not (the classes are: "
        f"{finder.listed()}), so that labels may be names or places; give names of classes, which places have in "
        "class_names[place]."
    )
