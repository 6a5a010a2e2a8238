"""The paper's figures, drawn with matplotlib; the same numbers give the same bytes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical._atomic import write_atomically
from veridical.errors import ParameterError
from veridical.metrics.registry import METRICS
from veridical.paper.figure_data import BinsBeforeAfter, DisagreementByScore
from veridical.paper.tables import Row, Table, column_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Blue, orange, green, and two more for fixed numbers of updates; told apart by colour-blind readers too.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
_MARKERS = ("o", "s", "^", "v", "D")
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "veridical",
    "savefig.dpi": 150,
}
#: What would change from run to run is left out of the file.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


#: What figures can be written as.
FIGURE_FORMATS = tuple(_METADATA)


def draw_figure2(table: Table) -> Figure:
    """Figure 2: each metric against the number of sources; crosses are the paper's own figures.

    Parameters
    ----------
    table : Table
        From :func:`veridical.paper.table1`.
    """
    import matplotlib
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row.name for row in table.rows))
    n_metrics = len(table.metrics)
    rows, columns = (2, (n_metrics + 1) // 2) if len(names) == 1 else (len(names), n_metrics)
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(2.9 * columns, 2.5 * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for k, name in enumerate(names):
            drawn = [row for row in table.rows if row.name == name]
            for j, metric in enumerate(table.metrics):
                _draw_metric(axes[k * n_metrics + j], drawn, metric)
                if len(names) > 1 and j == 0:
                    axes[k * n_metrics].set_title(str(name), loc="left", fontweight="bold")
        for spare in axes[len(names) * n_metrics :]:
            spare.set_axis_off()
        if len(names) == 1:
            figure.suptitle(str(names[0]), fontsize=10)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        return _settled(figure)


def _draw_metric(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    for k, method in enumerate(dict.fromkeys(row.shown_method for row in rows)):
        line = [row for row in rows if row.shown_method == method]
        colour = _COLOURS[k % len(_COLOURS)]
        sources = [row.sources for row in line]
        fixed = "update" in method
        axes.plot(
            sources,
            [row.values[metric].mean for row in line],
            color=colour,
            marker=_MARKERS[k % len(_MARKERS)],
            markersize=6 - k / 2,  # what coincides stays visible as a rim
            linewidth=1.2,
            linestyle="--" if fixed else "-",
            label=method,
        )
        known = [(row.sources, row.values[metric].published) for row in line if not fixed]
        printed = [(n, value.mean) for n, value in known if value is not None]
        if printed:
            axes.plot(*zip(*printed, strict=True), linestyle="none", marker="x", color=colour, markersize=6)
    unit = " (%)" if METRICS[metric].in_percent else ""
    arrow = "↓" if METRICS[metric].lower_is_better else "↑"
    axes.set_ylabel(f"{column_title(metric)}{unit} {arrow}")
    axes.set_xlabel("sources")
    axes.locator_params(axis="x", integer=True)
    axes.grid(alpha=0.25, linewidth=0.6)


def draw_figure3(panels: Sequence[BinsBeforeAfter]) -> Figure:
    """Figure 3: accuracy against confidence in fixed bins, before and after calibration, coloured by bin count."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(8.2, 3.4 * len(panels) + 0.4), layout="constrained")
        axes = figure.subplots(len(panels), 2, squeeze=False, sharex="row", sharey=True)
        for line, panel in zip(axes, panels, strict=True):
            most = max(max(counts) for counts in panel.counts)
            colours = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(0, most), "coolwarm")
            for k, (axis, when) in enumerate(zip(line, ("before", f"after {panel.method}"), strict=True)):
                _draw_bins(axis, panel, k, colours)
                axis.set_title(f"{panel.name}\n{panel.sources} sources, {when}")
            line[0].set_ylabel("accuracy")
            figure.colorbar(colours, ax=list(line), label="samples in bin", pad=0.01)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        return _settled(figure)


def _draw_bins(axes: Axes, panel: BinsBeforeAfter, k: int, colours: Any) -> None:
    edges = np.asarray(panel.edges)
    lowest = min(float(np.nanmin(panel.confidence)), float(edges[1]))
    lowest = max(0.0, np.floor(10 * lowest) / 10)
    lower, upper = np.maximum(edges[:-1], lowest), edges[1:]
    accuracy, counts = np.nan_to_num(panel.accuracy[k]), np.asarray(panel.counts[k])
    axes.bar(
        lower,
        accuracy,
        width=upper - lower,
        align="edge",
        color=colours.to_rgba(counts),
        edgecolor="#333333",
        linewidth=0.5,
    )
    axes.plot([0, 1], [0, 1], color="#333333", linewidth=1, linestyle="--", label="confidence = accuracy")
    axes.plot(
        panel.confidence[k],
        panel.accuracy[k],
        linestyle="none",
        marker="o",
        color="black",
        markersize=3.5,
        label="mean confidence and accuracy of a bin",
    )
    axes.set_xlim(lowest, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("winning score" if k == 0 else "calibrated confidence")


def draw_figure_a(panels: Sequence[DisagreementByScore]) -> Figure:
    """Figures A1 to A3: HV against the winning score, and what it adds where the score is the same."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(8.2, 3.4 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 2, squeeze=False)
        for (density, quartiles), panel in zip(axes, panels, strict=True):
            counts = np.ma.masked_equal(np.asarray(panel.counts).T, 0)
            scale = matplotlib.colors.LogNorm(1, max(float(counts.max()), 2.0))
            mesh = density.pcolormesh(panel.score_edges, panel.hv_edges, counts, norm=scale, rasterized=True)
            figure.colorbar(mesh, ax=density, label="samples")
            density.set_title(f"{panel.name}, {panel.sources} sources")
            density.text(
                0.97, 0.95, f"Spearman {panel.spearman:.3f}", ha="right", va="top", transform=density.transAxes
            )
            for values, label, colour in ((panel.right, "right", _COLOURS[0]), (panel.wrong, "wrong", _COLOURS[1])):
                low, middle, high = (np.asarray(row) for row in values)
                quartiles.fill_between(panel.centres, low, high, color=colour, alpha=0.25, linewidth=0)
                quartiles.plot(panel.centres, middle, color=colour, marker="o", markersize=3, label=label)
            quartiles.set_title("HV where the winning score is the same")
            quartiles.legend(title="prediction (median, quartiles)", title_fontsize=8)
            for axis in (density, quartiles):
                axis.set_xlabel("winning score")
                axis.set_ylabel("HV")
                axis.grid(alpha=0.25, linewidth=0.6)
        return _settled(figure)


def _settled(figure: Figure) -> Figure:
    """The figure with everything in its place: the layout is worked out once, not anew for every file format."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def figure_bytes(figure: Figure, form: str) -> bytes:
    """A figure as a file's content; the same figure gives the same bytes.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    form : {"svg", "png", "pdf"}
    """
    import matplotlib

    if form not in _METADATA:
        raise ParameterError(f"figures are not written as {form!r}; give a name that ends in .svg, .png or .pdf.")
    stream = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(stream, format=form, metadata=_METADATA[form])
    return stream.getvalue()


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG, PNG or PDF, by the ending of its name; whole or not at all."""
    target = Path(path)
    write_atomically(target, figure_bytes(figure, target.suffix.lstrip(".").lower()))
