"""Labels in a file of their own: one per sample, in the order of the samples or with their ids."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import CorruptFileError, FileFormatError, LabelError, shown
from veridical.predictions.arrays import as_text_array, check_texts
from veridical.predictions.classes import is_unknown, value_of
from veridical.predictions.files.file_checks import check_is_file, reading
from veridical.predictions.files.format_npy import map_npy
from veridical.predictions.files.format_npz import NpzArrays
from veridical.predictions.labels import LabelTable
from veridical.predictions.validation import Array

#: Names of labels in a table, an archive or a dictionary; of CIFAR-100's two kinds of labels, the fine ones.
_NAMES = ("label", "labels", "fine_labels", "targets")
#: Names of columns that hold the ids of samples; of other columns, a single one beside the labels does.
_ID_NAMES = ("sample", "sample_id", "id", "image", "image_id", "file", "filename", "name", "key", "index")
#: The name of the ids in an archive or a dictionary.
_IDS = "sample_ids"


def read_labels(path: Path) -> Array | LabelTable:
    """One label per sample from a file of any format in ``READERS``; with ids where a table has a column of them."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise FileFormatError(
            f"{path} has the suffix {path.suffix}; labels come as {', '.join(filter(None, READERS))}, or a file "
            "without suffix as published with CIFAR."
        )
    check_is_file(path, "a file of labels")
    with reading(path, "labels"):
        content = reader(path)
        table = content if isinstance(content, LabelTable) else None
        listed = content if table is None else table.labels
        check_texts(listed, f"the labels in {path}")
        labels = np.asarray(listed)
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iufbSUO" or _holds_lists(labels):
        raise LabelError(
            f"{path} holds labels of shape {labels.shape} and dtype {labels.dtype}; write one integer per sample."
        )
    return labels if table is None else replace(table, labels=labels, where=str(path))


def _holds_lists(labels: Array) -> bool:
    """Whether labels are Python objects other than numbers, texts and None."""
    plain = (str, bytes, int, float, type(None))
    return labels.dtype.kind == "O" and not all(isinstance(entry, plain) for entry in labels.tolist())


def _as_texts(texts: Sequence[str], path: Path) -> Array:
    return as_text_array(texts, f"the labels in {path}")


def _from_txt(path: Path) -> Array:
    """One label per line; an empty line is a label that is not known."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return _as_texts(lines, path)


def _from_csv(path: Path) -> Array | LabelTable:
    """The column called label, or the only column, with or without a name; another column may hold ids."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file, strict=True))
    while rows and not rows[-1]:
        rows.pop()
    header = [name.strip() for name in rows[0]] if rows else []
    # In a table of one column an empty line is a label that is not known.
    rows = [row or [""] for row in rows] if len(header) == 1 else [row for row in rows if row]
    column, ids, is_certain = _columns(header, path)
    uneven = next((line for line, row in enumerate(rows) if len(row) != len(header)), None)
    if uneven is not None:
        raise CorruptFileError(f"row {uneven + 1} of {path} has {len(rows[uneven])} entries, not {len(header)}.")
    has_header = len(header) > 1 or header[0].lower() in _NAMES or not _is_label(header[0])
    rows = rows[has_header:]
    entries = None if ids is None else [row[ids].strip() for row in rows]
    return _table_of([row[column].strip() for row in rows], entries, None if is_certain else header, path)


def _is_label(text: str) -> bool:
    """Whether the first line of a single column is a label and no name: a number, a truth value, or blank."""
    return is_unknown(text) or value_of(text) is not None


