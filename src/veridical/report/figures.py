"""The figures of a report: drawn by ``veridical.plots``, with texts for hovering and for those who cannot see them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from veridical._names import printable
from veridical.evaluation.curves import ReliabilityPanel
from veridical.metrics import METRICS, SUMMARY_METRICS
from veridical.plots import calibration, lines, sources
from veridical.plots.style import shortened
from veridical.predictions.validation import Array
from veridical.report.data import ReportData
from veridical.report.svg import Drawing, new_axes
from veridical.report.tables import metric_text, shown_title

#: A larger matrix could not be read; of more sources, those that agree least are shown.
MOST_IN_MATRIX = 48


def all_figures(data: ReportData, *, legends: bool = False) -> Iterator[Drawing]:
    """Every figure that the numbers allow; with ``legends`` each can stand alone."""
    for panel in data.reliability:
        yield draw_reliability(data, panel)
    if data.risk:
        yield draw_risk(data, legend=legends)
    several = data.inspection.data.n_sources > 1
    if several:
        yield draw_sources(data)
    if has_agreement(data):
        yield draw_agreement(data)
    if data.inspection.value is not None:
        yield draw_source_value(data)
    if data.sweep:
        for metric in SUMMARY_METRICS:
            yield draw_sweep(data, metric, legend=legends)
    if several:
        yield draw_disagreement(data, "right")
        if data.evaluation is not None:
            yield draw_disagreement(data, "wrong")


def most_in_bin(data: ReportData, binning: str) -> float:
    """The largest bin of any method, which has the strongest colour."""
    return max(max(panel.counts) for panel in data.reliability if panel.binning == binning)


def draw_reliability(data: ReportData, panel: ReliabilityPanel) -> Drawing:
    """A reliability diagram with the histogram of confidences below."""
    histogram = next(histogram for histogram in data.histograms if histogram.method == panel.method)
    lowest = calibration.lowest_confidence([other for other in data.reliability if other.binning == panel.binning])
    figure, axes = new_axes(4.5, 5.4, left=0.62, bottom=1.85)
    most = most_in_bin(data, panel.binning)
    calibration.reliability_diagram(panel, lowest=lowest, most=most, legend=False, ax=axes)
    below = new_axes(4.5, 5.4, left=0.62, bottom=0.45, height=1.12, figure=figure, sharex=axes)[1]
    calibration.confidence_histogram(histogram, legend=False, ax=below)
    highest = max(r + w for other in data.histograms for r, w in zip(other.right, other.wrong, strict=True))
    below.set(xlim=axes.get_xlim(), ylim=(0, 1.08 * highest))
    axes.set_xlabel("")
    axes.tick_params(labelbottom=False)
    tips = {f"{mark}-{b}": bin_text(panel, b) for b in range(len(panel.counts)) for mark in ("bin", "band", "dot")}
    for b, (right, wrong) in enumerate(zip(histogram.right, histogram.wrong, strict=True)):
        where = f"Confidence {histogram.edges[b]:.2f} to {histogram.edges[b + 1]:.2f}"
        tips |= dict.fromkeys((f"right-{b}", f"wrong-{b}"), f"{where}\n{right:,} right\n{wrong:,} wrong")
    scores = data.evaluation[panel.method] if data.evaluation else None
    ece = f" ECE {100 * scores.summary['ece'].value:.2f}%." if scores else ""
    alt = (
        f"Reliability diagram of {shown_title(panel.method)}: accuracy against confidence in {len(panel.counts)} bins, "
        f"with a histogram of confidences.{ece} The table below holds the numbers."
    )
    return Drawing(f"reliability-{panel.method}-{panel.binning}", alt, figure, tips)


def bin_text(panel: ReliabilityPanel, b: int) -> str:
    """The numbers of a bin."""
    where = f"Confidence {panel.edges[b]:.3f} to {panel.edges[b + 1]:.3f}"
    return (
        f"{where}\n{round(panel.counts[b]):,} samples\nmean confidence {100 * panel.confidence[b]:.1f}%\n"
        f"accuracy {100 * panel.accuracy[b]:.1f}%\n"
        f"by chance {100 * panel.low[b]:.1f} to {100 * panel.high[b]:.1f}%"
    )


def draw_risk(data: ReportData, *, legend: bool = False) -> Drawing:
    """Error rate against the share of samples kept."""
    figure, axes = new_axes(5.2, 3.4)
    lines.risk_coverage(data.risk, chosen=data.method, legend=legend, ax=axes)
    hover = {
        "kind": "lines",
        "x": [round(100 * share) for share in data.risk[0].coverage],
        "range": [0, 100],
        "heading": "{x}% kept",
        "series": [
            {"id": c.ranking, "title": c.title, "values": [f"{100 * risk:.2f}%" for risk in c.risk]} for c in data.risk
        ],
    }
    described = "; ".join(f"{curve.title}: AURC {100 * curve.aurc:.2f}%" for curve in data.risk)
    alt = f"Error rate against the share of samples kept, by what samples are ordered by. {described}."
    return Drawing("risk", alt, figure, series={f"line-{c.ranking}": c.ranking for c in data.risk}, hover=hover)


def draw_sources(data: ReportData) -> Drawing:
    """Trust against accuracy, or, without labels, against agreement with the mean."""
    figure, axes = new_axes(4.5, 4.5, left=0.62)
    sources.source_reliability(data.inspection, ax=axes)
    shares, what = sources.shares_of(data.inspection)
    tips = {
        f"source-{s}": f"{printable(source.name)}\n{what} {100 * share:.2f}%\n"
        f"mean reliability {100 * source.mean_reliability:.2f}%"
        for s, (source, share) in enumerate(zip(data.inspection.sources, shares, strict=True))
        if not math.isnan(share)
    }
    alt = f"Mean reliability of {len(tips)} sources against their {what}. The table of sources holds the numbers."
    return Drawing("sources", alt, figure, tips)


def draw_source_value(data: ReportData) -> Drawing:
    """The loss of the mean without each source."""
    value = data.inspection.value
    assert value is not None
    longest = max(len(shortened(source.name, 18)) for source in value.sources)
    margin = 0.2 + 0.0088 * sources.letter_size(len(value.sources)) * longest
    figure, axes = new_axes(6.4, min(max(1.6, 0.7 + 0.2 * len(value.sources)), 9.0), left=margin)
    sources.source_value(value, ax=axes)
    tips = {
        f"{mark}-{s}": f"{printable(source.name)}\nwithout it NLL {source.nll_without.value:+.4f} "
        f"({source.nll_without.low:+.4f} to {source.nll_without.high:+.4f})"
        for s, source in enumerate(value.sources)
        for mark in ("interval", "value")
    }
    alt = f"What the mean of {len(value.sources)} sources loses in NLL without each. The table holds the numbers."
    return Drawing("source-value", alt, figure, tips)


def _shown_agreement(data: ReportData) -> tuple[Array, list[str]]:
    """The agreement of the sources that are shown, and their names."""
    agreement = [source.agreement for source in data.inspection.sources]
    shown = sorted(np.argsort(agreement, kind="stable")[:MOST_IN_MATRIX].tolist())  # NaN is last
    names = [printable(data.inspection.sources[s].name) for s in shown]
    return np.asarray(data.inspection.agreement)[np.ix_(shown, shown)], names


def has_agreement(data: ReportData) -> bool:
    """Whether two of the sources that are shown have samples in common."""
    matrix = _shown_agreement(data)[0]
    return not np.isnan(matrix[~np.eye(len(matrix), dtype=bool)]).all()


def agreement_legend(data: ReportData) -> list[tuple[str, str]]:
    """(role of the colour, which shares have it)."""
    matrix = _shown_agreement(data)[0]
    return sources.matrix_legend(matrix, sources.round_limits(matrix))


def draw_agreement(data: ReportData) -> Drawing:
    """How often two sources name the same label."""
    matrix, names = _shown_agreement(data)
    longest = max(len(shortened(name, 18)) for name in names) if len(names) <= sources.NAMED_UP_TO else 0
    margin = 0.16 + 0.0088 * sources.letter_size(len(names)) * longest
    figure, axes = new_axes(4.5, 4.5, left=margin, bottom=margin)
    sources.dependence_matrix(matrix, names, limits=sources.round_limits(matrix), legend=False, ax=axes)
    texts = [["no samples in common" if np.isnan(v) else f"{100 * v:.1f}%" for v in row] for row in matrix]
    hover = {"kind": "agreement", "names": names, "values": texts}
    between = np.where(np.eye(len(names)), np.nan, matrix)
    least = np.unravel_index(np.nanargmin(between), matrix.shape)
    alt = (
        f"How often two of {len(names)} sources name the same label: from {100 * np.nanmin(between):.1f}% "
        f"({names[least[0]]} and {names[least[1]]}) to {100 * np.nanmax(between):.1f}%."
    )
    return Drawing("agreement", alt, figure, hover=hover)


def draw_sweep(data: ReportData, metric: str, *, legend: bool = False) -> Drawing:
    """One metric against the number of sources."""
    figure, axes = new_axes(3.2, 2.45, left=0.55)
    lines.metric_sweep(data.sweep, metric, chosen=data.method, legend=legend, ax=axes)
    steps = sorted({point.n_sources for point in data.sweep})
    methods = list(dict.fromkeys(point.method for point in data.sweep))
    series: list[dict[str, Any]] = [
        {
            "id": method,
            "title": shown_title(method),
            "values": [_sweep_text(metric, p.values[metric]) for p in data.sweep if p.method == method],
        }
        for method in methods
    ]
    hover = {
        "kind": "lines",
        "x": steps,
        "range": [float(end) for end in axes.get_xlim()],
        "heading": "{x} sources",
        "series": series,
    }
    title, last = METRICS[metric].title, "; ".join(f"{entry['title']} {entry['values'][-1]}" for entry in series)
    alt = f"{title} against the number of sources, {steps[0]} to {steps[-1]}. With all of them: {last}."
    return Drawing(f"sweep-{metric}", alt, figure, series={f"line-{m}": m for m in methods}, hover=hover)


def _sweep_text(metric: str, value: float) -> str:
    return metric_text(metric, value) if math.isfinite(value) else "infinite"


def draw_disagreement(data: ReportData, side: str) -> Drawing:
    """HV against the confidence of the mean, of the right or of the wrong predictions, as a density."""
    grid = data.disagreement
    figure, axes = new_axes(4.5, 3.4)
    sources.hv_against_confidence(grid, side=side, ax=axes)
    hover = {
        "kind": "density",
        "x": [round(edge, 4) for edge in grid.confidence_edges],
        "y": [round(edge, 4) for edge in grid.hv_edges],
        "right": grid.right,
        "wrong": grid.wrong,
        "labelled": data.evaluation is not None,
    }
    total = sum(sum(line) for line in (grid.right if side == "right" else grid.wrong))
    which = f"{total:,} {side} predictions" if data.evaluation is not None else f"{total:,} samples"
    correlation = "undefined" if math.isnan(grid.correlation) else f"{grid.correlation:.2f}"
    alt = f"Density of HV against the mean's confidence of {which}. Rank correlation over all samples {correlation}."
    return Drawing(f"disagreement-{side}", alt, figure, hover=hover)
