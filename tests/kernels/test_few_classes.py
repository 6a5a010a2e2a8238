"""Samples in the lanes of vectors: a sample's numbers do not depend on its neighbours, and are those of one by one."""

import numpy as np
import pytest
from conftest import INTERPRETED, examples
from ensembles import random_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical._kernels.arguments import LANES
from veridical.combine import truth_discovery

FIELDS = ("probs", "reliability", "hv", "prediction", "n_iter", "converged", "trace")


@pytest.fixture(params=["sixteen at once", "one by one"])
def layout(request, monkeypatch):
    """Both kernels of truth discovery; which one is used is a matter of memory."""
    if request.param == "one by one":
        monkeypatch.setattr(truth_discovery, "_LANES_BYTES", 0)


def arrays_of(truth):
    """The arrays of a truth, samples first."""
    by_source = {"reliability", "trace"}
    return {name: getattr(truth, name).T if name in by_source else getattr(truth, name) for name in FIELDS}


def mixed_samples(rng, n_samples, dtype):
    """Random, unanimous, tied, one-hot and nearly unanimous samples, one far source, and sums that are off."""
    probs = random_ensemble(rng, 4, n_samples, 3, dtype)
    probs[:, 1::7] = probs[:1, 1::7]
    probs[:, 2::7] = np.array([0.4, 0.4, 0.2], dtype)
    probs[:, 3::7] = np.eye(3, dtype=dtype)[rng.integers(0, 3, probs[:, 3::7].shape[:2])]
    probs[:, 4::7] = np.array([0.5, 0.3, 0.2], dtype)
    probs[0, 4::7] = np.array([0, 0, 1], dtype)
    probs[0, 5::7] = probs[1, 5::7]
    probs[1, 6::7] *= dtype(1 + 5e-6)  # sums that are one only within the tolerance
    return probs


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"accuracy_preserving": False}, {"source_weights": [2.0, 0.5, 0.0, 1.0]}])
def test_bytes_of_a_sample_do_not_depend_on_its_neighbours(rng, dtype, options):
    probs = mixed_samples(rng, 2 * LANES + 5, dtype)
    probs[2, 6::7] = np.nan
    options = {"missing": "skip", "trace": True, **options}
    together = arrays_of(vd.discover(probs, **options))
    order = rng.permutation(probs.shape[1])
    shuffled = arrays_of(vd.discover(probs[:, order], **options))
    for name, array in together.items():
        assert array[order].tobytes() == shuffled[name].tobytes(), name
    for n in range(0, probs.shape[1], 9 if INTERPRETED else 1):
        alone = arrays_of(vd.discover(probs[:, n : n + 1], **options))
        for name, array in together.items():
            assert array[n : n + 1].tobytes() == alone[name].tobytes(), (name, n)


@settings(max_examples=examples(20))
@given(
    seed=st.integers(0, 2**31),
    dtype=st.sampled_from([np.float32, np.float64]),
    kind=st.sampled_from(["probs", "logits"]),
)
def test_both_layouts_find_the_same_truth(seed, dtype, kind):
    rng = np.random.default_rng(seed)
    probs = mixed_samples(rng, LANES + 3, dtype)
    scores = probs if kind == "probs" else np.log(np.maximum(probs, np.finfo(dtype).tiny))
    few = vd.discover(scores, kind=kind, tol=0.0, max_iter=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truth_discovery, "_LANES_BYTES", 0)
        many = vd.discover(scores, kind=kind, tol=0.0, max_iter=3)
    rounding = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_array_equal(few.prediction, many.prediction)
    np.testing.assert_allclose(few.probs, many.probs, atol=rounding)
    np.testing.assert_allclose(few.hv, many.hv, atol=rounding)


@pytest.mark.usefixtures("layout")
def test_the_mean_comes_from_the_same_pass(rng):
    predictions = vd.Predictions(mixed_samples(rng, 2 * LANES + 5, np.float64))
    truth, mean = truth_discovery.discover_with_mean(predictions, "raise", None)
    plain = vd.discover(predictions, max_iter=0)
    np.testing.assert_array_equal(mean, plain.probs)
    np.testing.assert_array_equal(truth.prediction, plain.prediction)
    np.testing.assert_array_equal(truth.probs, vd.discover(predictions).probs)


@pytest.mark.usefixtures("layout")
def test_the_first_invalid_sample_is_named_wherever_it_stands():
    probs = np.full((3, 2 * LANES + 1, 2), 0.5)
    for n in (0, LANES - 1, LANES, 2 * LANES):
        bad = probs.copy()
        bad[1, n:] = [0.5, 0.6]
        with pytest.raises(vd.errors.VeridicalError, match=f"sample {n}\\b"):
            vd.discover(bad)
