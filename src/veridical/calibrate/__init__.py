"""Post-hoc calibrators: one family, one signature.  Names are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator as Calibrator
    from veridical.calibrate.binning import HistogramBinning as HistogramBinning
    from veridical.calibrate.combined_only import ConsensusPool as ConsensusPool
    from veridical.calibrate.combined_only import Identity as Identity
    from veridical.calibrate.combined_only import LabelKeepingConsensus as LabelKeepingConsensus
    from veridical.calibrate.combined_only import LinearPool as LinearPool
    from veridical.calibrate.combined_only import LogPool as LogPool
    from veridical.calibrate.ece_optimisation import PAPER_SETTING as PAPER_SETTING
    from veridical.calibrate.ece_optimisation import PTDE as PTDE
    from veridical.calibrate.ece_optimisation import OptHist as OptHist
    from veridical.calibrate.ece_optimisation import OptKDE as OptKDE
    from veridical.calibrate.ece_optimisation import PTDEHist as PTDEHist
    from veridical.calibrate.isotonic import IRM as IRM
    from veridical.calibrate.isotonic import IROvA as IROvA
    from veridical.calibrate.isotonic import Isotonic as Isotonic
    from veridical.calibrate.linear_scaling import MatrixScaling as MatrixScaling
    from veridical.calibrate.linear_scaling import VectorScaling as VectorScaling
    from veridical.calibrate.logistic import Platt as Platt
    from veridical.calibrate.logistic import TruthLogit as TruthLogit
    from veridical.calibrate.registry import calibrators as calibrators
    from veridical.calibrate.registry import full_name as full_name
    from veridical.calibrate.saving import load_calibrator as load_calibrator
    from veridical.calibrate.spline import Spline as Spline
    from veridical.calibrate.temperature import EnsembleTemperature as EnsembleTemperature
    from veridical.calibrate.temperature import Temperature as Temperature

#: Module -> the public names in it.
_NAMES_IN = {
    "base": "Calibrator",
    "binning": "HistogramBinning",
    "combined_only": "ConsensusPool Identity LabelKeepingConsensus LinearPool LogPool",
    "ece_optimisation": "PAPER_SETTING PTDE OptHist OptKDE PTDEHist",
    "isotonic": "IRM IROvA Isotonic",
    "linear_scaling": "MatrixScaling VectorScaling",
    "logistic": "Platt TruthLogit",
    "registry": "calibrators full_name",
    "saving": "load_calibrator",
    "spline": "Spline",
    "temperature": "EnsembleTemperature Temperature",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN)
