"""Blocked predictions at their edges: late labels, damaged beginnings, odd files, and contradictions."""

import json
import os
import shutil
import warnings
from functools import partial, reduce
from typing import ClassVar

import numpy as np
import pytest
import zarr
from blocked_ensembles import BLOCK_MEMORY, labelled_ensemble
from hypothesis import given, settings
from hypothesis import strategies as st

import veridical as vd
from veridical import errors, scale
from veridical.blocks.opening import is_large
from veridical.blocks.outputs import ArraySpec, BlockOutput, read_arrays, write_arrays
from veridical.blocks.passes import Throughput, merge
from veridical.metrics import CalibrationState

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def calibrator():
    return vd.Temperature().fit(*labelled_ensemble(500, seed=1))


def blocked(probs, labels=None):
    return scale.open(probs, labels, block_memory=BLOCK_MEMORY)


class TestLabels:
    @pytest.mark.parametrize(("n_unknown", "loss"), [(1, "nll"), (409, "mse"), (2900, "nll")])
    def test_temperature_is_that_in_memory_whichever_block_has_the_first_label(self, blocked_ensemble, n_unknown, loss):
        probs, labels = blocked_ensemble
        labels = np.where(np.arange(3000) < n_unknown, -1, labels)
        expected = vd.Temperature(loss=loss).fit(probs, labels).temperature_
        assert vd.Temperature(loss=loss).fit(blocked(probs, labels)).temperature_ == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize("first", [0, 409])
    def test_calibration_of_all_samples_has_the_temperature_of_all_labels(self, blocked_ensemble, first):
        probs, labels = blocked_ensemble
        labels = labels.copy()
        labels[:1300] = -1
        labels[first] = blocked_ensemble[1][first]  # alone in its block, so in one half only
        expected = vd.Temperature().fit(probs, labels).temperature_
        streamed = vd.fit_calibrator(blocked(probs, labels), method="temperature").calibrator
        assert streamed.temperature_ == pytest.approx(expected, rel=1e-5)

    def test_histogram_does_not_depend_on_where_labels_are(self, blocked_ensemble):
        probs, labels = blocked_ensemble
        late = np.where(np.arange(3000) < 700, -1, labels)
        fitted = vd.HistogramBinning().fit(blocked(probs, late))
        alone = vd.HistogramBinning().fit(blocked(probs[:, 700:], labels[700:]))
        np.testing.assert_allclose(fitted.predict_confidence(probs), alone.predict_confidence(probs), atol=1e-9)

    @pytest.mark.parametrize("use", [vd.evaluate, vd.fit_calibrator, lambda data: vd.Temperature().fit(data)])
    def test_predictions_without_any_label_are_rejected(self, blocked_ensemble, use):
        for labels in (None, np.full(3000, -1)):
            with pytest.raises(errors.LabelError, match="labels"):
                use(blocked(blocked_ensemble[0], labels))

    def test_labels_replace_those_of_the_predictions(self, blocked_ensemble):
        probs, labels = blocked_ensemble
        first = blocked(probs, labels)
        replaced = first.with_labels((labels + 1) % 4)
        assert np.array_equal(replaced.labels, (labels + 1) % 4)
        assert np.array_equal(first.labels, labels)
        assert replaced.block_size == first.block_size
        with pytest.raises(errors.LabelError, match="there are 5 labels for 3000 samples"):
            first.with_labels(labels[:5])


