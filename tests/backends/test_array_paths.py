"""PyTorch, JAX and other arrays: same kind, same device, same numbers, on both paths."""

import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from calibration_cases import NAMES, labelled_ensemble

import veridical as vd
from veridical import metrics
from veridical.backends import array_path, as_foreign, to_host
from veridical.errors import InvalidInputError, MissingSourceError, NotNormalisedError, ShapeError

pytestmark = pytest.mark.compiled

#: scikit-learn's and JAX's arrays here are float32 unless told otherwise; the tests compare in float64, too.
jax.config.update("jax_enable_x64", True)

#: A device whose numbers NumPy cannot read, as with those of a graphics card.
DEVICE = array_api_strict.Device("device1")

MAKERS = {
    "torch": torch.from_numpy,
    "jax": jnp.asarray,
    "device": lambda values: array_api_strict.asarray(values, device=DEVICE),
}
FIELDS = ("probs", "reliability", "hv", "prediction", "n_iter", "converged", "trace")


def random_ensemble(rng, dtype=np.float64, shape=(5, 200, 6)):
    probs = rng.dirichlet(np.full(shape[2], 0.3), size=shape[:2])
    probs[:, 0] = probs[0, 0]  # unanimous
    probs[:, 1] = np.eye(shape[2])[0]  # unanimous and certain
    probs[1:, 2] = probs[0, 2][None]
    probs[0, 2] = np.roll(probs[0, 2], 1)  # one against all
    probs[:, 3] = 1 / shape[2]  # all classes tie
    probs[:3, 4] = [0.5, 0.5, *[0] * (shape[2] - 2)]
    probs[3:, 4] = [0, 0.5, 0.5, *[0] * (shape[2] - 3)]
    return probs.astype(dtype)


def assert_same(result, expected, like, tolerance):
    """Of the type and on the device of ``like``, with the numbers of ``expected``."""
    assert type(result) is type(like)
    assert as_foreign(result).device == as_foreign(like).device
    np.testing.assert_allclose(to_host(result), expected, atol=tolerance, rtol=tolerance)


def test_numpy_cannot_read_the_device_of_these_tests():
    with pytest.raises(Exception, match=r"device|Device"):
        np.asarray(MAKERS["device"](np.ones(3)))


