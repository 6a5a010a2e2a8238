"""Figures of calibration and of sources: matplotlib functions that take and return Axes.

They accept arrays or results of veridical; reports are drawn with the same functions.
"""

from veridical.plots.calibration import confidence_histogram, reliability_diagram
from veridical.plots.lines import metric_sweep, risk_coverage
from veridical.plots.sources import dependence_matrix, hv_against_confidence, source_reliability, source_value
from veridical.plots.style import theme

__all__ = [
    "confidence_histogram",
    "dependence_matrix",
    "hv_against_confidence",
    "metric_sweep",
    "reliability_diagram",
    "risk_coverage",
    "source_reliability",
    "source_value",
    "theme",
]
