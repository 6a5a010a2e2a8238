"""From predictions to numbers: how good an ensemble is, which method helps it, what its sources are like.

Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.evaluation.abstaining import choose_threshold as choose_threshold
    from veridical.evaluation.applying import Calibrated as Calibrated
    from veridical.evaluation.applying import apply_calibrator as apply_calibrator
    from veridical.evaluation.auto import Auto as Auto
    from veridical.evaluation.calibrator_facts import CalibratorFacts as CalibratorFacts
    from veridical.evaluation.calibrator_facts import inspect_calibrator as inspect_calibrator
    from veridical.evaluation.comparison import MethodComparison as MethodComparison
    from veridical.evaluation.comparison import compare_calibrators as compare_calibrators
    from veridical.evaluation.compilation import CompiledKernels as CompiledKernels
    from veridical.evaluation.compilation import compile_kernels as compile_kernels
    from veridical.evaluation.evaluating import Evaluation as Evaluation
    from veridical.evaluation.evaluating import MethodScores as MethodScores
    from veridical.evaluation.evaluating import evaluate as evaluate
    from veridical.evaluation.facts import DataFacts as DataFacts
    from veridical.evaluation.fitting import Calibration as Calibration
    from veridical.evaluation.fitting import fit_calibrator as fit_calibrator
    from veridical.evaluation.inspection import Inspection as Inspection
    from veridical.evaluation.inspection import SourceFacts as SourceFacts
    from veridical.evaluation.inspection import inspect as inspect
    from veridical.evaluation.plugins import register as register
    from veridical.evaluation.source_value import Effect as Effect
    from veridical.evaluation.source_value import SourceValue as SourceValue
    from veridical.evaluation.source_value import SourceValues as SourceValues

#: Module -> the public names in it.
_NAMES_IN = {
    "abstaining": "choose_threshold",
    "applying": "Calibrated apply_calibrator",
    "auto": "Auto",
    "calibrator_facts": "CalibratorFacts inspect_calibrator",
    "plugins": "register",
    "comparison": "MethodComparison compare_calibrators",
    "compilation": "CompiledKernels compile_kernels",
    "facts": "DataFacts",
    "fitting": "Calibration fit_calibrator",
    "inspection": "Inspection SourceFacts inspect",
    "evaluating": "Evaluation MethodScores evaluate",
    "source_value": "Effect SourceValue SourceValues",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