@pytest.mark.parametrize("forced", [False, True], ids=["as it is", "array path"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("library", MAKERS)
@pytest.mark.parametrize(
    "options",
    [{}, {"accuracy_preserving": False}, {"max_iter": 0}, {"tol": 0.0, "max_iter": 7}, {"source_weights": True}],
    ids=str,
)
def test_discover(library, dtype, forced, options, rng):
    if library == "jax" and forced and dtype == np.float32 and options:
        dtype = np.float64  # JAX compiles every operation for every dtype: one of them is enough
    probs = random_ensemble(rng, dtype)
    if "source_weights" in options:
        options = {"source_weights": np.array([1.0, 0.5, 0.0, 2.0, 0.25])}
    expected = vd.discover(probs, trace=True, **options)
    array = MAKERS[library](probs)
    if forced:
        with array_path():
            truth = vd.discover(array, trace=True, **options)
    else:
        truth = vd.discover(array, trace=True, **options)
    # For a few samples the last bit decides whether a step is below the tolerance.
    same = to_host(truth.n_iter) == expected.n_iter
    assert same.mean() >= 0.97
    for field in FIELDS:
        result, wanted = getattr(truth, field), getattr(expected, field)
        assert type(result) is type(array)
        assert as_foreign(result).device == as_foreign(array).device
        assert str(result.dtype).endswith(str(wanted.dtype)), field
        where = (Ellipsis, same) if field in ("reliability", "trace") else same
        tolerance = 1e-5 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(to_host(result)[where], wanted[where], atol=tolerance, rtol=1e-5)
    if options.get("accuracy_preserving", True):
        assert (to_host(truth.probs).argmax(axis=1) == expected.prediction).all()
    assert "5 sources, 200 samples" in repr(truth)


def test_arrays_in_host_memory_are_read_in_place(rng, monkeypatch):
    seen = []
    from veridical.combine import truth_discovery

    original = truth_discovery._run

    def watch(predictions, *rest):
        seen.append(predictions)
        original(predictions, *rest)

    monkeypatch.setattr(truth_discovery, "_run", watch)
    probs = random_ensemble(rng, np.float32)
    tensor, array = torch.from_numpy(probs), jnp.asarray(probs)
    vd.discover(tensor)
    vd.discover(array)
    assert np.shares_memory(seen[0].values, probs)
    assert seen[1].values.__array_interface__["data"][0] == array.unsafe_buffer_pointer()


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("library", MAKERS)
def test_discover_of_logits(library, kind, rng):
    logits = 3 * rng.standard_normal((4, 100, 5))
    logits[:, 0] = np.arange(5) % 2  # ties
    scores = logits if kind == "logits" else logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    expected = vd.discover(scores, kind=kind)
    with array_path():
        truth = vd.discover(MAKERS[library](scores), kind=kind)
    np.testing.assert_allclose(to_host(truth.probs), expected.probs, atol=1e-9)
    assert (to_host(truth.prediction) == expected.prediction).all()


@pytest.mark.parametrize("library", MAKERS)
def test_discover_without_some_sources(library, rng):
    probs = random_ensemble(rng)
    probs[0, ::3] = np.nan
    probs[1:, 9] = np.nan
    probs[0, 9] = 1 / 6
    expected = vd.discover(probs, missing="skip")
    with array_path():
        truth = vd.discover(MAKERS[library](probs), missing="skip")
        for field in ("probs", "reliability", "hv"):
            np.testing.assert_allclose(to_host(getattr(truth, field)), getattr(expected, field), atol=1e-9)
        with pytest.raises(MissingSourceError, match="source 0"):
            vd.discover(MAKERS[library](probs))


@pytest.mark.parametrize("library", MAKERS)
def test_lists_and_other_axes(library, rng):
    probs = random_ensemble(rng)
    expected = vd.discover(probs)
    with array_path():
        for array in (
            [MAKERS[library](np.ascontiguousarray(source)) for source in probs],
            MAKERS[library](np.ascontiguousarray(probs)),
        ):
            np.testing.assert_allclose(to_host(vd.discover(array).probs), expected.probs, atol=1e-9)
        sample_first = MAKERS[library](np.ascontiguousarray(probs.swapaxes(0, 1)))
        np.testing.assert_allclose(to_host(vd.discover(sample_first, sources_axis=1).probs), expected.probs, atol=1e-9)


@pytest.mark.parametrize("library", MAKERS)
def test_invalid_numbers_are_named(library, rng):
    probs = random_ensemble(rng)
    probs[2, 7] *= 1.5
    with array_path():
        with pytest.raises(NotNormalisedError, match="source 2, sample 7"):
            vd.discover(MAKERS[library](probs))
        with pytest.raises(InvalidInputError):
            vd.Temperature().fit(*labelled_ensemble(rng)).predict_proba(MAKERS[library](probs[..., :4]))
        with pytest.raises(ShapeError, match="give shape"):
            vd.discover(MAKERS[library](probs[None]))


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "with gaps"])
@pytest.mark.parametrize("library", MAKERS)
def test_consensus(library, gaps, rng):
    probs = labelled_ensemble(rng)[0].astype(np.float64)
    probs[3] = probs[2]  # copies count once
    if gaps:
        probs[0, ::3] = np.nan
        probs[1:, 9] = np.nan
        probs[0, 9] = 1 / 4
    for options in ({}, {"accuracy_preserving": True}):
        expected = vd.consensus(probs, **options)
        array = MAKERS[library](probs)
        with array_path():
            results = [vd.consensus(array, **options)]
        if library == "torch":
            results.append(vd.consensus(array, **options))
        for result in results:
            for field in ("probs", "prediction", "skill", "weights", "dependence", "distinct_sources", "n_samples"):
                assert_same(getattr(result, field), getattr(expected, field), array, 1e-9)
            np.testing.assert_allclose(result.source_weights, expected.source_weights)
            np.testing.assert_allclose(result.shares, expected.shares)
            assert repr(result) == repr(expected)
    assert expected.weights.std() > 0


