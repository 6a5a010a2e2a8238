"""The kernels' NumPy twins: the same labels exactly, the same values up to rounding."""

import numpy as np
import pytest
from calibration_cases import NAMES, labelled_ensemble
from conftest import examples
from ensembles import random_ensemble, tied_ensembles
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical.combine import in_memory
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.errors import MissingSourceError, NotFiniteError, NotNormalisedError, VeridicalError

#: Largest differences of results in float64 and in float32, where only the kernel works in float32.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
#: In float32 a source close to the truth has a distance of few digits, and its weight is the logarithm of that.
RELIABILITY_TOLERANCE = {"float64": 1e-10, "float32": 2e-3}


@pytest.fixture
def compiled(monkeypatch):
    """Have the kernels take inputs of any size."""
    return lambda: monkeypatch.setattr(in_memory, "MOST_SAMPLES", -1)


def few(probs, missing="raise"):
    """Samples as NumPy takes them."""
    predictions = probs if isinstance(probs, vd.Predictions) else vd.Predictions(probs)
    return SourcesInMemory(predictions, AbsentSkipped(missing=missing))


def mean_of(probs, missing="raise"):
    return vd.combine.apply_label_free("mean", vd.Predictions(probs), AbsentSkipped(missing=missing))


def assert_same_truth(twin, kernel, *, close_sources=False):
    """``close_sources``: sources may be the truth up to rounding, and are then weighed by rounding errors."""
    name = kernel.probs.dtype.name
    assert twin.probs.dtype == kernel.probs.dtype
    np.testing.assert_array_equal(twin.prediction, kernel.prediction)
    np.testing.assert_allclose(twin.probs, kernel.probs, rtol=0, atol=TOLERANCE[name])
    np.testing.assert_allclose(twin.hv, kernel.hv, rtol=TOLERANCE[name], atol=TOLERANCE[name])
    if close_sources:
        return
    scattered = kernel.hv > 1e-6  # sources that agree up to rounding are weighed by rounding errors
    np.testing.assert_allclose(
        twin.reliability[:, scattered], kernel.reliability[:, scattered], rtol=0, atol=RELIABILITY_TOLERANCE[name]
    )


@settings(max_examples=examples(200))
@given(tied_ensembles(), st.booleans())
def test_twin_of_truth_discovery_on_ties(probs, keep_label):
    kernel = vd.discover(probs, accuracy_preserving=keep_label)
    twin = few(probs).truth(keep_label=keep_label)
    assert_same_truth(twin, kernel, close_sources=True)
    mean = mean_of(probs)
    kernel = vd.discover(probs, max_iter=0)
    np.testing.assert_array_equal(mean.prediction, kernel.prediction)
    np.testing.assert_array_equal(mean.probs.argmax(axis=1), mean.prediction)
    np.testing.assert_allclose(mean.probs, kernel.probs, rtol=0, atol=TOLERANCE[mean.probs.dtype.name])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", ["probs", "logits", "log_probs"])
@pytest.mark.parametrize("shape", [(1, 3, 2), (2, 5, 3), (3, 60, 4), (5, 1, 10), (7, 20, 60), (20, 3, 200)])
def test_twin_of_truth_discovery(shape, kind, dtype, rng):
    probs = random_ensemble(rng, *shape, spread=rng.choice([0.3, 1.0, 3.0]))
    scores = probs.astype(dtype) if kind == "probs" else np.log(probs).astype(np.promote_types(dtype, np.float32))
    for missing in ("raise", "skip"):
        if missing == "skip":
            scores = scores.copy()
            scores[0, 0] = np.nan if shape[0] > 1 else scores[0, 0]
        predictions = vd.Predictions(scores, kind=kind)
        for keep_label in (True, False):
            for weights in (None, rng.choice([0.0, 0.3, 1.0, 2.5], shape[0]) + 1e-3 * (np.arange(shape[0]) == 0)):
                kernel = vd.discover(
                    predictions, missing=missing, accuracy_preserving=keep_label, source_weights=weights
                )
                assert_same_truth(few(predictions, missing).truth(weights, keep_label=keep_label), kernel)


def test_a_sample_does_not_depend_on_the_others(rng):
    probs = random_ensemble(rng, 5, 40, 12, np.float32)
    together = few(probs).kept_truth
    for n in range(40):
        alone = few(probs[:, n : n + 1]).kept_truth
        np.testing.assert_array_equal(alone.probs[0], together.probs[n])
        np.testing.assert_array_equal(alone.reliability[:, 0], together.reliability[:, n])
        assert (alone.hv[0], alone.n_iter[0]) == (together.hv[n], together.n_iter[n])


@pytest.mark.parametrize(
    ("wrong", "error"), [(np.inf, NotFiniteError), (-0.2, VeridicalError), (0.9, NotNormalisedError)]
)
def test_twin_rejects_what_the_kernel_rejects(wrong, error, rng, compiled):
    probs = random_ensemble(rng, 3, 4, 5)
    probs[1, 2, 3] = wrong
    messages = []
    for choose in (lambda: None, compiled):
        choose()
        with pytest.raises(error, match="source 1, sample 2") as caught:
            mean_of(probs)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_twin_rejects_absent_sources(rng):
    probs = random_ensemble(rng, 3, 4, 5)
    probs[:2, 1] = np.nan
    with pytest.raises(MissingSourceError, match="sample 1"):
        mean_of(probs)
    assert mean_of(probs, "skip").probs[1] == pytest.approx(probs[2, 1])
    probs[2, 1] = np.nan
    with pytest.raises(MissingSourceError, match="sample 1"):
        mean_of(probs, "skip")


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_predictions_of_twins_and_kernels(name, dtype, rng, compiled):
    probs, labels = labelled_ensemble(rng, n_samples=500, dtype=dtype)
    new = random_ensemble(rng, 5, 64, 4, dtype)
    calibrator = vd.calibrators()[name]().fit(probs, labels)
    by_numpy = calibrator.predict_all(new)
    compiled()
    by_kernels = calibrator.predict_all(new)
    np.testing.assert_array_equal(by_numpy[2], by_kernels[2])
    for twin, kernel in zip(by_numpy[:2], by_kernels[:2], strict=True):
        assert twin.dtype == kernel.dtype
        np.testing.assert_allclose(twin, kernel, rtol=0, atol=TOLERANCE[np.dtype(dtype).name])
