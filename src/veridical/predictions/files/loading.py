"""``load``: from a file, a directory or a pattern to Predictions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import FileFormatError, InvalidInputError, ParameterError, ShapeError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Contents, reading, settle_kind
from veridical.predictions.files.formats import FORMATS, format_of
from veridical.predictions.files.labels import load_labels
from veridical.predictions.files.members import is_pattern, read_directory, read_pattern
from veridical.predictions.files.zarr_files import is_zarr
from veridical.predictions.validation import KINDS, Array, Kind, check_choice


def load(
    path: str | os.PathLike[str],
    labels: Any = None,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
) -> Predictions:
    """Read predictions from a file, a directory or a pattern.

    Parameters
    ----------
    path : path
        A ``.npz``, ``.npy``, ``.csv``, ``.parquet``, ``.pt`` or ``.zarr`` of all sources, shape (S, N, L), or of one,
        shape (N, L); or a directory or a pattern such as ``"run/member_*.npy"`` with one file per source.  Plain arrays
        are mapped, not read, so that an ensemble may be larger than memory.
    labels : path or array of N labels, optional
        A ``.npy``, ``.npz``, ``.txt``, ``.csv``, ``.json``, ``.parquet``, ``.pt`` or a plain pickle; integers from 0,
        or names of classes where the predictions have them.  They take the place of labels in ``path``.
    kind : {"probs", "logits", "log_probs"}, optional
        What the numbers are.  A file may declare it: by the array's name (``.npz``, ``.pt``, ``.zarr``), by a column
        ``kind`` (tables), or by how the file's name begins (``logits_...npy``).  Where nothing declares it, they are
        probabilities.  The numbers themselves are never consulted.
    sources_axis : {0, 1, 2}, optional
        Where the sources are in an array of three dimensions; 0 unless said otherwise.

    Returns
    -------
    Predictions
        The scores, with labels and names where there are any.

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
    if kind is not None:
        check_choice(kind, KINDS, "kind")
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(
            f"path is a {type(path).__name__}; give a path, or make veridical.Predictions of an array."
        )
    where = os.fspath(path)
    with reading(Path(where), "predictions"):
        contents = _read(where, kind)
    files = contents.files or (Path(where),)
    if isinstance(labels, (str, os.PathLike)):
        files = (*files, Path(labels))
    class_names = _names(contents.class_names, "class_names", where)
    settled = settle_kind(kind, contents.kind, where) or "probs"
    values = _sources_first(contents.values, sources_axis, where)
    try:
        predictions = Predictions(
            values,
            load_labels(contents.labels if labels is None else labels, class_names),
            kind=settled,
            source_names=_names(contents.source_names, "source_names", where),
            class_names=class_names,
        )
    except InvalidInputError as error:
        if where in str(error):
            raise
        raise type(error)(f"{where}: {error}") from error
    predictions.files = files
    return predictions


def _read(where: str, kind: Kind | None) -> Contents:
    path = Path(where)
    if is_pattern(where):
        return read_pattern(where, kind)
    if is_zarr(path):
        return FORMATS[".zarr"].read(path, kind)
    if path.is_dir() and path.suffix.lower() != ".zarr":
        return read_directory(path, kind)
    if not path.exists():
        raise FileFormatError(f"{where} does not exist; check the name.")
    return format_of(path).read(path, kind)


def _sources_first(values: Array | Sequence[Array], sources_axis: int | None, where: str) -> Any:
    """The scores as (S, N, L) or as a list of (N, L), as the machine's own numbers; views where possible."""
    if sources_axis is not None and (sources_axis not in (0, 1, 2) or isinstance(sources_axis, bool)):
        raise ParameterError(f"sources_axis is {sources_axis!r}; it is 0, 1 or 2, where the sources are in the array.")
    if not isinstance(values, np.ndarray):
        if sources_axis:
            raise ParameterError(f"{where} has one array per source, so that sources_axis means nothing; leave it out.")
        return [_native(source) for source in values]
    if values.ndim not in (2, 3):
        raise ShapeError(
            f"{where} holds an array of shape {values.shape}; save (sources, samples, classes), or (samples, classes) "
            "for one source."
        )
    if values.ndim == 2:
        if sources_axis:
            raise ParameterError(f"{where} holds one source, shape {values.shape}; leave sources_axis out.")
        return _native(values)[None]
    return np.moveaxis(_native(values), sources_axis or 0, 0)


def _native(array: Array) -> Array:
    """Numbers in this machine's byte order, which is what compiled loops read."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _names(names: Any, what: str, where: str) -> list[str] | None:
    """Names that a file brings, if they are a list of strings or numbers."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, (str, int)) for name in names):
        raise FileFormatError(f"{where}: {what} is no list of strings; write one name each.")
    return [str(name) for name in names]
