"""Any images: a ``.npz`` of uint8 pixels and integer labels."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DatasetError
from veridical.training.data.images import ImageSet, Normalisation, count_classes

WANTED = {
    "npz": "give a .npz file with train_images (N, H, W, C) as uint8, train_labels, test_images, test_labels and, if "
    "classes have names, class_names"
}


def read(name: str, path: Path, split: str, verify: bool) -> ImageSet:
    """One split; the normalisation is that of the training images, in both splits."""
    try:
        # Opened here: NumPy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            missing = [key for key in (f"{split}_images", f"{split}_labels") if key not in stored]
            if missing:
                raise DatasetError(f"{path} holds no array {missing[0]}; {WANTED[name]}.")
            images, labels = stored[f"{split}_images"], stored[f"{split}_labels"]
            names = [str(entry) for entry in stored["class_names"]] if "class_names" in stored else None
            known = [labels] + [stored[key] for key in ("train_labels", "test_labels") if key in stored]
            normalisation = _normalisation(stored, images)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DatasetError):
            raise
        raise CorruptFileError(f"{path} cannot be read as a .npz of plain arrays ({error}).") from error
    n_classes = len(names) if names is not None else count_classes(*known)
    return ImageSet.of(images, labels, n_classes=n_classes, normalisation=normalisation, class_names=names)


def _normalisation(stored: Any, images: npt.NDArray[Any]) -> Normalisation | None:
    """That of the training images where they are there and are pixels; otherwise it is left to the image set."""
    training = stored.get("train_images", images)
    if training.dtype != np.uint8 or training.ndim not in (3, 4) or 0 in training.shape:
        return None
    return Normalisation.of(training if training.ndim == 4 else training[..., None])
