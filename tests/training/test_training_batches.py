"""Batches: every image once, the same for the same seed, cropped and mirrored as by a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from veridical.training.batches import ImageBatches, crop_and_flip
from veridical.training.data.images import ImageSet, Normalisation


def numbered_images(count: int, side: int = 16) -> ImageSet:
    """Images whose first pixel is their number; labels are the number modulo 3."""
    images = np.zeros((count, side, side, 3), np.uint8)
    images[:, 0, 0, 0] = np.arange(count)
    return ImageSet.of(images, np.arange(count) % 3, normalisation=Normalisation((0.0,) * 3, (1 / 255,) * 3))


def naive_crop_and_flip(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The naive twin: one image, one pixel at a time."""
    count, height, width, _ = images.shape
    down, right = round(height / 8), round(width / 8)
    tops = rng.integers(0, 2 * down + 1, count)
    lefts = rng.integers(0, 2 * right + 1, count)
    mirrored = rng.random(count) < 0.5
    result = np.zeros_like(images)
    for i in range(count):
        for y in range(height):
            for x in range(width):
                from_y = y + tops[i] - down
                from_x = (width - 1 - x if mirrored[i] else x) + lefts[i] - right
                if 0 <= from_y < height and 0 <= from_x < width:
                    result[i, y, x] = images[i, from_y, from_x]
    return result


@given(
    shape=st.tuples(st.integers(1, 4), st.integers(8, 20), st.integers(8, 20), st.sampled_from([1, 3])),
    seed=st.integers(0, 2**32 - 1),
)
def test_crop_and_flip_equals_the_plain_loop(shape: tuple[int, int, int, int], seed: int) -> None:
    images = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    fast = crop_and_flip(torch.from_numpy(images), np.random.default_rng(seed + 1))
    np.testing.assert_array_equal(fast.numpy(), naive_crop_and_flip(images, np.random.default_rng(seed + 1)))


def test_iteration_is_in_order() -> None:
    batches = ImageBatches(numbered_images(10), batch_size=4)
    seen = list(batches)
    assert len(batches) == len(seen) == 3
    assert [len(labels) for _, labels in seen] == [4, 4, 2]
    assert torch.cat([images[:, 0, 0, 0] for images, _ in seen]).round().int().tolist() == list(range(10))
    assert torch.cat([labels for _, labels in seen]).tolist() == [i % 3 for i in range(10)]


def test_batches_are_normalised_and_channels_last() -> None:
    images = np.array([[[[0, 51, 255]]]], np.uint8).repeat(2, 0).repeat(16, 1).repeat(16, 2)
    normalisation = Normalisation((0.5, 0.2, 0.0), (0.25, 0.1, 0.5))
    ((batch, _),) = ImageBatches(ImageSet.of(images, [0, 1]), normalisation=normalisation)
    assert batch.shape == (2, 3, 16, 16)
    assert batch.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(batch[0, :, 3, 3], [-2.0, 0.0, 2.0], atol=1e-6)


def image_order(batches: ImageBatches, seed: int, epoch: int) -> list[int]:
    seen = batches.training(seed, epoch, augment=False)
    return [int(number) for images, _ in seen for number in images[:, 0, 0, 0].round()]


def test_training_epoch_has_each_image_once_in_full_batches() -> None:
    batches = ImageBatches(numbered_images(50), batch_size=16)
    numbers = image_order(batches, seed=1, epoch=0)
    assert len(numbers) == batches.steps_per_epoch * 16 == 48
    assert len(set(numbers)) == 48


def test_training_order_depends_only_on_seed_and_epoch() -> None:
    batches = ImageBatches(numbered_images(50), batch_size=16)
    first = image_order(batches, 1, 0)
    torch.manual_seed(99)
    np.random.seed(99)  # to show that global state does not matter
    assert image_order(batches, 1, 0) == first
    assert image_order(batches, 1, 1) != first
    assert image_order(batches, 2, 0) != first


def test_training_batches_pair_images_with_their_labels() -> None:
    for images, labels in ImageBatches(numbered_images(50), batch_size=16).training(3, 4, augment=False):
        assert (images[:, 0, 0, 0].round().long() % 3).tolist() == labels.tolist()


def test_training_epoch_of_few_images_is_one_batch() -> None:
    batches = ImageBatches(numbered_images(5), batch_size=16)
    assert batches.steps_per_epoch == 1
    assert sorted(image_order(batches, 0, 0)) == list(range(5))


def test_read_only_images_cause_no_warning() -> None:
    images = np.zeros((4, 16, 16, 3), np.uint8)
    images.flags.writeable = False
    assert len(list(ImageBatches(ImageSet.of(images, [0, 1, 0, 1])))) == 1


@pytest.mark.parametrize("augment", [False, True])
def test_augmentation_is_optional(augment: bool) -> None:
    images = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1).repeat(8, 0)
    batches = ImageBatches(ImageSet.of(images, [0, 1] * 4), batch_size=8)
    ((plain, _),) = batches
    ((trained, _),) = batches.training(0, 0, augment=augment)
    assert torch.equal(plain, trained) is not augment