class TestOpening:
    def test_one_source_may_leave_out_its_axis(self, blocked_ensemble, tmp_path):
        np.save(tmp_path / "probs.npy", blocked_ensemble[0][0])
        opened = scale.open(tmp_path / "probs.npy", block_memory=BLOCK_MEMORY)
        assert opened.shape == (1, 3000, 4)
        assert np.array_equal(opened.read(10, 20).values, blocked_ensemble[0][:1, 10:20])

    @pytest.mark.parametrize(
        ("shape", "options", "error", "words"),
        [
            (
                (4,),
                {},
                errors.ShapeError,
                r"has 1 dimension \(shape \(4,\)\); give shape \(sources, samples, classes\)",
            ),
            (
                (2, 1, 2, 3, 4),
                {"sources_axis": 1},
                errors.ShapeError,
                r"images are read in blocks in C order with their",
            ),
            ((3, 4), {"sources_axis": 1}, errors.ParameterError, "is one source; leave sources_axis out"),
            ((2, 0, 3), {}, errors.ShapeError, r"shape \(2, 0, 3\); give .*none of them 0"),
            ((2, 3, 4), {"sources_axis": 7}, errors.ParameterError, "sources_axis is 7; it is 0 for"),
            ((2, 3, 4), {"sources_axis": -1}, errors.ParameterError, "sources_axis is -1"),
            ((2, 3, 4), {"kind": "magic"}, errors.UnknownNameError, "kind 'magic' is unknown"),
            ((2, 3, 4), {"kind": "binary"}, errors.ParameterError, "probabilities of one class, which are not read in"),
            ((2, 3, 4), {"labels": [0]}, errors.LabelError, "there are 1 labels for 3 samples"),
            ((2, 3, 4), {"block_memory": "1G"}, errors.ParameterError, "block_memory is '1G'; give a whole number"),
        ],
    )
    def test_bad_npy_is_rejected_by_name(self, tmp_path, shape, options, error, words):
        np.save(tmp_path / "mine.npy", np.full(shape, 0.25))
        with pytest.raises(error, match=words) as caught:
            scale.open(tmp_path / "mine.npy", **options)
        if not {"block_memory", "sources_axis"} & options.keys() and options.get("kind") != "magic":
            assert str(caught.value).count("mine.npy") == 1

    @pytest.mark.parametrize(
        ("shape", "options", "error", "words"),
        [
            ((3, 4), {}, errors.ShapeError, r"holds an array of shape \(3, 4\)"),
            ((2, 3, 4), {"sources_axis": 2}, errors.ParameterError, "sources_axis is 2; in a .zarr .* it is 0 or 1"),
        ],
    )
    def test_bad_zarr_is_rejected(self, tmp_path, shape, options, error, words):
        zarr.create_array(str(tmp_path / "probs.zarr"), shape=shape, chunks=shape, dtype="f4")[...] = 0.25
        with pytest.raises(error, match=words):
            scale.open(tmp_path / "probs.zarr", **options)

    def test_zarr_with_samples_first(self, blocked_ensemble, tmp_path):
        probs = blocked_ensemble[0].swapaxes(0, 1)
        zarr.create_array(str(tmp_path / "p.zarr"), shape=probs.shape, chunks=(250, 5, 4), dtype="f4")[...] = probs
        opened = scale.open(tmp_path / "p.zarr", sources_axis=1, block_memory=BLOCK_MEMORY)
        assert opened.block_size == 250
        np.testing.assert_array_equal(opened.read(240, 260).values, blocked_ensemble[0][:, 240:260])
        np.testing.assert_array_equal(vd.discover(opened).probs, vd.discover(blocked_ensemble[0]).probs)

    def test_large_chunk_is_read_once_even_if_it_is_more_than_a_quarter(self, tmp_path):
        zarr.create_array(str(tmp_path / "p.zarr"), shape=(5, 3000, 4), chunks=(5, 1000, 4), dtype="f4")[...] = 0.25
        # A quarter of the memory is 409 samples; a chunk of 1,000 samples fits into all of it.
        assert scale.open(tmp_path / "p.zarr", block_memory=BLOCK_MEMORY).block_size == 1000
        assert scale.open(tmp_path / "p.zarr", block_memory=1 << 16).block_size == 204

    @pytest.mark.parametrize(
        ("options", "words"), [({"kind": "logits"}, "contradicts"), ({"sources_axis": 1}, "leave sources_axis out")]
    )
    def test_options_that_contradict_predictions_are_rejected(self, blocked_ensemble, options, words):
        for predictions in (vd.Predictions(blocked_ensemble[0]), blocked(blocked_ensemble[0])):
            with pytest.raises(errors.ParameterError, match=words):
                scale.discover(predictions, **options)
        with pytest.raises(errors.ParameterError, match=words):
            scale.open(vd.Predictions(blocked_ensemble[0]), **options)
        assert scale.open(vd.Predictions(blocked_ensemble[0]), kind="probs", sources_axis=0).n_samples == 3000

    def test_facts_of_blocked_predictions(self, blocked_ensemble):
        predictions = vd.Predictions(blocked_ensemble[0], class_names=list("wxyz"))
        opened = blocked(predictions)
        assert (opened.kind, opened.dtype, opened.class_names) == ("probs", np.float32, ("w", "x", "y", "z"))
        assert opened.n_bytes == 5 * 3000 * 4 * 4
        assert repr(opened) == (
            "BlockedPredictions(5 sources, 3000 samples, 4 classes, kind='probs', float32, unlabelled, 8 blocks of 409 "
            "samples)"
        )
        assert opened.samples_of(7) == slice(7 * 409, 3000)
        assert opened.take(np.array([], int)).values.shape == (5, 0, 4)
        assert list(opened.blocks(8)) == []
        assert [block.number for block in opened.blocks(6)] == [6, 7]

    def test_only_large_files_are_large(self, blocked_files, monkeypatch):
        np.save(blocked_files / "half.npy", np.zeros((2, 3, 4), np.float16))
        zarr.create_array(str(blocked_files / "p.zarr"), shape=(5, 10, 4), chunks=(5, 10, 4), dtype="f4")
        monkeypatch.setattr("veridical.blocks.opening.STREAM_ABOVE", 799)
        assert is_large(blocked_files / "probs.npy")
        assert not is_large(blocked_files / "half.npy")
        assert is_large(blocked_files / "p.zarr")
        monkeypatch.setattr("veridical.blocks.opening.STREAM_ABOVE", 800)
        assert not is_large(blocked_files / "p.zarr")
        assert not is_large(blocked_files / "nothing.npy")
        assert not is_large(blocked_files / "probs.csv")

    @given(st.integers(1, 60), st.integers(1, 4), st.integers(2, 5), st.integers(1, 40))
    @settings(max_examples=30)
    def test_blocks_are_all_samples_in_order(self, n_samples, n_sources, n_classes, chunk):
        values = np.random.default_rng(0).dirichlet(np.ones(n_classes), (n_sources, n_samples))
        opened = scale.open(values)
        opened.block_size, opened.edges = chunk, [*range(0, n_samples, chunk), n_samples]
        for reuse in (False, True):
            parts = [(block.start, block.stop, block.predictions.values.copy()) for block in opened.blocks(reuse=reuse)]
            assert [start for start, _, _ in parts] == list(range(0, n_samples, chunk))
            assert parts[-1][1] == n_samples
            np.testing.assert_array_equal(np.concatenate([part for _, _, part in parts], axis=1), values)


