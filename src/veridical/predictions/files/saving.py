"""``save``: Predictions to a file, which is complete or absent."""

from __future__ import annotations

import os
from pathlib import Path

from veridical._atomic import as_path
from veridical.errors import AmbiguousInputWarning, FileFormatError, ParameterError, warn_caller
from veridical.predictions.container import Predictions
from veridical.predictions.files.contents import Format, declared_kind
from veridical.predictions.files.formats import format_with, suffixes_with
from veridical.predictions.sample_ids import check_sample_ids

#: Added to names without a suffix: the format that keeps everything and needs no extra.
_DEFAULT = ".npz"


def save(predictions: Predictions, path: str | os.PathLike[str]) -> Path:
    """Write predictions to a file, which is complete or absent.

    Parameters
    ----------
    predictions : Predictions
    path : path
        The suffix decides the format: ``.npz`` (the default without a suffix), ``.zarr`` and tables such as ``.csv``
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
    format = format_with("write", target)
    if format is None:
        writable = ", ".join(suffixes_with("write"))
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
    _check_loss(predictions, format, target)
    format.write(predictions, target)
    return target


def _check_loss(predictions: Predictions, format: Format, target: Path) -> None:
    """Refuse ids that could not be read again, and warn of what the file does not hold."""
    if predictions.sample_ids is not None:
        check_sample_ids(
            predictions.sample_ids, predictions.n_samples, f"{target} can hold each sample once, and these sample_ids"
        )
    lost = []
    if predictions.is_votes:
        lost.append("that these are votes: they are read as probabilities of 0 and 1; keep the table of votes")
    if len(predictions.sample_shape) > 1 and not format.keeps_images:
        shape = " x ".join(map(str, predictions.sample_shape))
        lost.append(f"the shape of images ({shape}): pixels are read as samples; save a {_DEFAULT}")
    for problem in lost:
        warn_caller(f"{target} does not hold {problem}.", AmbiguousInputWarning)
