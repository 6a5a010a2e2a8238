"""Public functions under the rule of ``rule.py``: metrics, plots, combiners, predictions, evaluation."""

from __future__ import annotations

import inspect
import json
import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cases import cases, often
from conftest import restored_registries
from hunting import hunted
from hypothesis import given
from hypothesis import strategies as st
from mutation import mutate_json
from odd_values import mostly, odd_values
from rule import check_call
from strategies import PARAMETERS, arguments

import veridical as vd
from veridical.backends.foreign import array_path
from veridical.evaluation.compilation import compile_kernels

matplotlib.use("Agg")

pytestmark = pytest.mark.compiled


def functions_of(module: Any) -> dict[str, Any]:
    """The public functions of a module by their full names."""
    public = ((name, getattr(module, name)) for name in module.__all__)
    return {f"{module.__name__}.{name}": entry for name, entry in public if inspect.isfunction(entry)}


#: Functions that are fuzzed elsewhere, or that take what other functions make.
ELSEWHERE = {
    "veridical.load": "test_mutated_files.py",
    "veridical.save": "test_saving_predictions",
    "veridical.load_calibrator": "test_mutated_files.py",
    "veridical.load_demo": "takes nothing",
    "veridical.load_demo_jury": "takes nothing",
    "veridical.load_votes": "test_mutated_files.py",
    "veridical.apply_calibrator": "test_calibrators.py",
    "veridical.choose_threshold": "test_calibrators.py",
    "veridical.inspect_calibrator": "test_calibrators.py",
    "veridical.calibrators": "takes nothing",
    "veridical.plots.theme": "test_names",
    "veridical.metrics.get_metric": "test_names",
    "veridical.combine.apply_label_free": "takes what a calibrator prepares",
    "veridical.combine.fit_combiner": "takes what a calibrator prepares",
    "veridical.combine.label_free_combiners": "takes nothing",
    "veridical.combine.label_keeping_combiners": "takes nothing",
    "veridical.combine.discover": "veridical.discover",
    "veridical.combine.consensus": "veridical.consensus",
}
FUNCTIONS = {
    name: function
    for module in (vd, vd.metrics, vd.plots, vd.combine)
    for name, function in functions_of(module).items()
    if name not in ELSEWHERE
}
#: Examples of functions that take seconds.
SLOW = {"veridical.build_report": 1, "veridical.compare_calibrators": 1, "veridical.fit_calibrator": 1}
SLOWER_THAN_USUAL = ("veridical.evaluate", "veridical.inspect", "veridical.plots.", "veridical.metrics.summary")


#: What some functions need where others of the same parameter name need something else.
OWN: dict[str, dict[str, Any]] = {
    "veridical.metrics.predictive_uncertainty": {"probs": lambda case: st.just(case.ensemble)},
    "veridical.metrics.noise_floor": {"metric": lambda case: st.sampled_from(("ece", "ece_kde", "ks_error", "nll"))},
    "veridical.metrics.compare": {
        "probs_a": lambda case: st.just(case.vectors),
        "probs_b": lambda case: st.just(case.scores[-1]),
        "doubt_a": lambda case: st.just(None),
        "doubt_b": lambda case: st.just(None),
    },
    "veridical.plots.source_value": {"value": lambda case: st.just(case.ensemble)},
    "veridical.plots.metric_sweep": {"points": lambda case: st.just(case.ensemble)},
    "veridical.build_report": {
        "out": lambda case: st.just(None),
        "parameters": lambda case: st.sampled_from((None, {})),
    },
}


def n_examples(name: str) -> int:
    """Cheap functions get most of the examples."""
    if name in SLOW:
        return SLOW[name]
    return 2 if name.startswith(SLOWER_THAN_USUAL) else 10


def test_every_public_parameter_has_a_strategy():
    """A new function comes under the rule when it becomes public."""
    for name, function in FUNCTIONS.items():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                assert parameter.name in PARAMETERS or parameter.name in OWN.get(name, {}), f"{name}: {parameter.name}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function = FUNCTIONS[name]

    @hunted(n_examples(name))
    @given(st.data())
    def keeps_the_rule(data):
        case = data.draw(cases())
        own = {parameter: strategy(case) for parameter, strategy in OWN.get(name, {}).items()}
        if data.draw(st.integers(0, 3)) == 0 and {"y_true", "probs"} <= set(inspect.signature(function).parameters):
            own |= {"y_true": st.just(case.outcomes), "probs": st.just(case.confidence)}
        try:
            options = data.draw(arguments(function, case, own))
            # Also arrays in host memory are computed by their library then, as those of other devices are.
            computed_by_library = data.draw(st.integers(0, 9)) == 0
            with array_path() if computed_by_library else nullcontext(), restored_registries():
                check_call(name, function, **options)
        finally:
            if ".plots." in name:
                plt.close("all")

    keeps_the_rule()


