"""Every parameter of every public function gets every odd value, one at a time, while the others are as usual."""

from __future__ import annotations

import dataclasses
import inspect
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import test_functions
from cases import Case
from conftest import HUNT, restored_registries
from hunting import SEED
from hypothesis import find
from odd_values import MAKERS
from rule import check_call, counts
from strategies import ALWAYS, PARAMETERS

import veridical as vd
from veridical import paper, training
from veridical.export import make_onnx, save_onnx

torch = pytest.importorskip("torch")
matplotlib.use("Agg")
pytestmark = pytest.mark.compiled

#: Seconds that a call may take; what an odd value makes endless is a failure.
LIMIT = 60
#: One of so many odd values is tried for each parameter, another one for the next; all with VERIDICAL_HUNT=70.
ONE_OF = max(70 // max(HUNT, 1), 1)

#: How often something is repeated.
COUNTS = ("n_splits", "members", "mc_samples", "hist_steps", "kde_steps")

RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet([1.0, 1.0, 1.0], size=(3, 24))
LABELS = RNG.integers(0, 3, 24)
CASE = Case(
    ensemble=PROBS, scores=PROBS, kind="probs", labels=LABELS, places=LABELS, vectors=PROBS[0],
    confidence=PROBS[0].max(axis=-1), outcomes=RNG.random(24) < 0.7, n_sources=3, n_classes=3,
)  # fmt: skip
PREDICTIONS = vd.Predictions(PROBS, LABELS)
VOTES = np.where(RNG.random((4, 30)) < 0.8, RNG.integers(0, 3, 30), RNG.integers(0, 3, (4, 30)))
#: What keeps slow functions short, and what others need in place of the usual.
USUAL: dict[str, dict[str, Any]] = {
    "veridical.build_report": {"method": "mean", "methods": ["mean"], "intervals": False},
    "veridical.compare_calibrators": {"methods": ["temperature"], "n_splits": 1},
    "veridical.evaluate": {"methods": ["mean"], "floors": False, "intervals": False},
    "veridical.fit_calibrator": {"method": "temperature"},
    "veridical.judge": {"votes": VOTES},
    "veridical.fit_dawid_skene": {"votes": VOTES},
}
Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]


def _usual(name: str, function: Any) -> dict[str, Any]:
    own = test_functions.OWN.get(name, {})
    needed = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty or parameter.name in ALWAYS
        if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    strategies = {each: (own.get(each) or PARAMETERS[each])(CASE) for each in needed}
    usual = {each: find(strategy, lambda value: True) for each, strategy in strategies.items()}
    return {**usual, **USUAL.get(name, {})}


def _fit(method: Any) -> Callable[..., Any]:
    def fit(**parameters: Any) -> Any:
        return method(**parameters).fit(PROBS, LABELS).predict_proba(PROBS)

    fit.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return fit


def _functions() -> Calls:
    calls = {name: (function, _usual(name, function)) for name, function in test_functions.FUNCTIONS.items()}
    calls |= {f"{name} fitted": (_fit(method), {}) for name, method in vd.calibrators().items()}
    return calls


def _methods() -> Calls:
    fitted = vd.PTDE().fit(PROBS, LABELS)
    state = vd.metrics.CalibrationState(100).update(LABELS, PROBS[0])
    result = vd.judge(VOTES)
    x = {"X": PROBS}
    return {
        "Predictions": (vd.Predictions, {"values": PROBS, "labels": LABELS}),
        "Predictions.in_class_order": (PREDICTIONS.in_class_order, {}),
        "Predictions.in_sample_shape": (PREDICTIONS.in_sample_shape, {}),
        "Predictions.samples": (PREDICTIONS.samples, {"start": 0, "stop": 3}),
        "Predictions.select": (PREDICTIONS.select, {}),
        "Predictions.source_name": (PREDICTIONS.source_name, {}),
        "Predictions.split": (PREDICTIONS.split, {}),
        "Predictions.split_indices": (PREDICTIONS.split_indices, {}),
        "Predictions.with_labels": (PREDICTIONS.with_labels, {}),
        "Calibrator.fit": (vd.Temperature().fit, {**x, "y": LABELS}),
        "Calibrator.score": (fitted.score, {**x, "y": LABELS}),
        "Calibrator.predict": (fitted.predict, x),
        "Calibrator.predict_all": (fitted.predict_all, x),
        "Calibrator.predict_confidence": (fitted.predict_confidence, x),
        "Calibrator.predict_proba": (fitted.predict_proba, x),
        "Calibrator.save": (fitted.save, {}),
        "Calibrator.to_onnx": (fitted.to_onnx, {"path": "model.onnx"}),
        "Temperature.fit_state": (vd.Temperature().fit_state, {"state": state, "n_classes": 3}),
        "CalibrationState": (vd.metrics.CalibrationState, {}),
        "CalibrationState.compute": (state.compute, {}),
        "CalibrationState.from_dict": (vd.metrics.CalibrationState.from_dict, {}),
        "CalibrationState.load": (vd.metrics.CalibrationState.load, {}),
        "CalibrationState.merge": (lambda other: state.merge(other), {}),
        "CalibrationState.noise_floors": (state.noise_floors, {"n_draws": 3}),
        "CalibrationState.save": (state.save, {}),
        "CalibrationState.update": (vd.metrics.CalibrationState(9).update, {"y_true": LABELS, "probs": PROBS[0]}),
        "JuryResult.answer": (result.answer, {}),
        "JuryResult.save": (result.save, {}),
        "apply_calibrator": (vd.apply_calibrator, {"calibrator": fitted, "predictions": PROBS}),
        "choose_threshold": (vd.choose_threshold, {"calibrator": fitted, "predictions": PREDICTIONS, "max_risk": 0.5}),
        "inspect_calibrator": (vd.inspect_calibrator, {}),
        "load": (vd.load, {"path": "predictions.npz"}),
        "load_calibrator": (vd.load_calibrator, {}),
        "load_votes": (vd.load_votes, {"path": "votes.csv"}),
        "save": (vd.save, {"predictions": PREDICTIONS, "path": "saved.npz"}),
        "get_metric": (vd.metrics.get_metric, {}),
        "full_name": (vd.calibrate.full_name, {}),
        "make_onnx": (make_onnx, {"calibrator": fitted}),
        "save_onnx": (save_onnx, {"calibrator": fitted, "path": "model.onnx"}),
    }


