"""Tables of predictions, whatever file they come from: long form (sample, source, classes) or one source's rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import DtypeError, FileFormatError, LabelError, ParameterError, ShapeError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Contents, declared_kind, settle_kind
from veridical.predictions.files.labels import labels_from_text
from veridical.predictions.validation import KINDS, Array, check_choice

#: Columns with a meaning; every other column is a class.
RESERVED = ("sample", "source", "label", "kind", "dtype")
_PRECISIONS = ("float16", "float32", "float64")

#: A table of which so few (sample, source) pairs are there is no ensemble, and would fill memory with NaN.
_LEAST_COVERAGE = 0.01
_SMALL = 4_000_000
_ROWS_AT_ONCE = 4096


@dataclass
class Table:
    """Rows of scores (R, L) under class names, and the columns with a meaning as text ("" where nothing is said)."""

    path: Path
    class_names: list[str]
    scores: Array
    text: Mapping[str, Sequence[str]]


def check_header(names: Sequence[str], path: Path) -> list[str]:
    """The class columns among a table's columns."""
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise FileFormatError(f"{path} separates its columns by something other than commas; write commas.")
    if "" in names:
        raise FileFormatError(
            f"column {list(names).index('') + 1} of {path} has no name; give each class its column name, and leave row "
            "numbers out (pandas: to_csv(index=False))."
        )
    if all(_is_number(name) for name in names) and not all(is_whole(name) for name in names):
        raise FileFormatError(f"{path} starts with numbers; write the columns' names on its first line.")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise FileFormatError(f"{path} has two columns called {repeated!r}; give each column its own name.")
    if "source" in names and "sample" not in names:
        raise FileFormatError(f"{path} has a column source and none called sample; add it, to say whose row it is.")
    classes = [name for name in names if name not in RESERVED]
    if len(classes) < 2:
        raise ShapeError(
            f"{path} has {len(classes)} class column{'s' * (len(classes) != 1)} (columns: {', '.join(names)}); write "
            "one column per class, at least two."
        )
    return classes


def contents_of(table: Table) -> Contents:
    """A table's scores in their places."""
    if not len(table.scores):
        raise FileFormatError(f"{table.path} has column names and no rows; write it again.")
    scores = table.scores
    precision = _constant(table, "dtype", _PRECISIONS)
    if precision is not None:
        with np.errstate(over="ignore"):  # numbers that the precision cannot hold are infinite in it
            scores = scores.astype(precision)
    kind: Any = _constant(table, "kind", KINDS)
    kind = settle_kind(kind, declared_kind(table.path), f"the name of {table.path}")
    class_names = None if _is_counting(table.class_names) else table.class_names
    read = _long_form if "source" in table.text else _one_source
    contents = read(table, scores)
    contents.kind, contents.class_names = kind, class_names
    return contents


def _constant(table: Table, column: str, choices: Sequence[str]) -> str | None:
    """What a column says that says the same in all rows."""
    if column not in table.text:
        return None
    said = sorted(set(table.text[column]))
    if len(said) > 1:
        raise FileFormatError(
            f"column {column} of {table.path} says both {said[0]!r} and {said[1]!r}; write one file each."
        )
    return check_choice(said[0], choices, f"{table.path}: {column}")


def _long_form(table: Table, scores: Array) -> Contents:
    """One row per sample and source, in any order; what is not there becomes a row of NaN."""
    samples, sample = _places(table.text["sample"])
    sources, source = _places(table.text["source"], only_counting=True)
    n_samples, n_sources = len(samples), len(sources)
    if n_samples * n_sources > max(len(scores) / _LEAST_COVERAGE, _SMALL / scores.shape[1]):
        raise FileFormatError(
            f"{table.path} has {len(scores):,} rows for {n_samples:,} samples and {n_sources:,} sources, under 1% of "
            "all pairs; check its columns sample and source."
        )
    pair = source * n_samples + sample
    order = np.argsort(pair, kind="stable")
    again = np.flatnonzero(np.diff(pair[order]) == 0)
    if again.size:
        row = int(order[again[0] + 1])
        raise FileFormatError(
            f"{table.path} has two rows for sample {table.text['sample'][row]} of source {table.text['source'][row]}; "
            "keep one."
        )
    if len(scores) < n_samples * n_sources and scores.dtype.kind != "f":
        scores = scores.astype(np.float64)  # whole numbers have no NaN
    missing = np.nan if scores.dtype.kind == "f" else 0
    values = np.full((n_sources * n_samples, scores.shape[1]), missing, scores.dtype)
    values[pair] = scores
    return Contents(
        values.reshape(n_sources, n_samples, -1),
        labels=_labels(table, sample, samples),
        source_names=None if _is_counting(sources) else sources,
    )


