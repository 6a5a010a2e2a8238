"""Post-hoc calibrators: one family, one signature.  Names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator
    from veridical.calibrate.binning import HistogramBinning
    from veridical.calibrate.combined_only import (
        ConsensusPool,
        Identity,
        LabelKeepingConsensus,
        LinearPool,
        LogPool,
    )
    from veridical.calibrate.ece_optimisation import PAPER_SETTING, PTDE, OptHist, OptKDE, PTDEHist
    from veridical.calibrate.isotonic import IRM, IROvA, Isotonic
    from veridical.calibrate.linear_scaling import MatrixScaling, VectorScaling
    from veridical.calibrate.logistic import Platt
    from veridical.calibrate.registry import calibrators, full_name
    from veridical.calibrate.saving import load_calibrator
    from veridical.calibrate.spline import Spline
    from veridical.calibrate.temperature import EnsembleTemperature, Temperature
    from veridical.calibrate.truth_logit import TruthLogit

_MODULE_OF = {
    "Calibrator": "base",
    "ConsensusPool": "combined_only",
    "EnsembleTemperature": "temperature",
    "HistogramBinning": "binning",
    "IRM": "isotonic",
    "IROvA": "isotonic",
    "Identity": "combined_only",
    "Isotonic": "isotonic",
    "LabelKeepingConsensus": "combined_only",
    "LinearPool": "combined_only",
    "LogPool": "combined_only",
    "MatrixScaling": "linear_scaling",
    "OptHist": "ece_optimisation",
    "OptKDE": "ece_optimisation",
    "PAPER_SETTING": "ece_optimisation",
    "PTDE": "ece_optimisation",
    "PTDEHist": "ece_optimisation",
    "Platt": "logistic",
    "Spline": "spline",
    "Temperature": "temperature",
    "TruthLogit": "truth_logit",
    "VectorScaling": "linear_scaling",
    "calibrators": "registry",
    "full_name": "registry",
    "load_calibrator": "saving",
}

__all__ = [
    "IRM",
    "PAPER_SETTING",
    "PTDE",
    "Calibrator",
    "ConsensusPool",
    "EnsembleTemperature",
    "HistogramBinning",
    "IROvA",
    "Identity",
    "Isotonic",
    "LabelKeepingConsensus",
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

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF)
