"""Predictions in a table of any format: the long form (sample, source, classes), or the rows of one source."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import FileFormatError, LabelError, ShapeError
from veridical.predictions.arrays import as_text_array
from veridical.predictions.classes import columns_of_classes, is_counting, is_unknown, is_whole, value_of
from veridical.predictions.contents import Contents
from veridical.predictions.files.contents import ReadTable, Request, declared_kind, settle_kind
from veridical.predictions.files.file_checks import missing_column
from veridical.predictions.sums import rounding_of
from veridical.predictions.validation import INPUT_KINDS, Array, check_choice
from veridical.predictions.votes import is_header_of_votes

#: Columns with a meaning, and other names of the column ``sample``.
RESERVED = ("sample", "source", "label", "group", "kind", "dtype")
_SAMPLE_NAMES = ("id", "sample_id")
PRECISIONS = ("float16", "float32", "float64")

#: A table with a smaller share of all (sample, source) pairs is not an ensemble, and would fill memory with NaN.
_LEAST_COVERAGE = 0.01
_SMALL = 4_000_000


@dataclass
class _Table:
    """Rows of scores (R, L) under class names, and the columns with a meaning as text ("" if empty)."""

    path: Path
    class_names: list[str]
    scores: Array
    text: Mapping[str, Sequence[str]]


def read_predictions(read_table: ReadTable, path: Path, request: Request) -> Contents:
    """The predictions of a table, whose columns ``read_table`` reads."""
    meanings: dict[str, str] = {}
    classes: list[str] = []

    def choose(names: list[str]) -> tuple[Sequence[str], Sequence[str]]:
        meanings.update(_meanings(names, request, path))
        classes.extend(_classes(names, meanings, request, path))
        return classes, list(dict.fromkeys(meanings.values()))

    columns = read_table(path, choose)
    text = {meaning: columns.text[name] for meaning, name in meanings.items()}
    return _contents_of(_Table(path, classes, columns.numbers, text), request)


def _meanings(names: list[str], request: Request, path: Path) -> dict[str, str]:
    """The columns to read beside the classes, by what they mean; the caller may choose the groups and the classes.

    In a table of calibrated predictions, which has the columns id, label and confidence, the label is a predicted one
    and is not read.
    """
    group, chosen = request.group_column, request.class_columns or ()
    for name in (*chosen, *([] if group is None else [group])):
        if name not in names:
            raise missing_column(path, name, names)
    result = {name: name for name in RESERVED if name in names and name not in (*chosen, group)}
    if group is not None:
        result["group"] = group
    aliases = [name for name in names if name in _SAMPLE_NAMES and name not in (*chosen, group)]
    if len(aliases) == 1 and "sample" not in result:
        result["sample"] = aliases[0]
        if _is_calibrated(names):
            result.pop("label", None)
    return result


def _classes(names: list[str], meanings: Mapping[str, str], request: Request, path: Path) -> list[str]:
    """The class columns of a table."""
    if request.class_columns is not None:
        return list(request.class_columns)
    if len(names) == 1 and re.search(r"[;\t]", names[0]):
        raise FileFormatError(f"{path} separates its columns by something other than commas; write commas.")
    if "" in names:
        raise FileFormatError(
            f"column {names.index('') + 1} of {path} has no name; give each class its column name, and leave row "
            "numbers out (pandas: to_csv(index=False))."
        )
    if all(value_of(name) is not None for name in names) and not all(is_whole(name) for name in names):
        raise FileFormatError(
            f"{path} starts with numbers; write the columns' names on its first line, or choose them with "
            "class_columns= if they are names of classes."
        )
    if is_header_of_votes(names):
        raise FileFormatError(
            f"{path} has votes (columns {', '.join(names)}) and no probabilities; use 'veridical jury' or "
            'veridical.judge, or pass kind="labels".'
        )
    if "source" in meanings and "sample" not in meanings:
        raise FileFormatError(f"{path} has a column source and no column sample; add the sample of each row.")
    without = {*RESERVED, *meanings.values(), *["confidence"] * _is_calibrated(names)}
    classes = columns_of_classes([name for name in names if name not in without], str(path))
    if not classes:
        raise ShapeError(_few_classes(path, names, 0))
    return classes


def _is_calibrated(names: Sequence[str]) -> bool:
    return {"label", "confidence"} <= set(names) and not {"sample", "source"} & set(names)


def _few_classes(path: Path, names: Sequence[str], n_classes: int) -> str:
    return (
        f"{path} has {n_classes} class column{'s' * (n_classes != 1)} (columns: {', '.join(names)}); write one column "
        'per class, at least two, or pass kind="binary" for the probability of the positive class alone.'
    )


def _contents_of(table: _Table, request: Request) -> Contents:
    """The scores of a table as an array."""
    if not len(table.scores):
        raise FileFormatError(f"{table.path} has column names and no rows; write it again.")
    scores = table.scores
    precision = _constant(table, "dtype", PRECISIONS)
    if precision is not None:
        with np.errstate(over="ignore"):  # numbers beyond the precision's range become infinite
            scores = scores.astype(precision)
    kind: Any = _constant(table, "kind", INPUT_KINDS)
    kind = settle_kind(kind, declared_kind(table.path), f"the name of {table.path}")
    is_binary = "binary" in (request.kind, kind)
    if len(table.class_names) < 2 and not is_binary:
        raise ShapeError(_few_classes(table.path, [*table.text, *table.class_names], len(table.class_names)))
    if len(table.class_names) > 1 and is_binary:
        raise ShapeError(
            f"{table.path} has {len(table.class_names)} class columns; binary scores are one column, the probability "
            "of the positive class."
        )
    read = _long_form if "source" in table.text else _one_source
    contents = read(table, scores)
    contents.kind, contents.is_table = kind, True
    contents.rounding = 0.0 if is_binary else rounding_of(scores)
    if is_binary:
        contents.values = np.asarray(contents.values)[..., 0]
    else:
        contents.class_names = table.class_names
    return contents


def _constant(table: _Table, column: str, choices: Sequence[str]) -> str | None:
    """The value of a column that must be the same in all rows, or None without the column."""
    if column not in table.text:
        return None
    values = sorted(set(table.text[column]))
    if len(values) > 1:
        raise FileFormatError(
            f"column {column} of {table.path} has both {values[0]!r} and {values[1]!r}; write one file for each."
        )
    return check_choice(values[0], choices, f"{table.path}: {column}")


def _long_form(table: _Table, scores: Array) -> Contents:
    """One row per sample and source, in any order; missing pairs become rows of NaN."""
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
        source_names=None if is_counting(sources) else sources,
        sample_ids=_ids(samples, table.path),
        groups=_groups(table, sample, samples),
        order=_order(sample),
    )


def _one_source(table: _Table, scores: Array) -> Contents:
    """One row per sample, in the order of the file, or of the samples if they are numbers."""
    if "sample" not in table.text:
        rows = np.arange(len(scores))
        names = [str(row) for row in rows]
        return Contents(scores, labels=_labels(table, rows, names), groups=_groups(table, rows, names))
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
    return Contents(
        values,
        labels=_labels(table, sample, samples),
        sample_ids=_ids(samples, table.path),
        groups=_groups(table, sample, samples),
        order=_order(sample),
    )


def _order(sample: Array) -> str:
    """That samples are sorted, where they first appear in another order than their places."""
    highest = np.maximum.accumulate(sample)
    was_sorted = highest.size and (highest[0] > 0 or (np.diff(highest) > 1).any())
    return "their numbers, not of its rows" if was_sorted else ""


def _labels(table: _Table, sample: Array, samples: Sequence[str]) -> Array | None:
    """One label per sample, blank where there is none."""
    chosen = _per_sample(table, "label", sample, samples)
    if chosen is None or all(map(is_unknown, chosen)):
        return None
    return as_text_array(chosen, f"the labels in {table.path}")


def _groups(table: _Table, sample: Array, samples: Sequence[str]) -> Array | None:
    """One group per sample."""
    chosen = _per_sample(table, "group", sample, samples)
    if chosen is None:
        return None
    if "" in chosen:
        raise FileFormatError(
            f"{table.path} has no group for sample {samples[chosen.index('')]}; write one in each row."
        )
    return _ids(chosen, table.path, counting=True)


def _per_sample(table: _Table, column: str, sample: Array, samples: Sequence[str]) -> list[str] | None:
    """What a column holds for each sample; the rows of a sample must not contradict each other."""
    if column not in table.text:
        return None
    chosen = [""] * len(samples)
    for place, entry in zip(sample.tolist(), table.text[column], strict=True):
        if entry and chosen[place] not in ("", entry):
            raise LabelError(
                f"{table.path} has {column} {chosen[place]} and {column} {entry} for sample {samples[place]}; keep one."
            )
        chosen[place] = entry or chosen[place]
    return chosen


def _ids(names: Sequence[str], path: Path, *, counting: bool = False) -> Array | None:
    """Names as ids: numbers where all are, and None where they only count, unless ``counting`` is wanted."""
    if is_counting(names) and not counting:
        return None
    if all(is_whole(name) and str(int(name)) == name for name in names):
        return np.asarray([int(name) for name in names], np.int64)
    return as_text_array(names, f"a column of {path}")


def _places(names: Sequence[str], *, only_counting: bool = False) -> tuple[list[str], Array]:
    """The different names, and for each row the index of its name among them.

    Whole numbers are in numerical order, so that labels in another file fit; other names are in order of appearance,
    and so are numbers with ``only_counting``, unless they are 0, 1, 2, ...
    """
    places: dict[str, int] = {}
    rows = np.fromiter((places.setdefault(name, len(places)) for name in names), np.intp, len(names))
    different = list(places)
    if not all(is_whole(name) for name in different):
        return different, rows
    order = sorted(range(len(different)), key=lambda place: int(different[place]))
    if only_counting and not is_counting([different[place] for place in order]):
        return different, rows
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return [different[place] for place in order], rank[rows]
