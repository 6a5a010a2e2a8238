"""Ensembles of a few blocks, for tests of predictions larger than memory."""

import numpy as np
from ensembles import random_ensemble

#: Bytes for a block: the ensembles below have several blocks of it.
BLOCK_MEMORY = 1 << 17


def labelled_ensemble(n_samples=3000, n_sources=5, n_classes=4, seed=0):
    """(probabilities in float32, labels); the mean is over-confident."""
    rng = np.random.default_rng(seed)
    probs = random_ensemble(rng, n_sources, n_samples, n_classes, spread=0.7)
    sharp = probs**1.6
    sharp /= sharp.sum(axis=-1, keepdims=True)
    mean = probs.mean(axis=0)
    labels = (mean.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1).clip(0, n_classes - 1)
    return sharp.astype(np.float32), labels
