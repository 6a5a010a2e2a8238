"""What needs PyTorch, under the rule of ``rule.py``: data, networks, checkpoints, and ensembles of modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import often
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from odd_values import mostly, odd_values
from rule import check_call

import veridical as vd
from veridical import training

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.compiled


@hunted(10)
@given(st.data())
def test_networks_and_data_from_odd_arguments(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("data")
    labels = st.sampled_from(([0, 1, 0, 1], [0, 0, 0, 0], [0, -1, 0, 1], [0.5, 1, 0, 1]))
    arrays = {"train_images": np.zeros((4, 8, 8), np.uint8), "train_labels": data.draw(mostly(labels))}
    try:
        np.savez(folder / "images.npz", allow_pickle=True, **arrays)
    except Exception:  # what cannot be made into an array, or pickled, does not get into a file
        return
    path = data.draw(mostly(st.sampled_from((folder / "images.npz", folder))))
    split, limit = data.draw(mostly(often("train", ("test",)))), data.draw(mostly(often(None, (2,))))
    check_call("load_dataset", training.load_dataset, "npz", path, split, limit=limit)
    check_call("load_dataset", training.load_dataset, data.draw(odd_values()), path)
    check_call("find_checkpoints", training.find_checkpoints, path)
    check_call("load_ensemble", training.load_ensemble, path)
    check_call(
        "load_checkpoint", training.load_checkpoint, path, "resnet8", data.draw(mostly(st.just(2))), layout="veridical"
    )
    check_call(
        "load_checkpoints", lambda: list(training.load_checkpoints(data.draw(mostly(st.just([path]))), "resnet8", 2))
    )
    check_call("predict_dataset", training.predict_dataset, path, path, arch=data.draw(mostly(st.just("resnet8"))))


@hunted(10)
@given(st.data())
def test_build(data):
    arguments = [data.draw(mostly(st.just("resnet8"))), data.draw(mostly(st.sampled_from((2, 10))))]
    check_call("build", training.build, *arguments, in_channels=data.draw(mostly(st.sampled_from((1, 3)))))


@hunted(15)
@given(st.data())
def test_training_from_odd_arguments(tmp_path_factory, data):
    """Only what is refused: to train takes seconds, and tests/training does it."""
    images = training.ImageSet.of(np.zeros((4, 16, 16), np.uint8), np.array([0, 1, 0, 1]), n_classes=2)
    out = tmp_path_factory.mktemp("run") / "out"
    options: dict[str, Any] = {"out": out, "arch": "resnet8", "members": 1, "recipe": training.Recipe(epochs=1)}
    name = data.draw(
        st.sampled_from(
            ("out", "arch", "method", "members", "recipe", "random_state", "device", "precision", "progress")
        )
    )
    value = data.draw(odd_values().filter(lambda value: not (name in ("out", "device") and isinstance(value, str))))
    if value is None or callable(value) or (name in ("members", "random_state") and _is_number(value)):
        return
    options[name] = value
    check_call("train_ensemble", training.train_ensemble, images, **options)
    check_call("train_ensemble", training.train_ensemble, data.draw(odd_values()), out=out)
    check_call("ImageSet", training.ImageSet.of, data.draw(odd_values()), data.draw(odd_values()), n_classes=2)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer))


@hunted(15)
@given(st.data())
def test_collecting_predictions(data):
    rng = np.random.default_rng(0)
    models = [torch.nn.Linear(3, 2) for _ in range(2)]
    batches = [(torch.tensor(rng.normal(size=(4, 3)), dtype=torch.float32), torch.arange(4) % 2)]
    check_call(
        "collect_predictions",
        training.collect_predictions,
        data.draw(mostly(st.just(models))),
        data.draw(mostly(st.sampled_from((batches, [batches[0][0]], (batches[0][0], batches[0][1]))))),
        mc_samples=data.draw(mostly(often(None, (2,)))),
        kind=data.draw(mostly(often(None, ("logits", "probs")))),
        source_names=data.draw(mostly(often(None, (["a", "b"],)))),
        precision=data.draw(mostly(often("float32", ("bfloat16",)))),
        dtype=data.draw(mostly(often("float32", ("float64",)))),
    )


@hunted(15)
@given(st.data())
def test_ensemble_of_modules(data):
    torch.manual_seed(0)
    modules = [torch.nn.Linear(3, 2) for _ in range(2)]
    inputs, labels = torch.randn(12, 3), torch.arange(12) % 2
    method = data.draw(mostly(st.sampled_from((vd.Temperature(), vd.PTDE(), vd.Platt()))))
    kind = data.draw(mostly(often("logits", ("probs", "log_probs"))))
    ensemble = check_call(
        "torch.CalibratedEnsemble", vd.torch.CalibratedEnsemble, data.draw(mostly(st.just(modules))), method, kind
    )
    if ensemble is None:
        return
    batches = data.draw(mostly(st.sampled_from(([(inputs, labels)], [(inputs, labels[:3])], []))))
    if check_call("fit", ensemble.fit, batches) is not None:
        check_call("forward", ensemble, inputs)


@hunted(20)
@given(st.data())
def test_calibration_error(data):
    error = check_call(
        "CalibrationError",
        vd.torch.CalibrationError,
        data.draw(mostly(st.sampled_from(("ece", "ece_kde", "nll", "accuracy")))),
        kind=data.draw(mostly(often("probs", ("logits",)))),
        n_bins=data.draw(mostly(often(15, (1, 100)))),
        n_cells=data.draw(mostly(often(15360, (100,)))),
    )
    if error is None:
        return
    probs = torch.softmax(torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), dim=1)
    preds = data.draw(mostly(st.sampled_from((probs, probs[:, 0], probs[:0], probs.log()))))
    target = data.draw(mostly(st.sampled_from((torch.arange(6) % 3, torch.arange(6) < 3, torch.arange(5)))))
    check_call("update", error.update, preds, target)
    check_call("compute", error.compute)
