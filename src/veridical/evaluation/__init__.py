"""From predictions to numbers: how good an ensemble is, which method helps it, what its sources are like."""

from veridical.evaluation.auto import Auto
from veridical.evaluation.calibrator_facts import CalibratorFacts, inspect_calibrator
from veridical.evaluation.comparison import MethodComparison, compare_calibrators
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.fitting import Calibration, apply_calibrator, fit_calibrator
from veridical.evaluation.inspection import Inspection, SourceFacts, inspect
from veridical.evaluation.scores import Evaluation, MethodScores, evaluate

__all__ = [
    "Auto",
    "Calibration",
    "CalibratorFacts",
    "DataFacts",
    "Evaluation",
    "Inspection",
    "MethodComparison",
    "MethodScores",
    "SourceFacts",
    "apply_calibrator",
    "compare_calibrators",
    "evaluate",
    "fit_calibrator",
    "inspect",
    "inspect_calibrator",
]
