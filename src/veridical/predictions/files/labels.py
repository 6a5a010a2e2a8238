"""Labels in a file of their own: one per sample, in the order of the samples or with their ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from veridical.errors import FileFormatError, shown
from veridical.predictions.arrays import as_text_array, check_texts
from veridical.predictions.classes import is_unknown, value_of
from veridical.predictions.files.cifar_batches import read_batch, read_published_pickle
from veridical.predictions.files.contents import Format, ReadTable
from veridical.predictions.labels import LabelTable
from veridical.predictions.validation import Array

#: Names of labels in a table, an archive or a dictionary; of CIFAR-100's two kinds of labels, the fine ones.
LABEL_NAMES = ("label", "labels", "fine_labels", "targets")
#: Names of columns that hold the ids of samples; of other columns, a single one beside the labels does.
_ID_NAMES = ("sample", "sample_id", "id", "image", "image_id", "file", "filename", "name", "key", "index")
#: The name of the ids in an archive or a dictionary.
IDS = "sample_ids"


def labels_of_table(read_table: ReadTable, path: Path) -> Array | LabelTable:
    """The column called label, or the only column, with or without a name; another column may hold ids."""
    is_certain = True

    def choose(names: list[str]) -> tuple[Sequence[str], Sequence[str]]:
        nonlocal is_certain
        column, ids, is_certain = _columns(names, path)
        return [], [names[column], *([] if ids is None else [names[ids]])]

    columns = read_table(path, choose)
    texts, *others = columns.text.values()
    name = columns.names[0]
    if columns.first_row and name.lower() not in LABEL_NAMES and _is_label(name):
        texts = [name, *texts]
    labels = as_text_array(texts, f"the labels in {path}")
    if not others:
        return labels
    if is_certain:
        return LabelTable(others[0], labels)
    swapped = LabelTable(texts, as_text_array(others[0], f"the labels in {path}"))
    return LabelTable(others[0], labels, swapped=swapped, columns=tuple(columns.names))


def _is_label(text: str) -> bool:
    """Whether the first line of a single column is a label and no name: a number, a truth value, or blank."""
    return is_unknown(text) or value_of(text) is not None


def _columns(header: Sequence[str], path: Path) -> tuple[int, int | None, bool]:
    """The places of the labels and of the ids in a table, if it has ids, and whether it is certain which is which.

    Of two columns the one beside the ids has the labels, whatever its name.
    """
    named = [place for place, name in enumerate(header) if name.lower() in LABEL_NAMES]
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


def labels_in(content: Any, path: Path) -> Any:
    """The labels themselves, or those under their name in a dictionary."""
    if not isinstance(content, dict):
        return content
    content = {_name(key): value for key, value in content.items()}
    labels = content[name_of_labels(content, path)]
    if IDS not in content:
        return labels
    ids = list(content[IDS])
    check_texts(ids, f"the ids in {path}")
    return LabelTable(ids, labels)


def _name(key: Any) -> str:
    """A key of a dictionary as text; CIFAR's are bytes."""
    return key if isinstance(key, str) else key.decode("latin-1") if isinstance(key, bytes) else shown(key)


def name_of_labels(names: Iterable[str], path: Path) -> str:
    """Of the arrays of a file beside the ids, the one with the labels."""
    names = [name for name in names if name != IDS]
    matching = [name for name in names if name in LABEL_NAMES]
    if len(matching) != 1 and len(names) != 1:
        raise FileFormatError(
            f"{path} holds {', '.join(names)[:200] or 'nothing'}; name the one with the labels: labels."
        )
    return matching[0] if matching else names[0]


def _from_txt(path: Path) -> Array:
    """One label per line; an empty line is a label that is not known."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return as_text_array(lines, f"the labels in {path}")


#: Formats that hold labels alone: text, JSON, and CIFAR's batches, binary or as published pickles.
TXT = Format((".txt",), read_labels=_from_txt)
JSON = Format((".json",), read_labels=lambda path: labels_in(json.loads(path.read_text(encoding="utf-8-sig")), path))
PICKLE = Format((".pk", ".pkl", ".pickle", ""), read_labels=lambda path: labels_in(read_published_pickle(path), path))
BATCH = Format((".bin",), read_labels=lambda path: read_batch(path)[0])