class TestBadOptions:
    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"source_weights": [1, 2]}, errors.ShapeError, r"source_weights has shape \(2,\)"),
            ({"source_weights": "x"}, errors.DtypeError, "source_weights has dtype"),
            ({"tol": -1}, errors.ParameterError, "tol is -1"),
            ({"max_iter": -1}, errors.ParameterError, "max_iter is -1"),
            ({"missing": "x"}, errors.UnknownNameError, "missing 'x' is unknown"),
            ({"out": 3}, errors.ParameterError, "the path is 3"),
            ({"resume": True}, errors.ParameterError, "only a result that is written to a file can be continued"),
        ],
    )
    def test_discover_rejects_bad_options(self, blocked_ensemble, options, error, words):
        with pytest.raises(error, match=words):
            scale.discover(blocked(blocked_ensemble[0]), **options)

    def test_apply_rejects_what_is_not_a_fitted_calibrator(self, blocked_ensemble, calibrator):
        opened = blocked(blocked_ensemble[0])
        with pytest.raises(errors.ParameterError, match="'x' is not a calibrator"):
            scale.apply_calibrator("x", opened)
        with pytest.raises(errors.VeridicalError, match="this Temperature is not fitted"):
            scale.apply_calibrator(vd.Temperature(), opened)
        with pytest.raises(errors.ParameterError, match="workers write to a file; give out="):
            scale.apply_calibrator(calibrator, opened, client=object())

    def test_report_is_checked_before_work(self, blocked_ensemble, tmp_path):
        with pytest.raises(errors.FileFormatError, match=r"does not end in \.html"):
            vd.build_report(blocked(*blocked_ensemble), out=tmp_path / "report.txt")
        assert list(tmp_path.iterdir()) == []


class StopError(Exception):
    pass


