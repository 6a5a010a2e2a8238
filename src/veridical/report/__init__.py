"""One self-contained HTML page about an ensemble: numbers first (``prepare``), drawing after (``render``)."""

from veridical.report.build import Report, build_report, calibrate_with_report
from veridical.report.data import ReportData

__all__ = ["Report", "ReportData", "build_report", "calibrate_with_report"]
