"""Batches of images for a network: shuffled, augmented, normalised, channels last.

All randomness is drawn from generators seeded by (member seed, epoch), on the CPU: the order of images and their
crops are the same on every device and in a continued run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import zip_longest

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from veridical.predictions.validation import check_integer
from veridical.training.data.images import ImageSet, Normalisation

#: Padding of the random crops as a fraction of the image's size: 4 pixels for images of 32 x 32.
_PADDING = 4 / 32

Batch = tuple[Tensor, Tensor]


def crop_and_flip(images: Tensor, rng: np.random.Generator) -> Tensor:
    """Shift each image (B, H, W, C) by up to an eighth of its size, padded with black, and mirror half of them."""
    n_images, height, width, _ = images.shape
    down, right = round(height * _PADDING), round(width * _PADDING)
    tops, lefts, mirrored = (
        torch.from_numpy(draw).to(images.device)
        for draw in (
            rng.integers(0, 2 * down + 1, n_images),
            rng.integers(0, 2 * right + 1, n_images),
            rng.random(n_images) < 0.5,
        )
    )
    padded = functional.pad(images, (0, 0, right, right, down, down))
    windows = padded.unfold(1, height, 1).unfold(2, width, 1)  # (B, tops, lefts, C, H, W), no copy
    cropped = windows[torch.arange(n_images, device=images.device), tops, lefts].permute(0, 2, 3, 1)
    return torch.where(mirrored[:, None, None, None], cropped.flip(2), cropped)


def _normaliser(normalisation: Normalisation, device: torch.device) -> Callable[[Tensor], Tensor]:
    """From uint8 (B, H, W, C) to float32 (B, C, H, W) in channels-last memory."""
    mean, std = (torch.tensor(values, device=device) for values in (normalisation.mean, normalisation.std))
    scale, shift = 1 / (255 * std), mean / std
    return lambda pixels: pixels.float().mul_(scale).sub_(shift).permute(0, 3, 1, 2)


class ImageBatches:
    """Batches of an image set, normalised, on a device: in order when iterated, shuffled by :meth:`training`.

    Parameters
    ----------
    images : ImageSet
    batch_size : int
    device : torch.device
    normalisation : Normalisation, optional
        By default that of the image set; a trained network needs the one that it was trained with.

    Examples
    --------
    >>> import numpy as np
    >>> from veridical import training
    >>> images = training.ImageSet.of(np.zeros((10, 16, 16, 1), np.uint8), np.arange(10) % 2)
    >>> [len(labels) for _, labels in training.ImageBatches(images, batch_size=8)]
    [8, 2]
    """

    def __init__(
        self,
        images: ImageSet,
        *,
        batch_size: int = 512,
        device: torch.device | None = None,
        normalisation: Normalisation | None = None,
    ) -> None:
        self._set = images
        self._device = device or torch.device("cpu")
        self._normalise = _normaliser(normalisation or images.normalisation, self._device)
        self.batch_size = check_integer(batch_size, "batch_size", 1)
        self._labels = torch.from_numpy(images.labels).to(self._device)
        stored = images.images
        self._pixels = (
            torch.from_numpy(np.require(stored, requirements=["C", "W"])).to(self._device)
            if isinstance(stored, np.ndarray)
            else None
        )

    def __len__(self) -> int:
        return -(-len(self._set) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """All images once, in order."""
        order = np.arange(len(self._set))
        yield from self._fetch(np.array_split(order, range(self.batch_size, len(order), self.batch_size)), None, None)

    @property
    def steps_per_epoch(self) -> int:
        """Number of full training batches; one smaller batch if there are fewer images than that."""
        return max(len(self._set) // self.batch_size, 1)

    def training(self, seed: int, epoch: int, *, augment: bool) -> Iterator[Batch]:
        """One epoch in random order, without the images that are left after the last full batch."""
        rng = np.random.default_rng((seed, epoch))
        order = rng.permutation(len(self._set))[: self.steps_per_epoch * self.batch_size]
        chunks = np.array_split(order, self.steps_per_epoch)
        yield from self._fetch(chunks, rng if augment else None, (seed, epoch) if augment else None)

    def _fetch(
        self,
        chunks: Sequence[npt.NDArray[np.int64]],
        rng: np.random.Generator | None,
        lazy_seed: tuple[int, int] | None,
    ) -> Iterator[Batch]:
        if self._pixels is None:
            yield from self._decode_ahead(chunks, lazy_seed)
            return
        for chunk in chunks:
            indices = torch.from_numpy(chunk).to(self._device)
            pixels = self._pixels[indices]
            if rng is not None:
                pixels = crop_and_flip(pixels, rng)
            yield self._normalise(pixels), self._labels[indices]

    def _decode_ahead(self, chunks: Sequence[npt.NDArray[np.int64]], seed: tuple[int, int] | None) -> Iterator[Batch]:
        """Decode the next batch while the network uses the current one."""
        stored = self._set.images
        assert not isinstance(stored, np.ndarray)
        read: Callable[..., npt.NDArray[np.uint8]] = stored.read
        with ThreadPoolExecutor(1, thread_name_prefix="decode-ahead") as ahead:
            waiting: Future[npt.NDArray[np.uint8]] = ahead.submit(read, chunks[0], seed)
            for chunk, following in zip_longest(chunks, chunks[1:]):
                pixels = waiting.result()
                if following is not None:
                    waiting = ahead.submit(read, following, seed)
                indices = torch.from_numpy(chunk).to(self._device)
                yield self._normalise(torch.from_numpy(pixels).to(self._device)), self._labels[indices]
