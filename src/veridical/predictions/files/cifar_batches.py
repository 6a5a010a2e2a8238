"""CIFAR's batches: binary records of one or two label bytes and an image, or the published pickles."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, UnsafePickleError

#: Bytes of an image: a red, a green and a blue plane.
PIXELS = 3 * 32 * 32

#: Data set -> name of a python file -> published MD5 sum.
PUBLISHED = {
    "cifar10": {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    },
    "cifar100": {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
}


def read_published_pickle(path: Path) -> dict[bytes, Any]:
    """The content of one of CIFAR's python files.

    A pickle can run programs when it is loaded, so only the files whose MD5 sums were published are loaded.
    """
    content = path.read_bytes()
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if not any(checksum in sums.values() for sums in PUBLISHED.values()):
        raise UnsafePickleError(
            f"{path} is a pickle, which can run programs, and is not one of CIFAR's published files, the only pickles "
            "that are loaded; convert labels where you trust them: "
            f"numpy.save('labels.npy', pickle.load(open({path.name!r}, 'rb')))."
        )
    loaded: dict[bytes, Any] = pickle.loads(content, encoding="bytes")
    return loaded


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
