"""Labels that a method keeps lead strictly in its model, in the precision of the outputs, on the hardest inputs."""

import numpy as np
import onnxruntime
import pytest
from calibration_cases import KEEPING

import veridical as vd
from veridical.export import make_onnx

pytestmark = pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
COMBINERS = ("mean", "atde", "aconsensus")
CASES = [(name, combiner) for name in KEEPING for combiner in COMBINERS if combiner in vd.calibrators()[name].combiners]


def hard_ensemble(rng, n_sources, n_classes, n_each, dtype):
    """Small fractions, one-hot sources, two classes that nearly tie, unanimous sources, and rotated ones."""
    fractions = rng.integers(0, 4, (n_sources, n_each, n_classes)) + np.eye(n_classes)[0]
    one_hot = np.eye(n_classes)[rng.integers(0, n_classes, (n_sources, n_each))]
    nearly = rng.dirichlet(np.ones(n_classes), (n_sources, n_each))
    nearly[:, :, 0] = nearly[:, :, 1]
    nearly[0, :, 0] += 10.0 ** rng.integers(-17, -5, n_each)
    unanimous = np.repeat(rng.dirichlet(np.full(n_classes, 0.3), (1, n_each)), n_sources, axis=0)
    rotated = np.stack([np.roll(unanimous[0], s, axis=-1) for s in range(n_sources)])
    probs = np.concatenate([fractions, one_hot, nearly, unanimous, rotated], axis=1)
    return (probs / probs.sum(axis=-1, keepdims=True)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "combiner"), CASES)
def test_labels_lead_in_models(name, combiner, dtype, rng):
    probs = hard_ensemble(rng, 3, 4, 400, dtype)
    new = probs[:, 1::2]
    labels = np.where(rng.random(probs.shape[1]) < 0.6, probs.mean(axis=0).argmax(axis=1), rng.integers(0, 4, 2000))
    calibrator = vd.calibrators()[name](combine=combiner).fit(probs[:, ::2], labels[::2])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = make_onnx(calibrator, dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    results, _, predicted = session.run(None, {"predictions": new})
    np.testing.assert_array_equal(predicted, vd.discover(new, max_iter=0).prediction)
    np.testing.assert_array_equal(predicted, calibrator.predict(new))
    rest = np.where(np.eye(4, dtype=bool)[predicted], -1, results).max(axis=1)
    assert (results[np.arange(len(new[0])), predicted] > rest).all()
