"""Small real images, and PyTorch on one thread (the tests run several processes at a time)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from veridical.training.data.images import ImageSet

FEW = 64


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's 1,797 handwritten digits, each pixel made two by two: uint8 (N, 16, 16) and labels."""
    digits = load_digits()
    pixels = (digits.images * (255 / 16)).astype(np.uint8)
    return np.kron(pixels, np.ones((1, 2, 2), np.uint8)), digits.target


@pytest.fixture(scope="session")
def digits() -> tuple[ImageSet, ImageSet]:
    """1,200 training and 597 test digits."""
    images, labels = digit_images()
    train = ImageSet.of(images[:1200], labels[:1200], n_classes=10)
    test = ImageSet.of(images[1200:], labels[1200:], n_classes=10, normalisation=train.normalisation)
    return train, test


@pytest.fixture(scope="session")
def few_digits(digits: tuple[ImageSet, ImageSet]) -> tuple[ImageSet, ImageSet]:
    """As few as a run can be tried with."""
    return digits[0].first(2 * FEW), digits[1].first(FEW)
