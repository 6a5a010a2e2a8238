"""No output destroys an input or another output: in every command and function that writes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from ensembles import random_ensemble
from programs import veridical_in_process

import veridical as vd
from veridical._outputs import check_outputs, check_report_target
from veridical.errors import FileFormatError, ParameterError, StorageError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A labelled ensemble, labels, and a calibrator in the current directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    predictions = vd.Predictions(random_ensemble(rng, 3, 60, 3), rng.integers(0, 3, 60))
    vd.save(predictions, "p.npz")
    np.save("labels.npy", predictions.labels)
    Path("labels.json").write_text(str(predictions.labels.tolist()))
    os.link("p.npz", "hard.npz")
    Path("link.npz").symlink_to("p.npz")
    Path("here").symlink_to(".")
    return tmp_path


@pytest.fixture
def calibrator(folder):
    vd.Identity().fit(vd.load("p.npz")).save("cal.json")
    return "cal.json"


def assert_refused(words, message, kept):
    """Exit code 2, one sentence, and the file is as it was."""
    before = {name: Path(name).read_bytes() for name in kept}
    listing = sorted(os.listdir())
    done = veridical_in_process(*words)
    assert done.returncode == 2, done
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert {name: Path(name).read_bytes() for name in kept} == before
    assert sorted(os.listdir()) == listing


OTHER_NAMES = ["p.npz", "./p.npz", "here/p.npz", "link.npz", "hard.npz"]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_apply_refuses_its_input(folder, calibrator, name):
    assert_refused(["apply", calibrator, "p.npz", "--out", name], "is the same file as the input p.npz", ["p.npz"])


def test_apply_refuses_one_of_many_inputs(folder, calibrator):
    Path("run").mkdir()
    for member in range(3):
        np.savez(f"run/m{member}.npz", probs=np.full((4, 3), 1 / 3))
    assert_refused(["apply", calibrator, "run", "--out", "run/m1.npz"], "the input run/m1.npz", ["run/m1.npz"])


def test_apply_refuses_the_directory_of_its_input(folder, calibrator):
    """A result in blocks replaces a directory of .npy files as a whole."""
    Path("arrays").mkdir()
    probs = vd.load("p.npz").values
    np.save("arrays/probs.npy", probs)
    words = ["apply", calibrator, "arrays/probs.npy", "--block-memory", "4M", "--out", "here/arrays"]
    assert_refused(words, "is the directory of the input arrays/probs.npy", ["arrays/probs.npy"])
    with pytest.raises(ParameterError, match="out arrays is the directory of the input"):
        vd.scale.discover(vd.scale.open("arrays/probs.npy"), out="arrays")
    np.testing.assert_array_equal(np.load("arrays/probs.npy"), probs)


def test_calibration_state_does_not_replace_predictions(folder):
    before = Path("p.npz").read_bytes()
    with pytest.raises(FileFormatError, match=r"use the extension \.json"):
        vd.metrics.CalibrationState().save("p.npz")
    assert Path("p.npz").read_bytes() == before


def test_apply_refuses_its_calibrator_and_labels(folder, calibrator):
    Path("cal.npz").symlink_to("cal.json")
    assert_refused(["apply", calibrator, "p.npz", "-o", "cal.npz"], "same file as the input cal.json", ["cal.json"])
    np.savez("y.npz", labels=np.zeros(60, int))
    assert_refused(["apply", calibrator, "p.npz", "-y", "y.npz", "-o", "y.npz"], "the input y.npz", ["y.npz"])


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_report_refuses_its_input(folder, name):
    assert_refused(["report", "p.npz", "--out", name], "is the same file as the input p.npz", ["p.npz"])


def test_report_refuses_files_that_are_not_html(folder):
    Path("p.html").symlink_to("p.npz")
    assert_refused(["report", "p.npz", "--out", "p.html"], "the same file as the input p.npz", ["p.npz"])
    Path("notes.html").write_text("my notes")
    assert_refused(["report", "p.npz", "--out", "notes.html"], "exists and is not an HTML page", ["notes.html"])


def test_demo_refuses_files_that_are_not_html(folder):
    Path("notes.html").write_text("my notes")
    assert_refused(["demo", "--out", "notes.html"], "exists and is not an HTML page", ["notes.html"])
    assert_refused(["demo", "--out", "p.npz"], "does not end in .html", ["p.npz"])


def test_calibrate_refuses_its_labels(folder):
    words = ["calibrate", "p.npz", "-y", "labels.json", "-m", "temperature", "--out", "here/labels.json"]
    assert_refused(words, "the same file as the input labels.json", ["labels.json"])


def test_calibrate_refuses_one_file_for_calibrator_and_report(folder):
    words = ["calibrate", "p.npz", "-m", "temperature", "--out", "c.json", "--report", "c.json"]
    assert_refused(words, "does not end in .html", [])
    Path("c.json").touch()
    Path("c.html").symlink_to("c.json")
    words = ["calibrate", "p.npz", "-m", "temperature", "--out", "c.json", "--report", "c.html"]
    assert_refused(words, "--out c.json and --report c.html are the same file", ["c.json"])


@pytest.mark.parametrize("what", ["table1", "table2", "table3", "table4"])
def test_reproduce_tables_refuse_their_inputs(folder, what):
    assert_refused(["reproduce", what, "p.npz", "--out", "link.npz"], "is the same file as the input p.npz", ["p.npz"])
    words = ["reproduce", what, "p.npz", "--labels", "labels.npy", "--out", "labels.npy"]
    assert_refused(words, "is the same file as the input labels.npy", ["labels.npy"])


@pytest.mark.parametrize("what", ["figure2", "figure3", "figureA"])
def test_reproduce_figures_refuse_their_inputs(folder, what):
    Path("figure.svg").symlink_to("p.npz")
    assert_refused(["reproduce", what, "p.npz", "--out", "figure.svg"], "the same file as the input p.npz", ["p.npz"])


def test_reproduce_all_refuses_its_inputs(folder):
    vd.save(vd.load("p.npz"), "table2.csv")
    message = "the output table2.csv: here/table2.csv is the same file as the input table2.csv"
    assert_refused(["reproduce", "all", "table2.csv", "--out", "here"], message, ["table2.csv"])
    Path("index.html").write_text("my notes")
    assert_refused(["reproduce", "all", "p.npz", "--out", "."], "exists and is not an HTML page", ["index.html"])


def test_predict_refuses_its_data(folder):
    np.savez("d.npz", test_images=np.zeros((2, 8, 8, 1), np.uint8), test_labels=[0, 1])
    Path("checkpoints").mkdir()
    words = ["predict", "checkpoints", "--dataset", "npz", "--data", "d.npz", "--arch", "resnet8", "--out", "d.npz"]
    assert_refused(words, "--out d.npz is the same file as the input d.npz", ["d.npz"])


def test_train_refuses_its_data(folder):
    np.savez("d.npz", test_images=np.zeros((2, 8, 8, 1), np.uint8), test_labels=[0, 1])
    words = ["train", "--dataset", "npz", "--data", "d.npz", "--out", "here/d.npz"]
    assert_refused(words, "the same file as the input d.npz", ["d.npz"])
    Path("images").mkdir()
    words = ["train", "--dataset", "cifar10", "--data", "images", "--out", "here/images"]
    assert_refused(words, "the same file as the input images", [])


def test_calibrated_predictions_do_not_replace_their_files(folder):
    applied = vd.apply_calibrator(vd.Identity().fit(vd.load("p.npz")), vd.load("p.npz"))
    before = Path("p.npz").read_bytes()
    with pytest.raises(ParameterError, match=r"link\.npz is the same file as the input p\.npz"):
        applied.save("link.npz")
    assert Path("p.npz").read_bytes() == before
    applied.save("new.npz")
    applied.save("new.npz")


def test_build_report_refuses_before_it_computes(folder):
    with pytest.raises(FileFormatError, match=r"p\.npz does not end in \.html"):
        vd.build_report("not even predictions", out="p.npz")
    Path("notes.htm").write_text("my notes")
    with pytest.raises(FileFormatError, match="exists and is not an HTML page"):
        vd.build_report("not even predictions", out="notes.htm")


def test_predictions_may_replace_the_file_they_are_mapped_from(folder):
    mapped = vd.load("p.npz")
    values = np.array(mapped.values)
    vd.save(mapped.select(sources=[0]), "p.npz")
    np.testing.assert_array_equal(mapped.values, values)
    np.testing.assert_array_equal(vd.load("p.npz").values, values[:1])


@pytest.mark.parametrize("start", ["", "<!DOCTYPE html>", "\ufeff\n<html>", "<!-- made by hand --> <!doctype HTML>"])
def test_report_replaces_html(tmp_path, start):
    path = tmp_path / "page.html"
    path.write_text(start)
    assert check_report_target(path) == path


def test_outputs_that_do_not_exist_yet_are_compared(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    check_outputs({"--out": tmp_path / "a", "--report": tmp_path / "b", "--figures": None})
    with pytest.raises(ParameterError, match="are the same file; give each its own name"):
        check_outputs({"--out": tmp_path / "new" / "a", "--report": tmp_path / "link" / "new" / "." / "a"})
    (tmp_path / "dangling").symlink_to(tmp_path / "a")
    with pytest.raises(ParameterError, match="are the same file"):
        check_outputs({"--out": tmp_path / "dangling", "--report": tmp_path / "a"})


def test_predictions_know_their_files(folder):
    assert vd.Predictions(np.full((1, 2, 2), 0.5)).files == ()
    loaded = vd.load("p.npz", labels="labels.npy")
    assert loaded.files == (Path("p.npz"), Path("labels.npy"))
    for derived in (loaded.select(samples=[1, 2]), loaded.with_labels(None), loaded.split(random_state=0)[0]):
        assert derived.files == loaded.files
    vd.save(loaded, "p.zarr")
    assert vd.load("p.zarr").files == (Path("p.zarr"),)
    Path("run").mkdir()
    np.save("run/m1.npy", np.log(loaded.values[0]))
    Path("run/labels.json").write_text(str([0] * 60))
    Path("run/run.json").write_text('{"kind": "logits"}')
    assert vd.load("run").files == (Path("run/m1.npy"), Path("run/labels.json"), Path("run/run.json"))


def test_devices_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(StorageError, match=r"pipe\.npz exists and is not a regular file"):
        vd.save(vd.Predictions(np.full((1, 2, 2), 0.5)), tmp_path / "pipe.npz")


def test_large_calibrator_keeps_its_arrays(folder, calibrator, monkeypatch):
    monkeypatch.setattr("veridical.calibrate.saving.LARGE", 1)
    vd.VectorScaling().fit(vd.load("p.npz")).save("large.json")
    (arrays,) = map(str, Path().glob("large.json.*.npz"))
    assert_refused(
        ["apply", "large.json", "p.npz", "--out", arrays], f"is the same file as the input {arrays}", [arrays]
    )
    vd.Identity().fit(vd.load("p.npz")).save("large.json")  # which has no arrays
    assert not Path(arrays).exists()


def test_calibrator_replaces_no_arrays_of_others(folder):
    """What a document says of its arrays may be wrong."""
    os.link("p.npz", "v.json.npz")
    Path("v.json").write_text('{"format": "veridical calibrator", "schema": 1, "arrays": "v.json.npz"}')
    vd.Identity().fit(vd.load("p.npz")).save("v.json")
    assert Path("v.json.npz").exists()


def test_calibrator_replaces_calibrators_only(folder, calibrator):
    fitted = vd.Identity().fit(vd.load("p.npz", labels="labels.json"))
    with pytest.raises(
        FileFormatError, match=r"labels\.json exists and is not a saved calibrator; choose another name"
    ):
        fitted.save("labels.json")
    Path("empty.json").touch()
    for name in ("empty.json", calibrator):
        fitted.save(name)
        assert vd.load_calibrator(name).n_sources_ == 3


@pytest.mark.parametrize(
    ("content", "is_page"),
    [
        (b"", True),
        (b"<!-- a page --> <!DOCTYPE html>", True),
        (b" " * 4096 + b"notes", False),
        (b"<!-- " + b"x" * 5000 + b" --> notes", False),
        (b"<!-- notes", False),
    ],
)
def test_report_replaces_pages_only(tmp_path, content, is_page):
    path = tmp_path / "page.html"
    path.write_bytes(content)
    if is_page:
        assert check_report_target(path) == path
    else:
        with pytest.raises(FileFormatError, match="exists and is not an HTML page"):
            check_report_target(path)
