"""However the numbers lie in memory, the answer is the same."""

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd

FIELDS = ("probs", "reliability", "hv", "prediction", "n_iter", "converged")


def assert_same_bytes(truth, expected):
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(truth, field), getattr(expected, field), err_msg=field)


@pytest.fixture(params=[(5, 33, 7), (4, 9, 61)], ids=["few classes", "many classes"])
def probs(request, rng):
    return random_ensemble(rng, *request.param)


def as_list(probs):
    return list(probs), {}


def as_sample_first(probs):
    return np.ascontiguousarray(probs.swapaxes(0, 1)), {"sources_axis": 1}


def as_fortran(probs):
    return np.asfortranarray(probs), {}


def as_every_other(probs):
    padded = np.full([2 * size for size in probs.shape], np.nan, dtype=probs.dtype)
    padded[::2, ::2, ::2] = probs
    return padded[::2, ::2, ::2], {}


def as_reversed(probs):
    return np.ascontiguousarray(probs[:, ::-1, ::-1])[:, ::-1, ::-1], {}


def as_read_only(probs):
    frozen = probs.copy()
    frozen.flags.writeable = False
    return frozen, {}


def as_foreign_byte_order(probs):
    return probs.astype(probs.dtype.newbyteorder()), {}


def as_unaligned(probs):
    buffer = np.empty(probs.nbytes + 1, dtype=np.uint8)
    shifted = buffer[1:].view(probs.dtype).reshape(probs.shape)
    shifted[...] = probs
    return shifted, {}


def as_predictions(probs):
    return vd.Predictions(probs), {}


LAYOUTS = [as_list, as_sample_first, as_fortran, as_every_other, as_reversed, as_read_only, as_foreign_byte_order,
           as_unaligned, as_predictions]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_agree(probs, layout, dtype):
    converted = probs.astype(dtype)
    values, options = layout(converted)
    assert_same_bytes(vd.discover(values, **options), vd.discover(converted))


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
def test_layouts_agree_for_logits(probs, kind):
    scores = np.log(probs)
    assert_same_bytes(vd.discover(as_every_other(scores)[0], kind=kind), vd.discover(scores, kind=kind))


def test_memory_map(probs, tmp_path):
    np.save(tmp_path / "probs.npy", probs)
    mapped = np.load(tmp_path / "probs.npy", mmap_mode="r")
    assert_same_bytes(vd.discover(mapped), vd.discover(probs))


def test_precision_of_results(probs):
    for dtype, expected in ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        truth = vd.discover(probs.astype(dtype))
        assert {truth.probs.dtype, truth.hv.dtype, truth.reliability.dtype} == {np.dtype(expected)}


def test_float16_list_agrees_with_stack(probs):
    half = probs.astype(np.float16)
    assert_same_bytes(vd.discover(list(half)), vd.discover(half))


def test_input_is_left_alone(probs):
    before = probs.copy()
    vd.discover(probs)
    vd.discover(np.log(probs), kind="logits")
    np.testing.assert_array_equal(probs, before)


@pytest.mark.parametrize("n_samples", [1, 2, 39, 40, 41, 511, 512, 513, 1100])
@pytest.mark.compiled
def test_any_number_of_samples(rng, n_samples):
    """Around the sizes of groups and blocks."""
    probs = random_ensemble(rng, 3, n_samples, 4, np.float32)
    truth = vd.discover(probs)
    for n in {0, n_samples // 2, n_samples - 1}:
        np.testing.assert_array_equal(vd.discover(probs[:, n : n + 1]).probs[0], truth.probs[n])


def test_sources_of_different_precision(probs):
    """Each is read as exactly as it is stored, and checked as its coarsest needs."""
    mixed = [probs[0].astype(np.float16), *probs[1:]]
    truth = vd.discover(mixed)
    assert truth.probs.dtype == np.float64
    np.testing.assert_allclose(truth.probs, vd.discover(probs).probs, atol=2e-3)
    votes = np.eye(probs.shape[2], dtype=np.int64)[probs[0].argmax(axis=1)]
    assert vd.discover([votes, probs[1].astype(np.float32)]).probs.dtype == np.float32