def _columns(header: Sequence[str], path: Path) -> tuple[int, int | None, bool]:
    """The places of the labels and of the ids in a table, if it has ids, and whether it is certain which is which.

    Of two columns the one beside the ids has the labels, whatever its name.
    """
    named = [place for place, name in enumerate(header) if name.lower() in _NAMES]
    if len(named) != 1 and len(header) not in (1, 2):
        raise FileFormatError(f"{path} has columns {', '.join(header)[:200]}; name the one with the labels: label.")
    ids = [place for place, name in enumerate(header) if name.lower() in _ID_NAMES and place not in named[:1]]
    if len(named) != 1 and len(header) == 2:
        return (1 - ids[0], ids[0], True) if len(ids) == 1 else (1, 0, False)
    column = named[0] if named else 0
    others = [place for place in range(len(header)) if place != column]
    if len(ids) == 1 or len(others) == 1:
        return column, (ids or others)[0], True
    return column, None, True


def _table_of(
    texts: Sequence[str], ids: Sequence[str] | None, header: Sequence[str] | None, path: Path
) -> Array | LabelTable:
    """Labels with their ids, if there are some; with a ``header`` the two may be the other way round."""
    labels = _as_texts(texts, path)
    if ids is None:
        return labels
    swapped = None if header is None else LabelTable(texts, _as_texts(ids, path))
    return LabelTable(ids, labels, swapped=swapped, columns=tuple(header or ()))


def _from_json(path: Path) -> Any:
    return _named(json.loads(path.read_text(encoding="utf-8-sig")), path)


def _from_pickle(path: Path) -> Any:
    from veridical.predictions.files.cifar_batches import read_published_pickle

    return _named(read_published_pickle(path), path)


def _from_torch(path: Path) -> Any:
    from veridical.predictions.files.format_torch import load_tensors

    return _named(load_tensors(path), path)


def _from_cifar(path: Path) -> Array:
    from veridical.predictions.files.cifar_batches import read_batch

    return read_batch(path)[0]


def _from_parquet(path: Path) -> Array | LabelTable:
    from veridical.predictions.files.format_parquet import read_text_columns

    header: list[str] = []
    uncertain = False

    def choose(names: Sequence[str]) -> tuple[int, int | None]:
        nonlocal uncertain
        column, ids, is_certain = _columns(names, path)
        header[:], uncertain = names, not is_certain
        return column, ids

    texts, ids = read_text_columns(path, choose)
    return _table_of(texts, ids, header if uncertain else None, path)


def _from_npz(path: Path) -> Array | LabelTable:
    with NpzArrays(path) as arrays:
        labels = np.asarray(arrays[_choose([name for name in arrays.names if name != _IDS], path)])
        ids = arrays.ids_in(_IDS)
        return labels if ids is None else LabelTable(list(ids), labels)


def _named(content: Any, path: Path) -> Any:
    """The labels themselves, or those under their name in a dictionary."""
    if not isinstance(content, dict):
        return content
    content = {_name(key): value for key, value in content.items()}
    labels = content[_choose([name for name in content if name != _IDS], path)]
    if _IDS not in content:
        return labels
    ids = list(content[_IDS])
    check_texts(ids, f"the ids in {path}")
    return LabelTable(ids, labels)


def _name(key: Any) -> str:
    """A key of a dictionary as text; CIFAR's are bytes."""
    return key if isinstance(key, str) else key.decode("latin-1") if isinstance(key, bytes) else shown(key)


def _choose(names: Sequence[str], path: Path) -> str:
    matching = [name for name in names if name in _NAMES]
    if len(matching) != 1 and len(names) != 1:
        raise FileFormatError(
            f"{path} holds {', '.join(names)[:200] or 'nothing'}; name the one with the labels: labels."
        )
    return matching[0] if matching else names[0]


#: Suffix -> reader of labels.
READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": map_npy,
    ".npz": _from_npz,
    ".txt": _from_txt,
    ".csv": _from_csv,
    ".json": _from_json,
    ".parquet": _from_parquet,
    ".pt": _from_torch,
    ".pth": _from_torch,
    ".pk": _from_pickle,
    ".pkl": _from_pickle,
    ".pickle": _from_pickle,
    "": _from_pickle,
    ".bin": _from_cifar,
}