@pytest.mark.parametrize("forced", [False, True], ids=["as it is", "array path"])
def test_consensus_of_camps(forced, rng):
    truths = np.eye(3)[rng.integers(0, 3, (2, 400))]
    noise = rng.dirichlet(np.ones(3), size=(6, 400))
    probs = 0.6 * np.repeat(truths, 3, axis=0) + 0.4 * noise
    with pytest.warns(vd.errors.CampsWarning, match="2 camps"):
        expected = vd.consensus(probs)
    tensor = torch.from_numpy(probs)
    if forced:
        with array_path(), pytest.warns(vd.errors.CampsWarning, match="2 camps") as caught:
            result = vd.consensus({f"judge {s}": tensor[s] for s in range(6)})
        assert "judge 0, judge 1, judge 2" in str(caught[0].message)
        assert caught[0].filename == __file__
    else:
        with pytest.warns(vd.errors.CampsWarning, match="2 camps"):
            result = vd.consensus(tensor)
    assert_same(result.probs, expected.probs, tensor, 1e-9)
    for camp, wanted in zip(result.camps, expected.camps, strict=True):
        assert camp.sources == wanted.sources
        for field in ("skill", "weights", "probs"):
            assert_same(getattr(camp, field), getattr(wanted, field), tensor, 1e-9)


