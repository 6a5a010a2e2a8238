"""Inputs that once ended in an exception of Python's or NumPy's, or in NaN; each is refused in one sentence."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
import zarr
from odd_values import Hostile, nested
from programs import veridical_in_process
from rule import check_call, check_command
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

import veridical as vd
from veridical import errors, paper, training
from veridical._json import read_json
from veridical.backends.foreign import array_path
from veridical.errors import CorruptFileError, VeridicalError
from veridical.evaluation.compilation import compile_kernels
from veridical.export import make_onnx
from veridical.training.devices import resolve_device

pytestmark = pytest.mark.compiled

RNG = np.random.default_rng(0)
PROBS, LABELS = RNG.dirichlet([1, 1, 1], size=(3, 20)), RNG.integers(0, 3, 20)
EMPTY = np.empty((2, 0, 3))
IMAGES = np.zeros((2, 16, 16, 1), np.uint8)
_VOTES = np.arange(12).reshape(3, 4) % 2


def _votes():
    path = Path(tempfile.mkdtemp()) / "votes.csv"
    path.write_text("item,source,label\n0,a,cat\n1,a,dog\n")
    return path


def _failed_ensemble():
    ensemble = vd.CalibratedEnsemble([GaussianNB()], method="temperature", cv="text")
    with suppress(ValueError):
        ensemble.fit(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1])
    return ensemble


def _calibrated(**names):
    return vd.apply_calibrator(vd.Temperature().fit(PROBS, LABELS), vd.Predictions(PROBS, **names))


def _ensemble_of_guesses():
    """Members that take samples of any shape."""
    members = [DummyClassifier(strategy="uniform", random_state=0)]
    ensemble = vd.CalibratedEnsemble(members, method="mean", cv=2, serve="folds")
    return ensemble.fit(np.arange(24.0).reshape(12, 2), np.arange(12) % 3)


def _nested_tensor():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's: nested tensors are new
        return torch.nested.nested_tensor([torch.tensor(PROBS[0]), torch.tensor(PROBS[1, :9])])


def _one_long_text():
    return ["x" * 50_000, *(f"{n}" for n in range(19_999))]


def _two_classes(labels=None, **samples):
    return vd.Predictions(np.full((1, 20_000, 2), 0.5), labels, **samples)


def _fit_ensemble(X=None, y=(0, 1, 0, 1), **options):  # noqa: N803  scikit-learn's name
    ensemble = vd.CalibratedEnsemble([GaussianNB()], method="temperature", **options)
    return ensemble.fit(np.arange(8.0).reshape(4, 2) if X is None else X, y)


def _dask():
    import dask.array

    return dask.array.from_array(PROBS, chunks=(3, 10, 3))


REFUSED = {
    "significance of 1e308": lambda: vd.PTDE(significance=1e308).fit(PROBS, LABELS),
    "gain of 1e308": lambda: vd.PTDE(hv_gain=1e308).fit(PROBS, LABELS),
    "axis as an array": lambda: vd.Temperature(sources_axis=np.arange(3)).fit(PROBS, LABELS),
    "axis of a dictionary": lambda: vd.discover({"a": PROBS[0]}, sources_axis=np.arange(3)),
    "array that raises, to fit": lambda: vd.Temperature().fit(Hostile(), LABELS),
    "array that raises, to predict": lambda: vd.Temperature().fit(PROBS, LABELS).predict_proba(Hostile()),
    "dictionary as a source": lambda: vd.Predictions(PROBS).select(sources={}),
    "shape of samples in words": lambda: vd.Predictions(PROBS, sample_shape="abc"),
    "shape of samples as a number": lambda: vd.Predictions(PROBS, sample_shape=5),
    "None as a calibrator": lambda: vd.apply_calibrator(None, PROBS),
    "text as a calibrator": lambda: vd.inspect_calibrator("temperature"),
    "number as a name": lambda: vd.calibrate.full_name(5),
    "half a surrogate pair in a path": lambda: vd.save(vd.Predictions(PROBS), "\ud800.npz"),
    "NUL in the path of a calibrator": lambda: vd.Temperature().fit(PROBS, LABELS).save("a\0.json"),
    "number as the path of results": lambda: vd.apply_calibrator(vd.Temperature().fit(PROBS, LABELS), PROBS).save(5),
    "a billion bars": lambda: vd.plots.confidence_histogram(LABELS, PROBS[0], n_bins=10**9),
    "number as axes": lambda: vd.plots.reliability_diagram(LABELS, PROBS[0], ax=5),
    "axis that begins at NaN": lambda: vd.plots.reliability_diagram(LABELS, PROBS[0], lowest=float("nan")),
    "infinite colour": lambda: vd.plots.reliability_diagram(LABELS, PROBS[0], most=float("inf")),
    "array as the chosen method": lambda: vd.plots.risk_coverage(LABELS, PROBS[0], chosen=np.arange(3)),
    "flag as names": lambda: vd.plots.dependence_matrix(np.eye(3), names=True),
    "array as a flag": lambda: vd.discover(PROBS, accuracy_preserving=np.empty(0)),
    "array as a flag of the consensus": lambda: vd.consensus(PROBS, accuracy_preserving=np.empty(0)),
    "trace of a billion updates": lambda: vd.discover(PROBS, max_iter=10**9, trace=True),
    "progress that cannot be called": lambda: vd.fit_calibrator(PROBS, LABELS, method="mean", progress=b"x"),
    "known answers that raise": lambda: vd.judge(np.zeros((3, 4), int), Hostile()),
    "known answers without an axis": lambda: vd.judge(np.zeros((3, 4), int), 5),
    "number as sample ids": lambda: vd.Predictions(PROBS, sample_ids=5),
    "number as the methods of a report": lambda: vd.build_report(PROBS, LABELS, methods=1),
    "text as the methods of a report": lambda: vd.build_report(PROBS, LABELS, methods="mean"),
    "number as known answers": lambda: vd.load_votes(_votes(), 1.5),
    "number as a table of votes": lambda: vd.load_votes(5),
    "array as votes of Dawid and Skene": lambda: vd.fit_dawid_skene(np.zeros((3, 4), int)),
    "axis of blocks as an array": lambda: vd.scale.open(PROBS, sources_axis=np.arange(3)),
    "axis of blocks that are open": lambda: vd.scale.discover(vd.scale.open(PROBS), sources_axis=np.arange(3)),
    "number as a flag of the compiler": lambda: compile_kernels(everything=5),
    "kind of blocks as an array": lambda: vd.scale.open(PROBS, kind=np.empty(0)),
    "kind of open blocks as an iterator": lambda: vd.scale.discover(vd.scale.open(PROBS), kind=iter([1])),
    "results nested 200 deep": lambda: vd.Predictions(PROBS).in_sample_shape(nested(200)),
    "ensemble whose fit failed": lambda: _failed_ensemble().predict_proba(np.zeros((4, 2))),
    "number as a calibrator to export": lambda: make_onnx(5),
    "array as a flag of intervals": lambda: vd.evaluate(PROBS, LABELS, methods=["mean"], intervals=np.arange(3)),
    "axis of votes as an array": lambda: vd.Predictions([[0, 1]], kind="labels", sources_axis=np.arange(3)),
    "sample ids without a text": lambda: vd.Predictions(PROBS[:, :2], sample_ids=[Hostile(), Hostile()]),
    "sample ids of NA": lambda: vd.Predictions(PROBS[:, :2], sample_ids=[pandas.NA, 1]),
    "classes without a text": lambda: vd.load_votes(_votes(), classes=[Hostile(), "cat"]),
    "classes without an axis": lambda: vd.load_votes(_votes(), classes=np.array(0.5)),
    "classes without an end": lambda: vd.load_votes(_votes(), classes=range(10**12)),
    "names without an axis": lambda: vd.Predictions(PROBS, class_names=np.array(0.5)),
    "array as parameters of a method": lambda: vd.build_report(PROBS, LABELS, method="mean", parameters=np.ones(3)),
    "text as the progress of a pass": lambda: vd.scale.discover(PROBS, progress="yes", out="out.npz"),
    "number as the progress of two passes": lambda: vd.scale.consensus(PROBS, progress=1j, out="out.npz"),
    "array as a flag of blocks": lambda: vd.scale.discover(PROBS, accuracy_preserving=np.empty(0), out="out.npz"),
    "array as a flag of the trace": lambda: vd.scale.discover(PROBS, trace=np.arange(3), out="out.npz"),
    "array as a flag to resume": lambda: vd.scale.consensus(PROBS, resume=np.arange(3), out="out.npz"),
    "axis of a Dask array as an array": lambda: vd.discover(_dask(), sources_axis=np.arange(3)),
    "kind of a Dask array as an array": lambda: vd.evaluate(_dask(), LABELS, kind=np.arange(3)),
    "progress of a Dask array as an array": lambda: vd.evaluate(_dask(), LABELS, progress=np.arange(3)),
    "kind beside a calibrator as an array": lambda: vd.apply_calibrator(
        vd.Temperature().fit(PROBS, LABELS), _dask(), kind=np.arange(3)
    ),
    "span of time as an axis of classes": lambda: vd.Predictions(PROBS, class_axis=np.timedelta64(1, "s")),
    "span of time as an axis of sources": lambda: vd.Predictions(PROBS, sources_axis=np.timedelta64(1, "s")),
    "span of time as a seed": lambda: vd.Predictions(PROBS, LABELS).split(random_state=np.timedelta64(1, "s")),
    "span of time as a label": lambda: vd.Predictions(PROBS[:, :1], [np.timedelta64(1, "s")]),
    "shape of one sample without an axis": lambda: vd.Predictions(PROBS[:, :1], sample_shape={}),
    "shape of samples without an end": lambda: vd.Predictions(PROBS, sample_shape=range(10**12)),
    "kind as an array, of one source": lambda: vd.discover(PROBS[0], kind=np.empty((0, 0))),
    "number as item ids": lambda: vd.judge(np.zeros((3, 4), int), item_ids=np.longdouble(0.5)),
    "item ids without an end": lambda: vd.judge(np.zeros((3, 4), int), item_ids=range(10**12)),
    "name longer than a .npz holds": lambda: vd.save(vd.Predictions(PROBS, source_names=["a" * 4097, "b", "c"]), "p"),
    "array as the id of an item": lambda: vd.judge(np.zeros((3, 4), int)).answer(np.arange(3)),
    "votes for class 10**12": lambda: vd.judge(np.array([[10**12, 0], [1, 0]])),
    "kind of predictions as an array": lambda: vd.discover(vd.Predictions(PROBS), kind=np.array([b"a", b"b"])),
    "rows of different lengths": lambda: vd.Temperature().fit(PROBS, LABELS).predict_proba([[1, 2], [3]]),
    "rows of different lengths, to fit sources": lambda: vd.PTDE().fit([[1, 2], [3]], [0, 1]),
    "object as a flag of the automatic choice": lambda: vd.Auto(keep_labels=object()).fit(PROBS, LABELS),
    "objects as candidates": lambda: vd.Auto(candidates=object()).fit(PROBS, LABELS),
    "object as a title": lambda: vd.build_report(PROBS, LABELS, title=object()),
    "object as methods": lambda: vd.evaluate(PROBS, LABELS, methods=object()),
    "axis of tensors as an array": lambda: vd.discover(
        torch.tensor(PROBS, requires_grad=True), sources_axis=np.arange(3)
    ),
    "scores of no samples": lambda: vd.evaluate(EMPTY, [], methods=["mean"]),
    "sweep of no samples": lambda: vd.plots.metric_sweep(EMPTY, labels=[]),
    "huge probabilities": lambda: vd.discover(np.full((2, 3, 2), 1e308)),
    "huge probabilities, to predict": lambda: vd.Temperature().fit(PROBS, LABELS).predict(np.full((3, 1, 3), 1e308)),
    "infinities of both signs": lambda: vd.Temperature().fit([[[-np.inf, np.inf]] * 2] * 3, [0, 1]),
    "array as a flag of a report": lambda: vd.build_report(PROBS, LABELS, method="mean", intervals=np.arange(3)),
    "array as a flag of floors over blocks": lambda: vd.scale.evaluate(PROBS, LABELS, floors=np.arange(3)),
    "array as a flag of intervals over blocks": lambda: vd.scale.evaluate(PROBS, LABELS, intervals=np.arange(3)),
    "object as a seed over blocks": lambda: vd.scale.evaluate(PROBS, LABELS, random_state=Hostile()),
    "name of results that is too long": lambda: vd.scale.discover(PROBS, out="x" * 3000),
    "number as the path of answers": lambda: vd.judge(np.zeros((3, 4), int)).save(5),
    "columns of votes that are numbers": lambda: vd.judge({"a": 1}),
    "one column of votes that is a number": lambda: vd.judge({"item": ["a"], "source": ["b"], "label": 5}),
    "samples from text": lambda: vd.Predictions(PROBS).samples("a", 3),
    "source that is missing": lambda: vd.Predictions(PROBS, source_names=["a", "b", "c"]).source_name(5),
    "class names of frames as a number": lambda: vd.Predictions([pandas.DataFrame(PROBS[0])], class_names=5),
    "labels of a score as a number": lambda: vd.Temperature().fit(PROBS, LABELS).score(PROBS, 5),
    "labels of a score that are missing": lambda: vd.Temperature().fit(PROBS, LABELS).score(PROBS),
    "weights of a score as text": lambda: vd.Temperature().fit(PROBS, LABELS).score(PROBS, LABELS, "all"),
    "object as the column of groups": lambda: vd.load("predictions.npz", group_column=object()),
    "penalty of 1e308": lambda: vd.MatrixScaling(off_diagonal=1e308).fit(PROBS, LABELS),
    "text as an extended table": lambda: paper.table1([], extended="all"),
    "array as an extended table": lambda: paper.table2([], extended=np.arange(3)),
    "text as a flag of a table": lambda: paper.table2([], literal="yes"),
    "text as settings": lambda: paper.reproduce_all(["predictions.npz"], settings="fast"),
    "text as a table": lambda: paper.format_table("table1"),
    "text as the table of a figure": lambda: paper.draw_figure2("table1"),
    "numbers as panels of bins": lambda: paper.draw_figure3(np.arange(3)),
    "numbers as panels of disagreement": lambda: paper.draw_figure_a(5),
    "None as a figure": lambda: paper.save_figure(None, "figure.svg"),
    "device without a text": lambda: resolve_device(Hostile()),
    "array as a flag of a network": lambda: training.build("resnet8", 2, zoo_form=np.arange(3)),
    "network for a billion channels": lambda: training.build("resnet8", 2, in_channels=10**9),
    "text as a number of classes": lambda: training.ImageSet.of(IMAGES, [0, 1], n_classes="two"),
    "number as class names of images": lambda: training.ImageSet.of(IMAGES, [0, 1], class_names=5),
    "text as a normalisation": lambda: training.ImageSet.of(IMAGES, [0, 1], normalisation="usual"),
    "array as published sums": lambda: training.ImageSet.of(IMAGES, [0, 1], published=np.arange(3)),
    "text as a number of images": lambda: training.ImageSet.of(IMAGES, [0, 1]).first("two"),
    "learning rate of 1e308": lambda: training.train_ensemble(
        training.ImageSet.of(IMAGES, [0, 1]),
        out="run",
        arch="resnet8",
        recipe=dataclasses.replace(training.RECIPES["one-cycle"], learning_rate=1e308),
    ),
    "object as the name of a data set": lambda: training.train_ensemble(
        training.ImageSet.of(IMAGES, [0, 1]), out="run", arch="resnet8", dataset=Hostile()
    ),
    "array as the name of a data set": lambda: training.predict_dataset("run", "data", dataset=np.arange(3)),
    "name of a data set that is too long": lambda: training.load_dataset("npz", "x" * 3000),
    "loader without an axis": lambda: training.collect_predictions(torch.nn.Linear(3, 2), np.array(0.5)),
    "batches that a network does not take": lambda: training.collect_predictions(torch.nn.Linear(3, 2), [np.ones(2)]),
    "modules without an end": lambda: vd.torch.CalibratedEnsemble(range(10**12), vd.Temperature()),
    "batches that modules do not take": lambda: vd.torch.CalibratedEnsemble(
        [torch.nn.Linear(3, 2)], vd.Temperature()
    ).fit([[1, 2]]),
    "array as a client": lambda: vd.scale.evaluate(PROBS, LABELS, client=np.arange(3)),
    "text as a client to apply": lambda: vd.scale.apply_calibrator(
        vd.Temperature().fit(PROBS, LABELS), PROBS, client="here", out="out.npz"
    ),
    "array as a default kind": lambda: vd.scale.open(PROBS, default_kind=PROBS),
    "array as a client of a Dask array": lambda: vd.evaluate(_dask(), LABELS, methods=["mean"], client=np.arange(3)),
    "object as a seed of a Dask array": lambda: vd.evaluate(_dask(), LABELS, methods=["mean"], random_state=Hostile()),
    "half a surrogate pair in a table": lambda: _calibrated(class_names=["a", "b", "\ud800"]).save("out.csv"),
    "half a surrogate pair in an id": lambda: _calibrated(sample_ids=["\ud800", *map(str, range(19))]).save(
        "out.parquet"
    ),
    "samples without an end": lambda: _ensemble_of_guesses().predict_confidence(range(10**12)),
    "sparse tensor to fit": lambda: vd.Temperature().fit(torch.tensor(PROBS).to_sparse(), LABELS),
    "sparse tensor to evaluate": lambda: vd.evaluate(torch.tensor(PROBS).to_sparse(), LABELS),
    "nested tensor": lambda: vd.Predictions(_nested_tensor()),
    "nested tensor as names": lambda: vd.Predictions(PROBS, class_names=_nested_tensor()),
    "nested tensor as a path": lambda: vd.save(vd.Predictions(PROBS), _nested_tensor()),
    "memory as methods": lambda: vd.evaluate(PROBS, LABELS, methods=memoryview(PROBS)),
    "empty path": lambda: vd.load(""),
    "NUL in the path of labels": lambda: vd.load("predictions.npz", labels="a\0b"),
    "one long id among many": lambda: vd.Predictions(np.full((1, 20_000, 2), 0.5), sample_ids=_one_long_text()),
    "source weights of 1e308": lambda: vd.discover(PROBS, source_weights=[1e308] * 3),
    "source weights of 5e-324": lambda: vd.discover(PROBS, source_weights=[5e-324] * 3),
    "source weights of 1e300 in blocks": lambda: vd.scale.discover(PROBS, source_weights=[1e300, 1, 1]),
    "source weights of 1e300 of a Dask array": lambda: vd.discover(_dask(), source_weights=[1e300, 1, 1]),
    "source weights of 1e300 of a tensor": lambda: vd.discover(
        torch.tensor(PROBS, requires_grad=True), source_weights=[1e300, 1, 1]
    ),
    "threads of a Dask array as text": lambda: vd.discover(_dask(), n_threads="all"),
    "masked labels of an ensemble": lambda: _fit_ensemble(y=np.ma.masked_equal([0, 1, 0, 1], 1)),
    "masked samples of an ensemble": lambda: _fit_ensemble(X=np.ma.masked_equal(np.arange(8).reshape(4, 2), 3)),
    "missing labels of an ensemble": lambda: _fit_ensemble(y=[0, 1, None, 1]),
    "NA as a label of an ensemble": lambda: _fit_ensemble(y=pandas.array([0, 1, None, 1], dtype="Int64")),
    "masked samples to predict": lambda: _ensemble_of_guesses().predict(np.ma.masked_equal(np.eye(2), 1)),
    "masked labels to score": lambda: _ensemble_of_guesses().score(np.eye(2), np.ma.masked_equal([0, 1], 1)),
    "masked images": lambda: training.ImageSet.of(np.ma.masked_equal(IMAGES, 0), [0, 1]),
    "missing groups of a metric": lambda: vd.metrics.bootstrap(
        "ece", LABELS, PROBS[0], groups=[None, *range(19)], n_resamples=3
    ),
    "missing periods": lambda: vd.evaluate(PROBS, LABELS, methods=["mean"], walk_forward=[np.nan, *range(19)]),
    "missing periods of pandas": lambda: vd.evaluate(
        PROBS, LABELS, methods=["mean"], walk_forward=pandas.array([None, *range(19)], dtype="Int64")
    ),
    "classes of Python as predictions": lambda: vd.Predictions([np.ndarray, np.ndarray]),
    "threads without a number": lambda: vd.discover(PROBS, n_threads=Hostile()),
    "more sources than pairs": lambda: vd.consensus(np.full((10_001, 2, 2), 0.5)),
    "one long label among numbers": lambda: _two_classes(labels=[*[1] * 19_999, "x" * 50_000]),
    "one long group among numbers": lambda: _two_classes(groups=[*[1] * 19_999, "x" * 50_000]),
    "long bytes as groups": lambda: _two_classes(groups=[b"x" * 50_000] * 20_000),
    "long bytes as ids": lambda: _two_classes(sample_ids=[b"x" * 50_000] * 20_000),
    "one long vote among numbers": lambda: vd.judge([[*[1] * 19_999, "x" * 50_000]] * 2),
    "folds without a fold": lambda: _fit_ensemble(cv=np.empty(0)),
    "bytes as folds": lambda: _fit_ensemble(cv=bytearray(b"abc")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_input_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VeridicalError):
        REFUSED[name]()
    assert check_call(name, REFUSED[name]) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_table_of_no_samples_is_not_written(suffix, tmp_path):
    with pytest.raises(VeridicalError, match=r"no samples.*save a \.npz"):
        vd.save(vd.Predictions(EMPTY), tmp_path / f"probs{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_zarr_refuses_extended_precision(tmp_path):
    with pytest.raises(VeridicalError, match="convert the scores to float64"):
        vd.save(vd.Predictions(PROBS.astype(np.longdouble)), tmp_path / "probs.zarr")
    assert list(tmp_path.iterdir()) == []


def test_export_of_thresholds_that_nearly_coincide():
    onnxruntime = pytest.importorskip("onnxruntime")
    second = np.array([0.0, 4e-9, 0.7, 0.4])
    probs = np.stack([np.stack([1 - second, second], axis=-1)] * 2)
    calibrator = vd.IRM().fit(probs, [0, 1, 1, 0])
    assert np.diff(calibrator.thresholds_).min() < 1e-8
    session = onnxruntime.InferenceSession(make_onnx(calibrator, dtype="float64").SerializeToString())
    result = session.run(["probs"], {"predictions": probs})[0]
    np.testing.assert_allclose(result, calibrator.predict_proba(probs), atol=1e-6)


def test_missing_json_file_is_called_missing(tmp_path):
    with pytest.raises(CorruptFileError, match="there is no file"):
        read_json(tmp_path / "run.json")


@pytest.mark.parametrize("target", ["table1", "figure2", "figureA", "all"])
def test_reproduce_refuses_no_samples(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("empty.npz", probs=EMPTY, labels=np.empty(0, int))
    done = veridical_in_process("reproduce", target, "empty.npz")
    assert done.returncode == 2
    check_command(done, as_json=False)
    assert done.stderr == "Error: empty.npz has no samples; at least one is needed.\n"


def test_absent_source_has_no_nan_in_json(tmp_path):
    probs = PROBS.copy()
    probs[1] = np.nan
    np.savez(tmp_path / "absent.npz", probs=probs, labels=LABELS)
    done = veridical_in_process("inspect", tmp_path / "absent.npz", "--json")
    check_command(done, as_json=True)
    assert "empty slice" not in done.stderr
    assert json.loads(done.stdout)["value"]["sources"][1]["nll"] is None


def test_warnings_are_notes_of_the_program_whatever_python_makes_of_them(tmp_path):
    probs = PROBS.copy()
    probs[0] = np.nan
    np.savez(tmp_path / "absent.npz", probs=probs, labels=LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = veridical_in_process("calibrate", tmp_path / "absent.npz", "--method", "other")
    check_command(done, as_json=False)
    note, error = done.stderr.splitlines()
    assert note == "Note: 20 of 60 predictions are absent (rows of NaN) and left out."
    assert error.startswith("Error: method 'other' is unknown; ")


def test_impossible_label_of_a_strict_array_has_an_infinite_loss():
    strict = pytest.importorskip("array_api_strict")
    with array_path():
        loss = check_call("nll", vd.metrics.nll, [1, 0], strict.asarray([[1.0, 0.0], [0.5, 0.5]]))
    assert loss == vd.metrics.nll([1, 0], np.array([[1.0, 0.0], [0.5, 0.5]]))


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".zarr"])
def test_longest_names_are_read_again(suffix, tmp_path):
    names = ["a" * 4096, "b" * 4095, "c"]
    path = vd.save(vd.Predictions(PROBS, class_names=names, source_names=names), tmp_path / f"probs{suffix}")
    again = vd.load(path)
    assert again.class_names == again.source_names == tuple(names)


def test_npz_refuses_to_read_what_it_refuses_to_write(tmp_path):
    np.savez(tmp_path / "p.npz", probs=PROBS, class_names=np.array(["a" * 4097, "b", "c"]))
    predictions = vd.Predictions(PROBS, class_names=["a" * 4097, "b", "c"])
    sentences = []
    for call in (lambda: vd.load(tmp_path / "p.npz"), lambda: vd.save(predictions, tmp_path / "q.npz")):
        with pytest.raises(VeridicalError, match=r"has at most 4,096 characters.*save a \.zarr") as caught:
            call()
        sentences.append(str(caught.value).replace("q.npz", "p.npz"))
    assert sentences[0] == sentences[1]


def test_ensemble_predicts_nothing_for_no_samples():
    assert _ensemble_of_guesses().predict_proba(np.empty((0, 4, 3))).shape == (0, 3)


@pytest.mark.parametrize("accuracy_preserving", [False, True])
@pytest.mark.parametrize("n_sources", [1, 3])
def test_consensus_of_images_has_pixels_on_one_axis(n_sources, accuracy_preserving):
    images = np.random.default_rng(0).dirichlet([1, 1, 1], (n_sources, 5, 2, 4))
    result = vd.consensus(images, accuracy_preserving=accuracy_preserving)
    flat = vd.consensus(images.reshape(n_sources, 40, 3), accuracy_preserving=accuracy_preserving)
    assert np.array_equal(result.probs, flat.probs)
    assert np.array_equal(result.prediction, flat.prediction)
    assert "40 samples" in repr(result)


def test_figures_of_nothing_are_refused():
    table = paper.table1([])
    for draw, results in ((paper.draw_figure2, table), (paper.draw_figure3, []), (paper.draw_figure_a, [])):
        with pytest.raises(errors.ParameterError, match="no results to draw"):
            draw(results)


def test_images_and_devices_of_another_type_are_refused():
    with pytest.raises(errors.ParameterError, match="give a uint8 array"):
        training.ImageSet.of(np.int8(-1), [0], n_classes=2)
    with pytest.raises(errors.ParameterError, match="device"):
        resolve_device(np.empty(0))


def test_networks_take_batches_of_any_layout_and_precision():
    """NumPy's usual float64, steps backwards, read-only memory, and bytes of another machine."""
    network = torch.nn.Linear(3, 2)
    inputs = np.arange(12.0).reshape(4, 3)
    expected = training.collect_predictions(network, [torch.tensor(inputs, dtype=torch.float32)]).values
    read_only = inputs.copy()
    read_only.flags.writeable = False
    for other in (inputs, inputs[::-1][::-1], read_only, inputs.astype(">f8"), inputs.astype(np.longdouble)):
        result = check_call("collect_predictions", training.collect_predictions, network, [other])
        np.testing.assert_array_equal(result.values, expected)


