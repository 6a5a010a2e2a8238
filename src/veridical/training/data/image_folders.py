"""ImageNet-style folders: ``train/CLASS/*.jpg`` and ``val/CLASS/*.jpg``, decoded by Pillow when needed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from veridical._lazy import require
from veridical._parallel import run_blocks
from veridical.errors import CorruptFileError, DatasetError
from veridical.training.data.images import ImageSet, Normalisation, Pixels

if TYPE_CHECKING:
    from PIL.Image import Image

REQUIRED = {"imagenet": "put the images there as train/CLASS/*.JPEG and val/CLASS/*.JPEG, one folder per class"}

_FOLDERS = {"train": ("train",), "test": ("val", "validation", "test")}
_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".webp"))
_NORMALISATION = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

#: Pillow's number for bilinear interpolation over the pixels that a new one covers.
_BILINEAR = 2

#: Training crops take this fraction of the image, at an aspect ratio of 3:4 to 4:3 (Szegedy et al., 2015).
_CROP_FRACTION = (0.08, 1.0)
_CROP_ASPECT = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class FolderImages:
    """Paths of images that are decoded, cropped and scaled to ``size`` when they are read.

    For evaluation the shorter side is scaled to 8/7 of ``size`` and the centre is taken (256 and 224, as usual).
    """

    paths: tuple[Path, ...]
    size: int = 224

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self.paths), self.size, self.size, 3

    def read(self, indices: npt.NDArray[np.int64], seed: tuple[int, ...] | None) -> Pixels:
        """Images (B, size, size, 3); with a seed, a random crop and flip of each, the same for the same seed."""
        require("PIL", "torch")

        def decode(index: int) -> Pixels:
            rng = None if seed is None else np.random.default_rng((*seed, index))
            return self._decode(self.paths[index], rng)

        return np.stack(run_blocks(decode, [int(index) for index in indices]))

    def _decode(self, path: Path, rng: np.random.Generator | None) -> Pixels:
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(path) as stored:
                image = stored.convert("RGB")
        except (OSError, UnidentifiedImageError, SyntaxError, Image.DecompressionBombError) as error:
            raise CorruptFileError(f"{path} cannot be decoded ({error}); replace or remove it.") from error
        image = self._centre(image) if rng is None else self._random_crop(image, rng)
        pixels = np.asarray(image, dtype=np.uint8)
        return pixels[:, ::-1] if rng is not None and rng.random() < 0.5 else pixels

    def _centre(self, image: Image) -> Image:
        longer = round(self.size * 8 / 7)
        scale = longer / min(image.size)
        width, height = (max(round(side * scale), self.size) for side in image.size)
        left, top = (width - self.size) // 2, (height - self.size) // 2
        # Pillow's box is in the source's pixels, so one call scales and crops.
        box = tuple(edge / scale for edge in (left, top, left + self.size, top + self.size))
        limits = (*image.size, *image.size)
        box = tuple(min(edge, limit) for edge, limit in zip(box, limits, strict=True))
        return image.resize((self.size, self.size), resample=_BILINEAR, box=(box[0], box[1], box[2], box[3]))

    def _random_crop(self, image: Image, rng: np.random.Generator) -> Image:
        fraction = rng.uniform(*_CROP_FRACTION)
        aspect = np.exp(rng.uniform(*np.log(_CROP_ASPECT)))
        area = fraction * image.width * image.height
        width = min(np.sqrt(area * aspect), image.width)
        height = min(np.sqrt(area / aspect), image.height)
        left, top = rng.uniform(0, image.width - width), rng.uniform(0, image.height - height)
        return image.resize((self.size, self.size), resample=_BILINEAR, box=(left, top, left + width, top + height))

    def first(self, count: int) -> FolderImages:
        return FolderImages(self.paths[:count], self.size)

    def fingerprint(self) -> str:
        """A digest of names and sizes: reading every image would take as long as an epoch."""
        digest = hashlib.blake2b(digest_size=16)
        for path in self.paths:
            digest.update(f"{path.parent.name}/{path.name}:{path.stat().st_size}\n".encode())
        return digest.hexdigest()


def read(name: str, directory: Path, split: str) -> ImageSet:
    """One split; classes are the folders in alphabetical order."""
    folder = next((directory / entry for entry in _FOLDERS[split] if (directory / entry).is_dir()), None)
    if folder is None:
        raise DatasetError(f"{directory} has no folder {_FOLDERS[split][0]}/; {REQUIRED[name]}.")
    classes = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    if len(classes) < 2:
        raise DatasetError(f"{folder} has {len(classes)} class folders, and at least two are needed; {REQUIRED[name]}.")
    entries: list[tuple[int, int, Path]] = []
    for label, class_name in enumerate(classes):
        images = sorted(path for path in (folder / class_name).iterdir() if path.suffix.lower() in _SUFFIXES)
        if not images:
            raise DatasetError(f"{folder / class_name} has no images ({', '.join(sorted(_SUFFIXES))}).")
        entries += [(position, label, path) for position, path in enumerate(images)]
    if split == "train":  # class after class in turn, so that the first N images are of all classes
        entries.sort(key=lambda entry: entry[:2])
    return ImageSet.of(
        FolderImages(tuple(path for _, _, path in entries)),
        [label for _, label, _ in entries],
        normalisation=_NORMALISATION,
        class_names=classes,
    )
