"""Labels out of CIFAR's test batches in their binary form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError

_PIXELS = 3 * 32 * 32


def read_binary_batch(path: Path) -> npt.NDArray[np.int64]:
    """The label byte of each record: the only one in CIFAR-10, the second (the fine label) in CIFAR-100.

    Parameters
    ----------
    path : path
        ``test_batch.bin`` or ``test.bin``.

    Returns
    -------
    (N,) int64 array
    """
    try:
        content = np.fromfile(path, dtype=np.uint8)
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read ({error.strerror}).") from error
    for label_bytes in (1, 2):
        record = label_bytes + _PIXELS
        if content.size and content.size % record == 0:
            return content.reshape(-1, record)[:, label_bytes - 1].astype(np.int64)
    raise CorruptFileError(
        f"{path} has {content.size} bytes, which is no whole number of CIFAR images ({1 + _PIXELS} or {2 + _PIXELS} "
        "bytes each); fetch it again."
    )