def test_score_counts_known_labels_by_their_weights():
    calibrator = vd.Temperature().fit(PROBS, LABELS)
    right = calibrator.predict(PROBS) == LABELS
    assert calibrator.score(PROBS, LABELS) == pytest.approx(right.mean())
    partly = np.where(np.arange(20) < 5, -1, LABELS)
    assert calibrator.score(vd.Predictions(PROBS, partly)) == pytest.approx(right[5:].mean())
    weights = np.arange(20.0)
    for scale in (1.0, 1e306, 1e-320):
        expected = np.average(right[5:], weights=weights[5:])
        assert calibrator.score(PROBS, partly, weights * scale) == pytest.approx(expected, abs=1e-3)


def test_parameters_of_extended_precision_are_saved(tmp_path):
    calibrator = vd.MatrixScaling(penalty=np.longdouble(0.5)).fit(PROBS, LABELS)
    calibrator.save(tmp_path / "calibrator.json")
    assert vd.load_calibrator(tmp_path / "calibrator.json").penalty == 0.5


@pytest.mark.parametrize("suffix", [".txt", ".csv", ".json", ".parquet"])
def test_one_long_label_among_many_takes_little_memory(suffix, tmp_path):
    """An array of texts gives each as much memory as the longest: 4 GB here."""
    texts, path = _one_long_text(), tmp_path / f"labels{suffix}"
    if suffix in (".txt", ".csv"):
        path.write_text("\n".join(["label", *texts] if suffix == ".csv" else texts))
    elif suffix == ".json":
        path.write_text(json.dumps(texts))
    else:
        pandas.DataFrame({"label": texts}).to_parquet(path)
    np.save(tmp_path / "probs.npy", PROBS)
    with pytest.raises(VeridicalError, match=r"the labels in .*one of 20,000 texts has 50,000 characters"):
        vd.load(tmp_path / "probs.npy", labels=path)