def begin(calibrator, opened, out):
    """Write two blocks and stop."""

    def progress(done, total, what):
        if done >= 2 * opened.block_size:
            raise StopError

    with pytest.raises(StopError):
        scale.apply_calibrator(calibrator, opened, out=out, progress=progress)
    return out.parent / f".{out.name}.partial"


class TestDamagedBeginning:
    @pytest.fixture
    def opened(self, blocked_files):
        return scale.open(blocked_files / "probs.npy", block_memory=BLOCK_MEMORY)

    @pytest.mark.parametrize(
        ("text", "error", "words"),
        [
            ("{", errors.CorruptFileError, r"progress\.json is not a JSON file"),
            ("[]", errors.CorruptFileError, r"progress\.json is damaged; leave resume=True out"),
            ('{"blocks_done": "2"}', errors.CorruptFileError, "is damaged"),
            ('{"blocks_done": true}', errors.CorruptFileError, "is damaged"),
            ('{"blocks_done": -1}', errors.CorruptFileError, "is damaged"),
            ('{"blocks_done": 9}', errors.CorruptFileError, "is damaged"),
            ('{"blocks_done": 2}', errors.ParameterError, "is the beginning of another result: veridical was None"),
        ],
    )
    def test_progress_file_that_is_damaged_is_not_continued(self, opened, calibrator, tmp_path, text, error, words):
        folder = begin(calibrator, opened, tmp_path / "result.npz")
        (folder / "progress.json").write_text(text)
        with pytest.raises(error, match=words):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz", resume=True)
        assert not (tmp_path / "result.npz").exists()
        scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.npz")  # starts anew
        assert (tmp_path / "result.npz").exists()
        assert not folder.exists()

    @pytest.mark.parametrize("target", ["result.npz", "result"])
    @pytest.mark.parametrize("damage", [os.unlink, lambda path: os.truncate(path, 100)])
    def test_lost_array_is_named(self, opened, calibrator, tmp_path, target, damage):
        folder = begin(calibrator, opened, tmp_path / target)
        damage(folder / "arrays" / "probs.npy")
        with pytest.raises(
            errors.CorruptFileError, match=rf"\.{target}\.partial lacks arrays that were written; leave"
        ):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / target, resume=True)

    def test_lost_zarr_array_is_named(self, opened, calibrator, tmp_path):
        folder = begin(calibrator, opened, tmp_path / "result.zarr")
        shutil.rmtree(folder / "arrays.zarr" / "probs")
        with pytest.raises(errors.CorruptFileError, match="lacks arrays that were written"):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / "result.zarr", resume=True)

    def test_progress_file_counts_blocks(self, opened, calibrator, tmp_path):
        folder = begin(calibrator, opened, tmp_path / "result.npz")
        content = json.loads((folder / "progress.json").read_text())
        assert content["blocks_done"] == 2
        assert content["job"]["block_size"] == opened.block_size
        assert content["job"]["function"] == "apply"
        assert content["job"]["arrays"] == {"probs": [3000, 4], "confidence": [3000], "prediction": [3000]}

    @pytest.mark.parametrize(
        ("name", "make", "words"),
        [
            ("result.npz", os.mkdir, "is a directory; remove it or choose another name"),
            ("result.zarr", lambda path: path.write_text("x"), r"exists and is not a \.zarr store"),
            ("result", lambda path: path.write_text("x"), r"exists and is not a directory of \.npy files"),
        ],
    )
    def test_something_else_is_not_replaced(self, opened, calibrator, tmp_path, name, make, words):
        make(tmp_path / name)
        with pytest.raises(errors.StorageError, match=words):
            scale.apply_calibrator(calibrator, opened, out=tmp_path / name)
        assert not list(tmp_path.glob(".*partial"))


