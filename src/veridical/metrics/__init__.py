"""Metrics of predictions: calibration errors, proper scoring rules, selective prediction, noise floors and intervals.

Every metric takes ``(y_true, probs)``: integer labels with probabilities of shape (N, L), or booleans (was the
prediction right?) with one confidence per sample.  Modules are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from veridical._lazy import names_on_demand

if TYPE_CHECKING:
    from veridical.metrics import gradients
    from veridical.metrics.abstention import AbstentionThreshold, abstention_threshold
    from veridical.metrics.binned import bin_edges, classwise_ece, debiased_ece, ece
    from veridical.metrics.curve import ReliabilityCurve, reliability_curve
    from veridical.metrics.floors import NoiseFloor, noise_floor
    from veridical.metrics.intervals import Bootstrap, Comparison, bootstrap, compare
    from veridical.metrics.kde import ece_kde
    from veridical.metrics.ks import ks_error
    from veridical.metrics.proper import accuracy, brier, calibrated_nll, nll
    from veridical.metrics.registry import METRICS, SUMMARY_METRICS, Metric, get_metric
    from veridical.metrics.selective import aurc, error_auroc
    from veridical.metrics.smooth import smooth_ece
    from veridical.metrics.state import CalibrationState
    from veridical.metrics.state_summary import StateSummary
    from veridical.metrics.table import Summary, SummaryRow, summary
    from veridical.metrics.uncertainty import PredictiveUncertainty, predictive_uncertainty

_MODULE_OF = {
    "AbstentionThreshold": "abstention",
    "METRICS": "registry",
    "SUMMARY_METRICS": "registry",
    "Bootstrap": "intervals",
    "CalibrationState": "state",
    "Comparison": "intervals",
    "Metric": "registry",
    "NoiseFloor": "floors",
    "PredictiveUncertainty": "uncertainty",
    "ReliabilityCurve": "curve",
    "StateSummary": "state_summary",
    "Summary": "table",
    "SummaryRow": "table",
    "abstention_threshold": "abstention",
    "accuracy": "proper",
    "aurc": "selective",
    "bin_edges": "binned",
    "bootstrap": "intervals",
    "brier": "proper",
    "calibrated_nll": "proper",
    "classwise_ece": "binned",
    "compare": "intervals",
    "debiased_ece": "binned",
    "ece": "binned",
    "ece_kde": "kde",
    "error_auroc": "selective",
    "get_metric": "registry",
    "ks_error": "ks",
    "nll": "proper",
    "noise_floor": "floors",
    "predictive_uncertainty": "uncertainty",
    "reliability_curve": "curve",
    "smooth_ece": "smooth",
    "summary": "table",
}

__all__ = [
    "METRICS",
    "SUMMARY_METRICS",
    "AbstentionThreshold",
    "Bootstrap",
    "CalibrationState",
    "Comparison",
    "Metric",
    "NoiseFloor",
    "PredictiveUncertainty",
    "ReliabilityCurve",
    "StateSummary",
    "Summary",
    "SummaryRow",
    "abstention_threshold",
    "accuracy",
    "aurc",
    "bin_edges",
    "bootstrap",
    "brier",
    "calibrated_nll",
    "classwise_ece",
    "compare",
    "debiased_ece",
    "ece",
    "ece_kde",
    "error_auroc",
    "get_metric",
    "gradients",
    "ks_error",
    "nll",
    "noise_floor",
    "predictive_uncertainty",
    "reliability_curve",
    "smooth_ece",
    "summary",
]

__getattr__, __dir__ = names_on_demand(__name__, _MODULE_OF, modules=("gradients",))
