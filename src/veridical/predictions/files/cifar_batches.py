"""CIFAR's batches in their binary form: records of one or two label bytes and an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError

#: Bytes of an image: a red, a green and a blue plane.
PIXELS = 3 * 32 * 32


def read_batch(path: Path, label_bytes: Sequence[int] = (1, 2)) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Labels (N,) and images (N, 3072) of ``test_batch.bin``, ``test.bin`` or another batch.

    Parameters
    ----------
    path : path
    label_bytes : sequence of int
        How many label bytes a record may begin with: one in CIFAR-10, two in CIFAR-100, whose second is the fine label.
    """
    content = np.fromfile(path, dtype=np.uint8)
    for n_bytes in label_bytes:
        record = n_bytes + PIXELS
        if content.size and content.size % record == 0:
            rows = content.reshape(-1, record)
            return rows[:, n_bytes - 1].astype(np.int64), rows[:, n_bytes:]
    sizes = " or ".join(str(n_bytes + PIXELS) for n_bytes in label_bytes)
    raise CorruptFileError(
        f"{path} has {content.size} bytes, which is not a whole number of images ({sizes} bytes each); download it "
        "again."
    )
