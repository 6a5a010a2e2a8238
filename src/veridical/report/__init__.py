"""One self-contained HTML page about an ensemble: numbers first (``prepare``), drawing after (``render``)."""

from veridical.report.data import ReportData
from veridical.report.page import Report, build_report

__all__ = ["Report", "ReportData", "build_report"]
