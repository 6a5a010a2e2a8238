"""Parts of ONNX graphs against NumPy: tables, searches, projections; and what a model says about itself."""

import naive
import numpy as np
import onnx
import onnxruntime
import pytest
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.export import check_onnx_target, make_onnx
from veridical.export.combining import project
from veridical.export.graph import IR_VERSION, OPSET, Graph, Tensor, interpolate, padded, search


def computed(make, n_classes=4, **inputs):
    """What onnxruntime makes of the graph that ``make(graph, *tensors)`` writes."""
    graph = Graph(n_classes)
    kinds = {"f": onnx.TensorProto.DOUBLE, "i": onnx.TensorProto.INT64, "b": onnx.TensorProto.BOOL}
    result = make(graph, *(Tensor(graph, name) for name in inputs))
    nodes = [*graph.nodes, onnx.helper.make_node("Identity", [result.name], ["result"])]
    info = onnx.helper.make_tensor_value_info
    entries = [info(name, kinds[array.dtype.kind], list(array.shape)) for name, array in inputs.items()]
    body = onnx.helper.make_graph(nodes, "test", entries, [onnx.ValueInfoProto(name="result")], graph.constants)
    model = onnx.helper.make_model(body, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(["result"], inputs)[0]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("n_edges", [1, 2, 3, 7, 8, 9])
def test_search_equals_searchsorted(right, n_edges, rng):
    edges = np.sort(rng.integers(0, 20, n_edges) / 20.0)
    scores = np.concatenate((edges, edges + 1e-9, rng.random(30), [-1.0, 2.0]))
    table = padded([edges], np.inf)[0]
    places = computed(lambda graph, x: search(graph, table, x, right=right), x=scores)
    np.testing.assert_array_equal(places, np.searchsorted(edges, scores, side="right" if right else "left"))


def test_padded_tables_have_a_common_length_and_an_end():
    tables = padded([np.array([1.0, 2.0, 3.0]), np.array([4.0])], np.inf)
    assert tables.tolist() == [[1, 2, 3, np.inf], [4, np.inf, np.inf, np.inf]]
    assert padded([np.arange(4.0)], -1.0).shape == (1, 8)


@pytest.mark.parametrize("n_points", [1, 2, 5, 8])
def test_interpolate_equals_interp(n_points, rng):
    thresholds = np.cumsum(rng.uniform(0.05, 0.1, n_points))
    values = rng.random(n_points)
    scores = np.concatenate((thresholds, rng.random(40), [-1.0, 2.0]))
    result = computed(lambda graph, x: interpolate(graph, x, [thresholds], [values]), x=scores)
    np.testing.assert_allclose(result, np.interp(scores, thresholds, values), rtol=0, atol=1e-12)


def test_interpolate_uses_a_table_for_each_class(rng):
    thresholds = [np.array([0.2, 0.8]), np.array([0.5]), np.array([0.1, 0.2, 0.9])]
    values = [np.array([0.0, 1.0]), np.array([0.3]), np.array([0.1, 0.6, 0.7])]
    scores = rng.random((25, 3))
    result = computed(lambda graph, x: interpolate(graph, x, thresholds, values), 3, x=scores)
    expected = [np.interp(scores[:, l], thresholds[l], values[l]) for l in range(3)]
    np.testing.assert_allclose(result, np.stack(expected, axis=1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("margin", [0.0, 1e-6, 0.1])
def test_project_equals_its_plain_twin(margin, rng):
    z = np.concatenate((rng.dirichlet(np.ones(4), 30), np.eye(4), np.full((4, 4), 0.25)))
    winner = rng.integers(0, 4, len(z))
    result = computed(lambda graph, x, mask: project(x, mask, margin), z=z, mask=np.eye(4, dtype=bool)[winner])
    expected = [naive.project(list(row), c, margin) for row, c in zip(z, winner, strict=True)]
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_softmax_of_large_scores_is_finite():
    scores = np.array([[1e4, 1e4 - 1.0, -1e4], [0.0, 0.0, 0.0]])
    result = computed(lambda graph, x: x.softmax(), 3, x=scores)
    np.testing.assert_allclose(result, [naive.softmax(row) for row in scores.tolist()], rtol=0, atol=1e-12)


def test_tensors_compute_as_python_reads(rng):
    a, b = rng.random((5, 4)) + 0.1, rng.random((5, 4)) + 0.1
    result = computed(lambda graph, x, y: (2.0 * x + y / x - 1.0) * (1.0 - y), a=a, b=b)
    np.testing.assert_allclose(result, (2 * a + b / a - 1) * (1 - b), rtol=1e-12)
    np.testing.assert_array_equal(computed(lambda graph, x, y: x < y, a=a, b=b), a < b)
    np.testing.assert_array_equal(computed(lambda graph, x: x.argmax(-1), a=a)[:, 0], a.argmax(axis=1))
    np.testing.assert_allclose(computed(lambda graph, x: x.sum(-1), a=a), a.sum(axis=1, keepdims=True))


def test_equal_constants_are_stored_once():
    graph = Graph(3)
    first, second = graph.constant([1.0, 2.0]), graph.constant([1.0, 2.0])
    assert first.name == second.name
    assert graph.constant([1, 2], "int64").name != first.name
    assert graph.constant([[1.0, 2.0]]).name != first.name
    assert len(graph.constants) == 3


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
