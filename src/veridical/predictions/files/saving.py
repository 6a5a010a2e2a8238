"""``save``: Predictions to a file, which is complete or absent."""

from __future__ import annotations

import os
from pathlib import Path

from veridical._atomic import as_path
from veridical.errors import FileFormatError, ParameterError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import declared_kind
from veridical.predictions.files.formats import FORMATS

#: Added to names without a suffix: the format that keeps everything and needs no extra.
_DEFAULT = ".npz"


def save(predictions: Predictions, path: str | os.PathLike[str]) -> Path:
    """Write predictions to a file, which is complete or absent.

    Parameters
    ----------
    predictions : Predictions
    path : path
        The suffix decides the format: ``.npz`` (the default without a suffix), ``.zarr``, ``.csv`` and ``.parquet``
        keep scores, kind, labels and names; ``.npy`` keeps the scores alone, and its name must begin with the kind
        (as in ``logits_mine.npy``) unless they are probabilities.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    StorageError
        The file cannot be written; the previous file is unchanged.
    FileFormatError
        No format of that suffix can be written.

    See Also
    --------
    load : Read them again.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import veridical as vd
    >>> path = vd.save(vd.load_demo(), pathlib.Path(tempfile.mkdtemp()) / "demo.npz")
    >>> vd.load(path)
    Predictions(20 sources, 10000 samples, 10 classes, kind='logits', float16, labelled)
    """
    if not isinstance(predictions, Predictions):
        raise ParameterError(f"predictions are a {type(predictions).__name__}; make them with veridical.Predictions.")
    target = as_path(path)
    if not target.name:
        raise ParameterError(f"{target} is a directory; give a file name, as in {target / 'predictions.npz'}.")
    target = target if target.suffix else target.with_name(target.name + _DEFAULT)
    format = FORMATS.get(target.suffix.lower())
    if format is None or format.write is None:
        writable = ", ".join(suffix for suffix, known in FORMATS.items() if known.write)
        raise FileFormatError(f"{target} has the suffix {target.suffix!r}; predictions are written as {writable}.")
    declared = declared_kind(target)
    if declared is not None and declared != predictions.kind:
        raise ParameterError(
            f"the name {target.name} declares {declared!r}, and the predictions are {predictions.kind!r}; rename it."
        )
    if not format.keeps_kind and declared is None and predictions.kind != "probs":
        raise ParameterError(
            f"{target.name} would contain only numbers, and {predictions.kind} would be read as probabilities; call it "
            f"{predictions.kind}_{target.name}, or save a {_DEFAULT}."
        )
    format.write(predictions, target)
    return target
