"""What the data of a fit looked like, and the warning about data that looks different."""

import json
import warnings

import numpy as np
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.calibrate.fitting_data import FittingData, warn_about_shift
from veridical.errors import ShiftedDataWarning


@pytest.fixture(scope="module")
def probs():
    return random_ensemble(np.random.default_rng(0), 4, 300, 3)


def test_measurements_are_those_of_the_mean_and_of_truth_discovery(probs):
    data = FittingData.of(vd.Predictions(probs))
    confidence, hv = probs.mean(axis=0).max(axis=1), vd.discover(probs).hv
    assert data.n_samples == 300
    assert (data.confidence, data.confidence_spread) == pytest.approx((confidence.mean(), confidence.std()))
    assert (data.hv, data.hv_spread) == pytest.approx((hv.mean(), hv.std()), rel=1e-6)
    assert FittingData.of(vd.Predictions(probs), confidence=confidence, hv=hv) == data


def test_one_source_has_no_heterogeneity(probs):
    data = FittingData.of(vd.Predictions(probs[:1]))
    assert (data.hv, data.hv_spread) == (None, None)
    assert data.confidence == pytest.approx(probs[0].max(axis=1).mean())


@pytest.mark.parametrize(("n_samples", "measured"), [(2000, 2000), (2001, 1001), (5000, 1667)])
def test_large_data_are_measured_at_even_distances(n_samples, measured):
    confidence = np.linspace(0.5, 1.0, n_samples)
    predictions = vd.Predictions(np.stack([1 - confidence, confidence], axis=1)[None])
    data = FittingData.of(predictions)
    assert data.n_samples == measured
    assert data.confidence == pytest.approx(confidence[:: -(-n_samples // 2000)].mean())


def test_measurements_survive_json(probs):
    for values in (probs, probs[:1]):
        data = FittingData.of(vd.Predictions(values))
        assert FittingData.from_dict(json.loads(json.dumps(data.to_dict()))) == data


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_samples": -1}, "n_samples of the data of the fit is -1"),
        ({"confidence": None}, "confidence of the data of the fit is None"),
        ({"confidence": "0.5"}, "confidence of the data of the fit is '0.5'"),
        ({"confidence_spread": float("inf")}, "confidence_spread of the data of the fit is inf"),
        ({"hv": True}, "hv of the data of the fit is True"),
        ({"more": 1}, "the data of the fit is described by"),
    ],
)
def test_damaged_measurements_are_rejected(probs, change, words):
    content = FittingData.of(vd.Predictions(probs)).to_dict() | change
    with pytest.raises(ValueError, match=words):
        FittingData.from_dict(content)
    with pytest.raises(ValueError, match="the data of the fit is described by"):
        FittingData.from_dict([content])


def shifted(probs, power):
    """The same ensemble, more or less confident."""
    sharp = probs**power
    return sharp / sharp.sum(axis=-1, keepdims=True)


def test_the_same_kind_of_data_causes_no_warning(probs):
    fitted = FittingData.of(vd.Predictions(probs))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_about_shift(fitted, vd.Predictions(probs))
        warn_about_shift(fitted, vd.Predictions(random_ensemble(np.random.default_rng(5), 4, 300, 3)))
        warn_about_shift(None, vd.Predictions(shifted(probs, 4)))
        warn_about_shift(fitted, vd.Predictions(shifted(probs, 4)[:, :49]))  # fewer samples say little


def test_warning_names_both_numbers(probs):
    fitted = FittingData.of(vd.Predictions(probs))
    new = FittingData.of(vd.Predictions(shifted(probs, 4)))
    with pytest.warns(ShiftedDataWarning) as caught:
        warn_about_shift(fitted, vd.Predictions(shifted(probs, 4)))
    message = str(caught[0].message)
    assert f"their mean confidence is {100 * new.confidence:.1f}% ({100 * fitted.confidence:.1f}%)" in message
    assert f"their mean HV is {new.hv:.3g} ({fitted.hv:.3g})" in message


def test_disagreement_alone_is_noticed(probs):
    """Sources that scatter more around the same mean."""
    mean = probs.mean(axis=0, keepdims=True)
    calm = mean + 0.2 * (probs - mean)
    with pytest.warns(ShiftedDataWarning, match="predictions differ .*their mean HV is") as caught:
        warn_about_shift(FittingData.of(vd.Predictions(calm)), vd.Predictions(probs))
    assert "mean confidence" not in str(caught[0].message)


def test_small_shift_is_not_reported_however_certain():
    """A difference of one point on two thousand equal confidences is beyond any error, and does not matter."""
    for difference, is_reported in ((0.015, False), (0.025, True)):
        before, after = (vd.Predictions(np.tile([1 - c, c], (1, 2000, 1))) for c in (0.7, 0.7 + difference))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_about_shift(FittingData.of(before), after)
        assert bool(caught) == is_reported


def test_saved_calibrator_still_warns(probs, tmp_path):
    rng = np.random.default_rng(1)
    labels = [rng.choice(3, p=row) for row in probs.mean(axis=0)]
    vd.Temperature().fit(probs, labels).save(tmp_path / "cal.json")
    loaded = vd.load_calibrator(tmp_path / "cal.json")
    with pytest.warns(ShiftedDataWarning, match="their mean confidence is"):
        vd.apply_calibrator(loaded, shifted(probs, 4))


def test_random_halves_of_the_same_groups_do_not_differ(rng):
    """Images differ in how easy they are: with six of them in a half, a difference of means is chance."""
    n_images, size = 12, 300
    ease = np.repeat(rng.normal(1.0, 0.8, n_images), size)
    image = np.repeat(np.arange(n_images), size)
    logits = ease[None, :, None] * rng.standard_normal((3, n_images * size, 4))
    whole = vd.Predictions(logits, kind="logits", groups=image)
    without = vd.Predictions(logits, kind="logits")
    warned = {"groups": 0, "none": 0}
    for seed in range(8):
        halves = whole.split(random_state=seed)
        for name, parts in {"groups": halves, "none": [_ungrouped(half) for half in halves]}.items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warn_about_shift(FittingData.of(parts[0]), parts[1])
            warned[name] += bool(caught)
    assert warned["groups"] == 0
    assert warned["none"] >= 3
    data = FittingData.of(whole)
    assert data.n_groups == pytest.approx(n_images)
    assert FittingData.from_dict(json.loads(json.dumps(data.to_dict()))) == data
    assert "n_groups" not in FittingData.of(without).to_dict()


def _ungrouped(predictions):
    return vd.Predictions(predictions.values, kind="logits")
