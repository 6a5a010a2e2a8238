"""What commands print and reject; one of them, the shell's completion and the progress bar as processes."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from ensembles import random_ensemble
from programs import veridical as veridical_process
from programs import veridical_in_process as veridical
from programs import veridical_on_terminal

import veridical as vd

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A labelled ensemble of 400 samples as files."""
    folder = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(0)
    probs = random_ensemble(rng, 5, 400, 4, np.float32, spread=2.0)
    chances = probs.mean(axis=0, dtype=np.float64)
    labels = np.array([rng.choice(4, p=p / p.sum()) for p in chances])
    predictions = vd.Predictions(probs, labels, source_names=list("abcde"))
    vd.save(predictions, folder / "preds.npz")
    np.save(folder / "probs.npy", probs)
    np.save(folder / "labels.npy", labels)
    return folder


def assert_rejected(done, *words):
    """Exit code 2, a message on stderr, nothing on stdout, no traceback."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def assert_fits(text):
    assert max(len(line) for line in text.splitlines()) <= 80


def test_evaluate_prints_a_table(files):
    done = veridical_process("evaluate", files / "preds.npz")
    assert done.returncode == 0, done.stderr
    assert "aTDE" in done.stdout
    assert "noise floor" in done.stdout
    assert_fits(done.stdout)
    done = veridical("evaluate", files / "probs.npy", "--labels", files / "labels.npy", "--no-intervals")
    assert done.returncode == 0, done.stderr


def test_calibrate_prints_a_verdict_and_no_empty_lines_below(files, tmp_path):
    calibrator, page = tmp_path / "cal.json", tmp_path / "r.html"
    options = [files / "preds.npz", "--method", "temperature", "--out", calibrator]
    plain, with_report = veridical("calibrate", *options), veridical("calibrate", *options, "--report", page)
    assert "The mean of your " in plain.stdout
    # Only line breaks before a long path may differ.
    assert with_report.stdout.split() == f"{plain.stdout}Wrote {page}\n".split()
    below = plain.stdout[plain.stdout.index("The mean of your ") :]
    assert "\n\n" not in below
    verdict = json.loads(veridical("calibrate", *options, "--json").stdout)["verdict"]
    assert verdict in " ".join(below.split())


def test_calibrate_auto_prints_its_choice(files, tmp_path):
    calibrator = tmp_path / "cal.json"
    done = veridical("calibrate", files / "preds.npz", "--json", "--out", calibrator)
    assert done.returncode == 0, done.stderr
    chosen = json.loads(done.stdout)["chosen"]
    assert " on " in chosen
    done = veridical("inspect", calibrator)
    assert f"{chosen} *" in done.stdout
    assert_fits(done.stdout)
    content = json.loads(veridical("inspect", calibrator, "--json").stdout)
    assert content["chosen"] == chosen
    assert len(content["candidates"]) > 10


def test_compare_prints_all_methods(files):
    done = veridical("compare", files / "preds.npz", "--methods", "mean,temperature,spline,ptde", "--splits", "2")
    assert done.returncode == 0, done.stderr
    assert "*" in done.stdout
    assert "TS " in done.stdout  # names are whole
    assert "…" not in done.stdout
    assert "Noise floor" in done.stdout
    assert_fits(done.stdout)
    content = json.loads(veridical("compare", files / "preds.npz", "-m", "mean,irm", "--splits", "3", "--json").stdout)
    assert len(content["values"]["irm"]["ece"]) == 3
    assert content["best"]["ece"] in ("mean", "irm")


@pytest.mark.parametrize("command", ["evaluate", "calibrate", "compare", "inspect", "report"])
def test_missing_file_is_named(command, tmp_path):
    assert_rejected(veridical(command, tmp_path / "nothing.npz"), "nothing.npz")


def test_invalid_values_are_located(files, tmp_path):
    np.save(tmp_path / "bad.npy", np.full((3, 400, 4), 0.7))
    done = veridical("evaluate", tmp_path / "bad.npy", "--labels", files / "labels.npy")
    assert_rejected(done, "source 0, sample 0", "sum to 2.8", "pass --kind logits")
    np.save(tmp_path / "short.npy", np.zeros(7, int))
    assert_rejected(veridical("evaluate", files / "probs.npy", "-y", tmp_path / "short.npy"), "7 labels for 400")


def test_damaged_calibrator_is_rejected(files, tmp_path):
    (tmp_path / "cal.json").write_text('{"schema": 1, "method"')
    done = veridical("apply", tmp_path / "cal.json", files / "preds.npz", "--out", tmp_path / "out.npz")
    assert_rejected(done, "cal.json")
    assert not (tmp_path / "out.npz").exists()


def test_missing_directory_is_named(files, tmp_path):
    done = veridical("calibrate", files / "preds.npz", "-m", "temperature", "--out", tmp_path / "no" / "cal.json")
    assert_rejected(done, "cal.json")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("veridical ev", ["evaluate"]),
        ("veridical compare --methods mean,spl", ["mean,spline"]),
    ],
)
def test_shell_completion(words, completed):
    """The shell runs the program to complete a word."""
    variables = {"_VERIDICAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "veridical"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert [line.split(",", 1)[1] for line in done.stdout.splitlines()] == completed


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_progress_is_drawn_only_on_a_terminal(files):
    code, printed, drawn = veridical_on_terminal("compare", files / "preds.npz", "-m", "mean,spline", "--json")
    assert code == 0
    assert "━".encode() in drawn  # which steps are drawn depends on how fast they pass
    json.loads(printed)
    assert veridical_process("compare", files / "preds.npz", "-m", "mean,spline", "--splits", "1").stderr == ""
