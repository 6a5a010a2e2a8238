"""Calibrated predictions in files: tables, and archives of arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical._atomic import as_path
from veridical.errors import FileFormatError

if TYPE_CHECKING:
    from veridical.evaluation.applying import Calibrated

#: Columns of a table before those of the classes.
_COLUMNS = ("id", "label", "confidence")


def check_calibrated_target(path: str | os.PathLike[str]) -> Path:
    """Where calibrated predictions may be written; commands ask before they start to work."""
    from veridical.predictions.files.formats import FORMATS

    target = as_path(path)
    known = [suffix for suffix, format in FORMATS.items() if format.write_table or format.write_arrays]
    if target.suffix.lower() not in known:
        raise FileFormatError(
            f"calibrated predictions cannot be written to {str(target)!r}; use the extension {', '.join(known)}."
        )
    return target


def write_calibrated(calibrated: Calibrated, path: Path) -> None:
    """Write a file, which is complete or absent."""
    from veridical.predictions.files.formats import FORMATS
    from veridical.predictions.files.table_format import type_of

    target = check_calibrated_target(path)
    format = FORMATS[target.suffix.lower()]
    if format.write_table is None:
        format.write_arrays(_arrays_of(calibrated), target)
        return
    columns = table_of(calibrated)
    types = {name: type_of(column) for name, column in columns.items()}
    format.write_table(target, types, [list(columns.values())], for_spreadsheets=True)


def _arrays_of(calibrated: Calibrated) -> dict[str, Any]:
    arrays = {"probs": calibrated.probs, "confidence": calibrated.confidence, "prediction": calibrated.prediction}
    for name in ("labels", "class_names", "sample_ids", "groups"):
        entries = getattr(calibrated, name)
        if entries is not None:
            arrays[name] = np.asarray(entries)
    return arrays


def table_of(calibrated: Calibrated) -> dict[str, list[Any] | Any]:
    """Columns of a table, one row per sample: id, label, confidence, and the probability of each class."""
    # A server needs no files.
    from veridical.predictions.files.file_checks import SURROGATES, reject_names
    from veridical.predictions.files.table_format import check_class_columns

    n_classes = calibrated.probs.shape[-1]
    names = calibrated.class_names or tuple(str(label) for label in range(n_classes))
    check_class_columns(names, _COLUMNS)
    reject_names({"class": names, "sample": calibrated.sample_ids}, SURROGATES, "table", ".npz")
    labels = calibrated.prediction.ravel().tolist()
    ids = calibrated.sample_ids
    columns: dict[str, list[Any] | Any] = {
        "id": list(range(len(labels))) if ids is None else ids.tolist(),
        "label": labels if calibrated.class_names is None else [names[label] for label in labels],
        "confidence": calibrated.confidence.ravel(),
    }
    return columns | dict(zip(names, calibrated.probs.reshape(-1, n_classes).T, strict=True))