def _blocked() -> Calls:
    scale, opened = vd.scale, vd.scale.open(PROBS, LABELS, kind="probs", block_memory=1 << 16)
    fitted = vd.Temperature().fit(PROBS, LABELS)
    of = {"predictions": opened}
    return {
        "scale.open": (scale.open, {"path": PROBS, "labels": LABELS}),
        "scale.discover": (scale.discover, of),
        "scale.consensus": (scale.consensus, of),
        "scale.evaluate": (scale.evaluate, {**of, "methods": ["mean"], "floors": False}),
        "scale.fit_calibrator": (scale.fit_calibrator, {**of, "method": "temperature"}),
        "scale.apply_calibrator": (scale.apply_calibrator, {**of, "calibrator": fitted}),
        "BlockedPredictions.with_labels": (opened.with_labels, {}),
    }


def _table2(ensembles, sources, n_splits, random_state=0, literal=False, extended=None, n_threads=None, progress=None):
    """The table with the options that its signature does not name."""
    options = {"sources": sources, "n_splits": n_splits, "random_state": random_state, "literal": literal}
    return paper.table2(ensembles, **options, extended=extended, n_threads=n_threads, progress=progress)


def _paper() -> Calls:
    ensembles = paper.open_ensembles(["predictions.npz"])
    table = paper.table1(ensembles, sources=[1])
    panels, bins = paper.disagreement_by_score(ensembles[0]), paper.bins_before_after(ensembles[0], method="histogram")
    return {
        "paper.recognise": (paper.recognise, {}),
        "paper.open_ensembles": (paper.open_ensembles, {"paths": ["predictions.npz"]}),
        "paper.table1": (paper.table1, {"ensembles": ensembles, "sources": [1]}),
        "paper.table2": (_table2, {"ensembles": ensembles, "sources": [1], "n_splits": 1}),
        "paper.reproduce_all": (paper.reproduce_all, {"paths": ["missing.npz"], "out": "all"}),
        "paper.disagreement_by_score": (paper.disagreement_by_score, {"ensemble": ensembles[0]}),
        "paper.bins_before_after": (paper.bins_before_after, {"ensemble": ensembles[0], "method": "histogram"}),
        "paper.draw_figure2": (paper.draw_figure2, {"table": table}),
        "paper.draw_figure3": (paper.draw_figure3, {"panels": bins}),
        "paper.draw_figure_a": (paper.draw_figure_a, {"panels": panels}),
        "paper.format_table": (paper.format_table, {"table": table}),
        "paper.save_figure": (paper.save_figure, {"figure": plt.figure(), "path": "figure.svg"}),
    }


def _start_training(**options: Any) -> Any:
    """A run that is complete: only what is refused is of interest, and what is not is found to be done."""
    usual = {"arch": "resnet8", "members": 1, "recipe": dataclasses.replace(training.RECIPES["one-cycle"], epochs=1)}
    return training.train_ensemble(**{**usual, **options})


def _load_all(**options: Any) -> Any:
    """The networks of all checkpoints, which are loaded one by one as they are asked for."""
    return list(training.load_checkpoints(**options))


