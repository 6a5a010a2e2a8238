"""A labelled set of images, in memory or decoded when needed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DtypeError, LabelError, ParameterError, ShapeError, shown
from veridical.predictions.arrays import as_array
from veridical.predictions.validation import check_integer, check_labels, check_names, check_type, entries_of

Pixels = npt.NDArray[np.uint8]

#: Limit to the number of classes, without which one wrong label would make a network of any size.
MOST_CLASSES = 100_000


@dataclass(frozen=True)
class Normalisation:
    """Per-channel mean and standard deviation of pixels scaled to 0..1.

    Examples
    --------
    >>> import numpy as np
    >>> from veridical.training import Normalisation
    >>> len(Normalisation.of(np.zeros((4, 8, 8, 3), np.uint8)).mean)
    3
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def of(cls, images: Pixels) -> Normalisation:
        """The normalisation that gives ``images`` (N, H, W, C) mean 0 and deviation 1."""
        mean = images.mean(axis=(0, 1, 2), dtype=np.float64) / 255
        std = images.std(axis=(0, 1, 2), dtype=np.float64) / 255
        std[std == 0] = 1.0  # a constant channel becomes zero
        return cls(tuple(float(value) for value in mean), tuple(float(value) for value in std))


class LazyImages(Protocol):
    """Images that are decoded when needed."""

    @property
    def shape(self) -> tuple[int, int, int, int]: ...

    def read(self, indices: npt.NDArray[np.int64], seed: tuple[int, ...] | None) -> Pixels:
        """Images (B, H, W, C); with a seed, randomly cropped and flipped for training."""

    def first(self, count: int) -> LazyImages: ...

    def fingerprint(self) -> str:
        """A text that differs if the images differ."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images with their labels.

    Attributes
    ----------
    images : uint8 array (N, H, W, C), or images decoded when needed
    labels : int64 array (N,) in 0..n_classes-1
    n_classes : int
    normalisation : Normalisation
        The usual normalisation of these images.
    class_names : tuple of str, optional
    published : dict
        File name -> whether its MD5 sum is the published one, for files whose sum is published.

    Examples
    --------
    >>> import numpy as np
    >>> from veridical import training
    >>> training.ImageSet.of(np.zeros((10, 16, 16, 1), np.uint8), np.arange(10) % 2).n_classes
    2
    """

    images: Pixels | LazyImages
    labels: npt.NDArray[np.int64]
    n_classes: int
    normalisation: Normalisation
    class_names: tuple[str, ...] | None = None
    published: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        images: Pixels | LazyImages,
        labels: npt.ArrayLike,
        *,
        n_classes: int | None = None,
        normalisation: Normalisation | None = None,
        class_names: Sequence[str] | None = None,
        published: dict[str, bool] | None = None,
    ) -> ImageSet:
        """An image set of checked images and labels.

        Parameters
        ----------
        images : uint8 array of shape (N, H, W, C) or (N, H, W), or images decoded when needed
        labels : N integers
        n_classes : int, optional
            By default the number of ``class_names``, else the largest label plus one.
        normalisation : Normalisation, optional
            By default computed from the images.
        """
        if isinstance(images, np.ndarray):
            images = check_pixels(as_array(images, "images", "give a uint8 array of pixels"))
        elif not (isinstance(getattr(images, "shape", None), tuple) and hasattr(images, "read")):
            raise ParameterError(f"images are {shown(images)}; give a uint8 array of shape (N, H, W, C) or (N, H, W).")
        n_images = images.shape[0]
        if class_names is not None:
            class_names = list(islice(entries_of(class_names, "class names are"), MOST_CLASSES + 1))
        if n_classes is None:
            labels = as_array(labels, "labels", "give one integer per image")
            n_classes = len(class_names) if class_names is not None else count_classes(labels)
        if check_integer(n_classes, "n_classes", 1) > MOST_CLASSES:
            raise LabelError(
                f"there are {n_classes} classes, and at most {MOST_CLASSES} are supported; labels are class indices "
                "from 0: check the largest."
            )
        if normalisation is None:
            sample = images if isinstance(images, np.ndarray) else images.read(np.arange(min(n_images, 256)), None)
            normalisation = Normalisation.of(sample)
        check_type(normalisation, Normalisation, "normalisation", "veridical.training.Normalisation")
        return cls(
            images,
            check_labels(labels, n_images, n_classes),
            n_classes,
            normalisation,
            check_names(class_names, n_classes, "class"),
            {} if published is None else check_type(published, dict, "published", "a dictionary of file names"),
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(H, W, C)."""
        _, height, width, channels = self.images.shape
        return int(height), int(width), int(channels)

    def first(self, count: int) -> ImageSet:
        """The first ``count`` images (all, if there are fewer)."""
        count = min(check_integer(count, "count", 1), len(self))
        images = self.images[:count] if isinstance(self.images, np.ndarray) else self.images.first(count)
        return replace(self, images=images, labels=self.labels[:count])

    def fingerprint(self) -> str:
        """A digest of images and labels."""
        digest = hashlib.blake2b(np.ascontiguousarray(self.labels).tobytes(), digest_size=16)
        if isinstance(self.images, np.ndarray):
            digest.update(np.ascontiguousarray(self.images).data)
        else:
            digest.update(self.images.fingerprint().encode())
        return digest.hexdigest()


def check_pixels(images: npt.NDArray[np.uint8]) -> Pixels:
    """Images (N, H, W, C) of bytes; grey ones may lack the last axis."""
    if images.dtype != np.uint8:
        raise DtypeError(f"the images have dtype {images.dtype}; give pixels from 0 to 255 as uint8.")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or 0 in images.shape:
        raise ShapeError(
            f"the images have shape {images.shape}; give (images, height, width, channels), at least one of each."
        )
    return images


def count_classes(*labels: npt.ArrayLike) -> int:
    """One more than the largest label, and at least two; labels that are not integers are rejected elsewhere."""
    integers = [array for array in map(np.asarray, labels) if array.dtype.kind in "iu"]
    return max([2, *(int(array.max(initial=1)) + 1 for array in integers)])


def check_label_range(labels: npt.NDArray[np.integer], n_classes: int, place: Path) -> None:
    """Reject labels of a published data set that are none of its classes."""
    outside = np.flatnonzero((labels < 0) | (labels >= n_classes))
    if outside.size:
        raise CorruptFileError(
            f"image {outside[0]} in {place} has label {labels[outside[0]]}, and there are {n_classes} classes; "
            "download the files again."
        )
