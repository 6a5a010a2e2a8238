"""Calibrated probabilities from an ensemble's disagreeing predictions.

Names are imported when they are first used, so that ``import veridical`` and ``veridical --help`` answer at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical import calibrate as calibrate
    from veridical import combine as combine
    from veridical import errors as errors
    from veridical import metrics as metrics
    from veridical import paper as paper
    from veridical import plots as plots
    from veridical import scale as scale
    from veridical import torch as torch
    from veridical import training as training
    from veridical._version import __version__ as __version__
    from veridical.calibrate import IRM as IRM
    from veridical.calibrate import PTDE as PTDE
    from veridical.calibrate import ConsensusPool as ConsensusPool
    from veridical.calibrate import EnsembleTemperature as EnsembleTemperature
    from veridical.calibrate import HistogramBinning as HistogramBinning
    from veridical.calibrate import Identity as Identity
    from veridical.calibrate import IROvA as IROvA
    from veridical.calibrate import Isotonic as Isotonic
    from veridical.calibrate import LabelKeepingConsensus as LabelKeepingConsensus
    from veridical.calibrate import LinearPool as LinearPool
    from veridical.calibrate import LogPool as LogPool
    from veridical.calibrate import MatrixScaling as MatrixScaling
    from veridical.calibrate import OptHist as OptHist
    from veridical.calibrate import OptKDE as OptKDE
    from veridical.calibrate import Platt as Platt
    from veridical.calibrate import PTDEHist as PTDEHist
    from veridical.calibrate import Spline as Spline
    from veridical.calibrate import Temperature as Temperature
    from veridical.calibrate import TruthLogit as TruthLogit
    from veridical.calibrate import VectorScaling as VectorScaling
    from veridical.calibrate import calibrators as calibrators
    from veridical.calibrate import load_calibrator as load_calibrator
    from veridical.combine import Consensus as Consensus
    from veridical.combine import Truth as Truth
    from veridical.combine import consensus as consensus
    from veridical.combine import discover as discover
    from veridical.data import load_demo as load_demo
    from veridical.data import load_demo_jury as load_demo_jury
    from veridical.ensemble import CalibratedEnsemble as CalibratedEnsemble
    from veridical.evaluation import Auto as Auto
    from veridical.evaluation import apply_calibrator as apply_calibrator
    from veridical.evaluation import choose_threshold as choose_threshold
    from veridical.evaluation import compare_calibrators as compare_calibrators
    from veridical.evaluation import evaluate as evaluate
    from veridical.evaluation import fit_calibrator as fit_calibrator
    from veridical.evaluation import inspect as inspect
    from veridical.evaluation import inspect_calibrator as inspect_calibrator
    from veridical.evaluation import register as register
    from veridical.jury import JuryResult as JuryResult
    from veridical.jury import fit_dawid_skene as fit_dawid_skene
    from veridical.jury import judge as judge
    from veridical.jury import load_votes as load_votes
    from veridical.predictions import Predictions as Predictions
    from veridical.predictions.files import load as load
    from veridical.predictions.files import save as save
    from veridical.report import Report as Report
    from veridical.report import build_report as build_report

#: Module -> the public names in it.
_NAMES_IN = {
    "_version": "__version__",
    "calibrate": (
        "IRM PTDE ConsensusPool EnsembleTemperature HistogramBinning Identity IROvA Isotonic "
        "LabelKeepingConsensus LinearPool LogPool MatrixScaling OptHist OptKDE Platt PTDEHist Spline "
        "Temperature TruthLogit VectorScaling calibrators load_calibrator"
    ),
    "combine": "Consensus Truth consensus discover",
    "data": "load_demo load_demo_jury",
    "ensemble": "CalibratedEnsemble",
    "evaluation": (
        "Auto apply_calibrator choose_threshold compare_calibrators evaluate fit_calibrator inspect inspect_calibrator "
        "register"
    ),
    "jury": "JuryResult fit_dawid_skene judge load_votes",
    "predictions": "Predictions",
    "predictions.files": "load save",
    "report": "Report build_report",
}

__getattr__, __dir__, __all__ = names_on_demand(
    __name__,
    _NAMES_IN,
    modules=("calibrate", "combine", "errors", "metrics", "paper", "plots", "scale", "torch", "training"),
)
