"""What every registered calibrator promises, generated from the registry."""

import numpy as np
import pytest
from calibration_cases import KEEPING, NAMES, degenerate_sets, labelled_ensemble
from conftest import examples
from hypothesis import given, settings

import veridical as vd
from veridical.combine import COMBINERS
from veridical.errors import ParameterError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::veridical.errors.NotConvergedWarning")


def make(name, **parameters):
    """A calibrator with everything random decided."""
    method = vd.calibrators()[name]
    if "random_state" in method().get_params():
        parameters["random_state"] = 0
    if name == "auto":
        parameters.setdefault("candidates", ["temperature", "irm", "spline", "opt-kde", "truth-logit"])
    return method(**parameters)


def outputs(calibrator, probs):
    """Distributions, confidences and labels; one by one and together they are the same."""
    results = calibrator.predict_proba(probs), calibrator.predict_confidence(probs), calibrator.predict(probs)
    for alone, together in zip(results, calibrator.predict_all(probs), strict=True):
        np.testing.assert_array_equal(alone, together, strict=True)
    return results


def assert_sane(calibrator, probs):
    """On the simplex, confidence a probability, labels in range and, where promised, strictly the mean's."""
    distributions, confidence, labels = outputs(calibrator, probs)
    assert distributions.shape == probs.shape[1:]
    assert distributions.dtype == (np.float64 if probs.dtype == np.float64 else np.float32)
    assert np.isfinite(distributions).all()
    assert (distributions >= 0).all()
    np.testing.assert_allclose(distributions.sum(axis=1, dtype=np.float64), 1.0, atol=1e-5)
    assert np.isfinite(confidence).all()
    assert ((confidence >= 0) & (confidence <= 1)).all()
    assert (labels == distributions.argmax(axis=1)).all()
    if calibrator.keeps_labels:
        expected = vd.discover(probs, max_iter=0).prediction
        assert (labels == expected).all()
        others = distributions.copy()
        others[np.arange(len(labels)), labels] = -1
        assert (distributions[np.arange(len(labels)), labels] > others.max(axis=1)).all()


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(25))
@given(case=degenerate_sets())
def test_degenerate_calibration_sets(name, case):
    probs, labels = case
    calibrator = make(name).fit(probs, labels)
    assert_sane(calibrator, probs)
    rng = np.random.default_rng(1)
    assert_sane(calibrator, labelled_ensemble(rng, len(probs), 7, probs.shape[2], probs.dtype)[0])


