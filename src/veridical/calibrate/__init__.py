"""Post-hoc calibrators: one family, one signature."""

from veridical.calibrate.auto import Auto
from veridical.calibrate.base import Calibrator
from veridical.calibrate.binning import HistogramBinning
from veridical.calibrate.ece_optimisation import PAPER_SETTING, PTDE, OptHist, OptKDE, PTDEHist
from veridical.calibrate.isotonic import IRM, IROvA, Isotonic
from veridical.calibrate.linear_scaling import MatrixScaling, VectorScaling
from veridical.calibrate.logistic import Platt
from veridical.calibrate.plain import Identity, LinearPool, LogPool
from veridical.calibrate.registry import calibrators, full_name
from veridical.calibrate.saving import load_calibrator
from veridical.calibrate.spline import Spline
from veridical.calibrate.temperature import EnsembleTemperature, Temperature
from veridical.calibrate.truth_logit import TruthLogit

__all__ = [
    "IRM",
    "PAPER_SETTING",
    "PTDE",
    "Auto",
    "Calibrator",
    "EnsembleTemperature",
    "HistogramBinning",
    "IROvA",
    "Identity",
    "Isotonic",
    "LinearPool",
    "LogPool",
    "MatrixScaling",
    "OptHist",
    "OptKDE",
    "PTDEHist",
    "Platt",
    "Spline",
    "Temperature",
    "TruthLogit",
    "VectorScaling",
    "calibrators",
    "full_name",
    "load_calibrator",
]