def test_consensus_is_not_traced(rng):
    with pytest.raises(vd.errors.ParameterError, match="cannot be traced"):
        jax.jit(lambda values: vd.consensus(values).probs)(jnp.asarray(random_ensemble(rng)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_calibrators(name, dtype, rng):
    probs, labels = labelled_ensemble(rng)
    calibrator = vd.calibrators()[name]().fit(probs, labels)
    new = labelled_ensemble(rng)[0].astype(dtype)
    expected = calibrator.predict_all(new)
    assert len(expected) == 3
    for library, make in MAKERS.items():
        if library == "jax" and dtype == np.float32:
            continue  # JAX compiles every operation for every dtype: one of them is enough
        array = make(new)
        with array_path():
            answers = calibrator.predict_all(array)
            alone = (calibrator.predict_proba(array), calibrator.predict_confidence(array), calibrator.predict(array))
        for result, single, wanted in zip(answers, alone, expected, strict=True):
            assert_same(result, wanted, array, 1e-5)
            assert_same(single, wanted, array, 1e-5)
        if library == "torch":
            assert_same(calibrator.predict_proba(array), expected[0], array, 0.0)


@pytest.mark.parametrize("combine", list(vd.combine.COMBINERS))
@pytest.mark.parametrize("name", ["temperature", "ptde-kde", "truth-logit"])
def test_calibrators_on_every_combiner(name, combine, rng):
    probs, labels = labelled_ensemble(rng)
    if combine not in vd.calibrators()[name].combiners:
        with pytest.raises(vd.errors.UnknownNameError, match="is unknown"):
            vd.calibrators()[name](combine=combine).fit(probs, labels)
        return
    calibrator = vd.calibrators()[name](combine=combine).fit(probs, labels)
    new = labelled_ensemble(rng)[0]  # scores of the calibration samples are edges of bins, where one bit decides
    expected = calibrator.predict_all(new)
    with array_path():
        answers = calibrator.predict_all(MAKERS["device"](new))
    for result, wanted in zip(answers, expected, strict=True):
        np.testing.assert_allclose(to_host(result), wanted, atol=1e-5)


def test_auto_and_two_axes(rng):
    probs, labels = labelled_ensemble(rng)
    auto = vd.Auto(candidates=["temperature", "platt"], random_state=0).fit(probs, labels)
    tensor = torch.from_numpy(probs)
    assert_same(auto.predict_proba(tensor), auto.predict_proba(probs), tensor, 0.0)
    with array_path():
        assert_same(auto.predict_confidence(tensor), auto.predict_confidence(probs), tensor, 1e-6)
        flat = vd.Temperature(sources_axis=1).fit(probs.mean(axis=0), labels)
        mean = torch.from_numpy(probs.mean(axis=0))
        assert_same(flat.predict_proba(mean), flat.predict_proba(mean.numpy()), mean, 1e-6)
        with pytest.raises(ShapeError, match="fitted for 4 classes"):
            auto.predict(torch.full((3, 5, 7), 1 / 7))
        with pytest.raises(ShapeError, match="needs every source's predictions"):
            vd.PTDE().fit(probs, labels).predict(mean)
        with pytest.raises(ShapeError, match="needs the same ones"):
            vd.PTDE().fit(probs, labels).predict(tensor[:2])


METRICS = (
    "ece", "ece_kde", "ks_error", "nll", "brier", "accuracy", "classwise_ece", "smooth_ece", "debiased_ece", "aurc",
)  # fmt: skip


@pytest.mark.parametrize("library", MAKERS)
def test_metrics(library, rng):
    probs, labels = labelled_ensemble(rng)
    mean = probs.mean(axis=0)
    array, truth = MAKERS[library](mean), MAKERS[library](labels)
    for metric in METRICS:
        function = getattr(metrics, metric)
        expected = function(labels, mean)
        if library != "device":
            assert function(truth, array) == expected
        with array_path():
            assert function(truth, array) == pytest.approx(expected, abs=1e-9)
    with array_path():
        scores = metrics.summary(truth, array).to_dict()
    for name, value in metrics.summary(labels, mean).to_dict().items():
        assert scores[name] == (pytest.approx(value, abs=1e-9) if isinstance(value, float) else value)
    confidence, right = mean.max(axis=1), mean.argmax(axis=1) == labels
    assert metrics.ece(MAKERS[library](right), MAKERS[library](confidence)) == metrics.ece(right, confidence)
    assert_same(metrics.bin_edges(MAKERS[library](confidence)), metrics.bin_edges(confidence), array, 0.0)


@pytest.mark.parametrize("library", MAKERS)
def test_metrics_name_invalid_samples(library, rng):
    probs, labels = labelled_ensemble(rng)
    mean = probs.mean(axis=0)
    with array_path():
        with pytest.raises(InvalidInputError, match="label"):
            metrics.ece(MAKERS[library](labels + 7), MAKERS[library](mean))
        mean[7] *= 1.5
        with pytest.raises(NotNormalisedError, match="sample 7"):
            metrics.nll(MAKERS[library](labels), MAKERS[library](mean))


@pytest.mark.parametrize("library", MAKERS)
def test_predictive_uncertainty(library, rng):
    probs = random_ensemble(rng)
    expected = metrics.predictive_uncertainty(probs)
    array = MAKERS[library](probs)
    with array_path():
        uncertainty = metrics.predictive_uncertainty(array)
    for field in ("total_entropy", "member_entropy", "mutual_information", "hv"):
        assert_same(getattr(uncertainty, field), getattr(expected, field), array, 1e-9)
    if library == "torch":
        in_place = metrics.predictive_uncertainty(array)
        assert_same(in_place.mutual_information, expected.mutual_information, array, 0.0)


def test_jit_of_jax(rng):
    probs = random_ensemble(rng)
    expected = vd.discover(probs, accuracy_preserving=True)
    truth, hv = jax.jit(lambda values: (vd.discover(values).probs, vd.discover(values).hv))(jnp.asarray(probs))
    np.testing.assert_allclose(truth, expected.probs, atol=1e-9)
    np.testing.assert_allclose(hv, expected.hv, atol=1e-9)


def test_gradient_of_jax_is_that_of_torch(rng):
    probs = rng.dirichlet(np.ones(4), size=(4, 20))
    by_jax = jax.jit(jax.grad(lambda values: vd.discover(values).hv.sum()))(jnp.asarray(probs))
    tensor = torch.from_numpy(probs).requires_grad_()
    vd.discover(tensor).hv.sum().backward()
    np.testing.assert_allclose(by_jax, tensor.grad.numpy(), atol=1e-8)
