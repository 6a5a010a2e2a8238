"""Calibrated predictions: partial labels, ids, files, and data that differs from that of the fit."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from ensembles import random_ensemble

import veridical as vd
from veridical import errors
from veridical.cli.commands import program

NAMES = ["cat", "dog", "owl"]
N_SAMPLES = 120


@pytest.fixture
def values(rng):
    return random_ensemble(rng, 4, N_SAMPLES, 3)


@pytest.fixture
def labels(rng, values):
    labels = values[0].argmax(axis=1)
    labels[::4] = rng.integers(0, 3, len(labels[::4]))
    return labels


@pytest.fixture
def ids():
    return np.array([f"img_{n}" for n in range(N_SAMPLES)])[::-1]


def test_unlabelled_samples_are_left_out_of_fits_and_scores(values, labels):
    some = labels.copy()
    some[N_SAMPLES // 2 :] = -1
    half = slice(N_SAMPLES // 2)
    partly, only = (vd.Predictions(values, some), vd.Predictions(values[:, half], labels[half]))
    for method in (vd.Temperature(), vd.Auto(candidates=["temperature", "platt"], random_state=0)):
        fitted = method.fit(partly).predict_proba(values)
        np.testing.assert_array_equal(fitted, method.fit(only).predict_proba(values))
    partial, complete = (
        vd.evaluate(given, methods=["members", "mean", "temperature"], floors=False) for given in (partly, only)
    )
    assert partial.data.n_samples == N_SAMPLES // 2
    assert [row.summary["nll"].value for row in partial.methods] == [
        row.summary["nll"].value for row in complete.methods
    ]
    calibration = vd.fit_calibrator(values, np.where(some < 0, np.nan, some), method="temperature")
    assert vd.apply_calibrator(calibration.calibrator, partly).probs.shape == (N_SAMPLES, 3)


def test_inspection_and_report_of_partial_labels(values, labels, ids):
    some = labels.copy()
    some[::3] = -1
    known = some >= 0
    predictions = vd.Predictions(values, some, sample_ids=ids, class_names=NAMES)
    inspection = vd.inspect(predictions)
    assert inspection.sources[0].accuracy == pytest.approx((values[0].argmax(axis=1) == labels)[known].mean())
    assert inspection.value.n_samples == known.sum() - known.sum() // 2
    report = vd.build_report(predictions, method="temperature", intervals=False)
    disputed = report.data.disputed
    assert {sample.sample_id for sample in disputed} <= set(ids.tolist())
    assert all(sample.sample_id == ids[sample.sample] for sample in disputed)
    assert {sample.label for sample in disputed if not known[sample.sample]} == {None}
    assert str(disputed[0].sample_id) in report.html
    assert disputed[0].sample_id in json.dumps(report.data.to_dict())


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet"])
def test_calibrated_predictions_are_written_by_extension(tmp_path, values, labels, ids, suffix):
    predictions = vd.Predictions(values, labels, sample_ids=ids, class_names=NAMES)
    calibrated = vd.apply_calibrator(vd.Temperature().fit(predictions), predictions)
    path = tmp_path / f"calibrated{suffix}"
    calibrated.save(path)
    if suffix in (".csv", ".parquet"):
        frame = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
        assert list(frame) == ["id", "label", "confidence", *NAMES]
        assert frame["id"].tolist() == ids.tolist()
        assert frame["label"].tolist() == [NAMES[label] for label in calibrated.prediction]
        np.testing.assert_array_equal(frame["confidence"], calibrated.confidence)
        np.testing.assert_array_equal(frame[NAMES], calibrated.probs)
    loaded = vd.load(path)
    np.testing.assert_array_equal(loaded.values[0], calibrated.probs)
    if suffix == ".npz":
        assert loaded.labels.tolist() == labels.tolist()
    else:
        assert loaded.labels is None  # predicted labels are not labels
    if suffix != ".npy":
        assert loaded.sample_ids.tolist() == ids.tolist()
        assert loaded.class_names == tuple(NAMES)


def test_float32_table_has_the_shortest_numbers(tmp_path):
    values = np.float32([[[0.1, 0.9], [0.7, 0.3]]])
    calibrated = vd.apply_calibrator(vd.Identity().fit(values, [0, 1]), values)
    calibrated.save(tmp_path / "c.csv")
    rows = list(csv.reader((tmp_path / "c.csv").read_text().splitlines()))
    assert rows[0] == ["id", "label", "confidence", "0", "1"]
    assert rows[1][0] == "0"
    assert rows[1][3:] == ["0.1", "0.9"]


def test_calibrated_predictions_refuse_other_extensions(tmp_path, values, labels):
    calibrated = vd.apply_calibrator(vd.Temperature().fit(values, labels), values)
    with pytest.raises(errors.FileFormatError, match=r"use the extension \.npz, \.npy, \.csv, \.parquet"):
        calibrated.save(tmp_path / "c.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_apply_command_writes_a_table_with_ids(tmp_path, values, labels, ids):
    logits = np.log(values)
    vd.save(vd.Predictions(logits, labels, kind="logits", sample_ids=ids, class_names=NAMES), tmp_path / "p.npz")
    np.save(tmp_path / "new.npy", logits)
    runner = CliRunner()
    cal, out = str(tmp_path / "cal.json"), str(tmp_path / "out.csv")
    fitted = runner.invoke(program, ["calibrate", str(tmp_path / "p.npz"), "-m", "temperature", "--out", cal])
    assert fitted.exit_code == 0, fitted.output
    applied = runner.invoke(program, ["apply", cal, str(tmp_path / "p.npz"), "--out", out])
    assert applied.exit_code == 0, applied.output
    table = pd.read_csv(out)
    assert table["id"].tolist() == ids.tolist()
    # The file declares no kind, and the calibrator remembers it.
    other = str(tmp_path / "other.parquet")
    applied = runner.invoke(program, ["apply", cal, str(tmp_path / "new.npy"), "--out", other])
    assert applied.exit_code == 0, applied.output
    np.testing.assert_array_equal(pd.read_parquet(other)["confidence"], table["confidence"])


def _out_of_fold(rng, n_samples, n_folds):
    """Three sources, each trained on folds: an out-of-fold prediction, and the average over its folds."""
    truth = 2 * rng.standard_normal((n_samples, 4))
    per_fold = truth + 1.5 * rng.standard_normal((3, n_folds, n_samples, 4))
    probs = np.exp(per_fold) / np.exp(per_fold).sum(axis=-1, keepdims=True)
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    return probs[:, 0], probs.mean(axis=1), labels


def test_fold_averages_after_a_fit_on_out_of_fold_predictions_warn(rng, tmp_path):
    out_of_fold, averages, labels = _out_of_fold(rng, 2000, 5)
    first, second = slice(0, 1000), slice(1000, None)
    calibrator = vd.Temperature().fit(out_of_fold[:, first], labels[first])
    vd.apply_calibrator(calibrator, out_of_fold[:, second])  # the same kind of predictions: no warning
    calibrator.save(tmp_path / "cal.json")
    for fitted in (calibrator, vd.load_calibrator(tmp_path / "cal.json")):
        with pytest.warns(
            errors.ShiftedDataWarning, match=r"mean HV is .*both out of fold or both averages over folds"
        ):
            vd.apply_calibrator(fitted, averages[:, second])
    vd.apply_calibrator(calibrator, averages[:, second][:, :20])  # too few to say


def test_data_of_the_fit_is_measured_on_the_labelled_samples(values, labels):
    fitted = vd.Temperature().fit(values, labels)
    assert fitted.fitting_data_.n_samples == N_SAMPLES
    assert fitted.fitting_data_.confidence == pytest.approx(values.mean(axis=0).max(axis=1).mean())
    assert fitted.fitting_data_.hv == pytest.approx(vd.discover(values).hv.mean())


CLASS_NAMES = ("cat", "dog", "eel")


@pytest.fixture
def named_classes(rng):
    labels = rng.integers(0, 3, 300)
    scores = rng.dirichlet(np.ones(3), (2, 300)) + np.array([0.2, 0.0, 0.6]) + 0.8 * np.eye(3)[labels]
    return vd.Predictions(scores / scores.sum(axis=-1, keepdims=True), labels, class_names=CLASS_NAMES)


@pytest.mark.parametrize("method", [vd.VectorScaling, vd.IROvA, vd.Temperature, vd.Auto])
@pytest.mark.parametrize("saved", [False, True])
def test_apply_matches_classes_by_name(named_classes, method, saved, tmp_path):
    calibrator = method().fit(named_classes)
    if saved:
        calibrator.save(tmp_path / "calibrator.json")
        calibrator = vd.load_calibrator(tmp_path / "calibrator.json")
    expected = vd.apply_calibrator(calibrator, named_classes)
    reordered = named_classes.in_class_order(["eel", "cat", "dog"])
    applied = vd.apply_calibrator(calibrator, reordered)
    assert applied.class_names == ("eel", "cat", "dog")
    np.testing.assert_array_equal(applied.probs, expected.probs[:, [2, 0, 1]])
    np.testing.assert_array_equal(applied.confidence, expected.confidence)
    names = np.array(applied.class_names)[applied.prediction]
    np.testing.assert_array_equal(names, np.array(CLASS_NAMES)[expected.prediction])
    np.testing.assert_array_equal(applied.labels, reordered.labels)


def test_calibrator_refuses_classes_in_another_order(named_classes):
    calibrator = vd.VectorScaling().fit(named_classes)
    with pytest.raises(errors.ParameterError, match="class 0 of the predictions is 'eel' and was 'cat' at the fit"):
        calibrator.predict_proba(named_classes.in_class_order(["eel", "cat", "dog"]))


def test_calibrator_refuses_other_classes(named_classes):
    calibrator = vd.VectorScaling().fit(named_classes)
    other = vd.Predictions(named_classes.values, class_names=["cat", "dog", "emu"])
    with pytest.raises(errors.ParameterError, match="class 2 of the predictions is 'emu' and was 'eel'"):
        vd.apply_calibrator(calibrator, other)


def test_class_order_moves_scores_and_labels(named_classes):
    partly = named_classes.with_labels(np.where(np.arange(300) < 10, -1, named_classes.labels))
    reordered = partly.in_class_order(("dog", "eel", "cat"))
    assert reordered.class_names == ("dog", "eel", "cat")
    np.testing.assert_array_equal(reordered.values, partly.values[:, :, [1, 2, 0]])
    assert (reordered.labels[:10] == -1).all()
    assert [reordered.class_names[label] for label in reordered.labels[10:]] == [
        CLASS_NAMES[label] for label in partly.labels[10:]
    ]
    with pytest.raises(errors.ParameterError, match="give the names of the classes in a new order"):
        partly.in_class_order(("dog", "eel", "fox"))
