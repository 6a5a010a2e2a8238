"""Calibrated probabilities from an ensemble's disagreeing predictions.

Names are imported when they are first used, so that ``import veridical`` and ``veridical --help`` answer at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand
from veridical._version import __version__

if TYPE_CHECKING:
    from veridical import calibrate, combine, errors, metrics, paper, plots, scale, torch, training
    from veridical.calibrate import (
        IRM,
        PTDE,
        ConsensusPool,
        EnsembleTemperature,
        HistogramBinning,
        Identity,
        IROvA,
        Isotonic,
        LabelKeepingConsensus,
        LinearPool,
        LogPool,
        MatrixScaling,
        OptHist,
        OptKDE,
        Platt,
        PTDEHist,
        Spline,
        Temperature,
        TruthLogit,
        VectorScaling,
        calibrators,
        load_calibrator,
    )
    from veridical.combine import Consensus, Truth, consensus, discover
    from veridical.data import load_demo, load_demo_jury
    from veridical.ensemble import CalibratedEnsemble
    from veridical.evaluation import (
        Auto,
        apply_calibrator,
        choose_threshold,
        compare_calibrators,
        evaluate,
        fit_calibrator,
        inspect,
        inspect_calibrator,
    )
    from veridical.jury import JuryResult, fit_dawid_skene, judge, load_votes
    from veridical.predictions import Predictions
    from veridical.predictions.files import load, save
    from veridical.report import Report, build_report

#: Where each public name lives.
_NAMES_IN = {
    "predictions": ("Predictions",),
    "predictions.files": ("load", "save"),
    "data": ("load_demo", "load_demo_jury"),
    "jury": ("JuryResult", "fit_dawid_skene", "judge", "load_votes"),
    "ensemble": ("CalibratedEnsemble",),
    "report": ("Report", "build_report"),
    "combine": ("Consensus", "Truth", "consensus", "discover"),
    "calibrate": (
        "IRM",
        "PTDE",
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
        "load_calibrator",
    ),
    "evaluation": (
        "Auto",
        "apply_calibrator",
        "choose_threshold",
        "compare_calibrators",
        "evaluate",
        "fit_calibrator",
        "inspect",
        "inspect_calibrator",
    ),
}
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}
_MODULES = ("calibrate", "combine", "errors", "metrics", "paper", "plots", "scale", "torch", "training")

__all__ = [
    "IRM",
    "PTDE",
    "Auto",
    "CalibratedEnsemble",
    "Consensus",
    "ConsensusPool",
    "EnsembleTemperature",
    "HistogramBinning",
    "IROvA",
    "Identity",
    "Isotonic",
    "JuryResult",
    "LabelKeepingConsensus",
    "LinearPool",
    "LogPool",
    "MatrixScaling",
    "OptHist",
    "OptKDE",
    "PTDEHist",
    "Platt",
    "Predictions",
    "Report",
    "Spline",
    "Temperature",
    "Truth",
    "TruthLogit",
    "VectorScaling",
    "__version__",
    "apply_calibrator",
    "build_report",
    "calibrate",
    "calibrators",
    "choose_threshold",
    "combine",
    "compare_calibrators",
    "consensus",
    "discover",
    "errors",
    "evaluate",
    "fit_calibrator",
    "fit_dawid_skene",
    "inspect",
    "inspect_calibrator",
    "judge",
    "load",
    "load_calibrator",
    "load_demo",
    "load_demo_jury",
    "load_votes",
    "metrics",
    "paper",
    "plots",
    "save",
    "scale",
    "torch",
    "training",
]

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF, modules=_MODULES)
