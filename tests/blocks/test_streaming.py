"""Streamed results equal those in memory, are complete or absent, and continue where they were interrupted."""

import os
import pickle
import subprocess
import sys
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import zarr
from blocked_ensembles import BLOCK_MEMORY, labelled_ensemble

import veridical as vd
from veridical import errors, scale

pytestmark = pytest.mark.compiled

FIELDS = ("probs", "reliability", "hv", "prediction", "n_iter", "converged")
TARGETS = ("result.zarr", "result.npz", "result")


@pytest.fixture
def opened(blocked_files):
    return scale.open(blocked_files / "probs.npy", blocked_files / "labels.npy", block_memory=BLOCK_MEMORY)


@pytest.fixture(scope="module")
def calibrator():
    return vd.Temperature().fit(*labelled_ensemble(seed=1))


def contents(path):
    """Everything in a file or directory: relative name -> bytes."""
    if path.is_file():
        return {path.name: path.read_bytes()}
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


class TestDiscover:
    @pytest.mark.parametrize(
        ("kind", "dtype"), [("probs", np.float16), ("logits", np.float32), ("log_probs", np.float64)]
    )
    def test_blocks_have_the_same_bytes(self, blocked_ensemble, kind, dtype):
        probs = blocked_ensemble[0].astype(np.float64)
        scores = (probs if kind == "probs" else np.log(probs)).astype(dtype)
        whole = vd.discover(scores, kind=kind, trace=True)
        blocked = vd.discover(scale.open(scores, kind=kind, block_memory=BLOCK_MEMORY), trace=True)
        for name in (*FIELDS, "trace"):
            assert np.array_equal(getattr(whole, name), getattr(blocked, name)), name

    @pytest.mark.parametrize("target", TARGETS)
    def test_result_is_written(self, blocked_ensemble, opened, tmp_path, target):
        whole = vd.discover(blocked_ensemble[0])
        written = scale.discover(opened, out=tmp_path / target)
        for name in FIELDS:
            assert np.array_equal(getattr(whole, name), getattr(written, name)[:]), name
        assert not list(tmp_path.glob(".*partial"))

    def test_absent_sources_are_skipped(self, blocked_ensemble):
        probs = blocked_ensemble[0].copy()
        probs[1, 2000:2100] = np.nan
        blocked = scale.open(probs, block_memory=BLOCK_MEMORY)
        assert np.array_equal(vd.discover(blocked, missing="skip").probs, vd.discover(probs, missing="skip").probs)
        with pytest.raises(errors.MissingSourceError, match="sample 2000"):
            vd.discover(blocked)

    def test_large_result_needs_a_file(self, opened, monkeypatch):
        monkeypatch.setattr("veridical.blocks.samplewise.MOST_IN_MEMORY", 1000)
        with pytest.raises(errors.ParameterError, match="give out="):
            vd.discover(opened)


class TestConsensus:
    def test_sums_of_blocks_merge(self, blocked_ensemble, opened, tmp_path):
        whole = vd.consensus(blocked_ensemble[0])
        for blocked in (vd.consensus(opened), scale.consensus(opened, out=tmp_path / "result.zarr")):
            np.testing.assert_allclose(blocked.skill, whole.skill, atol=1e-6)
            np.testing.assert_allclose(blocked.probs[:], whole.probs, atol=1e-6)
            np.testing.assert_allclose(blocked.distinct_sources[:], whole.distinct_sources, atol=1e-4)
            assert np.array_equal(blocked.n_samples, whole.n_samples)

    def test_gaps_and_labels_of_the_mean(self, blocked_ensemble):
        probs = blocked_ensemble[0].copy()
        probs[0, ::3] = np.nan
        blocked = vd.consensus(scale.open(probs, block_memory=BLOCK_MEMORY), accuracy_preserving=True)
        whole = vd.consensus(probs, accuracy_preserving=True)
        assert np.array_equal(blocked.prediction, whole.prediction)
        np.testing.assert_allclose(blocked.probs, whole.probs, atol=1e-5)

    def test_camps_are_found_and_written(self, tmp_path):
        rng = np.random.default_rng(3)
        opinions = rng.dirichlet([0.3] * 4, (2, 2000))
        probs = np.concatenate([0.8 * o + 0.2 * rng.dirichlet([1] * 4, (4, 2000)) for o in opinions])
        blocked = scale.open(probs, block_memory=1 << 18)
        with pytest.warns(errors.CampsWarning):
            whole = vd.consensus(probs)
        with pytest.warns(errors.CampsWarning):
            result = scale.consensus(blocked, out=tmp_path / "result.zarr")
        assert [camp.sources for camp in result.camps] == [camp.sources for camp in whole.camps]
        for camp, other in zip(result.camps, whole.camps, strict=True):
            np.testing.assert_allclose(camp.probs[:], other.probs, atol=1e-6)