_LONG_LISTS = {
    "text": ["x" * 50_000] * 20_000,
    "numbers": [*[1] * 19_999, "x" * 50_000],
    "rows": [*[[1]] * 19_999, ["x" * 50_000]],
}


@pytest.mark.parametrize(
    ("suffix", "name"), [(".json", "numbers"), (".json", "rows"), (".pt", "text"), (".pt", "numbers")]
)
def test_lists_of_long_labels_take_little_memory(suffix, name, tmp_path):
    path = tmp_path / f"labels{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps(_LONG_LISTS[name]))
    else:
        torch.save(_LONG_LISTS[name], path)
    np.save(tmp_path / "probs.npy", PROBS)
    with pytest.raises(VeridicalError, match=r"the labels in .*one of 20,000 texts has 50,000 characters"):
        vd.load(tmp_path / "probs.npy", labels=path)


def test_lists_of_long_ids_take_little_memory(tmp_path):
    content = {"labels": [1] * 20_000, "sample_ids": _LONG_LISTS["numbers"]}
    (tmp_path / "labels.json").write_text(json.dumps(content))
    np.save(tmp_path / "probs.npy", PROBS)
    with pytest.raises(VeridicalError, match=r"the ids in .*one of 20,000 texts has 50,000 characters"):
        vd.load(tmp_path / "probs.npy", labels=tmp_path / "labels.json")


