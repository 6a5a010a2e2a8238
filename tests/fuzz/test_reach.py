"""Every public function, class and command is under the rule: a new one without a test here fails."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
import test_blocked_inputs
import test_command_lines
import test_functions

import veridical as vd
from veridical.cli.commands import COMMANDS

pytestmark = pytest.mark.compiled

MODULES = (
    "veridical", "veridical.calibrate", "veridical.combine", "veridical.data", "veridical.evaluation",
    "veridical.export", "veridical.metrics", "veridical.paper", "veridical.plots", "veridical.predictions",
    "veridical.report", "veridical.scale", "veridical.torch", "veridical.training",
)  # fmt: skip
NOTHING = "takes nothing"
INTERNAL = "takes what other functions of the package prepare"
#: Functions and classes that no table of functions names -> the module with their test, or why there is none.
TESTED_IN = {
    **dict.fromkeys(("load", "save"), "test_functions.py"),
    **dict.fromkeys(
        ("load_calibrator", "apply_calibrator", "choose_threshold", "inspect_calibrator"), "test_calibrators.py"
    ),
    **dict.fromkeys(("load_votes", "judge"), "test_jury_inputs.py"),
    **dict.fromkeys(("get_metric", "full_name", "theme", "compile_kernels"), "test_functions.py"),
    **dict.fromkeys(("Predictions", "CalibrationState"), "test_functions.py"),
    "CalibratedEnsemble": "test_ensemble_inputs.py",
    "CalibrationError": "test_networks.py",
    "open": "test_blocked_inputs.py",
    **dict.fromkeys(("make_onnx", "save_onnx"), "test_exported_models.py"),
    **dict.fromkeys(
        ("ImageSet", "build", "collect_predictions", "find_checkpoints", "load_checkpoint", "load_checkpoints",
         "load_dataset", "load_ensemble", "predict_dataset", "train_ensemble"), "test_networks.py",
    ),
    **dict.fromkeys(
        ("bins_before_after", "disagreement_by_score", "draw_figure2", "draw_figure3", "draw_figure_a", "format_table",
         "open_ensembles", "recognise", "reproduce_all", "save_figure", "table1", "table2", "table3", "table4"),
        "test_paper_inputs.py",
    ),
    **dict.fromkeys(
        ("calibrators", "load_demo", "load_demo_jury", "label_free_combiners", "label_keeping_combiners",
         "published_groups"), NOTHING,
    ),
    **dict.fromkeys(
        ("apply_label_free", "fit_combiner", "check_onnx_target", "to_dask", "Combined", "Combiner", "Calibrator",
         "ImageBatches"), INTERNAL,
    ),
    "BlockedPredictions": "what veridical.scale.open returns",
    "as_predictions": "what every function calls first",
    "calibrate_with_report": "what the command calibrate --report calls",
}  # fmt: skip
FOLDER = Path(__file__).parent


def public_entries() -> dict[str, object]:
    """The public functions and classes by their full names."""
    entries = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            entry = getattr(module, name)
            if callable(entry):
                entries[f"{module.__name__}.{name}"] = entry
    return entries


def is_result(entry: object) -> bool:
    """Whether it is a class whose objects the package makes, and users only read."""
    return inspect.isclass(entry) and (hasattr(entry, "__dataclass_fields__") or hasattr(entry, "_fields"))


def is_reached(entry: object, name: str) -> bool:
    in_tables = (*test_functions.FUNCTIONS.values(), *test_blocked_inputs.FUNCTIONS.values())
    if any(entry is function for function in (*in_tables, *vd.calibrators().values())):
        return True
    where = TESTED_IN.get(name)
    if where is None or not where.endswith(".py"):
        return where is not None  # a reason
    return name in (FOLDER / where).read_text()


def test_every_public_name_is_reached():
    missing = [
        full_name
        for full_name, entry in public_entries().items()
        if not is_reached(entry, full_name.rpartition(".")[2]) and not is_result(entry)
    ]
    assert missing == []


def test_every_command_is_reached():
    tried = {name.split()[0] for name in test_command_lines.commands()}
    assert set(COMMANDS) - tried <= set(test_command_lines.NOT_TRIED)


def test_no_name_is_listed_in_vain():
    public = {full_name.rpartition(".")[2] for full_name in public_entries()}
    assert set(TESTED_IN) <= public
    assert {name.split()[0] for name in test_command_lines.NOT_TRIED} <= set(COMMANDS)
