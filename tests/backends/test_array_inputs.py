"""Forms of input: images, binary scores, lists, dictionaries, coarse floats; the same answers as on the host."""

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.backends import array_path, to_host
from veridical.errors import DtypeError, ParameterError, ShapeError

pytestmark = pytest.mark.compiled


@pytest.fixture
def jax_without_float64():
    """JAX as it is by default."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", before)


def both_paths(compute):
    """Results of the compiled kernels and of the array path."""
    in_place = compute()
    with array_path():
        return in_place, compute()


def test_images_keep_their_shape(rng):
    probs = rng.dirichlet(np.ones(4), size=(3, 5, 6, 7))
    tensor = torch.from_numpy(probs)
    expected = vd.discover(probs, trace=True)
    for truth in both_paths(lambda: vd.discover(tensor, trace=True)):
        for field in ("probs", "reliability", "hv", "prediction", "n_iter", "converged", "trace"):
            result, wanted = getattr(truth, field), getattr(expected, field)
            assert tuple(result.shape) == wanted.shape
            np.testing.assert_allclose(result.numpy(), wanted, atol=1e-9)
        assert repr(truth) == repr(expected)
    calibrator = vd.Temperature().fit(probs, rng.integers(0, 4, (5, 6, 7)))
    for answers in both_paths(lambda: calibrator.predict_all(tensor)):
        for result, wanted in zip(answers, calibrator.predict_all(probs), strict=True):
            assert tuple(result.shape) == wanted.shape
            np.testing.assert_allclose(result.numpy(), wanted, atol=1e-6)


def test_binary_scores(rng):
    scores, labels = rng.random((3, 200)), rng.integers(0, 2, 200)
    expected = vd.discover(scores, kind="binary")
    for values in (torch.from_numpy(scores), [torch.from_numpy(source.copy()) for source in scores]):
        for truth in both_paths(lambda values=values: vd.discover(values, kind="binary")):
            np.testing.assert_allclose(truth.probs.numpy(), expected.probs, atol=1e-9)
    calibrator = vd.Platt(kind="binary").fit(scores, labels)
    for confidence in both_paths(lambda: calibrator.predict_confidence(torch.from_numpy(scores))):
        np.testing.assert_allclose(confidence.numpy(), calibrator.predict_confidence(scores), atol=1e-9)
    one = vd.Platt(kind="binary").fit(scores[0], labels)
    for confidence in both_paths(lambda: one.predict_confidence(torch.from_numpy(scores[0].copy()))):
        np.testing.assert_allclose(confidence.numpy(), one.predict_confidence(scores[0]), atol=1e-9)
    with array_path(), pytest.raises(vd.errors.ConfidenceError, match="source 0, sample 0"):
        vd.discover(torch.full((2, 3), 1.5), kind="binary")


def test_lists_are_not_copied_on_the_host(rng):
    probs = rng.dirichlet(np.ones(4), size=(3, 50))
    tensors = [torch.from_numpy(source) for source in probs]
    assert all(np.shares_memory(array, source) for array, source in zip(to_host(tensors), probs, strict=True))
    expected = vd.discover(probs)
    named = dict(zip("abc", tensors, strict=True))
    for values in (tensors, tuple(tensors), named):
        for truth in both_paths(lambda values=values: vd.discover(values)):
            assert isinstance(truth.probs, torch.Tensor)
            np.testing.assert_allclose(truth.probs.numpy(), expected.probs, atol=1e-9)


def test_dictionaries_are_matched_by_name(rng):
    probs, labels = labelled_ensemble(rng)
    names = [f"model {s}" for s in range(len(probs))]
    calibrator = vd.Identity(combine="linear-pool").fit(vd.Predictions(dict(zip(names, probs, strict=True))), labels)
    assert calibrator.combiner_.weights.std() > 0
    expected = calibrator.predict_proba(dict(zip(names, probs, strict=True)))
    backwards = {name: torch.from_numpy(probs[s]) for s, name in reversed(list(enumerate(names)))}
    for result in both_paths(lambda: calibrator.predict_proba(backwards)):
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-6)


@pytest.mark.usefixtures("jax_without_float64")
@pytest.mark.parametrize("make", [lambda x: torch.from_numpy(x).bfloat16(), lambda x: jnp.asarray(x, jnp.bfloat16)])
def test_bfloat16(make, rng):
    probs = rng.dirichlet(np.ones(4), size=(3, 50)).astype(np.float32)
    array = make(probs)
    truths = both_paths(lambda: vd.discover(array))
    assert "float32" in str(truths[1].probs.dtype)
    np.testing.assert_allclose(to_host(truths[0].probs), to_host(truths[1].probs), atol=1e-5)


@pytest.mark.usefixtures("jax_without_float64")
def test_jax_without_float64(rng):
    probs, labels = labelled_ensemble(rng)
    array = jnp.asarray(probs)
    assert array.dtype == np.float32
    probs = np.asarray(array)
    for truth in both_paths(lambda: vd.discover(array)):
        np.testing.assert_allclose(truth.hv, vd.discover(probs).hv, rtol=1e-5, atol=1e-5)
    for result in both_paths(lambda: vd.consensus(array)):
        np.testing.assert_allclose(result.probs, vd.consensus(probs).probs, atol=1e-5)
    calibrator = vd.PTDE(random_state=0).fit(labelled_ensemble(rng)[0], labels)  # whose scores are edges of bins
    for answers in both_paths(lambda: calibrator.predict_all(array)):
        np.testing.assert_allclose(answers[1], calibrator.predict_confidence(probs), atol=1e-5)
    for value in both_paths(lambda: vd.metrics.nll(labels, array[0])):
        assert value == pytest.approx(vd.metrics.nll(labels, probs[0]), rel=1e-5)


def test_arrays_are_of_the_kind_of_the_fit(rng):
    probs, labels = labelled_ensemble(rng)
    logits = np.log(np.maximum(probs, 1e-6))
    calibrator = vd.Temperature().fit(vd.Predictions(logits, labels, kind="logits"))
    expected = calibrator.predict_proba(logits)
    for result in both_paths(lambda: calibrator.predict_proba(torch.from_numpy(logits))):
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-5)
    with array_path(), pytest.raises(ParameterError, match="fitted on logits and the array has probabilities"):
        calibrator.predict_proba(torch.from_numpy(probs))


@pytest.mark.parametrize(
    ("error", "match", "values", "options"),
    [
        (ShapeError, "2 dimensions", torch.ones(3, 4), {}),
        (ShapeError, "4 dimensions", torch.ones(2, 3, 4, 5), {}),
        (ShapeError, "1 class", torch.ones(2, 3, 1), {}),
        (ShapeError, "no sources", torch.ones(0, 3, 4), {}),
        (ShapeError, "source 1 has shape", [torch.ones(3, 4), torch.ones(2, 4)], {}),
        (ParameterError, "no axis of sources", [torch.ones(3, 4), torch.ones(3, 4)], {"sources_axis": 1}),
        (ParameterError, "sources_axis is 3", torch.ones(2, 3, 4), {"sources_axis": 3}),
        (DtypeError, "complex", torch.ones(2, 3, 4, dtype=torch.complex64), {}),
        (ParameterError, "kind 'scores' is unknown", torch.ones(2, 3, 4), {"kind": "scores"}),
        (ParameterError, "missing", torch.ones(2, 3, 4), {"missing": "ignore"}),
        (ShapeError, "source_weights has shape", torch.full((2, 3, 4), 0.25), {"source_weights": [1.0]}),
        (ParameterError, "max_iter", torch.full((2, 3, 4), 0.25), {"max_iter": -1}),
        (ParameterError, "accuracy_preserving", torch.full((2, 3, 4), 0.25), {"accuracy_preserving": "yes"}),
    ],
)
def test_bad_input_is_explained_on_both_paths(error, match, values, options):
    with pytest.raises(error, match=match):
        vd.discover(values, **options)
    with array_path(), pytest.raises(error, match=match):
        vd.discover(values, **options)


def test_sources_on_several_devices_are_refused(rng):
    probs = rng.dirichlet(np.ones(4), size=50)
    first = array_api_strict.asarray(probs)
    second = array_api_strict.asarray(probs, device=array_api_strict.Device("device1"))
    with pytest.raises(ParameterError, match=r"source 1 is on .*device1.* and source 0 is on .*CPU.*; move all"):
        vd.discover([first, second])


def test_tensors_without_numbers_are_refused(rng):
    probs = torch.from_numpy(rng.dirichlet(np.ones(4), size=(3, 50)))
    with array_path():
        with pytest.raises(DtypeError, match="meta tensor"):
            vd.discover(probs.to("meta"))
        with pytest.raises(DtypeError, match="sparse"):
            vd.discover(probs.to_sparse())
