"""From predictions to numbers: how good an ensemble is, which method helps it, what its sources are like.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.evaluation.abstaining import choose_threshold
    from veridical.evaluation.applying import Calibrated, apply_calibrator
    from veridical.evaluation.auto import Auto
    from veridical.evaluation.calibrator_facts import CalibratorFacts, inspect_calibrator
    from veridical.evaluation.comparison import MethodComparison, compare_calibrators
    from veridical.evaluation.compilation import CompiledKernels, compile_kernels
    from veridical.evaluation.facts import DataFacts
    from veridical.evaluation.fitting import Calibration, fit_calibrator
    from veridical.evaluation.inspection import Inspection, SourceFacts, inspect
    from veridical.evaluation.scores import Evaluation, MethodScores, evaluate
    from veridical.evaluation.source_value import Effect, SourceValue, SourceValues

_MODULE_OF = {
    "Auto": "auto",
    "Calibrated": "applying",
    "Calibration": "fitting",
    "CalibratorFacts": "calibrator_facts",
    "CompiledKernels": "compilation",
    "DataFacts": "facts",
    "Effect": "source_value",
    "Evaluation": "scores",
    "Inspection": "inspection",
    "MethodComparison": "comparison",
    "MethodScores": "scores",
    "SourceFacts": "inspection",
    "SourceValue": "source_value",
    "SourceValues": "source_value",
    "apply_calibrator": "applying",
    "choose_threshold": "abstaining",
    "compare_calibrators": "comparison",
    "compile_kernels": "compilation",
    "evaluate": "scores",
    "fit_calibrator": "fitting",
    "inspect": "inspection",
    "inspect_calibrator": "calibrator_facts",
}

__all__ = [
    "Auto",
    "Calibrated",
    "Calibration",
    "CalibratorFacts",
    "CompiledKernels",
    "DataFacts",
    "Effect",
    "Evaluation",
    "Inspection",
    "MethodComparison",
    "MethodScores",
    "SourceFacts",
    "SourceValue",
    "SourceValues",
    "apply_calibrator",
    "choose_threshold",
    "compare_calibrators",
    "compile_kernels",
    "evaluate",
    "fit_calibrator",
    "inspect",
    "inspect_calibrator",
]

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF)
