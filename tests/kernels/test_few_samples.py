"""The kernels of a few samples and their NumPy twins against truth discovery."""

import math

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical._kernels import few_samples as kernels
from veridical.combine import few_samples as twins

pytestmark = pytest.mark.parametrize("module", [kernels, twins])


def test_mean_and_hv_of_few_samples_are_those_of_truth_discovery(rng, module):
    probs = random_ensemble(rng, 5, 4, 3)
    mean, label = np.empty((4, 3)), np.empty(4, np.int64)
    assert module.mean_of_few(probs, 1e-12, 1e-12, mean, label)
    truth = vd.discover(probs)
    np.testing.assert_allclose(mean, vd.discover(probs, max_iter=0).probs, atol=1e-12)
    np.testing.assert_array_equal(label, truth.prediction)
    hv = module.hv_of_few(probs, mean, label, math.exp(-8), 20, np.finfo(np.float64).tiny)
    np.testing.assert_allclose(hv, truth.hv, rtol=1e-9)


def test_mean_of_few_leaves_doubtful_samples_to_others(rng, module):
    probs = random_ensemble(rng, 3, 2, 4)
    mean, label = np.empty((2, 4)), np.empty(2, np.int64)
    for wrong in (np.nan, -0.1, 0.9):
        changed = probs.copy()
        changed[1, 1, 2] = wrong
        assert not module.mean_of_few(changed, 1e-12, 1e-12, mean, label)
    assert not module.mean_of_few(np.full((3, 2, 4), 0.25), 1e-12, 1e-12, mean, label)  # a tie
