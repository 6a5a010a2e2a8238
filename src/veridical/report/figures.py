"""All figures of a report, for the page and for papers."""

from __future__ import annotations

from collections.abc import Iterator

from veridical.report.calibration_figures import draw_reliability, draw_risk
from veridical.report.data import ReportData
from veridical.report.drawing import Drawing
from veridical.report.prepare import SWEEP_METRICS
from veridical.report.source_figures import draw_agreement, draw_disagreement, draw_sources, draw_sweep


def all_figures(data: ReportData, *, legends: bool = False) -> Iterator[Drawing]:
    """Every figure that the numbers allow; with ``legends`` each can stand alone."""
    for panel in data.reliability:
        yield draw_reliability(data, panel)
    if data.risk:
        yield draw_risk(data, legend=legends)
    several = data.inspection.data.n_sources > 1
    if several:
        yield draw_sources(data)
        yield draw_agreement(data)
    if data.sweep:
        for metric in SWEEP_METRICS:
            yield draw_sweep(data, metric, legend=legends)
    if several:
        yield draw_disagreement(data, "right")
        if data.evaluation is not None:
            yield draw_disagreement(data, "wrong")