@pytest.mark.parametrize("name", NAMES)
def test_same_bytes_again_and_for_any_number_of_threads(name, rng, tmp_path):
    probs, labels = labelled_ensemble(rng, n_sources=4, n_samples=700, n_classes=6)
    calibrator = make(name).fit(probs, labels)
    first = [array.tobytes() for array in outputs(calibrator, probs)]
    assert [array.tobytes() for array in outputs(calibrator, probs)] == first
    assert [array.tobytes() for array in outputs(calibrator.fit(probs, labels), probs)] == first
    for n_threads in (1, 3):
        again = make(name, n_threads=n_threads).fit(probs, labels)
        assert [array.tobytes() for array in outputs(again, probs)] == first
    calibrator.save(tmp_path / "calibrator.json")
    loaded = vd.load_calibrator(tmp_path / "calibrator.json")
    assert [array.tobytes() for array in outputs(loaded, probs)] == first
    assert repr(loaded) == repr(calibrator)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_do_not_depend_on_their_company(name, rng):
    probs, labels = labelled_ensemble(rng, n_sources=3, n_samples=200)
    calibrator = make(name).fit(probs, labels)
    whole = calibrator.predict_proba(probs)
    parts = [calibrator.predict_proba(probs[:, part]) for part in (slice(0, 1), slice(1, 120), slice(120, 200))]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_combination(name, rng):
    probs, labels = labelled_ensemble(rng, n_sources=4, n_samples=250, n_classes=3)
    for combine in vd.calibrators()[name].combiners:
        calibrator = make(name, combine=combine).fit(probs, labels)
        distributions, confidence, predicted = outputs(calibrator, probs)
        np.testing.assert_allclose(distributions.sum(axis=1), 1.0)
        assert (predicted == distributions.argmax(axis=1)).all()
        if name in KEEPING and combine in ("mean", "atde"):
            assert (predicted == probs.mean(axis=0).argmax(axis=1)).all()
        assert np.isfinite(confidence).all()


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_sample_first_arrays(name, rng):
    probs, labels = labelled_ensemble(rng, n_samples=120)
    expected = outputs(make(name).fit(probs, labels), probs)
    logits = np.log(probs) + 3.0
    for values, how in (
        (logits, {"kind": "logits"}),
        (np.log(probs), {"kind": "log_probs"}),
        (probs.swapaxes(0, 1), {"sources_axis": 1}),
    ):
        given_so = outputs(make(name, **how).fit(values, labels), values)
        np.testing.assert_allclose(given_so[0], expected[0], atol=1e-6)
    container = vd.Predictions(probs, labels)
    assert outputs(make(name).fit(container), container)[0].tobytes() == expected[0].tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_one_array_of_vectors_where_sources_are_not_needed(name, rng):
    probs, labels = labelled_ensemble(rng, n_sources=1)
    if vd.calibrators()[name].needs_sources:
        with pytest.raises(ShapeError, match="needs every source's predictions"):
            make(name).fit(probs[0], labels)
        return
    candidates = {"candidates": ["temperature", "spline"]} if name == "auto" else {}
    flat = make(name, **candidates).fit(probs[0], labels)
    assert (
        flat.predict_proba(probs[0]).tobytes()
        == make(name, **candidates).fit(probs, labels).predict_proba(probs).tobytes()
    )


@pytest.mark.parametrize("name", [name for name, method in vd.calibrators().items() if method.monotone])
def test_monotone(name, rng):
    probs, labels = labelled_ensemble(rng, n_sources=1, n_samples=400, n_classes=3)
    calibrator = make(name).fit(probs, labels)
    top = np.linspace(1 / 3 + 1e-3, 1, 500)
    rows = np.column_stack((top, (1 - top) / 2, (1 - top) / 2))
    assert (np.diff(calibrator.predict_confidence(rows[None])) >= 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_absent_sources(name, rng):
    probs, labels = labelled_ensemble(rng, n_sources=4, n_samples=150)
    probs[1, ::7] = np.nan
    calibrator = make(name, missing="skip").fit(probs, labels)
    distributions = calibrator.predict_proba(probs)
    assert np.isfinite(distributions).all()
    np.testing.assert_allclose(distributions.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_described(name):
    method = vd.calibrators()[name]
    assert method.name == name
    assert method.summary.endswith(".")
    assert "\n" not in method.summary
    assert isinstance(method.needs_sources, bool)
    assert isinstance(method.keeps_labels, bool)
    assert getattr(vd, method.__name__) is method
    assert "Examples" in method.__doc__


@pytest.mark.parametrize("combine", list(COMBINERS))
def test_says_whether_the_mean_label_is_kept(combine):
    assert vd.Temperature(combine=combine).keeps_mean_labels == (combine in ("mean", "atde", "aconsensus"))
    assert not vd.VectorScaling(combine=combine).keeps_mean_labels
    assert vd.Temperature(combine=combine).keeps_labels  # those of the combined vector


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("parameter", "value"), [("kind", "zzz"), ("sources_axis", 9), ("missing", "maybe"), ("n_threads", -5)]
)
def test_shared_parameters_are_checked(name, parameter, value, rng):
    probs, labels = labelled_ensemble(rng, n_samples=20)
    with pytest.raises(ParameterError, match=parameter):
        make(name, **{parameter: value}).fit(probs, labels)
