"""Any images: a ``.npz`` of uint8 pixels and integer labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from veridical.errors import DatasetError
from veridical.predictions.files.format_npz import NpzArrays
from veridical.training.data.images import ImageSet, Normalisation, count_classes

REQUIRED = {
    "npz": "give a .npz file with train_images (N, H, W, C) as uint8, train_labels, test_images, test_labels and, if "
    "classes have names, class_names"
}


def read(name: str, path: Path, split: str) -> ImageSet:
    """One split; both are normalised by the training images, if the file has them."""
    with NpzArrays(path) as arrays:
        for required in (f"{split}_images", f"{split}_labels"):
            if required not in arrays.names:
                raise DatasetError(f"{path} has no array {required}; {REQUIRED[name]}.")
        images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
        class_names = arrays.names_in("class_names")
        if class_names is None:
            all_labels = [arrays[key] for key in ("train_labels", "test_labels") if key in arrays.names]
            n_classes = count_classes(*all_labels)
        else:
            n_classes = len(class_names)
        normalisation = _normalisation(arrays)
    return ImageSet.of(images, labels, n_classes=n_classes, normalisation=normalisation, class_names=class_names)


def _normalisation(arrays: NpzArrays) -> Normalisation | None:
    """That of the training images, if the file has them as pixels."""
    if "train_images" not in arrays.names:
        return None
    images = arrays["train_images"]
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or 0 in images.shape:
        return None
    return Normalisation.of(images if images.ndim == 4 else images[..., None])
