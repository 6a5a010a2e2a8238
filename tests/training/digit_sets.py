"""Small real images for the tests of training: scikit-learn's digits; and PyTorch on one thread.

The tests run several processes at a time, and the same bytes are promised for the same number of threads.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn.datasets import load_digits

from veridical.training.data.images import ImageSet


@cache
def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """1,797 handwritten digits, each pixel made two by two: uint8 (N, 16, 16) and labels."""
    digits = load_digits()
    pixels = (digits.images * (255 / 16)).astype(np.uint8)
    return np.kron(pixels, np.ones((1, 2, 2), np.uint8)), digits.target


@cache
def digit_sets() -> tuple[ImageSet, ImageSet]:
    """600 training and 300 test digits."""
    images, labels = digit_images()
    train = ImageSet.of(images[:600], labels[:600], n_classes=10)
    test = ImageSet.of(images[1200:1500], labels[1200:1500], n_classes=10, normalisation=train.normalisation)
    return train, test


def few_digits() -> tuple[ImageSet, ImageSet]:
    """As few as a run can be tried with."""
    train, test = digit_sets()
    return train.first(128), test.first(64)
