"""Any images: a ``.npz`` of uint8 pixels and integer labels."""

from __future__ import annotations

from pathlib import Path

from veridical.errors import DatasetError
from veridical.predictions.files.format_npz import NpzArrays
from veridical.training.data.images import ImageSet, Normalisation, check_pixels, count_classes

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
        class_names = arrays.names_in("class_names")
        labels = {key: arrays[f"{key}_labels"] for key in ("train", "test") if f"{key}_labels" in arrays.names}
        images = {key: arrays[f"{key}_images"] for key in ("train", split) if f"{key}_images" in arrays.names}
    return ImageSet.of(
        images[split],
        labels[split],
        n_classes=count_classes(*labels.values()) if class_names is None else len(class_names),
        normalisation=Normalisation.of(check_pixels(images["train"])) if "train" in images else None,
        class_names=class_names,
    )
