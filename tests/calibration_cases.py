"""Calibration sets for tests: ordinary ones, and every way in which one can be degenerate."""

from __future__ import annotations

import numpy as np
from ensembles import random_ensemble
from hypothesis import strategies as st

import veridical as vd

NAMES = tuple(vd.calibrators())
KEEPING = tuple(name for name, method in vd.calibrators().items() if method.keeps_labels)


def labelled_ensemble(rng, n_sources=5, n_samples=300, n_classes=4, dtype=np.float64, right=None):
    """An ensemble and labels: drawn from its sharpened mean (so that it is under-confident), or the mean's label with
    probability ``right`` and another one otherwise."""
    probs = random_ensemble(rng, n_sources, n_samples, n_classes, dtype)
    mean = probs.astype(np.float64).mean(axis=0)
    if right is None:
        sharpened = mean**1.5 / (mean**1.5).sum(axis=1, keepdims=True)
        drawn = (sharpened.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1)
        return probs, np.minimum(drawn, n_classes - 1)
    top = mean.argmax(axis=1)
    other = (top + rng.integers(1, n_classes, n_samples)) % n_classes
    return probs, np.where(rng.random(n_samples) < right, top, other)


@st.composite
def degenerate_sets(draw):
    """(probs, labels): few samples, one class, all right, all wrong, constant or tied or one-hot scores."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_sources, n_classes = draw(st.integers(1, 4)), draw(st.integers(2, 5))
    n_samples = draw(st.one_of(st.integers(1, 5), st.integers(6, 40)))
    dtype = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    scores = draw(st.sampled_from(["random", "constant", "tied", "one-hot", "unanimous", "uniform"]))
    probs = random_ensemble(rng, n_sources, n_samples, n_classes)
    if scores == "constant":
        probs = np.broadcast_to(probs[:, :1], probs.shape)
    elif scores == "tied":
        probs = rng.integers(1, 3, probs.shape).astype(float)
    elif scores == "one-hot":
        probs = np.eye(n_classes)[rng.integers(0, n_classes, probs.shape[:2])]
    elif scores == "unanimous":
        probs = np.broadcast_to(probs[:1], probs.shape)
    elif scores == "uniform":
        probs = np.ones(probs.shape)
    probs = (probs / probs.sum(axis=-1, keepdims=True)).astype(dtype)
    predicted = vd.discover(probs, max_iter=0).prediction
    truth = draw(st.sampled_from(["random", "right", "wrong", "one class"]))
    labels = {
        "random": rng.integers(0, n_classes, n_samples),
        "right": predicted,
        "wrong": (predicted + 1) % n_classes,
        "one class": np.full(n_samples, int(rng.integers(n_classes))),
    }[truth]
    return probs, labels
