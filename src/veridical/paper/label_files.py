"""Labels from the files they are published in: pickled lists, CIFAR's test batches in both forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, LabelError
from veridical.predictions.safe_pickle import load_plain_pickle

#: Under which names dictionaries keep the labels of a test set; the first that is there is taken.
_KEYS = ("fine_labels", "labels", "test_labels", "y_test", "targets", "test")
_PICKLES = (".pk", ".pkl", ".pickle", "")
_PIXELS = 3 * 32 * 32


def read_labels(path: str | Path) -> npt.NDArray[np.int64] | Path:
    """Labels from a pickle or a CIFAR batch; any other file is left to :func:`veridical.load`, as its path.

    Pickles are read without running anything in them: what is neither a number, text, a container nor an array is
    refused.

    Parameters
    ----------
    path : path
        ``*.pk``, ``*.pkl``, ``*.pickle`` or a file without suffix (CIFAR's ``test_batch`` and ``test``): a pickled
        sequence of integers, or a dictionary that holds one.  ``*.bin``: a CIFAR batch in its binary form.

    Returns
    -------
    (N,) int64 array, or the path

    Examples
    --------
    >>> import pickle, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cifar10-labels.pk"
    >>> _ = path.write_bytes(pickle.dumps({"labels": [3, 8, 8]}))
    >>> read_labels(path)
    array([3, 8, 8])
    """
    file = Path(path)
    if file.suffix == ".bin":
        return _from_binary_batch(file)
    if file.suffix in _PICKLES and not file.is_dir():
        return _integers(_labels_in(load_plain_pickle(file), file), file)
    return file


def _from_binary_batch(file: Path) -> npt.NDArray[np.int64]:
    """The label byte of each record: the only one in CIFAR-10, the second (the fine label) in CIFAR-100."""
    try:
        content = np.fromfile(file, dtype=np.uint8)
    except OSError as error:
        raise CorruptFileError(f"{file} cannot be read ({error.strerror}).") from error
    for label_bytes in (1, 2):
        record = label_bytes + _PIXELS
        if content.size and content.size % record == 0:
            return content.reshape(-1, record)[:, label_bytes - 1].astype(np.int64)
    raise CorruptFileError(
        f"{file} has {content.size} bytes, which is no whole number of CIFAR images ({1 + _PIXELS} or {2 + _PIXELS} "
        "bytes each); fetch it again."
    )


def _labels_in(stored: Any, file: Path) -> Any:
    """The labels themselves, out of the dictionaries around them."""
    if not isinstance(stored, dict):
        return stored
    named = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in stored.items()}
    for key in _KEYS:
        if key in named:
            return _labels_in(named[key], file)
    raise LabelError(
        f"{file} holds {', '.join(sorted(map(str, named))) or 'nothing'} and none of the names that labels go by "
        f"({', '.join(_KEYS)}); write the labels to a .npy file and give that."
    )


def _integers(stored: Any, file: Path) -> npt.NDArray[np.int64]:
    try:
        labels = np.asarray(stored)
    except ValueError:
        labels = np.asarray(None)
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise LabelError(f"{file} holds no plain list of integer labels; write them to a .npy file and give that.")
    return labels.astype(np.int64)
