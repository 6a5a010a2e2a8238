"""``load``: Predictions from a file, a directory or a pattern."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import as_path
from veridical.errors import (
    FileFormatError,
    InvalidInputError,
    ParameterError,
)
from veridical.predictions.classes import is_counting
from veridical.predictions.container import Predictions
from veridical.predictions.contents import Contents
from veridical.predictions.files.contents import Request, settle_kind
from veridical.predictions.files.file_checks import reading
from veridical.predictions.files.format_zarr import ZARR, is_zarr
from veridical.predictions.files.formats import format_of, read_labels, suffixes_with
from veridical.predictions.files.source_files import is_pattern, read_directory, read_files, read_pattern
from veridical.predictions.labels import warn_of_order, warn_of_unnamed_classes
from veridical.predictions.validation import Array, InputKind


def load(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    labels: Any = None,
    *,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    class_axis: int | None = None,
    group_column: str | None = None,
    class_columns: Sequence[str] | None = None,
    renormalize: bool = False,
) -> Predictions:
    """Read predictions from a file, several files, a directory or a pattern.

    Parameters
    ----------
    path : path or list of paths
        A ``.npz``, ``.npy``, ``.pt``, ``.zarr`` or table (such as ``.csv``) of all sources, shape (S, N, L), or of one,
        shape (N, L); or a list of files, a directory or a pattern such as ``"run/member_*.npy"`` with one file per
        source, in natural order.  Plain arrays are mapped, not read, so that an ensemble may be larger than memory.
    labels : path or array of N labels, optional
        A ``.npy``, ``.npz``, ``.txt``, ``.json``, ``.pt``, table or a batch of CIFAR; integers from 0,
        or names of classes where the predictions have them; blank, NaN and -1 are not known.  A table with a column of
        ids is joined by them.  They replace labels in ``path``, and their file is not read as a source.
    kind : {"probs", "logits", "log_probs", "binary"}, optional
        What the numbers are.  A file may declare it: by the array's name (``.npz``, ``.pt``, ``.zarr``), by a column
        ``kind`` (tables), or by the beginning of the file's name (``logits_...npy``).  If nothing declares it, they are
        probabilities.  It is never inferred from the numbers.
    sources_axis : {0, 1, 2}, optional
        Axis of the sources in an array of three dimensions; default 0.
    class_axis : int, optional
        Axis of the classes; default the last.  2 for images with channels first, (S, N, L, H, W).
    group_column : str, optional
        Column of a table, or array of a ``.npz``, with the groups of samples; default "group" or "groups".
    class_columns : sequence of str, optional
        Columns of a table with the classes, in this order.  By default all but those with a meaning and those called
        target, fold, index and the like, which a warning names.
    renormalize : bool
        Divide each row of probabilities by its sum.  Sums of a table may be as far from one as its digits explain.

    Returns
    -------
    Predictions
        The scores, with labels and names if the file has them.

    Raises
    ------
    FileFormatError
        The file is missing, damaged, of an unknown format, or a pickle; the message says what to do.
    ParameterError
        ``kind`` contradicts what the file declares, or the layout has no such axis.

    See Also
    --------
    save : Write predictions.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import veridical as vd
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for member in range(3):
    ...     np.save(folder / f"logits_{member}.npy", np.zeros((5, 2), np.float32))
    >>> _ = (folder / "labels.txt").write_text("0\\n1\\n0\\n1\\n1\\n")
    >>> vd.load(folder)
    Predictions(3 sources, 5 samples, 2 classes, kind='logits', float32, labelled)
    """
    request = Request(
        kind, group_column, class_columns, sources_axis=sources_axis, class_axis=class_axis, renormalize=renormalize
    )
    return read_predictions(path, labels, request)


def read_predictions(path: Any, labels: Any, request: Request) -> Predictions:
    """:func:`load` what is asked for."""
    paths = _checked_paths(path)
    where = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    label_file = as_path(labels) if isinstance(labels, (str, os.PathLike)) else None
    with reading(Path(where), "predictions"):
        if len(paths) > 1:
            _reject_group_column(request, where)
            contents = read_files([Path(name) for name in paths], request, where, label_file)
        else:
            contents = _read(where, request, label_file)
    predictions = predictions_of(contents, labels, where, request)
    if contents.is_table and request.class_columns is None:
        warn_of_unnamed_classes(predictions.labels, predictions.class_names, predictions.kind, where)
    return predictions


def predictions_of(contents: Contents, labels: Any, where: str, request: Request) -> Predictions:
    """The content of a file, with labels that may be in a file of their own."""
    label_file = as_path(labels) if isinstance(labels, (str, os.PathLike)) else None
    files = contents.files or (Path(where),)
    if label_file is not None:
        labels, files = read_labels(label_file), (*files, label_file)
    warn_of_order(labels, contents.sample_ids, contents.order, where, label_file)
    class_names = _names(contents.class_names, "class_names", where)
    try:
        predictions = Predictions(
            _native_values(contents.values),
            contents.labels if labels is None else labels,
            kind=settle_kind(request.kind, contents.kind, where) or request.default_kind,
            source_names=_names(contents.source_names, "source_names", where),
            class_names=None if class_names is None or is_counting(class_names) else class_names,
            sample_ids=contents.sample_ids,
            groups=contents.groups,
            sample_shape=contents.sample_shape,
            sources_axis=0 if request.sources_axis is None else request.sources_axis,
            class_axis=request.class_axis,
            renormalize=request.renormalize,
        )
    except InvalidInputError as error:
        if where in str(error):
            raise
        raise type(error)(f"{where}: {error}") from error
    predictions.files, predictions.rounding = files, contents.rounding
    return predictions


def _checked_paths(path: Any) -> list[str]:
    """One path, or several."""
    if isinstance(path, (str, os.PathLike)):
        return [str(as_path(path))]
    if not isinstance(path, (list, tuple)) or not all(isinstance(entry, (str, os.PathLike)) for entry in path):
        raise ParameterError(
            f"path is a {type(path).__name__}; give a path, or make veridical.Predictions of an array."
        )
    if not path:
        raise ParameterError("path is an empty list; give at least one file.")
    return [str(as_path(entry)) for entry in path]


def _reject_group_column(request: Request, where: str) -> None:
    if request.group_column is not None:
        formats = ", ".join(suffixes_with("has_columns"))
        raise ParameterError(f"{where} has no column {request.group_column!r}; columns are read from {formats}.")


def _read(where: str, request: Request, label_file: Path | None) -> Any:
    path = Path(where)
    if request.group_column is not None and not (path.is_file() and format_of(path).has_columns):
        _reject_group_column(request, where)
    if is_pattern(where):
        return read_pattern(where, request, label_file)
    if is_zarr(path):
        return ZARR.read(path, request)
    if path.is_dir() and path.suffix.lower() not in ZARR.suffixes:
        return read_directory(path, request, label_file)
    if not path.exists():
        raise FileFormatError(f"{where} does not exist; check the name.")
    return format_of(path).read(path, request)


def _native_values(values: Array | Sequence[Array]) -> Any:
    """Numbers in the machine's byte order, which compiled loops need; views where possible."""
    if not isinstance(values, np.ndarray):
        return [_native_values(source) for source in values]
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _names(names: Any, what: str, where: str) -> list[str] | None:
    """Names from a file, which must be a list of strings or numbers."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, (str, int)) for name in names):
        raise FileFormatError(f"{where}: {what} is not a list of strings; write one name each.")
    return [str(name) for name in names]