class TestApply:
    @pytest.mark.parametrize("method", ["ptde", "log-pool", "auto"])
    def test_blocks_give_the_same_predictions(self, blocked_ensemble, opened, method):
        fitted = vd.fit_calibrator(*labelled_ensemble(500, seed=1), method=method).calibrator
        whole = vd.apply_calibrator(fitted, blocked_ensemble[0])
        blocked = vd.apply_calibrator(fitted, opened)
        np.testing.assert_allclose(blocked.probs, whole.probs, atol=2e-7)
        np.testing.assert_allclose(blocked.confidence, whole.confidence, atol=1e-12)
        assert np.array_equal(blocked.prediction, whole.prediction)
        assert np.array_equal(fitted.predict(opened), whole.prediction)
        assert np.array_equal(fitted.predict_proba(opened), blocked.probs)
        assert np.array_equal(fitted.predict_confidence(opened), blocked.confidence)

    @pytest.mark.parametrize("target", TARGETS)
    def test_link_and_mode_of_the_result_are_kept(self, opened, calibrator, tmp_path, target):
        (tmp_path / "results" / "data").mkdir(parents=True)
        link, place = tmp_path / "results" / target, tmp_path / "results" / "data" / "run-7"
        link.symlink_to("data/run-7")
        scale.apply_calibrator(calibrator, opened, out=link)  # the link leads nowhere
        place.chmod(0o700)
        first = contents(place)
        scale.apply_calibrator(calibrator, opened, out=link)
        assert link.is_symlink()
        assert sorted(os.listdir(link.parent)) == ["data", target]
        assert os.listdir(place.parent) == ["run-7"]
        assert (contents(place), place.stat().st_mode & 0o777) == (first, 0o700)

    def test_progress_has_throughput(self, opened, calibrator):
        calls = []
        scale.apply_calibrator(calibrator, opened, progress=lambda *call: calls.append(call))
        assert [done for done, _, _ in calls] == [0, *(opened.samples_of(k).stop for k in range(opened.n_blocks))]
        assert {total for _, total, _ in calls} == {3000}
        assert all("MB/s" in what for _, _, what in calls[1:])


class StopError(Exception):
    pass


def stop_after(n_samples):
    def progress(done, total, what):
        if done >= n_samples:
            raise StopError

    return progress


class TestResume:
    @pytest.mark.parametrize("target", TARGETS)
    def test_interrupted_result_has_the_same_bytes(self, opened, calibrator, tmp_path, target):
        (tmp_path / "whole").mkdir()
        scale.apply_calibrator(calibrator, opened, out=tmp_path / "whole" / target)
        with pytest.raises(StopError):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / target, progress=stop_after(1000))
        assert not (tmp_path / target).exists()
        starts = []
        scale.apply_calibrator(
            calibrator, opened, out=tmp_path / target, resume=True, progress=lambda done, *_: starts.append(done)
        )
        assert starts[0] >= 1000  # the finished blocks are not computed again
        assert contents(tmp_path / target) == contents(tmp_path / "whole" / target)
        assert not list(tmp_path.glob(".*partial"))

    def test_killed_process_is_continued(self, blocked_files, calibrator):
        program = """
import os, signal, sys, veridical as vd
from veridical import scale
from veridical.blocks import outputs
outputs._SECONDS_BETWEEN_COMMITS = 0
opened = scale.open("probs.npy", "labels.npy", block_memory=1 << 17)
def progress(done, total, what):
    if done >= 1500:
        os.kill(os.getpid(), signal.SIGKILL)
scale.apply_calibrator(vd.load_calibrator("cal.json"), opened, out="result.npz", progress=progress)
"""
        calibrator.save(blocked_files / "cal.json")
        done = subprocess.run([sys.executable, "-c", program], cwd=blocked_files, check=False)
        assert done.returncode == -9
        assert not (blocked_files / "result.npz").exists()
        opened = scale.open(blocked_files / "probs.npy", blocked_files / "labels.npy", block_memory=BLOCK_MEMORY)
        loaded = vd.load_calibrator(blocked_files / "cal.json")
        starts = []
        scale.apply_calibrator(
            loaded, opened, out=blocked_files / "result.npz", resume=True, progress=lambda done, *_: starts.append(done)
        )
        assert starts[0] >= 1500 - opened.block_size  # the finished blocks are not computed again
        scale.apply_calibrator(loaded, opened, out=blocked_files / "again.npz")
        assert (blocked_files / "result.npz").read_bytes() == (blocked_files / "again.npz").read_bytes()

    def test_other_job_is_rejected(self, blocked_files, opened, calibrator):
        with pytest.raises(StopError):
            scale.apply_calibrator(calibrator, opened, out=blocked_files / "result.zarr", progress=stop_after(1000))
        other = vd.Temperature(loss="mse").fit(*labelled_ensemble(500, seed=2))
        with pytest.raises(errors.ParameterError, match="calibrator was"):
            scale.apply_calibrator(other, opened, out=blocked_files / "result.zarr", resume=True)
        smaller = scale.open(blocked_files / "probs.npy", blocked_files / "labels.npy", block_memory=1 << 16)
        with pytest.raises(errors.ParameterError, match="block size was"):
            scale.apply_calibrator(calibrator, smaller, out=blocked_files / "result.zarr", resume=True)
        with pytest.raises(errors.ParameterError, match="function was"):
            scale.discover(opened, out=blocked_files / "result.zarr", resume=True)
        os.utime(blocked_files / "probs.npy", ns=(0, 10**18))
        reopened = scale.open(blocked_files / "probs.npy", blocked_files / "labels.npy", block_memory=BLOCK_MEMORY)
        with pytest.raises(errors.ParameterError, match="input was"):
            scale.apply_calibrator(calibrator, reopened, out=blocked_files / "result.zarr", resume=True)

    def test_resume_without_a_beginning_starts(self, opened, calibrator, tmp_path):
        scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", resume=True)
        assert (tmp_path / "result.npz").exists()
        with pytest.raises(errors.ParameterError, match="give out="):
            scale.apply_calibrator(calibrator, opened, resume=True)