@pytest.mark.parametrize("name", ["labels", "groups", "sample_ids"])
@pytest.mark.parametrize(("suffix", "entries"), [(".pt", "text"), (".pt", "numbers"), (".zarr", "numbers")])
def test_long_texts_beside_scores_take_little_memory(suffix, name, entries, tmp_path):
    path = tmp_path / f"p{suffix}"
    if suffix == ".pt":
        torch.save({"probs": torch.tensor(PROBS), name: _LONG_LISTS[entries]}, path)
    else:
        vd.save(vd.Predictions(PROBS), path)
        zarr.open_group(str(path)).attrs[name] = _LONG_LISTS[entries]
    with pytest.raises(VeridicalError, match=r"one of 20,000 texts has 50,000 characters"):
        vd.load(path)


@pytest.mark.parametrize("column", ["group", "label", "sample"])
def test_one_long_text_in_a_table_takes_little_memory(column, tmp_path):
    table = {
        "a": np.full(20_000, 0.5),
        "b": np.full(20_000, 0.5),
        "sample": np.arange(20_000),
        column: _one_long_text(),
    }
    pandas.DataFrame(table).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(VeridicalError, match=r"one of 20,000 texts has 50,000 characters"):
        vd.load(tmp_path / "p.csv")


def test_special_file_as_the_description_of_a_run_is_ignored(tmp_path):
    for s in range(2):
        np.save(tmp_path / f"member_{s}.npy", PROBS[s])
    os.mkfifo(tmp_path / "run.json")
    assert vd.load(tmp_path, kind="probs").n_sources == 2
    assert vd.load(tmp_path).n_sources == 2


