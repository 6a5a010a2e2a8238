"""A calibrator and a combiner of one's own pass every path there is."""

import importlib
import sys
from pathlib import Path

import dask.array
import numpy as np
import onnxruntime
import pytest
import torch
from calibration_cases import labelled_ensemble

import veridical as vd
from veridical.calibrate.registry import registered
from veridical.cli import run as run_command
from veridical.combine import COMBINERS
from veridical.errors import ParameterError, SavedFileError
from veridical.export import make_onnx

TOYS = '''
import numpy as np
import veridical as vd


@vd.register
class Toy(vd.calibrate.Calibrator):
    """Confidences to a fitted power, more where sources disagree."""

    name = "toy"
    summary = "A power of the confidence."
    needs_sources = True
    _state = ("power_",)

    def _fit(self, combined, labels):
        accuracy = combined.correct(labels).mean()
        self.power_ = float(np.log(accuracy) / np.log(combined.confidence.mean()))

    def formula(self, xp, combined):
        return xp.exp(self.power_ * xp.log(combined.confidence)) / (1 + 0.01 * combined.hv)


@vd.register
class Root(vd.combine.Combiner):
    """The mean of square roots."""

    name = "root"
    summary = "The mean of square roots, squared."

    def formula(self, xp, sources):
        return xp.sum(sources.probs**0.5, axis=0) ** 2.0
'''


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """A module in the working directory that registers them."""
    (tmp_path / "toys.py").write_text(TOYS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("toys")
    sys.modules.pop("toys", None)


@pytest.mark.parametrize("combine", ["mean", "atde", "consensus"])
def test_own_calibrator_passes_every_path(toys, combine, rng, tmp_path):
    probs, labels = labelled_ensemble(rng)
    fitted = toys.Toy(combine=combine).fit(probs, labels)
    fitted.save(tmp_path / "toy.json")
    loaded = vd.load_calibrator(tmp_path / "toy.json")
    expected = loaded.predict_all(probs)
    one = loaded.predict_all(probs[:, :1])
    tensor = torch.from_numpy(probs).requires_grad_()
    differentiated = loaded.predict_all(tensor)
    differentiated[1].sum().backward()
    assert torch.isfinite(tensor.grad).all()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = make_onnx(loaded, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    np.save(tmp_path / "probs.npy", probs)
    others = {
        "ONNX": session.run(None, {"predictions": probs}),
        "gradients": [result.detach().numpy() for result in differentiated],
        "blocks": loaded.predict_all(vd.scale.open(tmp_path / "probs.npy")),
        "Dask": [part.compute() for part in loaded.predict_all(dask.array.from_array(probs, chunks=(-1, 100, -1)))],
    }
    for what, results in others.items():
        for result, values in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, values, rtol=0, atol=1e-9, err_msg=what)
    np.testing.assert_allclose(one[0][0], expected[0][0], rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
def test_own_classes_are_compared_and_reported(toys, rng):
    predictions = vd.Predictions(*labelled_ensemble(rng))
    comparison = vd.compare_calibrators(predictions, methods=["temperature", "toy", "root+temperature"], n_splits=2)
    assert {"toy", "root+temperature"} <= set(comparison.methods)
    assert "toy" in vd.build_report(predictions, methods=["mean", "toy"]).html


@pytest.mark.filterwarnings("ignore::veridical.errors.VeridicalWarning")
def test_commands_import_plugins(toys, rng, tmp_path, capsys):
    probs, labels = labelled_ensemble(rng)
    vd.save(vd.Predictions(probs, labels), "predictions.npz")
    registered.pop("toy"), COMBINERS.pop("root"), sys.modules.pop("toys")
    command = ["calibrate", "predictions.npz", "--method", "toy", "--out", "toy.json", "--quiet"]
    assert run_command(command) == 2
    assert run_command([*command, "--plugin", "toys"]) == 0
    registered.pop("toy")
    with pytest.raises(SavedFileError, match="no method is called 'toy'"):
        vd.load_calibrator("toy.json")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("gone", "cannot be imported (No module named 'gone')"),
        ("", "is no name of a module"),
        (".", "is no name of a module"),
        (".toys", "is no name of a module"),
        ("a..b", "is no name of a module"),
        ("\0", "cannot be imported"),
        ("raises", "cannot be imported (it is broken)"),
        ("exits", "cannot be imported (1)"),
        ("silent", "registers nothing; call veridical.register in it"),
        ("json", "registers nothing"),  # imported long ago
    ],
)
def test_plugins_that_register_nothing_are_refused(toys, module, message, capsys):
    Path("raises.py").write_text("raise ZeroDivisionError('it is broken.\\nIndeed.')")
    Path("exits.py").write_text("raise SystemExit(1)")
    Path("silent.py").write_text("x = 1")
    assert run_command(["methods", "--plugin", module]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"Error: the plugin {module!r} {message}")
    assert captured.err.count("\n") == 1


def test_plugins_may_be_imported_twice(toys, capsys):
    assert run_command(["methods", "--plugin", "toys", "--plugin", "toys"]) == 0
    assert run_command(["methods", "--plugin", "toys"]) == 0


def test_unregistered_classes_are_not_saved(toys, rng, tmp_path):
    fitted = toys.Toy().fit(*labelled_ensemble(rng))
    registered.pop("toy")
    with pytest.raises(ParameterError, match=r"Toy is not registered.*veridical\.register\(Toy\)"):
        fitted.save(tmp_path / "toy.json")
    assert not (tmp_path / "toy.json").exists()


def test_own_metrics_are_known():
    @vd.register
    def mean_doubt(y_true, probs, *, sample_weight=None):
        """Mean distance from one."""
        return float(np.average(1 - np.asarray(probs), weights=sample_weight))

    scores = vd.evaluate(vd.Predictions([[[0.75, 0.25]] * 4], [0, 0, 1, 0]), methods=["mean"], floors=False)
    assert scores.methods[0].summary["mean_doubt"].value == 0.25


def test_names_and_classes_are_checked(toys):
    class Nameless(vd.calibrate.Calibrator):
        """Without a name."""

    class Taken(vd.calibrate.Calibrator):
        name = "temperature"
        summary = "Another one."

    for plugin, message in (
        (3, "neither a calibrator nor a combiner"),
        (Nameless, "has the name None"),
        (Taken, "is a name of the library"),
    ):
        with pytest.raises(ParameterError, match=message):
            vd.register(plugin)
    assert vd.register(toys.Toy) is toys.Toy
