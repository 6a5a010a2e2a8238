"""Figures on the sources: who is trusted, who agrees with whom, how many are enough, where they disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veridical._names import printable
from veridical.metrics import METRICS
from veridical.report.data import ReportData
from veridical.report.drawing import Drawing, cells, drawing_style, new_axes
from veridical.report.names import metric_text, shortened, shown_title
from veridical.report.style import N_LEVELS, colour, series_roles

#: A larger matrix could not be read; of more sources, those that agree least are shown.
MOST_IN_MATRIX = 48
_NAMED_UP_TO = 24


def draw_sources(data: ReportData) -> Drawing:
    """Trust against accuracy, or, without labels, against agreement with the mean."""
    sources, n_sources = data.inspection.sources, data.inspection.data.n_sources
    labelled = all(source.accuracy is not None for source in sources)
    shares = [source.accuracy if labelled and source.accuracy is not None else source.agreement for source in sources]
    what = "accuracy" if labelled else "agreement with the mean"
    outlier = data.inspection.outlier
    tips = {}
    with drawing_style():
        figure, axes = new_axes(4.5, 4.5, left=0.62)
        axes.axhline(100 / n_sources, color=colour("quiet"), linewidth=1, linestyle=(0, (4, 3)))
        for s, (source, share) in enumerate(zip(sources, shares, strict=True)):
            role = "wrong" if s == outlier and n_sources > 2 else "series-3"
            trust = 100 * source.mean_reliability
            (dot,) = axes.plot(
                100 * share, trust, "o", color=colour(role), markersize=6.5, markeredgecolor=colour("surface")
            )
            dot.set_gid(f"source-{s}")
            tips[f"source-{s}"] = f"{printable(source.name)}\n{what} {100 * share:.2f}%\nmean reliability {trust:.2f}%"
        axes.margins(0.1, 0.16)
        if n_sources > 2:
            middle = sum(axes.get_xlim()) / 2
            left = 100 * shares[outlier] < middle
            axes.annotate(
                shortened(sources[outlier].name, 28),
                (100 * shares[outlier], 100 * sources[outlier].mean_reliability),
                xytext=(7 if left else -7, 0),
                textcoords="offset points",
                ha="left" if left else "right",
                va="center",
            )
        axes.set(xlabel=f"{what} (%)", ylabel="mean reliability (%)")
        axes.ticklabel_format(useOffset=False)
        axes.grid(True)
    alt = f"Mean reliability of {n_sources} sources against their {what}. The table of sources holds the numbers."
    return Drawing("sources", alt, figure, tips)


def _shown_in_matrix(data: ReportData) -> list[int]:
    agreement = [source.agreement for source in data.inspection.sources]
    return sorted(np.argsort(agreement, kind="stable")[:MOST_IN_MATRIX].tolist())


def draw_agreement(data: ReportData) -> Drawing:
    """How often two sources name the same label."""
    shown = _shown_in_matrix(data)
    matrix = np.asarray(data.inspection.agreement)[np.ix_(shown, shown)]
    names = [printable(data.inspection.sources[s].name) for s in shown]
    between = matrix[~np.eye(len(shown), dtype=bool)]
    low, high = float(between.min()), float(between.max())
    step = (high - low) / N_LEVELS or 1.0
    levels = np.clip((matrix - low) / step, 0, N_LEVELS - 1).astype(int)
    roles = [[None if r == c else f"level-{levels[r, c]}" for c in range(len(shown))] for r in range(len(shown))]
    with drawing_style():
        size = 7.5 if len(shown) <= 16 else 6.2
        named = len(shown) <= _NAMED_UP_TO
        labels = [shortened(name, 18) if named else "" for name in names]
        margin = 0.16 + 0.0088 * size * max(len(label) for label in labels)
        figure, axes = new_axes(4.5, 4.5, left=margin, bottom=margin)
        positions = np.arange(len(shown) + 1)
        cells(axes, positions, positions, roles)
        axes.set(xlim=(0, len(shown)), ylim=(len(shown), 0))
        axes.set_xticks(positions[:-1] + 0.5, labels, rotation=90, fontsize=size)
        axes.set_yticks(positions[:-1] + 0.5, labels, fontsize=size)
        axes.tick_params(length=0, pad=2)
    hover = {"kind": "agreement", "names": names, "values": [[f"{100 * v:.1f}%" for v in row] for row in matrix]}
    least = np.unravel_index(np.argmin(np.where(np.eye(len(shown)), 2, matrix)), matrix.shape)
    alt = (
        f"How often two of {len(shown)} sources name the same label: from {100 * low:.1f}% "
        f"({names[least[0]]} and {names[least[1]]}) to {100 * high:.1f}%."
    )
    return Drawing("agreement", alt, figure, hover=hover)


def agreement_legend(data: ReportData) -> list[tuple[str, str]]:
    """(role of the colour, which shares have it)."""
    shown = _shown_in_matrix(data)
    matrix = np.asarray(data.inspection.agreement)[np.ix_(shown, shown)]
    between = matrix[~np.eye(len(shown), dtype=bool)]
    bounds = np.linspace(between.min(), between.max(), N_LEVELS + 1)
    if bounds[0] == bounds[-1]:
        return [("level-0", f"{100 * bounds[0]:.1f}%")]
    return [(f"level-{k}", f"{100 * bounds[k]:.1f}–{100 * bounds[k + 1]:.1f}%") for k in range(N_LEVELS)]


def draw_sweep(data: ReportData, metric: str, *, legend: bool = False) -> Drawing:
    """One metric against the number of sources."""
    methods = list(dict.fromkeys(point.method for point in data.sweep))
    roles = series_roles(methods, data.method)
    described = METRICS[metric]
    scale = 100 if described.in_percent else 1
    series, heights = [], []
    with drawing_style():
        figure, axes = new_axes(3.2, 2.45, left=0.55)
        for k, method in enumerate(methods):
            line = [(p.n_sources, scale * p.values[metric]) for p in data.sweep if p.method == method]
            heights += [height for _, height in line]
            (drawn,) = axes.plot(
                *zip(*line, strict=True),
                color=colour(roles[method]),
                marker="o",
                markersize=4.4 - k * 0.9,  # what coincides stays visible as a rim
                linewidth=1.9 - k * 0.4,
                label=shown_title(method),
            )
            drawn.set_gid(f"line-{method}")
            texts = [metric_text(metric, height / scale) if math.isfinite(height) else "infinite" for _, height in line]
            series.append({"id": method, "title": shown_title(method), "values": texts})
        axes.set(xlabel="sources", ylabel=f"{described.title} (%)" if described.in_percent else described.title)
        axes.ticklabel_format(useOffset=False)
        axes.locator_params(axis="x", integer=True)
        axes.locator_params(axis="y", nbins=5)
        axes.grid(True)
        if legend:
            axes.legend()
        steps = sorted({point.n_sources for point in data.sweep})
        hover = {
            "kind": "lines",
            "x": steps,
            "range": [float(end) for end in axes.get_xlim()],
            "heading": "{x} sources",
            "series": series,
        }
    last = "; ".join(f"{entry['title']} {entry['values'][-1]}" for entry in series)
    alt = f"{described.title} against the number of sources, {steps[0]} to {steps[-1]}. With all of them: {last}."
    return Drawing(f"sweep-{metric}", alt, figure, series={f"line-{m}": m for m in methods}, hover=hover)


def draw_disagreement(data: ReportData, side: str) -> Drawing:
    """HV against the winning score, of the right or of the wrong predictions, as a density."""
    found = data.disagreement
    counts: Sequence[Sequence[int]] = found.right if side == "right" else found.wrong
    most = max(max(line) for line in (*found.right, *found.wrong))
    roles = [[_density_role(count, most) for count in line] for line in counts]
    with drawing_style():
        figure, axes = new_axes(4.5, 3.4)
        cells(axes, found.score_edges, found.hv_edges, roles)
        middles = [(a + b) / 2 for a, b in zip(found.score_edges, found.score_edges[1:], strict=False)]
        axes.plot(middles, found.median, color=colour("series-1"), linewidth=1.5)
        axes.set(
            xlim=(found.score_edges[0], found.score_edges[-1]),
            ylim=(0, found.hv_edges[-1]),
            xlabel="winning score of the mean",
            ylabel="HV",
        )
        axes.grid(True)
    hover = {
        "kind": "density",
        "x": [round(edge, 4) for edge in found.score_edges],
        "y": [round(edge, 4) for edge in found.hv_edges],
        "right": found.right,
        "wrong": found.wrong,
        "labelled": data.evaluation is not None,
    }
    total = sum(sum(line) for line in counts)
    which = f"{total:,} {side} predictions" if data.evaluation is not None else f"{total:,} samples"
    correlation = _number(found.correlation)
    alt = f"Density of HV against the winning score of {which}. Rank correlation over all samples {correlation}."
    return Drawing(f"disagreement-{side}", alt, figure, hover=hover)


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.2f}"


def _density_role(count: int, most: int) -> str | None:
    """Levels by the logarithm: most cells hold few samples."""
    if not count:
        return None
    return f"level-{min(int(N_LEVELS * math.log(count) / math.log(most + 1)), N_LEVELS - 1)}"
