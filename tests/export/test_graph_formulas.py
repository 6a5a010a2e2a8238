"""The namespace that writes ONNX graphs, against NumPy; and what a model says about itself."""

import numpy as np
import onnxruntime
import pytest
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.backends import namespace, rows
from veridical.export import check_onnx_target, make_onnx
from veridical.export.graph import IR_VERSION, OPSET, Graph, GraphArray


def computed(make, **inputs):
    """What onnxruntime makes of the graph that ``make(xp, *arrays)`` writes; the first axis has an unknown length."""
    graph = Graph()
    arrays = [GraphArray(graph, name, (None, *values.shape[1:]), values.dtype) for name, values in inputs.items()]
    info = [
        graph.onnx.helper.make_tensor_value_info(array.name, graph.kind(array.dtype), ["samples", *array.shape[1:]])
        for array in arrays
    ]
    model = graph.model(info, {"result": make(graph, *arrays)})
    graph.onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["result"], inputs)[0]


def constant(graph):
    return lambda values: graph.asarray(np.asarray(values, np.float64))


#: What a graph and NumPy compute alike: functions of a namespace, numbers (N, 4) and labels (N,).
FORMULAS = {
    "operators": lambda xp, x, y: (2.0 * x + 1 / x - 1) * (1 - x) - (-x),
    "comparisons": lambda xp, x, y: ((x > 0.5) & (x <= 0.8)) | ~(x >= 0.2) | (x < 0.1) | (x == 0.25),
    "indices": lambda xp, x, y: x[:, None, 1:3][..., 0] + x[:, :1] + xp.exp(x)[None, :, 2][0, :, None],
    "reductions": lambda xp, x, y: xp.sum(x, axis=1) + xp.max(x, axis=-1) * xp.min(x, axis=1, keepdims=True)[:, 0],
    "all-and-any": lambda xp, x, y: xp.all(x > 0.05, axis=1) | xp.any(x > 0.9, axis=1),
    "order": lambda xp, x, y: xp.cumulative_sum(xp.sort(x, axis=1), axis=1),
    "places": lambda xp, x, y: xp.astype(xp.argmax(x, axis=1), xp.float64),
    "logarithms": lambda xp, x, y: xp.log1p(x * 1e-9) + xp.log1p(-x / 2) + xp.log(x),
    "not-a-number": lambda xp, x, y: xp.where(xp.isnan(x / 0.0 * 0.0), x, -x),
    "bounds": lambda xp, x, y: xp.clip(x, 0.3, None) + xp.minimum(xp.maximum(x, 0.1), 0.7) + xp.abs(x - 1),
    "filled": lambda xp, x, y: xp.where(xp.zeros_like(x) < 1, xp.ones_like(x) + xp.zeros_like(x), x),
    "a-filled-sum": lambda xp, x, y: xp.sum(xp.ones_like(x) + xp.full_like(x, 2.0)[:, :1], axis=1),
    "stacked": lambda xp, x, y: xp.concat([xp.stack([x, x + 1], axis=1)[:, 0, :], x], axis=1),
    "reshaped": lambda xp, x, y: xp.reshape(xp.reshape(x, (-1,)) + 1.0, x.shape),
    "softmax": lambda xp, x, y: namespace.softmax(xp, 1e4 * x),
    "projection": lambda xp, x, y: namespace.project(xp, x / xp.sum(x, axis=1)[:, None], y, 0.1),
    "labels": lambda xp, x, y: namespace.at_label(xp, x, y),
    "sigmoid": lambda xp, x, y: rows.sigmoid(xp, 2000.0 * (x - 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_graphs_compute_what_numpy_computes(name, dtype, rng):
    x, y = rng.uniform(0.01, 1, (30, 4)).astype(dtype), rng.integers(0, 4, 30)
    x[:4, :2] = 0.25
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = FORMULAS[name](np, x, y)
    result = computed(lambda xp, *arrays: FORMULAS[name](xp, *arrays), x=x, y=y)
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-12)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n_edges", [1, 2, 3, 7, 8, 9])
def test_search_equals_searchsorted(side, n_edges, rng):
    edges = np.sort(rng.integers(0, 20, n_edges) / 20.0)
    scores = np.concatenate((edges, edges + 1e-9, rng.random(30), [-1.0, 2.0]))
    places = computed(lambda xp, x: xp.searchsorted(constant(xp)(edges), x, side=side), x=scores)
    np.testing.assert_array_equal(places, np.searchsorted(edges, scores, side=side))


@pytest.mark.parametrize("n_points", [1, 2, 5, 8])
def test_interpolate_equals_interp(n_points, rng):
    knots, values = np.cumsum(rng.uniform(0.05, 0.1, n_points)), rng.random(n_points)
    scores = np.concatenate((knots, rng.random(40), [-1.0, 2.0]))
    result = computed(lambda xp, x: rows.interpolate(xp, x, constant(xp)(knots), constant(xp)(values)), x=scores)
    np.testing.assert_allclose(result, np.interp(scores, knots, values), rtol=0, atol=1e-12)


def test_graphs_multiply_matrices(rng):
    x, matrix = rng.random((5, 4)), rng.random((3, 4))
    result = computed(lambda xp, x: rows.product(xp, x, constant(xp)(matrix)), x=x)
    np.testing.assert_allclose(result, x @ matrix.T, rtol=1e-12)


def test_equal_constants_and_nodes_are_stored_once():
    graph = Graph()
    assert graph.asarray([1.0, 2.0]).name == graph.asarray([1.0, 2.0]).name
    assert graph.asarray([1, 2]).name != graph.asarray([1.0, 2.0]).name
    assert graph.asarray([[1.0, 2.0]]).name != graph.asarray([1.0, 2.0]).name
    x = GraphArray(graph, "x", (None, 3), "float64")
    assert graph.exp(x + 1.0).name == graph.exp(x + 1.0).name
    assert (graph.asarray([1.0, 2.0]) * 3.0).value.tolist() == [3.0, 6.0]


def test_model_says_what_it_is(rng):
    probs, labels = labelled_ensemble(rng, n_sources=3, n_samples=60)
    names = ["forest", "boosting", "network"]
    calibrator = vd.Temperature().fit(vd.Predictions(probs, labels, source_names=names))
    model = make_onnx(calibrator)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts == {
        "method": "temperature",
        "combine": "mean",
        "kind": "probs",
        "axes": "sources, samples, classes",
        "missing": "raise",
        "source_names": "forest\nboosting\nnetwork",
    }
    assert (model.producer_name, model.producer_version) == ("veridical", vd.__version__)
    assert model.ir_version == IR_VERSION
    assert model.opset_import[0].version == OPSET
    assert [output.name for output in model.graph.output] == ["probs", "confidence", "label"]


@pytest.mark.parametrize("n_samples", [1, 7])
def test_model_takes_any_number_of_samples(n_samples, rng):
    probs, labels = labelled_ensemble(rng, n_samples=60)
    calibrator = vd.Temperature().fit(probs, labels)
    model = make_onnx(calibrator, dtype="float64")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result = session.run(None, {"predictions": probs[:, :n_samples]})
    assert [array.shape for array in result] == [(n_samples, 4), (n_samples,), (n_samples,)]


@pytest.mark.parametrize("path", ["cal.json", "cal", "cal.onnx.txt", "cal.ONNX"])
def test_other_extensions_are_rejected(path):
    with pytest.raises(vd.errors.FileFormatError) as caught:
        check_onnx_target(path)
    assert str(caught.value) == f"ONNX models are not saved as {path!r}; use the extension .onnx."
