"""One self-contained HTML page about an ensemble: numbers (``prepare``), then figures and page (``html_page``)."""

from veridical.report.build import Report, build_report, calibrate_with_report
from veridical.report.data import ReportData

__all__ = ["Report", "ReportData", "build_report", "calibrate_with_report"]