def _one_source(table: Table, scores: Array) -> Contents:
    """One row per sample; in the order of the file, or of the samples' numbers."""
    if "sample" not in table.text:
        rows = np.arange(len(scores))
        return Contents(scores, labels=_labels(table, rows, [str(row) for row in rows]))
    samples, sample = _places(table.text["sample"])
    if len(samples) < len(sample):
        _, firsts = np.unique(sample, return_index=True)
        row = int(np.setdiff1d(np.arange(len(sample)), firsts)[0])
        raise FileFormatError(
            f"{table.path} has two rows for sample {table.text['sample'][row]} and no column source; add it, or keep "
            "one row per sample."
        )
    values = np.empty_like(scores)
    values[sample] = scores
    return Contents(values, labels=_labels(table, sample, samples), samples=tuple(samples))


def _labels(table: Table, sample: Array, samples: Sequence[str]) -> Array | None:
    """One label per sample, which all of its rows must agree on."""
    if "label" not in table.text:
        return None
    chosen = [""] * len(samples)
    for place, label in zip(sample.tolist(), table.text["label"], strict=True):
        if label and chosen[place] not in ("", label):
            raise LabelError(
                f"{table.path} says that sample {samples[place]} has label {chosen[place]} and label {label}; keep one."
            )
        chosen[place] = label or chosen[place]
    if not any(chosen):
        return None
    if not all(chosen):
        raise LabelError(f"{table.path} has no label for sample {samples[chosen.index('')]}; give all or none.")
    if not _named_by_numbers(table.class_names):
        return labels_from_text(chosen)
    return np.array(chosen) if set(chosen) <= set(table.class_names) else labels_from_text(chosen).astype(str)


def _named_by_numbers(names: Sequence[str]) -> bool:
    """Whether classes are called by numbers: a label is then such a name, even if it is also a column's place."""
    return all(is_whole(name) for name in names) and not _is_counting(names)


def _places(names: Sequence[str], *, only_counting: bool = False) -> tuple[list[str], Array]:
    """The different names, and for each row the place of its name among them.

    Whole numbers are in numerical order, so that labels that stand apart fit; other names in order of appearance, and
    with ``only_counting`` numbers too, unless they are 0, 1, 2, ...
    """
    places: dict[str, int] = {}
    rows = np.fromiter((places.setdefault(name, len(places)) for name in names), np.intp, len(names))
    different = list(places)
    if not all(is_whole(name) for name in different):
        return different, rows
    order = sorted(range(len(different)), key=lambda place: int(different[place]))
    if only_counting and not _is_counting([different[place] for place in order]):
        return different, rows
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return [different[place] for place in order], rank[rows]


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, of a length that a number has."""
    return re.fullmatch(r"[+-]?[0-9]{1,18}", text) is not None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_counting(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2, ...: places, not names."""
    return all(name == str(place) for place, name in enumerate(names))


def columns_to_write(predictions: Predictions) -> list[str]:
    """The class columns of predictions, if no class is called like a column with a meaning."""
    names = predictions.class_names or [str(l) for l in range(predictions.n_classes)]
    for taken in (*RESERVED, ""):
        if taken in names:
            raise ParameterError(f"a class is called {taken!r}, which a table cannot hold; rename it or save a .npz.")
    if predictions.dtype.kind == "f" and predictions.dtype.itemsize > 8:
        raise DtypeError(f"{predictions.dtype} does not fit into a table; convert the scores to float64.")
    return list(names)


def labels_to_write(predictions: Predictions) -> Sequence[Any] | None:
    """What the column label says: classes by their places, or by name where a reader takes a number for a name."""
    names = predictions.class_names
    if predictions.labels is None or names is None or not _named_by_numbers(names):
        return None if predictions.labels is None else predictions.labels.tolist()
    return [names[label] for label in predictions.labels]


def rows_to_write(predictions: Predictions) -> Iterator[tuple[Any, range, Array]]:
    """(source's name, samples, scores) in blocks: a source at a time, so that memory holds a block."""
    names = predictions.source_names or range(predictions.n_sources)
    for name, source in zip(names, predictions, strict=True):
        for start in range(0, predictions.n_samples, _ROWS_AT_ONCE):
            block = range(start, min(start + _ROWS_AT_ONCE, predictions.n_samples))
            yield name, block, np.asarray(source[block.start : block.stop], predictions.dtype.newbyteorder("="))
