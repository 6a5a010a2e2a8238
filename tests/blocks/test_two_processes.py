"""Two processes that write the same result at once: one does, and the other says who."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from blocked_ensembles import labelled_ensemble
from programs import veridical_in_process

import veridical as vd
from veridical import scale
from veridical._locking import ProcessLock
from veridical.errors import StorageError

pytestmark = pytest.mark.compiled

#: Writes half of the result, and the rest when it is told to.
SLOW = """
import sys, veridical as vd
from veridical import scale
calibrator, out = sys.argv[1:]
def progress(done, total, what):
    if done == 1636:
        print("half", flush=True)
        sys.stdin.readline()
opened = scale.open("probs.npy", "labels.npy", block_memory=1 << 17)
scale.apply_calibrator(vd.load_calibrator(calibrator), opened, out=out, progress=progress)
"""


@pytest.fixture
def folder(blocked_files):
    for seed, name in ((1, "first.json"), (2, "second.json")):
        vd.Temperature(loss="nll" if seed == 1 else "mse").fit(*labelled_ensemble(500, seed=seed)).save(
            blocked_files / name
        )
    return blocked_files


def start_slowly(folder, target, calibrator="first.json"):
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, calibrator, target], cwd=folder, stdin=pipe, stdout=pipe, text=True
    )
    assert process.stdout.readline() == "half\n"
    return process


def apply(target, *options):
    """The program, in this process."""
    command = ("apply", "second.json", "probs.npy", "--labels", "labels.npy", "--block-memory", "128K")
    return veridical_in_process(*command, "--out", target, *options)


@pytest.mark.parametrize(
    ("target", "name", "options"),
    [
        ("result.zarr", "result.zarr", ["--resume"]),
        ("result.npz", "latest.npz", []),
        ("result", "result", []),
    ],
)
def test_second_process_names_the_first_and_changes_nothing(folder, monkeypatch, target, name, options):
    monkeypatch.chdir(folder)
    if name != target:
        (folder / name).symlink_to(target)
    first = start_slowly(folder, target)
    second = apply(name, *options)
    assert second.returncode == 2
    assert re.fullmatch(
        rf"Error: {name} is being written by process {first.pid} on .*, which began at .*; wait until .*\n",
        second.stderr,
    )
    first.communicate("\n")
    assert first.returncode == 0
    expected = vd.apply_calibrator(vd.load_calibrator(folder / "first.json"), vd.load(folder / "probs.npy"))
    written = vd.load(folder / target / "probs.npy" if target == "result" else folder / target)
    np.testing.assert_allclose(written.values[0], expected.probs, atol=2e-7)
    assert not list(folder.glob(".*"))
    assert apply(name).returncode == 0  # the first is over


def test_only_the_own_result_gets_the_name(folder):
    """The first's lock file and beginning are removed by hand; the second's beginning is not completed by the first."""
    first = start_slowly(folder, "result.zarr")
    (folder / ".result.zarr.lock").unlink()
    second = start_slowly(folder, "result.zarr", "second.json")
    first.communicate("\n")
    assert first.returncode != 0
    assert not (folder / "result.zarr").exists()
    second.communicate("\n")
    assert second.returncode == 0
    expected = vd.apply_calibrator(vd.load_calibrator(folder / "second.json"), vd.load(folder / "probs.npy"))
    np.testing.assert_allclose(vd.load(folder / "result.zarr").values[0], expected.probs, atol=2e-7)


def test_two_threads_do_not_write_the_same_result(folder):
    opened = scale.open(folder / "probs.npy", block_memory=1 << 17)
    calibrator = vd.load_calibrator(folder / "first.json")

    def second(done, total, what):
        with pytest.raises(StorageError, match=f"by process {os.getpid()} on"):
            scale.apply_calibrator(calibrator, opened, out=folder / "result.npz")

    scale.apply_calibrator(calibrator, opened, out=folder / "result.npz", progress=second)


class TestFileSystemWithoutLocks:
    """There, the record says who writes; a process of this machine that is gone writes no more."""

    @pytest.fixture(autouse=True)
    def without_locks(self, monkeypatch):
        def refuse(file):
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr("veridical._locking._lock_file", refuse)

    def test_lock_is_held_by_a_process_that_runs(self, tmp_path):
        path = tmp_path / ".result.lock"
        with (
            ProcessLock(path, "result is being written"),
            pytest.raises(StorageError, match=rf"by process {os.getpid()} on .* \(if it is gone, remove .*lock\)"),
        ):
            ProcessLock(path, "result is being written")
        ProcessLock(path, "result is being written").release()
        assert not path.exists()

    def test_lock_of_a_process_that_is_gone_is_taken(self, tmp_path, monkeypatch):
        path = tmp_path / ".result.lock"
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: process.pid)
            old = ProcessLock(path, "result is being written")
        with ProcessLock(path, "result is being written") as new:
            new.check()
            with pytest.raises(StorageError, match="the lock of this run, was removed"):
                old.check()
            old.release()
            assert path.exists()

    def test_lock_of_another_machine_is_believed(self, tmp_path, monkeypatch):
        path = tmp_path / ".result.lock"
        path.write_text('{"pid": 1, "host": "elsewhere", "started": "now", "token": ""}')
        with pytest.raises(StorageError, match="process 1 on elsewhere, which began at now"):
            ProcessLock(path, "result is being written")


@pytest.mark.parametrize("content", [b"", b"\xff", b"[1]", b'{"pid": 1}'])
def test_damaged_record_is_another_process(tmp_path, content):
    path = tmp_path / ".result.lock"
    with ProcessLock(path, "result is being written"):
        path.write_bytes(content)
        with pytest.raises(StorageError, match="result is being written by another process; wait"):
            ProcessLock(path, "result is being written")
