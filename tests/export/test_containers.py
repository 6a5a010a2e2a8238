"""Models exported after a fit on every kind of container give what the saved calibrator gives for raw input."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from calibration_cases import NAMES, labelled_ensemble

import veridical as vd
from veridical.cli import run as run_command

pytestmark = pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
TOLERANCE = 1e-5
METHODS = [name for name in NAMES if name != "auto"]


def of_kind(kind):
    def container(probs, labels, path):
        scores = probs if kind == "probs" else np.log(probs) + (kind == "logits")
        return vd.Predictions(scores[:, :120], labels[:120], kind=kind), scores[:, 120:], kind

    return container


def one_array(kind, axis):
    def container(probs, labels, path):
        scores = np.moveaxis(probs if kind == "probs" else np.log(probs), 0, axis)
        samples = 1 - min(axis, 1)
        first, rest = np.split(scores, [120], axis=samples)
        return (first, labels[:120], {"kind": kind, "sources_axis": axis}), rest, kind

    return container


def table(probs, labels, path):
    columns = {name: np.log(probs[0, :120, l]) for l, name in enumerate("abcd")}
    pd.DataFrame({"label": np.array([*"abcd"])[labels[:120]], **columns}).to_csv(path / "table.csv", index=False)
    return vd.load(path / "table.csv", kind="logits"), np.log(probs[:1, 120:]), "logits"


def directory(probs, labels, path):
    (path / "sources").mkdir()
    for s, source in enumerate(probs):
        np.save(path / "sources" / f"net{s}.npy", np.log(source[:120]))
    return vd.load(path / "sources", kind="logits").with_labels(labels[:120]), np.log(probs[:, 120:]), "logits"


def archive(probs, labels, path):
    vd.save(vd.Predictions(np.log(probs[:, :120]), labels[:120], kind="log_probs"), path / "predictions.npz")
    return vd.load(path / "predictions.npz"), np.log(probs[:, 120:]), "log_probs"


def blocks(probs, labels, path):
    np.save(path / "logits.npy", np.log(probs[:, :120]))
    opened = vd.scale.open(path / "logits.npy", kind="logits")
    return opened.with_labels(labels[:120]), np.log(probs[:, 120:]), "logits"


def frames(probs, labels, path):
    sources = {f"net{s}": pd.DataFrame(source[:120], columns=[*"abcd"]) for s, source in enumerate(probs)}
    return vd.Predictions(sources, labels[:120]), probs[:, 120:], "probs"


def images(probs, labels, path):
    return (
        vd.Predictions(probs[:, :120].reshape(-1, 5, 4, 6, 4), labels[:120].reshape(5, 4, 6)),
        probs[:, 120:],
        "probs",
    )


def one_source(probs, labels, path):
    return vd.Predictions(probs[0, :120], labels[:120]), probs[:1, 120:], "probs"


def binary(probs, labels, path):
    positive = probs[:, :, 0] / probs[:, :, :2].sum(axis=2)
    return vd.Predictions(positive[:, :120], labels[:120] == 0, kind="binary"), positive[:, 120:], "binary"


def binary_of_one(probs, labels, path):
    positive = probs[0, :, 0] / probs[0, :, :2].sum(axis=1)
    return (positive[:120], labels[:120] == 0, {"kind": "binary"}), positive[None, 120:], "binary"


def binary_by_sample(probs, labels, path):
    positive = (probs[:, :, 0] / probs[:, :, :2].sum(axis=2)).T
    return (positive[:120], labels[:120] == 0, {"kind": "binary", "sources_axis": 1}), positive[120:], "binary"


def absent(kind):
    def container(probs, labels, path):
        scores = probs.copy() if kind == "probs" else np.log(probs)
        generator = np.random.default_rng(1)
        for n in range(scores.shape[1]):
            gone = generator.permutation(5)[: generator.integers(0, 5)]
            scores[gone, n] = np.nan
        fitted_on = vd.Predictions(scores[:, :120], labels[:120], kind=kind)
        return (fitted_on, None, {"missing": "skip"}), scores[:, 120:], kind

    return container


def votes(probs, labels, path):
    generator = np.random.default_rng(1)
    places = probs.argmax(axis=2)
    places[generator.random(places.shape) < 0.2] = -1
    places[0] = probs[0].argmax(axis=1)
    vectors = np.where(places[..., None] < 0, np.nan, np.eye(4)[places])
    voted = vd.Predictions(places[:, :120], labels[:120], kind="labels", class_names=[*"abcd"])
    return (voted, None, {"missing": "skip"}), vectors[:, 120:], "probs"


CONTAINERS = {
    **{kind: of_kind(kind) for kind in ("probs", "logits", "log_probs")},
    **{f"{kind}-axis-{axis}": one_array(kind, axis) for kind, axis in (("logits", 1), ("log_probs", 2), ("probs", 2))},
    "table": table,
    "directory": directory,
    "archive": archive,
    "blocks": blocks,
    "frames": frames,
    "images": images,
    "one-source": one_source,
    "binary": binary,
    "binary-of-one": binary_of_one,
    "binary-by-sample": binary_by_sample,
    "absent-probs": absent("probs"),
    "absent-logits": absent("logits"),
    "votes": votes,
}


def made(container, rng, tmp_path):
    """(what to fit on, labels or None, parameters), raw input, and its kind."""
    probs, labels = labelled_ensemble(rng, n_samples=180)
    fitted_on, raw, kind = CONTAINERS[container](probs, labels, tmp_path)
    return fitted_on if isinstance(fitted_on, tuple) else (fitted_on, None, {}), raw, kind


def run(path, raw):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    facts = session.get_modelmeta().custom_metadata_map
    return facts, session.run(["probs", "confidence", "label"], {"predictions": raw})


def assert_same(calibrator, path, raw, kind):
    facts, results = run(path, raw)
    assert facts["kind"] == kind
    assert facts["missing"] == calibrator.missing
    expected = calibrator.predict_all(raw)
    np.testing.assert_array_equal(results[2], expected[2])
    for result, values in zip(results[:2], expected[:2], strict=True):
        np.testing.assert_allclose(result, values, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_model_takes_what_its_calibrator_takes(container, name, rng, tmp_path):
    (fitted_on, labels, parameters), raw, kind = made(container, rng, tmp_path)
    vd.calibrators()[name](**parameters).fit(fitted_on, labels).save(tmp_path / "cal.json")
    loaded = vd.load_calibrator(tmp_path / "cal.json")
    loaded.to_onnx(tmp_path / "cal.onnx", dtype="float64")
    assert_same(loaded, tmp_path / "cal.onnx", raw, kind)


def test_model_of_auto_takes_what_auto_takes(rng, tmp_path):
    probs, labels = labelled_ensemble(rng)
    fitted_on = vd.Predictions(np.log(probs), labels, kind="logits")
    auto = vd.Auto(candidates=["spline", "temperature"], random_state=0).fit(fitted_on)
    auto.to_onnx(tmp_path / "cal.onnx", dtype="float64")
    assert_same(auto, tmp_path / "cal.onnx", np.log(probs), "logits")


@pytest.mark.parametrize("method", ["temperature", "aconsensus+ptde-kde", "log-pool", "auto"])
def test_commands_export_what_they_fitted(method, rng, tmp_path, monkeypatch):
    probs, labels = labelled_ensemble(rng)
    scores = np.log(probs)
    scores[2, ::3] = np.nan
    monkeypatch.chdir(tmp_path)
    np.save("logits.npy", scores[:, :200])
    np.save("labels.npy", labels[:200])
    command = ["calibrate", "logits.npy", "--labels", "labels.npy", "--kind", "logits", "--method", method, "--quiet"]
    assert run_command([*command, "--out", "cal.json"]) == 0
    assert run_command(["export", "cal.json", "cal.onnx", "--dtype", "float64", "--quiet"]) == 0
    assert_same(vd.load_calibrator("cal.json"), "cal.onnx", scores[:, 200:], "logits")


@pytest.mark.parametrize("kind", ["probs", "logits", "log_probs", "binary"])
@pytest.mark.parametrize("missing", ["raise", "skip"])
def test_samples_that_the_calibrator_refuses_have_no_result(kind, missing, rng, tmp_path):
    probs, labels = labelled_ensemble(rng, n_samples=60)
    scores = {"probs": probs, "logits": np.log(probs) + 1, "log_probs": np.log(probs), "binary": probs[:, :, 0]}[kind]
    labels = labels == 0 if kind == "binary" else labels
    calibrator = vd.Temperature(kind=kind, missing=missing).fit(scores, labels)
    calibrator.to_onnx(tmp_path / "cal.onnx", dtype="float64")
    bad = scores[:, :9].copy()
    bad[1, 0] = np.nan  # absent
    bad[:, 1] = np.nan  # all of them are
    bad[2, 2] = np.inf
    if kind != "binary":
        bad[2, 3, 1] = np.nan  # a hole
    if kind != "logits":
        bad[3, 4] = 2.5  # logits, say
        bad[3, 5] = -bad[3, 5] if kind != "log_probs" else bad[3, 5] - 1.0
    _, (results, confidence, label) = run(tmp_path / "cal.onnx", bad)
    for n in range(9):
        try:
            expected = calibrator.predict_all(bad[:, n : n + 1])
        except vd.errors.VeridicalError:
            assert label[n] == -1
            assert np.isnan(confidence[n])
            assert np.isnan(results[n]).all()
        else:
            assert label[n] == expected[2][0]
            np.testing.assert_allclose(results[n], expected[0][0], rtol=0, atol=TOLERANCE)
    assert (label[6:] >= 0).all()
    assert (label[:6] < 0).any()
