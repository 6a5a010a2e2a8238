"""Calibrated predictions in files: .npz, .npy, .csv and .parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical._atomic import as_path, atomic_file
from veridical._extras import require
from veridical.errors import FileFormatError, ParameterError

if TYPE_CHECKING:
    from veridical.evaluation.applying import Calibrated

#: Columns of a table before those of the classes.
_COLUMNS = ("id", "label", "confidence")


def check_calibrated_target(path: str | os.PathLike[str]) -> Path:
    """Where calibrated predictions may be written; commands ask before they start to work."""
    target = as_path(path)
    if target.suffix.lower() not in _WRITERS:
        raise FileFormatError(
            f"calibrated predictions cannot be written to {str(target)!r}; use the extension {', '.join(_WRITERS)}."
        )
    return target


def write_calibrated(calibrated: Calibrated, path: Path) -> None:
    """Write a file, which is complete or absent."""
    _WRITERS[check_calibrated_target(path).suffix.lower()](calibrated, path)


def _write_npz(calibrated: Calibrated, path: Path) -> None:
    arrays = {"probs": calibrated.probs, "confidence": calibrated.confidence, "prediction": calibrated.prediction}
    for name in ("labels", "class_names", "sample_ids", "groups"):
        entries = getattr(calibrated, name)
        if entries is not None:
            arrays[name] = np.asarray(entries)
    with atomic_file(path) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]


def _write_npy(calibrated: Calibrated, path: Path) -> None:
    with atomic_file(path) as stream:
        np.save(stream, calibrated.probs)


def table_of(calibrated: Calibrated) -> dict[str, list[Any] | Any]:
    """Columns of a table, one row per sample: id, label, confidence, and the probability of each class."""
    from veridical.predictions.files.file_checks import SURROGATES, reject_names  # a server needs no files

    n_classes = calibrated.probs.shape[-1]
    names = calibrated.class_names or tuple(str(label) for label in range(n_classes))
    taken = next((name for name in _COLUMNS if name in names), None)
    if taken is not None:
        raise ParameterError(f"a class is called {taken!r}, which a table cannot hold; rename it or write a .npz.")
    reject_names({"class": names, "sample": calibrated.sample_ids}, SURROGATES, "table", ".npz")
    labels = calibrated.prediction.ravel().tolist()
    ids = calibrated.sample_ids
    columns: dict[str, list[Any] | Any] = {
        "id": list(range(len(labels))) if ids is None else ids.tolist(),
        "label": labels if calibrated.class_names is None else [names[label] for label in labels],
        "confidence": calibrated.confidence.ravel(),
    }
    return columns | dict(zip(names, calibrated.probs.reshape(-1, n_classes).T, strict=True))


def _write_csv(calibrated: Calibrated, path: Path) -> None:
    columns = table_of(calibrated)
    # Python writes the shortest text of a float64, NumPy that of any precision.
    texts = [
        column if isinstance(column, list) else column.tolist() if column.dtype == np.float64 else column.astype(str)
        for column in columns.values()
    ]
    with atomic_file(path) as file:
        stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*texts, strict=True))
        stream.detach()


def _write_parquet(calibrated: Calibrated, path: Path) -> None:
    pyarrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    columns = {
        name: column if isinstance(column, list) else np.ascontiguousarray(column)
        for name, column in table_of(calibrated).items()
    }
    with atomic_file(path) as file:
        parquet.write_table(pyarrow.table(columns), file, compression="zstd", write_page_checksum=True)


_WRITERS: dict[str, Callable[[Any, Path], None]] = {
    ".npz": _write_npz,
    ".npy": _write_npy,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
