"""What a new user types first: it works, or the message says what to type instead."""

import numpy as np
import pytest
from calibration_cases import labelled_ensemble
from programs import veridical, veridical_in_process

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five files of logits with labels, and as many files of new samples."""
    path = tmp_path_factory.mktemp("first")
    probs, labels = labelled_ensemble(np.random.default_rng(0))
    for s, source in enumerate(np.log(probs)):
        np.save(path / f"net{s}_val.npy", source[:200])
        np.save(path / f"net{s}_new.npy", source[200:])
    np.save(path / "val_labels.npy", labels[:200])
    calibrate(path, path / "cal.json")
    return path


def calibrate(folder, out):
    done = veridical_in_process(
        *("calibrate", folder / "net*_val.npy", "--kind", "logits", "--labels", folder / "val_labels.npy"),
        *("--method", "temperature", "--out", out),
    )
    assert done.returncode == 0, done.stderr


def rejected(*arguments):
    """The message of a command that is refused."""
    done = veridical_in_process(*arguments)
    assert done.returncode == 2, done.stdout
    return done.stderr


def test_pattern_without_quotes_is_the_pattern(folder, tmp_path):
    files = sorted(folder.glob("net*_new.npy"), reverse=True)
    for name, sources in (("several.npz", files), ("pattern.npz", [folder / "net*_new.npy"])):
        done = veridical_in_process("apply", folder / "cal.json", *sources, "--out", tmp_path / name)
        assert (done.returncode, done.stderr) == (0, "")
    several, pattern = (np.load(tmp_path / name) for name in ("several.npz", "pattern.npz"))
    np.testing.assert_array_equal(several["probs"], pattern["probs"])
    options = ("--kind", "logits", "--labels", folder / "val_labels.npy")
    for command in ("inspect", "evaluate", "compare"):
        more = ("--methods", "mean") if command != "inspect" else ()
        done = veridical_in_process(command, *folder.glob("net*_val.npy"), *options, *more)
        assert done.returncode == 0, done.stderr
    assert "several files" in rejected("evaluate", *files, "--kind", "logits", "--block-memory", "1M")
    assert "several files" in rejected("inspect", *files, "--kind", "labels")


@pytest.mark.parametrize("command", ["evaluate", "calibrate", "compare"])
def test_missing_labels_name_the_option(folder, command):
    message = rejected(command, folder / "net*_new.npy", "--kind", "logits")
    assert "needs labels" in message
    assert "give them as --labels FILE" in message


def test_labels_among_sources_are_recognised(folder, tmp_path):
    for file in (*folder.glob("net*_val.npy"), folder / "val_labels.npy"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    labels = tmp_path / "val_labels.npy"
    for sources in ([tmp_path], [tmp_path / "*.npy"], list(tmp_path.iterdir())):
        message = rejected("inspect", *sources, "--kind", "logits")
        assert f"{labels} has one whole number per sample and looks like labels; give it as --labels FILE" in message
        done = veridical_in_process("inspect", *sources, "--kind", "logits", "--labels", labels)
        assert (done.returncode, "5 sources, 200 samples" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("number", [1, 4])
def test_apply_notes_another_number_of_sources(folder, tmp_path, number):
    files = sorted(folder.glob("net*_new.npy"))[:number]
    done = veridical("apply", folder / "cal.json", *files, "--out", tmp_path / "new.csv")
    assert done.returncode == 0
    assert done.stderr.count("Note: the calibrator was fitted on 5 sources and") == 1


def test_apply_in_blocks_notes_another_number_of_sources_once(folder, tmp_path):
    np.save(tmp_path / "logits.npy", np.stack([np.load(folder / f"net{s}_new.npy") for s in range(4)]))
    done = veridical(
        *("apply", folder / "cal.json", tmp_path / "logits.npy", "--out", tmp_path / "new.npz"),
        *("--kind", "logits", "--block-memory", "64K"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Note: the calibrator was fitted on 5 sources and these are 4") == 1


def test_inspect_shows_the_kind_of_the_fit(folder):
    lines = veridical_in_process("inspect", folder / "cal.json").stdout.splitlines()
    assert ["kind", "logits"] in [line.split() for line in lines]


def test_other_files_than_calibrators_are_recognised(folder, tmp_path):
    done = veridical_in_process("apply", folder / "cal.json", folder / "net*_new.npy", "--out", tmp_path / "a.csv")
    assert done.returncode == 0, done.stderr
    for file in (tmp_path / "a.csv", folder / "net0_new.npy"):
        message = rejected("apply", file, folder / "cal.json", "--out", tmp_path / "b.csv")
        assert f"{file} is not a calibrator file" in message
        assert "The order is: veridical apply CALIBRATOR PRED." in message
        assert len(message.splitlines()) == 1


def test_misspelt_names_are_answered_with_the_nearest(folder):
    assert "No such command 'inspct'. Did you mean 'inspect'?" in rejected("inspct", folder)
    assert "'veridical --help' lists the commands" in rejected("xyzzy")
    options = (folder / "net*_val.npy", "--kind", "logits", "--labels", folder / "val_labels.npy")
    message = rejected("calibrate", *options, "--method", "temprature")
    assert "method 'temprature' is unknown (did you mean 'temperature'?); choose one of: identity," in message
    assert "ts for temperature" in message
    assert "ptde for ptde-kde" in message
    assert "members" not in message
    assert "tde," not in message.replace("ptde", "")
    assert "members, mean" in rejected("evaluate", *options, "--methods", "temprature")


@pytest.mark.parametrize("header", ["question,judge,answer", "item,source,label"])
def test_votes_are_sent_to_the_jury(tmp_path, header):
    (tmp_path / "votes.csv").write_text(f"{header}\nq0,m0,yes\nq0,m1,no\nq1,m0,no\n")
    message = rejected("inspect", tmp_path / "votes.csv")
    assert "has votes" in message
    assert "'veridical jury'" in message
    assert veridical_in_process("inspect", tmp_path / "votes.csv", "--kind", "labels").returncode == 0


def test_methods_names_the_short_names():
    done = veridical_in_process("methods")
    assert "Short names: de for mean" in done.stdout