class TestOutputs:
    SPECS: ClassVar = {
        "a": ArraySpec((10, 3), np.dtype(np.float32)),
        "b": ArraySpec((2, 10), np.dtype(np.int64), 1),
        "c": ArraySpec((2, 10, 3), np.dtype(np.float64), 1),
        "d": ArraySpec((10,), np.dtype(np.bool_)),
    }

    def arrays(self):
        rng = np.random.default_rng(0)
        return {
            "a": rng.random((10, 3)).astype(np.float32),
            "b": rng.integers(0, 99, (2, 10)),
            "c": rng.random((2, 10, 3)),
            "d": rng.random(10) < 0.5,
        }

    def part(self, arrays, start, stop):
        return {
            name: values.take(range(start, stop), axis=self.SPECS[name].samples_axis) for name, values in arrays.items()
        }

    @pytest.mark.parametrize("target", ["result.npz", "result", "result.zarr"])
    @pytest.mark.parametrize("by_workers", [False, True])
    def test_arrays_of_any_layout_are_put_together(self, tmp_path, target, by_workers):
        arrays = self.arrays()
        with BlockOutput(tmp_path / target, self.SPECS, {}, 4) as output:
            for block, start in enumerate(range(0, 10, 4)):
                write = (
                    partial(write_arrays, output.target, output.arrays_path, self.SPECS) if by_workers else output.write
                )
                write(start, self.part(arrays, start, min(start + 4, 10)))
                output.commit(block)
            output.finish({"labels": np.arange(10), "class_names": np.array(["x", "y"])})
        written = read_arrays(tmp_path / target)
        for name, values in arrays.items():
            assert np.array_equal(written[name][:], values), name
            assert written[name].dtype == self.SPECS[name].dtype
        assert np.array_equal(written["labels"][:], np.arange(10))
        if target.endswith("zarr"):
            assert dict(zarr.open_group(str(tmp_path / target)).attrs) == {"class_names": ["x", "y"]}
        else:
            assert written["class_names"].tolist() == ["x", "y"]
        assert not list(tmp_path.glob(".*partial"))

    def test_size_of_an_array(self):
        assert [spec.n_bytes for spec in self.SPECS.values()] == [120, 160, 480, 10]
        assert ArraySpec((0, 3), np.dtype(np.float32)).n_bytes == 0

    def test_npz_of_the_same_numbers_has_the_same_bytes(self, tmp_path):
        for name in ("one.npz", "two.npz"):
            with BlockOutput(tmp_path / name, self.SPECS, {}, 10) as output:
                output.write(0, self.arrays())
                output.finish({})
        assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


class TestPasses:
    def test_progress_counts_passes(self, blocked_ensemble, monkeypatch):
        clock = iter([0.0, 10.0, 12.0])
        monkeypatch.setattr("veridical.blocks.passes.time.monotonic", lambda: next(clock))
        calls = []
        report = Throughput(lambda *call: calls.append(call), "work", 3, 1)
        report.begin(blocked(blocked_ensemble[0]), 1000)
        report.add(1000)  # 1,000 samples of 80 bytes in 2 seconds
        assert calls == [(4000, 9000, "work"), (5000, 9000, "work, 0 MB/s")]

    def test_results_of_any_structure_merge(self):
        state = CalibrationState().update([True, False], [0.5, 0.25])
        parts = [{"n": k, "states": {f"m{k % 2}": state}, "parts": [k], "sum": np.arange(2)} for k in range(3)]
        merged = reduce(merge, parts)
        assert (merged["n"], merged["parts"], merged["sum"].tolist()) == (3, [0, 1, 2], [0, 3])
        assert (merged["states"]["m0"], merged["states"]["m1"]) == (state.merge(state), state)
        assert merge({"sums": None}, {"sums": 1}) == merge({"sums": 1}, {"sums": None}) == {"sums": None}


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 0, 1]])
def test_temperatures_of_all_samples_and_of_a_half_may_be_far_apart(labels):
    logits = np.array([[[5.0, -740.0], [-740.0, 5.0], [5.0, -740.0]]] * 3)
    blocked = vd.scale.open(logits, labels, kind="logits")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.VeridicalWarning)
        fitted = vd.scale.fit_calibrator(blocked, method="temperature", random_state=1).calibrator
        losses = [
            vd.metrics.nll(labels, calibrator.predict_proba(vd.Predictions(logits, kind="logits")))
            for calibrator in (fitted, vd.Temperature(kind="logits").fit(logits, labels))
        ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6, abs=1e-9)


def test_temperature_stays_where_no_sample_is_in_doubt():
    probs, labels = np.zeros((3, 40, 4)), np.arange(40) % 4
    probs[:, np.arange(40), labels] = 1.0
    in_blocks = scale.fit_calibrator(scale.open(probs, labels), method="temperature").calibrator
    assert in_blocks.temperature_ == vd.Temperature().fit(probs, labels).temperature_ == 1.0
