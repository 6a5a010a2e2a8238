"""The shortest way from a small array to an answer: the same answers as the ordinary way, from any thread."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from calibration_cases import NAMES, labelled_ensemble
from ensembles import random_ensemble

import veridical as vd
from veridical.combine import in_memory
from veridical.combine.small_arrays import FewSources, combine_array
from veridical.errors import MissingSourceError, NotNormalisedError, ShapeError, UnfittedError

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


#: A calibrator as it was fitted or read, and one whose kernels are loaded.
LOADED = pytest.mark.parametrize("loaded", [False, True], ids=["numpy", "kernels"])


def fitted(name, rng, loaded=False, **parameters):
    probs, labels = labelled_ensemble(rng, n_samples=500)
    probs = np.log(probs) if parameters.get("kind", "probs") != "probs" else probs
    calibrator = vd.calibrators()[name](**parameters).fit(probs, labels)
    return calibrator.load_kernels() if loaded else calibrator


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
@LOADED
def test_single_samples_agree_with_the_kernels(name, dtype, loaded, rng, monkeypatch):
    calibrator = fitted(name, rng, loaded)
    new = random_ensemble(rng, 5, 30, 4, dtype)
    one_by_one = [calibrator.predict_all(new[:, n : n + 1]) for n in range(30)]
    monkeypatch.setattr(in_memory, "MOST_SAMPLES", -1)
    probs, confidence, labels = calibrator.predict_all(new)
    tolerance = TOLERANCE[np.dtype(dtype).name]
    for n, single in enumerate(one_by_one):
        assert single[2] == labels[n]
        assert single[0].dtype == probs.dtype
        np.testing.assert_allclose(single[0][0], probs[n], rtol=0, atol=tolerance)
        np.testing.assert_allclose(single[1], confidence[n], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("sources_axis", [0, 1])
@LOADED
def test_kinds_and_axes(kind, sources_axis, loaded, rng, monkeypatch):
    probs, labels = labelled_ensemble(rng, n_samples=500)
    scores = np.log(probs).swapaxes(0, sources_axis)
    calibrator = vd.PTDE(kind=kind, sources_axis=sources_axis, random_state=0).fit(scores, labels)
    calibrator = calibrator.load_kernels() if loaded else calibrator
    some = scores.take(range(1, 20), axis=1 - sources_axis)
    assert isinstance(calibrator._combine_array(some).sources, FewSources)
    quick = calibrator.predict_all(some)
    monkeypatch.setattr(in_memory, "MOST_SAMPLES", -1)
    for twin, kernel in zip(quick, calibrator.predict_all(some), strict=True):
        np.testing.assert_allclose(twin, kernel, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_sources", [1, 2, 3, 20])
@LOADED
def test_truth_of_degenerate_samples(n_sources, loaded, rng, monkeypatch):
    """Unanimous, one-hot and uniform sources."""
    probs, labels = labelled_ensemble(rng, n_sources=n_sources, n_samples=300)
    calibrator = vd.PTDE(random_state=0).fit(probs, labels)
    calibrator = calibrator.load_kernels() if loaded else calibrator
    samples = np.concatenate([probs[:, :5], np.repeat(probs[:1, :5], n_sources, axis=0)], axis=1)
    samples = np.concatenate([samples, np.eye(4)[rng.integers(0, 4, (n_sources, 5))]], axis=1)
    samples = np.concatenate([samples, np.full((n_sources, 1, 4), 0.25)], axis=1)
    single = [calibrator.predict_all(samples[:, n : n + 1]) for n in range(samples.shape[1])]
    monkeypatch.setattr(in_memory, "MOST_SAMPLES", -1)
    probs, confidence, labels = calibrator.predict_all(samples)
    for n, (row, score, label) in enumerate(single):
        assert label == labels[n]
        np.testing.assert_allclose(row[0], probs[n], rtol=0, atol=1e-9)
        np.testing.assert_allclose(score, confidence[n], rtol=0, atol=1e-9)


def test_unusual_arrays_go_the_ordinary_way(rng):
    probs = random_ensemble(rng, 3, 4, 5)
    options = vd.Identity()

    def combined(values):
        return combine_array(values, "probs", 0, options)

    assert isinstance(combined(probs).sources, FewSources)
    tied, absent = probs.copy(), probs.copy()
    tied[:] = 0.2
    absent[0, 0] = np.nan
    unusual = {
        "half precision": probs.astype(np.float16),
        "no samples": probs[:, :0],
        "many samples": np.repeat(probs, 20, axis=1),
        "a tie": tied,
        "an absent source": absent,
        "rows that do not sum to one": probs * 1.00001,
        "a negative number": probs - 0.2,
        "another byte order": probs.astype(">f8"),
    }
    assert [name for name, values in unusual.items() if combined(values) is not None] == []


@LOADED
def test_bad_single_samples_are_explained(loaded, rng):
    calibrator = fitted("ptde-kde", rng, loaded)
    sample = random_ensemble(rng, 5, 1, 4)
    for wrong, error, message in (
        (sample * 1.1, NotNormalisedError, "source 0, sample 0"),
        (sample[:4], ShapeError, "fitted for 5 sources"),
        (sample[:, :, :3], ShapeError, "fitted for 4 classes"),
        (np.where(np.arange(5)[:, None, None] == 2, np.nan, sample), MissingSourceError, "source 2"),
        (sample[0], ShapeError, "needs every source's predictions"),
        (sample[0, 0], ShapeError, "dimension"),
        (1.0, ShapeError, "dimension"),
    ):
        with pytest.raises(error, match=message):
            calibrator.predict_confidence(wrong)


@pytest.mark.parametrize("name", ["temperature", "spline", "ptde-kde"])
@LOADED
def test_many_threads_have_the_answers_of_one(name, loaded, rng):
    calibrator = fitted(name, rng, loaded)
    samples = random_ensemble(rng, 5, 200, 4, np.float32)
    parts = [samples[:, n : n + 1 + n % 3] for n in range(190)]
    alone = [calibrator.predict_all(part) for part in parts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(calibrator.predict_all, parts))
    for one, other in zip(alone, together, strict=True):
        for expected, result in zip(one, other, strict=True):
            np.testing.assert_array_equal(result, expected)


@LOADED
def test_predictions_do_not_change_the_input(loaded, rng):
    calibrator = fitted("ptde-kde", rng, loaded)
    sample = random_ensemble(rng, 5, 1, 4)
    sample.flags.writeable = False
    before = sample.copy()
    probs, _, _ = calibrator.predict_all(sample)
    probs[:] = 0
    np.testing.assert_array_equal(sample, before)
    np.testing.assert_array_equal(calibrator.predict_proba(sample), calibrator.predict_proba(before))


@LOADED
def test_batches_that_move_apart_agree_with_the_kernels(loaded, rng, monkeypatch):
    """Samples that need different numbers of updates, some with the label held by the projection."""
    calibrator = fitted("ptde-kde", rng, loaded)
    probs = rng.dirichlet(np.full(4, 0.3), (5, 60))
    batch = calibrator.predict_all(probs)
    assert len(np.unique(vd.discover(probs).n_iter)) > 2
    free = vd.discover(probs, accuracy_preserving=False).probs.argmax(axis=1)
    assert (free != batch[2]).any()
    monkeypatch.setattr(in_memory, "MOST_SAMPLES", -1)
    for quick, kernel in zip(batch, calibrator.predict_all(probs), strict=True):
        np.testing.assert_allclose(quick, kernel, rtol=0, atol=1e-12)


def test_kernels_are_loaded_for_fitted_calibrators_only():
    with pytest.raises(UnfittedError, match="not fitted"):
        vd.Temperature().load_kernels()


def test_kernels_of_the_chosen_calibrator_are_loaded(rng):
    probs, labels = labelled_ensemble(rng, n_samples=300)
    calibrator = vd.Auto(candidates=["temperature"], random_state=0).fit(probs, labels)
    expected = calibrator.predict_proba(probs[:, :1])
    assert calibrator.load_kernels() is calibrator
    assert calibrator.fitted_calibrator.small_inputs_compiled
    np.testing.assert_allclose(calibrator.predict_proba(probs[:, :1]), expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@LOADED
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_no_samples_have_no_answers(name, loaded, rng):
    calibrator = fitted(name, rng, loaded)
    results = calibrator.predict_all(np.empty((5, 0, 4)))
    assert [result.shape for result in results] == [(0, 4), (0,), (0,)]


@LOADED
def test_sources_on_the_last_axis(loaded, rng):
    """As many samples as classes and sources: shapes do not tell the axes."""
    probs, labels = labelled_ensemble(rng, n_sources=4, n_samples=300)
    calibrator = vd.PTDE(sources_axis=2, random_state=0).fit(np.moveaxis(probs, 0, 2), labels)
    calibrator = calibrator.load_kernels() if loaded else calibrator
    some = random_ensemble(rng, 4, 4, 4)
    assert isinstance(calibrator._combine_array(np.moveaxis(some, 0, 2)).sources, FewSources)
    expected = calibrator.predict_all(vd.Predictions(some))
    for quick, ordinary in zip(calibrator.predict_all(np.moveaxis(some, 0, 2)), expected, strict=True):
        np.testing.assert_allclose(quick, ordinary, rtol=0, atol=1e-12)
