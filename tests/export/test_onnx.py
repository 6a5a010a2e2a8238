"""ONNX models: onnxruntime computes what the calibrators compute, on real predictions."""

import functools
import re
import stat
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from calibration_cases import NAMES, labelled_ensemble
from ensembles import random_ensemble

import veridical as vd
from veridical.cli import run as run_command
from veridical.combine import COMBINERS
from veridical.errors import ExportError, FileFormatError, ParameterError, StorageError, UnfittedError
from veridical.export import make_onnx

#: Agreement of onnxruntime with the library, for every sample.
TOLERANCE = 1e-5
#: Tried on every way of combining: one that corrects scores, one that corrects vectors, those with truth discovery.
ON_EVERY_COMBINER = ("temperature", "spline", "ptde-kde", "truth-logit", "identity")


@functools.cache
def real_predictions():
    """10,000 samples of the first five sources of the shipped ensemble, as probabilities in double precision."""
    demo = vd.load_demo()
    logits = demo.values[:5].astype(np.float64)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True), demo.labels


def run(model, predictions):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["probs", "confidence", "label"], {"predictions": predictions})


def assert_agreement(calibrator, predictions, dtype="float64"):
    probs, confidence, label = run(make_onnx(calibrator, dtype=dtype), predictions)
    expected = calibrator.predict_all(predictions)
    assert probs.dtype == confidence.dtype == dtype
    assert label.dtype == np.int64
    np.testing.assert_array_equal(label, expected[2])
    np.testing.assert_allclose(probs, expected[0], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(confidence, expected[1], rtol=0, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_every_method_agrees_on_real_predictions(name):
    probs, labels = real_predictions()
    calibrator = vd.calibrators()[name]().fit(probs[:, ::2], labels[::2])
    assert_agreement(calibrator, probs)


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_any_number_of_samples(name, kind, rng):
    probs, labels = labelled_ensemble(rng, n_samples=300)
    calibrator = vd.calibrators()[name](kind=kind).fit(np.log(probs) if kind == "logits" else probs, labels)
    model = make_onnx(calibrator, dtype="float64")
    new = random_ensemble(rng, 5, 16, 4)
    new = np.log(new) if kind == "logits" else new
    for n_samples in (0, 1, 16):
        results = run(model, new[:, :n_samples])
        assert [result.shape for result in results] == [(n_samples, 4), (n_samples,), (n_samples,)]
        for result, expected in zip(results, calibrator.predict_all(new[:, :n_samples]), strict=True):
            np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("combine", [name for name in COMBINERS if name != "mean"])
@pytest.mark.parametrize("n_samples", [0, 1])
def test_every_combiner_takes_any_number_of_samples(combine, n_samples, rng):
    probs, labels = labelled_ensemble(rng, n_samples=300)
    calibrator = vd.Identity(combine=combine).fit(probs, labels)
    new = random_ensemble(rng, 5, n_samples, 4)
    results = run(make_onnx(calibrator, dtype="float64"), new)
    for result, expected in zip(results, calibrator.predict_all(new), strict=True):
        np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
@pytest.mark.parametrize("combine", [name for name in COMBINERS if name != "mean"])
@pytest.mark.parametrize("name", ON_EVERY_COMBINER)
def test_every_combiner_agrees_on_real_predictions(name, combine):
    probs, labels = real_predictions()
    calibrator = vd.calibrators()[name](combine=combine).fit(probs[:, ::5], labels[::5])
    assert_agreement(calibrator, probs)


class Unusual(vd.calibrate.Calibrator):
    name = "unusual"
    summary = "A formula with a function that graphs do not have."

    def _fit(self, combined, labels):
        """Nothing to fit."""

    def formula(self, xp, combined):
        return xp.tanh(combined.confidence)


def test_functions_without_an_operator_are_named(rng):
    fitted = Unusual().fit(*labelled_ensemble(rng))
    with pytest.raises(ExportError, match=r"uses xp\.tanh, for which ONNX models have no operator here"):
        make_onnx(fitted)


def test_auto_exports_what_it_chose(rng):
    probs, labels = labelled_ensemble(rng)
    auto = vd.Auto(candidates=["spline", "platt"], random_state=0).fit(probs, labels)
    model = make_onnx(auto, dtype="float64")
    assert {entry.key: entry.value for entry in model.metadata_props}["method"] == auto.best_.name
    for result, expected in zip(run(model, probs), auto.predict_all(probs), strict=True):
        np.testing.assert_allclose(result, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["logits", "log_probs"])
@pytest.mark.parametrize("sources_axis", [0, 1])
def test_kind_and_axis_of_the_sources(kind, sources_axis, rng):
    probs, labels = labelled_ensemble(rng, n_sources=4)
    scores = np.log(probs).swapaxes(0, sources_axis)
    calibrator = vd.PTDE(kind=kind, sources_axis=sources_axis, random_state=0).fit(scores, labels)
    model = make_onnx(calibrator, dtype="float64")
    assert {entry.key: entry.value for entry in model.metadata_props}["kind"] == kind
    assert_agreement(calibrator, scores)


@pytest.mark.parametrize("name", ["temperature", "platt", "ptde-kde", "truth-logit", "vector", "log-pool"])
def test_float32_agrees_on_new_samples(name, rng):
    probs, labels = labelled_ensemble(rng, n_samples=1000, dtype=np.float32)
    calibrator = vd.calibrators()[name]().fit(probs[:, :500], labels[:500])
    assert_agreement(calibrator, probs[:, 500:], "float32")


@pytest.mark.parametrize("name", ["ptde-kde", "truth-logit", "temperature", "irova"])
@pytest.mark.parametrize("n_sources", [1, 2, 3])
def test_degenerate_samples(name, n_sources, rng):
    """Unanimous and one-hot sources, ties, and a source that is the truth."""
    probs, labels = labelled_ensemble(rng, n_sources=n_sources, n_samples=200)
    calibrator = vd.calibrators()[name]().fit(probs, labels)
    hard = np.repeat(np.eye(4)[rng.integers(0, 4, (n_sources, 30))], 2, axis=1)
    hard[:, :5] = 0.25
    hard[:, 5:10] = hard[:1, 5:10]
    assert_agreement(calibrator, hard)


def test_sources_that_are_the_truth(rng):
    """Two of four sources are the mean, exactly: they take all the weight, and nothing moves."""
    middle = rng.multinomial(32, [0.4, 0.3, 0.2, 0.1], 300) / 64 + 1 / 8  # sums of eighths and 64ths are exact
    shift = np.array([1, -1, 1, -1]) * rng.integers(1, 9, (300, 1)) / 64
    probs = np.stack((middle + shift, middle - shift, middle, middle))
    assert_agreement(vd.TruthLogit().fit(probs, rng.integers(0, 4, 300)), probs)


def test_file_is_a_valid_model(rng, tmp_path):
    probs, labels = labelled_ensemble(rng)
    calibrator = vd.Temperature().fit(probs, labels)
    calibrator.to_onnx(tmp_path / "cal.onnx")
    onnx.checker.check_model(tmp_path / "cal.onnx", full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "cal.onnx", providers=["CPUExecutionProvider"])
    assert [entry.shape for entry in session.get_inputs()] == [[5, "samples", 4]]
    result = session.run(["confidence"], {"predictions": probs.astype(np.float32)})[0]
    np.testing.assert_allclose(result, calibrator.predict_confidence(probs), atol=TOLERANCE)


def test_bad_exports_are_explained(rng, tmp_path):
    probs, labels = labelled_ensemble(rng)
    with pytest.raises(UnfittedError, match="not fitted"):
        vd.Temperature().to_onnx(tmp_path / "cal.onnx")
    fitted = vd.Temperature().fit(probs, labels)
    with pytest.raises(FileFormatError, match=r"use the extension \.onnx"):
        fitted.to_onnx(tmp_path / "cal.json")
    with pytest.raises(ParameterError, match="dtype 'float16' is unknown"):
        fitted.to_onnx(tmp_path / "cal.onnx", dtype="float16")
    with pytest.raises(StorageError, match="cannot be written"):
        fitted.to_onnx(tmp_path / "nowhere" / "cal.onnx")
    positive = probs[:, :, 0] / probs[:, :, :2].sum(axis=2)
    of_binary = vd.Temperature(kind="binary").fit(positive, labels == 0).set_params(sources_axis=2)
    with pytest.raises(ExportError, match="binary scores have two axes"):
        of_binary.to_onnx(tmp_path / "cal.onnx")
    with pytest.raises(ExportError, match="fit again"):
        fitted.set_params(combine="tde").to_onnx(tmp_path / "cal.onnx")
    assert not list(tmp_path.iterdir())


def test_existing_model_survives_a_failed_export(rng, tmp_path, monkeypatch):
    probs, labels = labelled_ensemble(rng)
    fitted = vd.Temperature().fit(probs, labels)
    fitted.to_onnx(tmp_path / "cal.onnx")
    before = (tmp_path / "cal.onnx").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(StorageError, match="No space left"):
        vd.Platt().fit(probs, labels).to_onnx(tmp_path / "cal.onnx")
    assert (tmp_path / "cal.onnx").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["cal.onnx"]
    assert stat.S_ISREG((tmp_path / "cal.onnx").stat().st_mode)


def test_export_command(rng, tmp_path, capsys, monkeypatch):
    probs, labels = labelled_ensemble(rng)
    vd.Spline().fit(probs, labels).save(tmp_path / "cal.json")
    monkeypatch.chdir(tmp_path)
    assert run_command(["export", "cal.json", "cal.onnx"]) == 0
    assert "Wrote cal.onnx: spline on mean, 5 sources" in capsys.readouterr().out
    onnx.checker.check_model("cal.onnx")
    for arguments, message in (
        (["cal.json", "cal.json"], "use the extension .onnx"),
        (["gone.json", "new.onnx"], "there is no file"),
        (["cal.onnx", "cal.onnx"], "is the same file as the input"),
    ):
        assert run_command(["export", *arguments]) == 2
        assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cal.json", "cal.onnx"]


@pytest.mark.parametrize("method", ["temperature", "auto"])
def test_export_command_takes_what_calibrate_writes(method, rng, tmp_path, monkeypatch):
    probs, labels = labelled_ensemble(rng)
    monkeypatch.chdir(tmp_path)
    vd.save(vd.Predictions(probs, labels), "predictions.npz")
    assert run_command(["calibrate", "predictions.npz", "--method", method, "--out", "cal.json", "--quiet"]) == 0
    assert run_command(["export", "cal.json", "cal.onnx"]) == 0
    assert vd.load_calibrator("cal.json").missing == "skip"
    onnx.checker.check_model("cal.onnx")


def test_documented_table_of_methods():
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "serving.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \|", page, flags=re.MULTILINE)
    assert [name for name in rows if name in NAMES] == list(NAMES)
