"""Calibrated predictions as tables and files: what is in them, and what comes back."""

import csv

import numpy as np
import pandas as pd
import pytest
from ensembles import random_ensemble

import veridical as vd
from veridical.errors import FileFormatError, ParameterError
from veridical.evaluation.applying import Calibrated
from veridical.evaluation.calibrated_files import check_calibrated_target, table_of


def calibrated(n_samples=4, n_classes=3, dtype=np.float64, **facts):
    """Calibrated predictions with distributions that need all digits."""
    probs = random_ensemble(np.random.default_rng(3), 1, n_samples, n_classes)[0].astype(dtype)
    return Calibrated(probs, probs.max(axis=1).astype(np.float64), probs.argmax(axis=1), **facts)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".npy", ".CSV"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_file_has_every_digit(tmp_path, suffix, dtype):
    result = calibrated(dtype=dtype)
    result.save(tmp_path / f"out{suffix}")
    np.testing.assert_array_equal(vd.load(tmp_path / f"out{suffix}").values[0].astype(dtype), result.probs)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_table_names_samples_and_classes(tmp_path, suffix):
    names, ids = ("cat", 'd"o,g', "cow"), np.array(["q1", "q,2", "q\n3", "é"])
    result = calibrated(class_names=names, sample_ids=ids)
    path = tmp_path / f"out{suffix}"
    result.save(path)
    frame = pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)
    assert list(frame.columns) == ["id", "label", "confidence", *names]
    assert frame["id"].tolist() == ids.tolist()
    assert frame["label"].tolist() == [names[label] for label in result.prediction]
    assert frame["confidence"].tolist() == result.confidence.tolist()
    loaded = vd.load(path)
    assert loaded.class_names == names
    assert loaded.sample_ids.tolist() == ids.tolist()


def test_table_without_names_counts(tmp_path):
    result = calibrated()
    result.save(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["id", "label", "confidence", "0", "1", "2"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "3"]
    assert [int(row[1]) for row in rows[1:]] == result.prediction.tolist()


@pytest.mark.parametrize("name", ["id", "label", "confidence"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_class_with_the_name_of_a_column_is_rejected(tmp_path, name, suffix):
    result = calibrated(class_names=("a", name, "b"))
    with pytest.raises(ParameterError, match=f"a class is called '{name}', which a table cannot hold; rename it or"):
        result.save(tmp_path / f"out{suffix}")
    assert list(tmp_path.iterdir()) == []
    result.save(tmp_path / "out.npz")
    assert vd.load(tmp_path / "out.npz").class_names == ("a", name, "b")


def test_archive_holds_what_is_known(tmp_path):
    calibrated().save(tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz") as stored:
        assert set(stored) == {"probs", "confidence", "prediction"}
    full = calibrated(
        labels=np.array([0, 1, 2, -1]),
        class_names=("x", "y", "z"),
        sample_ids=np.arange(4) * 10,
        groups=np.array(["g", "g", "h", "h"]),
    )
    full.save(tmp_path / "full.npz")
    loaded = vd.load(tmp_path / "full.npz")
    assert loaded.labels.tolist() == [0, 1, 2, -1]
    assert loaded.sample_ids.tolist() == [0, 10, 20, 30]
    assert loaded.groups.tolist() == ["g", "g", "h", "h"]


@pytest.mark.parametrize("name", ["out", "out.txt", "out.npz.gz", ".npz"])
def test_other_extensions_are_rejected(tmp_path, name):
    with pytest.raises(FileFormatError, match=r"use the extension \.npz, \.npy, \.csv, \.parquet\."):
        calibrated().save(tmp_path / name)
    with pytest.raises(FileFormatError, match="calibrated predictions cannot be written to"):
        check_calibrated_target(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_input_is_not_replaced(tmp_path):
    values = random_ensemble(np.random.default_rng(0), 3, 60, 3)
    rng = np.random.default_rng(1)
    labels = np.array([rng.choice(3, p=row) for row in values.mean(axis=0)])
    np.save(tmp_path / "in.npy", values)
    fitted = vd.Temperature().fit(values, labels)
    result = vd.apply_calibrator(fitted, vd.load(tmp_path / "in.npy"))
    with pytest.raises(ParameterError, match=r"in\.npy is the same file as the input"):
        result.save(tmp_path / "in.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "in.npy"), values)


def test_images_become_rows_of_pixels(tmp_path):
    probs = random_ensemble(np.random.default_rng(0), 2, 12, 3)
    result = Calibrated(
        probs[0].reshape(2, 3, 2, 3), probs[0].max(axis=1).reshape(2, 3, 2), probs[0].argmax(axis=1).reshape(2, 3, 2)
    )
    columns = table_of(result)
    assert columns["id"] == list(range(12))
    assert columns["label"] == probs[0].argmax(axis=1).tolist()
    np.testing.assert_array_equal(columns["2"], probs[0, :, 2])
    result.save(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as stored:
        assert stored["probs"].shape == (2, 3, 2, 3)
    assert len(result.to_frame()) == 12


def test_result_prints_its_mean(tmp_path):
    result = calibrated()
    assert result.mean_confidence == pytest.approx(result.confidence.mean())
    heading, rows = result.rows()
    assert heading == ["calibrated", ""]
    assert rows == [["samples", "4"], ["mean confidence", f"{100 * result.confidence.mean():.2f} %"]]
    assert np.isnan(Calibrated(np.empty((0, 3)), np.empty(0), np.empty(0, int)).mean_confidence)


def test_frame_has_a_row_per_sample():
    plain = calibrated().to_frame()
    assert list(plain.columns) == ["prediction", "confidence", "class 0", "class 1", "class 2"]
    named = calibrated(class_names=("x", "y", "z"), sample_ids=np.array(list("abcd"))).to_frame()
    assert list(named.columns) == ["id", "prediction", "confidence", "x", "y", "z"]
    np.testing.assert_array_equal(named[["x", "y", "z"]].to_numpy(), calibrated().probs)
    assert named["id"].tolist() == list("abcd")