def rewrite(path, scores, *, keep_date):
    """Put other scores into a .npy file, or into the chunks of a .zarr store, whose metadata stay as they are."""
    dates = {file: file.stat() for file in (path.rglob("*") if path.is_dir() else [path])}
    if path.suffix == ".npy":
        np.load(path, mmap_mode="r+")[:] = scores
    else:
        zarr.open_group(str(path), mode="r+")["probs"][:] = scores
    for file, status in dates.items():
        if keep_date or file.name == "zarr.json":
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(("name", "keep_date"), [("probs.npy", False), ("probs.zarr", True)])
class TestChangedInput:
    """The same size and, of a store, the same metadata; the date of the numbers may be that of before."""

    @pytest.fixture
    def stored(self, blocked_ensemble, tmp_path, name):
        probs, labels = blocked_ensemble
        path = tmp_path / name
        vd.save(vd.Predictions(probs), path)
        return path, probs, labels

    def test_it_is_not_continued(self, stored, calibrator, tmp_path, keep_date):
        path, probs, _ = stored
        opened = scale.open(path, block_memory=BLOCK_MEMORY)
        with pytest.raises(StopError):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", progress=stop_after(1000))
        rewrite(path, probs[:, ::-1], keep_date=keep_date)
        opened = scale.open(path, block_memory=BLOCK_MEMORY)
        with pytest.raises(errors.ParameterError, match="is the beginning of another result: input was"):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", resume=True)

    @pytest.mark.parametrize("function", ["apply", "evaluate", "report", "confidence"])
    def test_change_during_the_run_is_an_error(self, stored, calibrator, tmp_path, keep_date, function):
        path, probs, labels = stored
        opened = scale.open(path, labels, block_memory=BLOCK_MEMORY)
        n_calls = 0

        def change(done, total, what):
            nonlocal n_calls
            n_calls += 1
            if n_calls == 3:
                rewrite(path, probs[:, ::-1], keep_date=keep_date)

        options = {"out": tmp_path / "result.zarr", "progress": change}
        calls = {
            "apply": lambda: scale.apply_calibrator(calibrator, opened, **options),
            "evaluate": lambda: vd.evaluate(opened, methods=["mean"], floors=False, progress=change),
            "report": lambda: (rewrite(path, probs[:, ::-1], keep_date=keep_date), vd.build_report(opened)),
            "confidence": lambda: (rewrite(path, probs[:, ::-1], keep_date=keep_date), calibrator.predict(opened)),
        }
        with pytest.raises(errors.CorruptFileError, match="was changed while it was read; wait until it is complete"):
            calls[function]()
        assert not (tmp_path / "result.zarr").exists()


def test_files_of_predictions_in_memory_identify_them(blocked_ensemble, calibrator, tmp_path):
    """One number of a table changes, and is not among the samples of the numbers in memory."""
    path = tmp_path / "probs.csv"
    predictions = vd.Predictions(blocked_ensemble[0])
    vd.save(predictions, path)
    opened = scale.open(vd.load(path), block_memory=BLOCK_MEMORY)
    with pytest.raises(StopError):
        scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", progress=stop_after(1000))
    path.write_text(path.read_text().replace("\n", "\n\n", 1))
    opened = scale.open(vd.load(path), block_memory=BLOCK_MEMORY)
    with pytest.raises(errors.ParameterError, match="files was"):
        scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", resume=True)