_load_all.__signature__ = inspect.signature(training.load_checkpoints)  # type: ignore[attr-defined]
_start_training.__signature__ = inspect.signature(training.train_ensemble)  # type: ignore[attr-defined]


def _networks() -> Calls:
    modules = [torch.nn.Linear(3, 2) for _ in range(2)]
    inputs, labels = torch.ones(12, 3), torch.arange(12) % 2
    ensemble = vd.torch.CalibratedEnsemble(modules, vd.Temperature())
    error = vd.torch.CalibrationError()
    images = training.load_dataset("npz", "images.npz")
    recipe = dataclasses.replace(training.RECIPES["one-cycle"], epochs=1)
    training.train_ensemble(images, images, out="run", arch="resnet8", members=1, recipe=recipe)
    return {
        "torch.CalibratedEnsemble": (
            vd.torch.CalibratedEnsemble, {"modules": modules, "calibrator": vd.Temperature()}
        ),
        "torch.CalibratedEnsemble.fit": (ensemble.fit, {"batches": [(inputs, labels)]}),
        "torch.CalibrationError": (vd.torch.CalibrationError, {}),
        "torch.CalibrationError.update": (error.update, {"preds": torch.full((6, 3), 1 / 3), "target": labels[:6]}),
        "torch.CalibrationError.forward": (error.forward, {"preds": torch.full((6, 3), 1 / 3), "target": labels[:6]}),
        "torch.CalibrationError.load_state_dict": (vd.torch.CalibrationError().load_state_dict, {}),
        "torch.CalibrationError.merge_state": (vd.torch.CalibrationError().merge_state, {}),
        "ImageSet.of": (training.ImageSet.of, {"images": np.zeros((4, 16, 16), np.uint8), "labels": [0, 1, 0, 1]}),
        "ImageSet.first": (images.first, {}),
        "training.build": (training.build, {"arch": "resnet8", "n_classes": 2}),
        "training.collect_predictions": (
            training.collect_predictions, {"models": modules, "loader": [(inputs, labels)]},
        ),
        "training.load_dataset": (training.load_dataset, {"name": "npz", "data": "images.npz", "split": "train"}),
        "training.find_checkpoints": (training.find_checkpoints, {}),
        "training.load_ensemble": (training.load_ensemble, {}),
        "training.load_checkpoints": (
            _load_all, {"paths": training.find_checkpoints("run"), "arch": "resnet8", "n_classes": 2, "in_channels": 1}
        ),
        "training.train_ensemble": (_start_training, {"train": images, "out": "run"}),
        "training.load_checkpoint": (
            training.load_checkpoint,
            {"path": training.find_checkpoints("run")[0], "arch": "resnet8", "n_classes": 2, "in_channels": 1},
        ),
        "training.predict_dataset": (
            training.predict_dataset, {"checkpoints": "run", "data": "images.npz", "dataset": "npz", "split": "train"}
        ),
    }  # fmt: skip


GROUPS = {"functions": _functions, "methods": _methods, "blocked": _blocked, "paper": _paper, "networks": _networks}


@contextmanager
def time_limit(what: str) -> Iterator[None]:
    """Whatever takes longer ends in an error."""

    def stop(*_: Any) -> None:
        raise AssertionError(f"{what} takes more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("group", GROUPS)
def test_each_parameter(group, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vd.save(PREDICTIONS, "predictions.npz")
    rows = [f"{n},juror {s},{label}" for s, votes in enumerate(VOTES) for n, label in enumerate(votes)]
    Path("votes.csv").write_text("\n".join(["item,source,label", *rows]))
    np.savez("images.npz", train_images=np.zeros((4, 16, 16), np.uint8), train_labels=[0, 1, 0, 1])
    failures, turn = [], SEED
    for name, (function, usual) in GROUPS[group]().items():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            turn += 1
            for number, make in enumerate(MAKERS):
                if number % ONE_OF == turn % ONE_OF:
                    failures += _failures(name, function, usual, parameter.name, make)
    assert not failures, f"{len(failures)} failures:\n" + "\n".join(failures)


def _failures(name: str, function: Any, usual: dict[str, Any], parameter: str, make: Any) -> list[str]:
    value = make()
    if parameter == "progress" and callable(value):  # what a function of the caller's raises is the caller's
        return []
    if parameter in COUNTS and isinstance(value, int) and value > 10**6:  # it is as much work as it says
        return []
    try:
        with time_limit(name), restored_registries():
            check_call(name, function, **{**usual, parameter: value})
    except Exception as error:
        return [f"{name}({parameter}={_shown(value)}): {type(error).__name__}: {error}"[:300]]
    finally:
        plt.close("all")
    counts["examples"] += 1
    return []


def _shown(value: Any) -> str:
    try:
        return repr(value)[:60]
    except RuntimeError:
        return "<an object without a representation>"