@hunted(40)
@given(st.data())
def test_predictions(data):
    case = data.draw(cases())
    predictions = check_call("Predictions", vd.Predictions, **data.draw(arguments(vd.Predictions, case)))
    if predictions is None:
        return
    for place in ("sources", "samples"):
        index = data.draw(
            st.one_of(st.sampled_from([None, 0, [0], slice(None, None, -1), [True], -1, []]), odd_values())
        )
        check_call("select", predictions.select, **{place: index})
    check_call("split", predictions.split, **data.draw(arguments(predictions.split, case)))
    check_call("with_labels", predictions.with_labels, data.draw(mostly(often(case.labels, [None]))))
    check_call("repr", repr, predictions)
    check_call("html", predictions._repr_html_)
    check_call("labelled", predictions.labelled)
    check_call("in_sample_shape", predictions.in_sample_shape, data.draw(mostly(often(case.confidence, [None]))))


@hunted(15)
@given(st.data())
def test_saving_predictions(tmp_path_factory, data):
    """What is saved is read again as it was, or refused with nothing left behind."""
    case = data.draw(cases(most_samples=12))
    arguments_ = {"values": case.ensemble, "labels": case.labels, "kind": case.kind}
    for name in ("source_names", "class_names", "sample_ids"):
        arguments_[name] = data.draw(PARAMETERS[name](case))
    predictions = check_call("Predictions", vd.Predictions, **arguments_)
    if predictions is None:
        return
    folder = tmp_path_factory.mktemp("saved")
    suffix = data.draw(st.sampled_from((".npz", ".csv", ".parquet", ".zarr", ".npy", "", ".txt")))
    written = check_call("save", vd.save, predictions, folder / f"{case.kind}{suffix}")
    if written is None:
        assert list(folder.iterdir()) == []
        return
    again = check_call("load", vd.load, written)
    assert again is not None
    np.testing.assert_array_equal(again.values.astype(np.float64), predictions.values.astype(np.float64), strict=False)
    if suffix != ".npy" and predictions.n_samples:
        np.testing.assert_array_equal(again.labels, predictions.labels)
        is_table = suffix in (".csv", ".parquet")
        assert again.class_names == _stored(predictions.class_names, is_table)
        assert again.source_names == _stored(predictions.source_names, is_table)


def _stored(names: tuple[str, ...] | None, is_table: bool) -> tuple[str, ...] | None:
    """The names that a file keeps: in a table, 0, 1, 2, ... stand for sources or classes without names."""
    return None if is_table and names == tuple(map(str, range(len(names or ())))) else names


@hunted(20)
@given(st.data())
def test_saving_to_odd_paths(tmp_path_factory, data):
    predictions = vd.Predictions(np.full((2, 3, 2), 0.5), [0, 1, 0])
    path = data.draw(odd_values())
    if isinstance(path, str):
        path = str(tmp_path_factory.mktemp("odd")) + "/" + path
    for function in (vd.load, vd.load_calibrator, vd.metrics.CalibrationState.load):
        check_call(function.__qualname__, function, path)
    check_call("save", vd.save, predictions, path)
    check_call("state.save", vd.metrics.CalibrationState().save, path if isinstance(path, str) else Path("/nowhere/x"))
    check_call(
        "load", vd.load, data.draw(odd_values()) if not isinstance(path, str) else path, labels=data.draw(odd_values())
    )


@hunted(20)
@given(odd_values())
def test_names(value):
    check_call("get_metric", vd.metrics.get_metric, value)
    check_call("full_name", vd.calibrate.full_name, value)
    check_call("theme", lambda: vd.plots.theme(value).__enter__())
    check_call("CalibrationState", vd.metrics.CalibrationState, value)
    check_call("from_dict", vd.metrics.CalibrationState.from_dict, value)


@hunted(20)
@given(st.data())
def test_calibration_state(data):
    case = data.draw(cases())
    state = check_call("CalibrationState", vd.metrics.CalibrationState, data.draw(st.sampled_from((1, 2, 100, 15360))))
    check_call("update", state.update, **data.draw(arguments(state.update, case)))
    check_call("compute", state.compute, **data.draw(arguments(state.compute, case)))
    check_call("noise_floors", state.noise_floors, n_draws=3, n_bins=data.draw(mostly(st.sampled_from((1, 15)))))
    check_call("merge", state.merge, data.draw(mostly(st.just(state))))
    check_call("again", vd.metrics.CalibrationState.from_dict, state.to_dict())


@hunted(40)
@given(st.data())
def test_damaged_states(data):
    """What a state refuses to be made of, it also refuses to merge with."""
    case = data.draw(cases(most_samples=12))
    state = vd.metrics.CalibrationState(data.draw(st.sampled_from((1, 20))))
    check_call("update", state.update, case.labels, case.vectors)
    rng = random.Random(data.draw(st.integers(0, 2**32 - 1)))
    damaged = mutate_json(json.dumps(state.to_dict()).encode(), rng)
    try:
        content = json.loads(damaged)
    except ValueError:
        return
    other = check_call("from_dict", vd.metrics.CalibrationState.from_dict, content)
    if other is not None:
        merged = check_call("merge", state.merge, other)
        for each in (other, merged):
            if each is not None:
                check_call("compute", each.compute)
                check_call("noise_floors", each.noise_floors, n_draws=2)


@hunted(3)
@given(odd_values())
def test_compiling(value):
    """Only what is refused: to compile takes seconds, and tests/serving does it."""
    if value is not None:
        check_call("compile_kernels", compile_kernels, everything=value, progress=value)
