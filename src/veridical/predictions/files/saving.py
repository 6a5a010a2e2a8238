"""``save``: from Predictions to a file that is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from veridical._atomic import as_path
from veridical.errors import FileFormatError, ParameterError
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import declared_kind
from veridical.predictions.files.formats import FORMATS

#: What a name without suffix gets: the format that keeps everything and needs nothing.
_DEFAULT = ".npz"


def save(predictions: Predictions, path: str | os.PathLike[str]) -> Path:
    """Write predictions to a file, which appears whole or not at all.

    Parameters
    ----------
    predictions : Predictions
    path : path
        The suffix says how: ``.npz`` (also where there is no suffix), ``.zarr``, ``.csv`` and ``.parquet`` in long form
        keep scores, kind, labels and names; ``.npy`` keeps the scores alone, and its name must begin with the kind
        (as in ``logits_mine.npy``) unless they are probabilities.

    Returns
    -------
    pathlib.Path
        Where they are.

    Raises
    ------
    StorageError
        The file cannot be written; what was there before is still there.
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
            f"the name {target.name} says {declared!r}, and the predictions are {predictions.kind!r}; choose another."
        )
    if not format.keeps_kind and declared is None and predictions.kind != "probs":
        raise ParameterError(
            f"{target.name} would hold numbers alone, and be read as probabilities where they are {predictions.kind}; "
            f"call it {predictions.kind}_{target.name}, or save a {_DEFAULT}."
        )
    format.write(predictions, target)
    return target
