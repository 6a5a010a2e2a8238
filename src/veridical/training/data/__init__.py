"""Image data sets in their published forms: read from disk, never downloaded."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from veridical.errors import DatasetError
from veridical.predictions.validation import check_choice, check_integer
from veridical.training.data.images import ImageSet, Normalisation

#: Data set name -> module of this package with a ``read(name, directory, split, verify)`` function.
DATASETS: dict[str, str] = {
    "cifar10": "cifar",
    "cifar100": "cifar",
    "mnist": "idx",
    "fashion-mnist": "idx",
    "imagenet": "folder",
    "npz": "npz",
}

SPLITS = ("train", "test")


def load_dataset(
    name: str,
    data: str | os.PathLike[str],
    split: str = "train",
    *,
    limit: int | None = None,
    verify: bool = True,
) -> ImageSet:
    """Read one split of a data set from a directory (or, for ``npz``, a file).

    Parameters
    ----------
    name : {"cifar10", "cifar100", "mnist", "fashion-mnist", "imagenet", "npz"}
    data : path
        Where the published files are; the message of a failed search says which files go there.
    split : {"train", "test"}
        ``"test"`` is the validation split where the data set calls it so (ImageNet).
    limit : int, optional
        Take only the first ``limit`` images.
    verify : bool
        Refuse CIFAR's python batches whose MD5 sums are not the published ones.

    Returns
    -------
    ImageSet
        Images as uint8 (N, H, W, C), labels in 0..L-1, class names, and the usual normalisation.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> from veridical.training import load_dataset
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.npz"
    >>> np.savez(path, train_images=np.zeros((4, 16, 16, 3), np.uint8), train_labels=[0, 1, 2, 1])
    >>> load_dataset("npz", path).n_classes
    3
    """
    check_choice(name, DATASETS, "dataset")
    check_choice(split, SPLITS, "split")
    path = Path(data).expanduser()
    if not path.exists():
        raise DatasetError(f"{path} does not exist; {wanted_files(name)}.")
    reader = importlib.import_module(f"{__name__}.{DATASETS[name]}")
    images: ImageSet = reader.read(name, path, split, verify)
    return images if limit is None else images.first(check_integer(limit, "limit", 1))


def wanted_files(name: str) -> str:
    """Which files a data set needs, as half a sentence."""
    reader = importlib.import_module(f"{__name__}.{DATASETS[name]}")
    wanted: str = reader.WANTED[name]
    return wanted


__all__ = ["DATASETS", "SPLITS", "ImageSet", "Normalisation", "load_dataset", "wanted_files"]
