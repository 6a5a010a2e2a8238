"""Image data sets in their published file formats, read from disk."""

from __future__ import annotations

import importlib
import os

from veridical._atomic import as_path
from veridical.errors import DatasetError, VeridicalError
from veridical.predictions.validation import check_choice, check_integer
from veridical.training.data.images import ImageSet, Normalisation

#: Data set name -> module of this package with a ``read(name, directory, split)`` function and a
#: dictionary ``REQUIRED`` of the files that each data set needs, in words.
DATASETS: dict[str, str] = {
    "cifar10": "cifar",
    "cifar100": "cifar",
    "mnist": "mnist",
    "fashion-mnist": "mnist",
    "imagenet": "image_folders",
    "npz": "npz",
}

SPLITS = ("train", "test")


def load_dataset(
    name: str,
    data: str | os.PathLike[str],
    split: str = "train",
    *,
    limit: int | None = None,
) -> ImageSet:
    """Read one split of a data set from a directory (or, for ``npz``, a file).

    Parameters
    ----------
    name : {"cifar10", "cifar100", "mnist", "fashion-mnist", "imagenet", "npz"}
    data : path
        Directory of the published files; the error for a missing file says which files are needed.
    split : {"train", "test"}
        ``"test"`` is the validation split of ImageNet.
    limit : int, optional
        Take only the first ``limit`` images.

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
    path = as_path(data).expanduser()
    reader = importlib.import_module(f"{__name__}.{DATASETS[name]}")
    if not path.exists():
        raise DatasetError(f"{path} does not exist; {reader.REQUIRED[name]}.")
    try:
        images: ImageSet = reader.read(name, path, split)
    except OSError as error:
        if isinstance(error, VeridicalError):
            raise
        raise DatasetError(
            f"{error.filename or path} cannot be read ({error.strerror}); check its permissions."
        ) from error
    return images if limit is None else images.first(check_integer(limit, "limit", 1))


__all__ = ["DATASETS", "SPLITS", "ImageSet", "Normalisation", "load_dataset"]