def test_output_is_not_a_part_of_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vd.save(vd.Predictions(PROBS, LABELS), "p.zarr")
    before = Path("p.zarr/zarr.json").read_bytes()
    done = veridical_in_process(
        "calibrate", "p.zarr", "--method", "temperature", "--block-memory", "1MB", "--out", "p.zarr/zarr.json"
    )
    assert done.returncode == 2
    assert "is a part of the input p.zarr" in done.stderr or "same file as the input" in done.stderr
    assert Path("p.zarr/zarr.json").read_bytes() == before


def test_output_is_not_the_description_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for s in range(3):
        np.save(f"run/probs_{s}.npy", PROBS[s])
    np.save("run/labels.npy", LABELS)
    Path("run/run.json").write_text('{"kind": "probs"}')
    done = veridical_in_process("calibrate", "run", "--method", "temperature", "--out", "run/run.json")
    assert done.returncode == 2
    assert Path("run/run.json").read_text() == '{"kind": "probs"}'


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [[1e30] * 3, [1e-30] * 3, [1e30, 1e-30, 0], [1e-40, 1, 1]])
def test_source_weights_at_the_ends_of_their_range(dtype, weights):
    for probs in (PROBS.astype(dtype), torch.tensor(PROBS.astype(dtype), requires_grad=True)):
        check_call("discover", vd.discover, probs, source_weights=weights)


def test_results_are_compared_by_identity():
    truth, again = vd.discover(PROBS), vd.discover(PROBS)
    assert truth == truth
    assert truth != again
    assert len({truth, again}) == 2
    for make in (lambda: vd.consensus(PROBS), lambda: vd.judge(_VOTES), _calibrated):
        assert make() != make()


def test_periods_are_numbers_of_any_length():
    periods = ["9" * 5000] * 35 + ["8"] * 5 + ["1" + "0" * 5000] * 5
    probs, labels = RNG.dirichlet([1, 1, 1], size=(3, 45)), RNG.integers(0, 3, 45)
    assert vd.evaluate(probs, labels, methods=["mean"], walk_forward=periods) is not None


@pytest.mark.parametrize("method", ["irm", "irova", "isotonic"])
def test_isotonic_fits_of_scores_next_to_zero(method):
    """The line between two scores that differ by the smallest numbers there are would be infinitely steep."""
    probs = np.array([[0.0, 1.0], [1e-310, 1.0]] * 30)
    calibrator = vd.calibrators()[method]().fit(probs, [1, 0] * 30)
    for smallest in (0.0, 5e-324, 3e-320, 1e-310):
        check_call("predict_proba", calibrator.predict_proba, np.array([[smallest, 1.0]]))
