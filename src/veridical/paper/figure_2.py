"""Figure 2: each metric by number of sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from veridical.metrics.registry import METRICS
from veridical.paper.figure_files import COLOURS, STYLE, check_drawable, settled
from veridical.paper.tables import Row, Table, column_title
from veridical.predictions.validation import check_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = ("o", "s", "^", "v", "D")


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
    import matplotlib
    from matplotlib.figure import Figure

    check_drawable(check_type(table, Table, "the table", "what veridical.paper.table1 returns").rows)
    names = list(dict.fromkeys(row.name for row in table.rows))
    n_metrics = len(table.metrics)
    rows, columns = (2, (n_metrics + 1) // 2) if len(names) == 1 else (len(names), n_metrics)
    with matplotlib.rc_context(STYLE):
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
        return settled(figure)


def _draw_metric(axes: Axes, rows: Sequence[Row], metric: str) -> None:
    scaled = METRICS[metric].scaled
    for k, method in enumerate(dict.fromkeys(row.shown_method for row in rows)):
        line = [row for row in rows if row.shown_method == method]
        colour = COLOURS[k % len(COLOURS)]
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
