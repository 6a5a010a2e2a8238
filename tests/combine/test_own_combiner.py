"""Combiners that users write: one class passes wherever a combiner can be named."""

import json

import numpy as np
import pytest
from ensembles import random_ensemble
from programs import veridical_in_process

import veridical as vd
from veridical.backends import array_path
from veridical.combine import COMBINERS, Combiner, register_combiner


class Product(Combiner):
    name = "product"
    summary = "Product of the sources."

    def formula(self, xp, sources):
        return sources.log_pool(sources.present_as_numbers, 1e-6)


class ByAccuracy(Combiner):
    name = "by-accuracy"
    summary = "Mean weighted by how often each source is right."
    needs_labels = has_weights = True
    complexity = 1
    _state = ("weights",)

    def fit(self, predictions, labels, options):
        self.weights = np.array([(source.argmax(axis=1) == labels).mean() for source in predictions])

    def formula(self, xp, sources):
        return sources.weighted(sources.of_present(self.weights))

    def for_sources(self, known, n_new):
        return self.with_state(weights=np.append(self.weights[known], np.full(n_new, self.weights.mean())))


@pytest.fixture(params=[Product, ByAccuracy], ids=lambda combiner: combiner.name)
def combiner(request, monkeypatch):
    monkeypatch.setitem(COMBINERS, request.param.name, request.param)
    return request.param


@pytest.fixture
def data(rng):
    labels = rng.integers(0, 3, 300)
    probs = 0.5 * random_ensemble(rng, 4, 300, 3) + 0.5 * np.eye(3)[labels] * rng.random((4, 300, 1))
    return vd.Predictions(probs / probs.sum(axis=2, keepdims=True), labels, source_names=list("abcd"))


@pytest.fixture
def fitted(combiner, data):
    return vd.Temperature(combine=combiner.name, missing="skip").fit(data)


def test_saved_and_loaded(fitted, data, tmp_path):
    fitted.save(tmp_path / "calibrator.json")
    loaded = vd.load_calibrator(tmp_path / "calibrator.json")
    np.testing.assert_array_equal(loaded.predict_proba(data), fitted.predict_proba(data))


def test_follows_its_formula(fitted, data):
    combined = fitted.combine_new(data)
    weights = getattr(fitted.combiner_, "weights", None)
    values = data.values
    expected = np.exp(np.log(values).sum(axis=0)) if weights is None else np.einsum("s,snl->nl", weights, values)
    np.testing.assert_allclose(combined.probs, expected / expected.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_array_equal(combined.prediction, combined.probs.argmax(axis=1))


def test_one_by_one_equals_the_batch(fitted, data):
    probs, confidence, labels = fitted.predict_all(data)
    for n in range(0, 300, 7):
        one = fitted.predict_all(data.select(samples=slice(n, n + 1)))
        np.testing.assert_allclose(one[0][0], probs[n], rtol=0, atol=1e-12)
        np.testing.assert_allclose(one[1], confidence[n : n + 1], rtol=0, atol=1e-12)
        assert one[2] == labels[n]


def test_sources_absent_gone_and_new(fitted, data):
    absent = data.values.copy()
    absent[0, ::2] = np.nan
    assert np.isfinite(fitted.predict_proba(vd.Predictions(absent, source_names=list("abcd")))).all()
    with pytest.warns(vd.errors.ChangedSourcesWarning):
        assert np.isfinite(fitted.predict_proba(vd.Predictions(data.values, source_names=list("abce")))).all()


def test_compared_and_reported(combiner, data, tmp_path):
    methods = [f"{combiner.name}+temperature", "temperature"]
    assert combiner.name in str(vd.compare_calibrators(data, methods=methods, n_splits=2))
    vd.build_report(data, method=methods[0], methods=methods, intervals=False, out=tmp_path / "report.html")
    assert combiner.name in (tmp_path / "report.html").read_text()


def test_on_the_command_line(combiner, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vd.save(data, "data.npz")
    words = ["calibrate", "data.npz", "--method", f"{combiner.name}+platt", "--out", "calibrator.json", "--json"]
    done = veridical_in_process(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "calibrator.json").read_text())["pooling"]["name"] == combiner.name
    assert veridical_in_process("apply", "calibrator.json", "data.npz", "--out", "out.npz").returncode == 0
    assert combiner.name in veridical_in_process("methods").stdout


def test_with_torch_and_gradients(fitted, data):
    torch = pytest.importorskip("torch")
    scores = torch.tensor(data.values, requires_grad=True)
    probs = fitted.predict_proba(scores)
    np.testing.assert_allclose(probs.detach().numpy(), fitted.predict_proba(data), rtol=0, atol=1e-9)
    probs[:, 0].sum().backward()
    assert np.isfinite(scores.grad.numpy()).all()
    assert np.abs(scores.grad.numpy()).max() > 0


def test_compiled_by_jax(fitted, data):
    jax = pytest.importorskip("jax")
    values = data.values.astype(np.float32)
    traced = jax.jit(fitted.predict_proba)(jax.numpy.asarray(values))
    with array_path():
        eager = fitted.predict_proba(jax.numpy.asarray(values))
    np.testing.assert_allclose(np.asarray(traced), np.asarray(eager), atol=1e-6)
    np.testing.assert_allclose(np.asarray(traced), fitted.predict_proba(values), atol=1e-5)


def test_as_onnx_model(fitted, data, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted.to_onnx(tmp_path / "model.onnx", dtype="float64")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    probs, confidence, labels = session.run(["probs", "confidence", "label"], {"predictions": data.values})
    expected = fitted.predict_all(data)
    np.testing.assert_allclose(probs, expected[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(confidence, expected[1], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(labels, expected[2])


def test_over_blocks_and_dask(fitted, data, tmp_path):
    dask = pytest.importorskip("dask.array")
    values = np.tile(data.values, (1, 10, 1))
    np.save(tmp_path / "probs.npy", values)
    expected = fitted.predict_proba(values)
    blocked = vd.scale.open(tmp_path / "probs.npy", block_memory=1 << 16)
    np.testing.assert_allclose(vd.apply_calibrator(fitted, blocked).probs, expected, rtol=0, atol=1e-12)
    chunked = dask.from_array(values, chunks=(4, 500, 3))
    np.testing.assert_allclose(fitted.predict_proba(chunked).compute(), expected, rtol=0, atol=1e-12)


def test_names_are_taken_once(combiner):
    other = type("Other", (Combiner,), {"name": combiner.name, "summary": "Another."})
    with pytest.raises(vd.errors.ParameterError, match="already"):
        register_combiner(other)
    register_combiner(combiner)
