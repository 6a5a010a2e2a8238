"""Figures on calibration: reliability diagrams with histograms, and risk against coverage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from veridical.report.data import ConfidenceHistogram, ReliabilityPanel, ReportData
from veridical.report.drawing import Drawing, drawing_style, new_axes
from veridical.report.names import shown_title
from veridical.report.style import LEVEL_BOUNDS, N_LEVELS, colour, level_role, series_roles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _lowest(data: ReportData, binning: str) -> float:
    """Where the axis of confidence begins in all diagrams: below the least of them, at a tenth."""
    panels = [panel for panel in data.reliability if panel.binning == binning]
    shown = [value for panel in panels for value in panel.confidence if not math.isnan(value)]
    return min(math.floor(10 * min(shown)) / 10, 0.8)


def most_in_bin(data: ReportData, binning: str) -> float:
    """The largest bin of any method, which has the strongest colour."""
    return max(max(panel.counts) for panel in data.reliability if panel.binning == binning)


def count_legend(data: ReportData, binning: str) -> list[tuple[str, str]]:
    """(role of the colour, which counts have it)."""
    most = most_in_bin(data, binning)
    bounds = [0, *(math.floor(bound * most) for bound in LEVEL_BOUNDS), round(most)]
    pairs = [(bounds[k] + 1, bounds[k + 1]) for k in range(N_LEVELS)]
    return [(f"level-{k}", f"{low:,}–{high:,}") for k, (low, high) in enumerate(pairs) if low <= high]


def draw_reliability(data: ReportData, panel: ReliabilityPanel) -> Drawing:
    """Accuracy against confidence per bin, coloured by count, with what chance alone would do; histogram below."""
    histogram = next(found for found in data.histograms if found.method == panel.method)
    title = shown_title(panel.method)
    lowest = _lowest(data, panel.binning)
    tips: dict[str, str] = {}
    with drawing_style():
        figure, axes = new_axes(4.5, 5.4, left=0.62, bottom=1.85)
        _draw_bins(axes, panel, most_in_bin(data, panel.binning), lowest, tips)
        below = figure.add_axes((0.62 / 4.5, 0.45 / 5.4, 1 - 0.74 / 4.5, 1.12 / 5.4), sharex=axes)
        _draw_histogram(below, histogram, tips)
        below.set_ylim(0, 1.08 * max(r + w for h in data.histograms for r, w in zip(h.right, h.wrong, strict=True)))
        axes.tick_params(labelbottom=False)
    scores = data.evaluation[panel.method] if data.evaluation else None
    ece = f" ECE {100 * scores.summary['ece'].value:.2f}%." if scores else ""
    alt = (
        f"Reliability diagram of {title}: accuracy against confidence in {len(panel.counts)} bins, with a histogram of "
        f"confidences.{ece} The table below holds the numbers."
    )
    return Drawing(f"reliability-{panel.method}-{panel.binning}", alt, figure, tips)


def bin_text(panel: ReliabilityPanel, b: int) -> str:
    """What hovering over a bin says."""
    count = round(panel.counts[b])
    where = f"Confidence {panel.edges[b]:.3f} to {panel.edges[b + 1]:.3f}"
    return (
        f"{where}\n{count:,} samples\nmean confidence {100 * panel.confidence[b]:.1f}%\n"
        f"accuracy {100 * panel.accuracy[b]:.1f}%\n"
        f"by chance {100 * panel.low[b]:.1f} to {100 * panel.high[b]:.1f}%"
    )


def _draw_bins(axes: Axes, panel: ReliabilityPanel, most: float, lowest: float, tips: dict[str, str]) -> None:
    for b, count in enumerate(panel.counts):
        left, right = max(panel.edges[b], lowest), panel.edges[b + 1]
        if not count or right <= left:
            continue
        role = level_role(count / most)
        (bar,) = axes.bar(
            left,
            panel.accuracy[b],
            right - left,
            align="edge",
            color=colour(role),
            edgecolor=colour("surface"),
            linewidth=0.8,
        )
        bar.set_gid(f"bin-{b}")
        tips[f"bin-{b}"] = bin_text(panel, b)
    axes.plot([lowest, 1], [lowest, 1], color=colour("quiet"), linewidth=1, linestyle=(0, (4, 3)))
    for b, count in enumerate(panel.counts):
        if not count:
            continue
        where = panel.confidence[b]
        (band,) = axes.plot(
            [where, where],
            [panel.low[b], panel.high[b]],
            color=colour("band"),
            linewidth=3.4,
            solid_capstyle="round",
        )
        (dot,) = axes.plot(where, panel.accuracy[b], "o", color=colour("ink"), markersize=3.6, zorder=5, clip_on=False)
        for artist, name in ((band, f"band-{b}"), (dot, f"dot-{b}")):
            artist.set_gid(name)
            tips[name] = tips[f"bin-{b}"]
    axes.set(xlim=(lowest, 1.004), ylim=(0, 1.02), ylabel="accuracy")
    axes.grid(True)


def _draw_histogram(axes: Axes, histogram: ConfidenceHistogram, tips: dict[str, str]) -> None:
    width = histogram.edges[1] - histogram.edges[0]
    for b, (right, wrong) in enumerate(zip(histogram.right, histogram.wrong, strict=True)):
        bottom = 0
        for side, count in (("right", right), ("wrong", wrong)):
            if not count:
                continue
            (bar,) = axes.bar(
                histogram.edges[b],
                count,
                width,
                bottom=bottom,
                align="edge",
                color=colour(side),
                edgecolor=colour("surface"),
                linewidth=0.6,
            )
            bar.set_gid(f"{side}-{b}")
            tips[f"{side}-{b}"] = (
                f"Confidence {histogram.edges[b]:.2f} to {histogram.edges[b + 1]:.2f}\n{right:,} right\n{wrong:,} wrong"
            )
            bottom += count
    axes.axvline(histogram.mean_confidence, color=colour("ink"), linewidth=1.2)
    axes.axvline(histogram.accuracy, color=colour("ink"), linewidth=1.2, linestyle=(0, (1, 1.4)))
    axes.set(xlabel="confidence", ylabel="samples")
    axes.locator_params(axis="y", nbins=3)


def draw_risk(data: ReportData, *, legend: bool = False) -> Drawing:
    """Error rate against the share of samples kept."""
    roles = series_roles([curve.score for curve in data.risk], data.method)
    with drawing_style():
        figure, axes = new_axes(5.2, 3.4)
        for curve in data.risk:
            (line,) = axes.plot(
                [100 * share for share in curve.coverage],
                [100 * risk for risk in curve.risk],
                color=colour(roles[curve.score]),
                linewidth=1.7,
                label=f"{curve.title} (AURC {100 * curve.aurc:.2f}%)",
            )
            line.set_gid(f"line-{curve.score}")
        axes.set(xlim=(0, 100), xlabel="samples kept, least doubtful first (%)", ylabel="wrong among them (%)")
        axes.set_ylim(bottom=0)
        axes.grid(True)
        if legend:
            axes.legend(loc="upper left")
    hover = {
        "kind": "lines",
        "x": [round(100 * share) for share in data.risk[0].coverage],
        "range": [0, 100],
        "heading": "{x}% kept",
        "series": [
            {"id": c.score, "title": c.title, "values": [f"{100 * risk:.2f}%" for risk in c.risk]} for c in data.risk
        ],
    }
    described = "; ".join(f"{curve.title}: AURC {100 * curve.aurc:.2f}%" for curve in data.risk)
    alt = f"Error rate against the share of samples kept, by what samples are ordered by. {described}."
    return Drawing("risk", alt, figure, series={f"line-{c.score}": c.score for c in data.risk}, hover=hover)
