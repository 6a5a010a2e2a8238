"""Figure 3: accuracy against confidence in fixed bins, before and after calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from veridical.calibrate import calibrators, full_name
from veridical.evaluation.methods import resolve_method
from veridical.evaluation.repeated_halves import run_halves
from veridical.metrics import bin_edges, reliability_curve
from veridical.paper.ensembles import Ensemble, EnsembleName, check_each
from veridical.paper.figure_files import STYLE, check_drawable, settled
from veridical.paper.tables_2_to_4 import posthoc_sources
from veridical.predictions.validation import check_choice, check_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_BINS = 15


@dataclass(frozen=True)
class BinsBeforeAfter:
    """Figure 3: confidence and accuracy in fixed bins, before and after calibration, on an evaluation half.

    Attributes
    ----------
    name : EnsembleName
    sources : int
    method : str
        The calibrator in between.
    edges : tuple of B + 1 numbers
        Equal mass before calibration; the same after.
    counts, confidence, accuracy : tuples of two tuples of B numbers
        Before and after; NaN in empty bins.

    Examples
    --------
    >>> from veridical import paper
    >>> (bins,) = paper.bins_before_after(paper.open_ensembles()[0], sources=[2])
    >>> len(bins.edges) - 1
    15
    """

    name: EnsembleName
    sources: int
    method: str
    edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]
    confidence: tuple[tuple[float, ...], ...]
    accuracy: tuple[tuple[float, ...], ...]


def bins_before_after(
    ensemble: Ensemble,
    *,
    sources: Sequence[int] | None = None,
    method: str = "opt-hist",
    random_state: int = 0,
    n_threads: int | None = None,
) -> list[BinsBeforeAfter]:
    """The numbers of Figure 3, for each number of sources.

    Parameters
    ----------
    ensemble : Ensemble
    sources : sequence of int, optional
        As in :func:`veridical.paper.table2`.
    method : str
        A registered calibrator; the paper shows opt-hist.
    random_state : int
        Decides the halves.
    n_threads : int, optional
        Results do not depend on it.

    Returns
    -------
    list of BinsBeforeAfter

    Examples
    --------
    >>> from veridical import paper
    >>> (ensemble,) = paper.open_ensembles([])
    >>> (panel,) = paper.bins_before_after(ensemble, sources=[3])
    >>> panel.method, panel.sources
    ('opt-hist', 3)
    """
    check_seed(random_state)
    method = check_choice(full_name(method), calibrators(), "method")
    methods = [resolve_method("identity"), resolve_method(method)]
    panels = []
    for n in posthoc_sources(ensemble, sources):
        (outcomes,) = run_halves(ensemble.engine(n, n_threads), methods, 1, random_state)
        samples = [outcome.stated for outcome in outcomes]
        edges = bin_edges(samples[0].confidence, N_BINS)
        curves = [reliability_curve(sample.correct, sample.confidence, edges=edges) for sample in samples]
        panels.append(
            BinsBeforeAfter(
                ensemble.name,
                n,
                method,
                tuple(edges.tolist()),
                tuple(tuple(curve.counts.tolist()) for curve in curves),
                tuple(tuple(curve.confidence.tolist()) for curve in curves),
                tuple(tuple(curve.accuracy.tolist()) for curve in curves),
            )
        )
    return panels


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
    from matplotlib.figure import Figure

    panels = check_drawable(
        check_each(panels, BinsBeforeAfter, "panel", "what veridical.paper.bins_before_after returns")
    )
    with matplotlib.rc_context(STYLE):
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
        return settled(figure)


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
