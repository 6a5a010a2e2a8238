"""Ensembles in files of a few blocks."""

import numpy as np
import pytest
from blocked_ensembles import labelled_ensemble


@pytest.fixture(scope="package")
def ensemble():
    """Probabilities (5, 3000, 4) and labels."""
    return labelled_ensemble()


@pytest.fixture
def files(ensemble, tmp_path):
    """The ensemble as probs.npy, and labels.npy beside it."""
    probs, labels = ensemble
    np.save(tmp_path / "probs.npy", probs)
    np.save(tmp_path / "labels.npy", labels)
    return tmp_path
