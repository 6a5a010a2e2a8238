"""Ensembles for tests: random, tied, nearly tied, one-hot, unanimous."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

DTYPES = (np.float16, np.float32, np.float64)


def random_ensemble(rng, n_sources=5, n_samples=20, n_classes=4, dtype=np.float64, spread=1.0):
    """Sources that scatter around a common opinion."""
    logits = 2 * rng.standard_normal((n_samples, n_classes))
    logits = logits + spread * rng.standard_normal((n_sources, n_samples, n_classes))
    probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (probs / probs.sum(axis=-1, keepdims=True)).astype(dtype)


@st.composite
def _row(draw, n_classes):
    """Small whole-number votes: ties and zeros are common."""
    votes = draw(st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes).filter(any))
    return np.asarray(votes, dtype=np.float64) / sum(votes)


@st.composite
def tied_ensembles(draw, max_sources=5, max_classes=5):
    """(S, N, L) with exact ties, near-ties, unanimity and one-hot rows, in any dtype."""
    n_sources, n_samples = draw(st.integers(1, max_sources)), draw(st.integers(1, 3))
    n_classes = draw(st.integers(2, max_classes))
    probs = np.empty((n_sources, n_samples, n_classes))
    for n in range(n_samples):
        first = draw(_row(n_classes))
        for s in range(n_sources):
            how = draw(st.sampled_from(["own", "same", "rotated", "reversed"]))
            row = {
                "own": lambda: draw(_row(n_classes)),
                "same": lambda first=first: first,
                "rotated": lambda first=first, s=s: np.roll(first, s),
                "reversed": lambda first=first: first[::-1],
            }[how]()
            nudge = draw(st.sampled_from([0.0, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12, 1e-16]))
            at = draw(st.integers(0, n_classes - 1))
            probs[s, n] = (1 - nudge) * row
            probs[s, n, at] += nudge
    return probs.astype(draw(st.sampled_from(DTYPES)))