def test_predictions_in_memory_are_continued_by_another_process(blocked_ensemble, calibrator, tmp_path):
    opened = scale.open(blocked_ensemble[0].copy(), block_memory=BLOCK_MEMORY)
    with pytest.raises(StopError):
        scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", progress=stop_after(1000))
    starts = []
    opened = scale.open(blocked_ensemble[0].copy(), block_memory=BLOCK_MEMORY)  # at another address
    options = {"resume": True, "progress": lambda done, *_: starts.append(done)}
    scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", **options)
    assert starts[0] >= 1000


def test_worker_opens_a_file_again_that_was_replaced(blocked_ensemble, tmp_path):
    """Even one of the same name and size."""
    path, probs = tmp_path / "probs.npy", blocked_ensemble[0]
    for scores in (probs, probs[:, ::-1]):
        np.save(tmp_path / "new.npy", scores)
        os.replace(tmp_path / "new.npy", path)
        reader = pickle.loads(pickle.dumps(scale.open(path, block_memory=BLOCK_MEMORY).reader))
        assert np.array_equal(reader.read(0, 10), scores[:, :10])


@contextmanager
def small_disk(folder, size):
    """A file system of so many bytes; skipped where it cannot be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class TestFaults:
    def test_earlier_result_survives_a_failure(self, blocked_ensemble, opened, calibrator, tmp_path):
        for target in TARGETS:
            scale.apply_calibrator(calibrator, opened, out=tmp_path / target)
            before = contents(tmp_path / target)
            bad = blocked_ensemble[0].copy()
            bad[0, 2999] = 0.0
            with pytest.raises(errors.NotNormalisedError, match="sample 2999"):
                scale.apply_calibrator(calibrator, scale.open(bad, block_memory=BLOCK_MEMORY), out=tmp_path / target)
            assert contents(tmp_path / target) == before
            scale.apply_calibrator(calibrator, opened, out=tmp_path / target)
            assert contents(tmp_path / target) == before

    def test_too_small_disk_is_noticed_before_work(self, opened, calibrator, tmp_path):
        with small_disk(tmp_path / "disk", 64 << 10) as disk:
            with pytest.raises(errors.StorageError, match=r"needs 9.6e-05 GB"):
                scale.apply_calibrator(calibrator, opened, out=disk / "result.npz")
            assert not list(disk.iterdir())

    @pytest.mark.parametrize("target", TARGETS)
    def test_full_disk_is_continued(self, opened, calibrator, tmp_path, target):
        scale.apply_calibrator(calibrator, opened, out=tmp_path / target)
        with small_disk(tmp_path / "disk", 600 << 10) as disk:

            def fill(done, total, what):
                if done >= 1000:
                    with open(disk / "filler", "ab") as file:
                        file.write(b"\0" * (1 << 20))

            with pytest.raises(errors.StorageError, match=r"there is no space .* continue with resume=True"):
                scale.apply_calibrator(calibrator, opened, out=disk / target, progress=ignoring_errors(fill))
            assert not (disk / target).exists()
            (disk / "filler").unlink()
            scale.apply_calibrator(calibrator, opened, out=disk / target, resume=True)
            assert contents(disk / target) == contents(tmp_path / target)

    def test_foreign_files_are_not_replaced(self, opened, calibrator, tmp_path):
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
        with pytest.raises(errors.StorageError, match=r"not a directory of \.npy files"):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "photos")
        (tmp_path / "photos.zarr").mkdir()
        with pytest.raises(errors.StorageError, match=r"not a \.zarr store"):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "photos.zarr")
        with pytest.raises(errors.FileFormatError, match="suffix"):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.csv")
        zarr.create_array(str(tmp_path / "in.zarr"), shape=(2, 9, 2), chunks=(2, 9, 2), dtype="f4")[...] = 0.5
        with pytest.raises(errors.ParameterError, match="same file as the input"):
            scale.discover(scale.open(tmp_path / "in.zarr"), out=tmp_path / "in.zarr")

    def test_directory_that_cannot_be_written(self, opened, calibrator, tmp_path):
        with pytest.raises(errors.StorageError, match="cannot be written"):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "nowhere" / "result.npz")
        with small_disk(tmp_path / "disk", 1 << 20) as disk:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            with pytest.raises(errors.StorageError, match=r"result\.npz cannot be written \(Read-only"):
                scale.apply_calibrator(calibrator, opened, out=disk / "result.npz")


def ignoring_errors(function):
    """A progress function whose own write errors do not end the run."""

    def call(*arguments):
        with suppress(OSError):
            function(*arguments)

    return call
