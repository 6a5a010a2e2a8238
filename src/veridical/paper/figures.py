"""The paper's figures, and figures as files; the same numbers give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical._atomic import as_path, write_atomically
from veridical.errors import ParameterError
from veridical.metrics.registry import METRICS
from veridical.paper.ensembles import check_each
from veridical.paper.panels import BinsBeforeAfter, DisagreementByScore
from veridical.paper.tables import Row, Table, column_title
from veridical.plots import style
from veridical.plots.style import FIGURE_FORMATS
from veridical.predictions.validation import check_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "^", "v", "D")
#: Blue, orange, green, and two more for fixed numbers of updates; colour-blind readers can tell them apart.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "veridical",
    "savefig.dpi": 150,
}


@contextmanager
def _new_figure(n_drawn: int, width: float, height: float) -> Iterator[Figure]:
    """A figure in the paper's style, whose layout is computed once and not for every file format."""
    import matplotlib
    from matplotlib.figure import Figure

    if not n_drawn:
        raise ParameterError("there are no results to draw; give at least one ensemble and one number of sources.")
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def draw_figure2(table: Table) -> Figure:
    """Figure 2: each metric against the number of sources; crosses are the paper's own figures.

    Parameters
    ----------
    table : Table
        From :func:`veridical.paper.table1`.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from veridical import paper
    >>> figure = paper.draw_figure2(paper.table1(paper.open_ensembles([]), sources=[2, 3]))
    >>> len(figure.get_axes()) > 5
    True
    """
    check_type(table, Table, "the table", "what veridical.paper.table1 returns")
    names = list(dict.fromkeys(row.name for row in table.rows))
    n_metrics = len(table.metrics)
    rows, columns = (2, (n_metrics + 1) // 2) if len(names) == 1 else (max(len(names), 1), n_metrics)
    with _new_figure(len(names), 2.9 * columns, 2.5 * rows + 0.6) as figure:
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
    return figure


def _draw_metric(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    scaled = METRICS[metric].scaled
    for k, method in enumerate(dict.fromkeys(row.shown_method for row in rows)):
        line = [row for row in rows if row.shown_method == method]
        colour = _COLOURS[k % len(_COLOURS)]
        sources = [row.sources for row in line]
        fixed = "update" in method
        axes.plot(
            sources,
            [scaled(row.values[metric].mean) for row in line],
            color=colour,
            marker=_MARKERS[k % len(_MARKERS)],
            markersize=6 - k / 2,  # what coincides stays visible as a rim
            linewidth=1.2,
            linestyle="--" if fixed else "-",
            label=method,
        )
        published = [(row.sources, row.values[metric].published) for row in line if not fixed]
        crosses = [(n, scaled(value.mean)) for n, value in published if value is not None]
        if crosses:
            axes.plot(*zip(*crosses, strict=True), linestyle="none", marker="x", color=colour, markersize=6)
    unit = " (%)" if METRICS[metric].in_percent else ""
    arrow = "↓" if METRICS[metric].lower_is_better else "↑"
    axes.set_ylabel(f"{column_title(metric)}{unit} {arrow}")
    axes.set_xlabel("sources")
    axes.locator_params(axis="x", integer=True)
    axes.grid(alpha=0.25, linewidth=0.6)


def draw_figure3(panels: Sequence[BinsBeforeAfter]) -> Figure:
    """Figure 3: accuracy against confidence in fixed bins, before and after calibration, coloured by bin count.

    Parameters
    ----------
    panels : sequence of BinsBeforeAfter
        From :func:`veridical.paper.bins_before_after`.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from veridical import paper
    >>> figure = paper.draw_figure3(paper.bins_before_after(paper.open_ensembles([])[0], sources=[3]))
    >>> figure.get_axes()[0].get_xlabel() != ""
    True
    """
    import matplotlib

    panels = check_each(panels, BinsBeforeAfter, "panel", "what veridical.paper.bins_before_after returns")
    with _new_figure(len(panels), 8.2, 3.4 * len(panels) + 0.4) as figure:
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
    return figure


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
    axes.set_xlabel("confidence" if k == 0 else "calibrated confidence")


def draw_figure_a(panels: Sequence[DisagreementByScore]) -> Figure:
    """Figures A1 to A3: HV against the confidence, and what it adds where the confidence is the same.

    Parameters
    ----------
    panels : sequence of DisagreementByScore
        From :func:`veridical.paper.disagreement_by_score`.

    Returns
    -------
    matplotlib Figure

    Examples
    --------
    >>> from veridical import paper
    >>> figure = paper.draw_figure_a(paper.disagreement_by_score(paper.open_ensembles([])[0], sources=[3]))
    >>> len(figure.get_axes()) > 1
    True
    """
    import matplotlib

    panels = check_each(panels, DisagreementByScore, "panel", "what veridical.paper.disagreement_by_score returns")
    with _new_figure(len(panels), 8.2, 3.4 * len(panels)) as figure:
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
            quartiles.set_title("HV where the confidence is the same")
            quartiles.legend(title="prediction (median, quartiles)", title_fontsize=8)
            for axis in (density, quartiles):
                axis.set_xlabel("confidence")
                axis.set_ylabel("HV")
                axis.grid(alpha=0.25, linewidth=0.6)
    return figure


def figure_path(path: str | Path) -> Path:
    """Where a figure may be written: under a name that ends in .svg, .png or .pdf."""
    target = as_path(path)
    if target.suffix.lower().lstrip(".") not in FIGURE_FORMATS:
        raise ParameterError(f"{str(target)!r} is not the name of a figure; choose one in .svg, .png or .pdf.")
    return target


def figure_bytes(figure: Figure, form: str) -> bytes:
    """A figure as the content of a file.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    form : {"svg", "png", "pdf"}
    """
    return style.figure_bytes(figure, form, _STYLE)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as SVG, PNG or PDF, by the ending of its name; whole or not at all.

    Parameters
    ----------
    figure : matplotlib Figure
    path : path

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from veridical import paper
    >>> paper.save_figure(Figure(), "figure.svg")
    """
    from matplotlib.figure import Figure

    target = figure_path(path)
    check_type(figure, Figure, "the figure", "a figure of matplotlib's")
    write_atomically(target, figure_bytes(figure, target.suffix.lstrip(".").lower()))
