"""Metrics of predictions: calibration errors, proper scoring rules, selective prediction, noise floors and intervals.

Every metric takes ``(y_true, probs)``: integer labels with probabilities of shape (N, L), or booleans (was the
prediction right?) with one confidence per sample.  Modules are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.metrics import gradients as gradients
    from veridical.metrics.binned import bin_edges as bin_edges
    from veridical.metrics.binned import classwise_ece as classwise_ece
    from veridical.metrics.binned import debiased_ece as debiased_ece
    from veridical.metrics.binned import ece as ece
    from veridical.metrics.curve import ReliabilityCurve as ReliabilityCurve
    from veridical.metrics.curve import reliability_curve as reliability_curve
    from veridical.metrics.floors import NoiseFloor as NoiseFloor
    from veridical.metrics.floors import noise_floor as noise_floor
    from veridical.metrics.intervals import Bootstrap as Bootstrap
    from veridical.metrics.intervals import Comparison as Comparison
    from veridical.metrics.intervals import bootstrap as bootstrap
    from veridical.metrics.intervals import compare as compare
    from veridical.metrics.kde import ece_kde as ece_kde
    from veridical.metrics.ks import ks_error as ks_error
    from veridical.metrics.proper import accuracy as accuracy
    from veridical.metrics.proper import brier as brier
    from veridical.metrics.proper import calibrated_nll as calibrated_nll
    from veridical.metrics.proper import nll as nll
    from veridical.metrics.registry import METRICS as METRICS
    from veridical.metrics.registry import SUMMARY_METRICS as SUMMARY_METRICS
    from veridical.metrics.registry import Metric as Metric
    from veridical.metrics.registry import get_metric as get_metric
    from veridical.metrics.registry import register_metric as register_metric
    from veridical.metrics.selective import AbstentionThreshold as AbstentionThreshold
    from veridical.metrics.selective import abstention_threshold as abstention_threshold
    from veridical.metrics.selective import aurc as aurc
    from veridical.metrics.selective import error_auroc as error_auroc
    from veridical.metrics.smooth import smooth_ece as smooth_ece
    from veridical.metrics.state import CalibrationState as CalibrationState
    from veridical.metrics.state_summary import StateSummary as StateSummary
    from veridical.metrics.table import Summary as Summary
    from veridical.metrics.table import SummaryRow as SummaryRow
    from veridical.metrics.table import summary as summary
    from veridical.metrics.uncertainty import PredictiveUncertainty as PredictiveUncertainty
    from veridical.metrics.uncertainty import predictive_uncertainty as predictive_uncertainty

#: Module -> the public names in it.
_NAMES_IN = {
    "binned": "bin_edges classwise_ece debiased_ece ece",
    "curve": "ReliabilityCurve reliability_curve",
    "floors": "NoiseFloor noise_floor",
    "intervals": "Bootstrap Comparison bootstrap compare",
    "kde": "ece_kde",
    "ks": "ks_error",
    "proper": "accuracy brier calibrated_nll nll",
    "registry": "METRICS SUMMARY_METRICS Metric get_metric register_metric",
    "selective": "AbstentionThreshold abstention_threshold aurc error_auroc",
    "smooth": "smooth_ece",
    "state": "CalibrationState",
    "state_summary": "StateSummary",
    "table": "Summary SummaryRow summary",
    "uncertainty": "PredictiveUncertainty predictive_uncertainty",
}

__getattr__, __dir__, __all__ = names_on_demand(__name__, _NAMES_IN, modules=("gradients",))
