"""Figures A1 to A3: HV against the confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from veridical.evaluation.curves import Disagreement
from veridical.metrics.sample import Booleans, Floats
from veridical.paper.ensembles import Ensemble, EnsembleName, check_each
from veridical.paper.figure_files import COLOURS, STYLE, check_drawable, settled
from veridical.paper.tables_2_to_4 import posthoc_sources

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_BINS = 15
_GRID_SHAPE = (60, 60)
#: Quartiles of fewer numbers mean little.
_FEW = 5


@dataclass(frozen=True)
class DisagreementByScore:
    """Figures A1 to A3: HV against the confidence.

    Attributes
    ----------
    name : EnsembleName
    sources : int
    score_edges, hv_edges : tuples of numbers
        Of the grid that samples are counted on.
    counts : tuple of tuples of numbers
        Samples per cell, (score, HV).
    centres : tuple of numbers
        Mean confidence in bins of equal mass.
    right, wrong : tuples of three tuples of numbers
        Lower quartile, median and upper quartile of HV there, among right and among wrong predictions; NaN where
        there are fewer than five.
    spearman : float
        Rank correlation of HV and confidence over all samples.

    Examples
    --------
    >>> from veridical import paper
    >>> (panel,) = paper.disagreement_by_score(paper.open_ensembles()[0], sources=[2])
    >>> panel.name.dataset
    'CIFAR10'
    """

    name: EnsembleName
    sources: int
    score_edges: tuple[float, ...]
    hv_edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]
    centres: tuple[float, ...]
    right: tuple[tuple[float, ...], ...]
    wrong: tuple[tuple[float, ...], ...]
    spearman: float


def disagreement_by_score(
    ensemble: Ensemble, *, sources: Sequence[int] | None = None, n_threads: int | None = None
) -> list[DisagreementByScore]:
    """The numbers of Figures A1 to A3, for each number of sources; the parameters are those of table 2.

    Parameters
    ----------
    ensemble : Ensemble
    sources : sequence of int, optional
    n_threads : int, optional

    Returns
    -------
    list of DisagreementByScore

    Examples
    --------
    >>> from veridical import paper
    >>> (panel,) = paper.disagreement_by_score(paper.open_ensembles([])[0], sources=[3])
    >>> panel.sources
    3
    """
    panels = []
    for n in posthoc_sources(ensemble, sources):
        engine = ensemble.engine(n, n_threads)
        mean = engine.combined("mean")
        confidence, hv, correct = mean.confidence, mean.hv, mean.correct(engine.labels)
        grid = Disagreement.of(hv, confidence, correct, shape=_GRID_SHAPE, shown_quantile=1.0)
        counts = np.array(grid.right, dtype=float) + np.array(grid.wrong)
        parts = np.array_split(np.argsort(confidence, kind="stable"), min(_N_BINS, len(confidence)))
        panels.append(
            DisagreementByScore(
                ensemble.name,
                n,
                grid.confidence_edges,
                grid.hv_edges,
                _nested(counts.T),
                tuple(float(confidence[part].mean()) for part in parts),
                _quartiles(hv, parts, correct),
                _quartiles(hv, parts, ~correct),
                grid.correlation,
            )
        )
    return panels


def _quartiles(hv: Floats, parts: Sequence[Any], among: Booleans) -> tuple[tuple[float, ...], ...]:
    groups = [hv[part][among[part]] for part in parts]
    columns = [np.quantile(hvs, (0.25, 0.5, 0.75)) if len(hvs) >= _FEW else np.full(3, np.nan) for hvs in groups]
    return _nested(np.transpose(columns))


def _nested(rows: npt.NDArray[Any]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in rows.tolist())


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
    from matplotlib.figure import Figure

    panels = check_drawable(
        check_each(panels, DisagreementByScore, "panel", "what veridical.paper.disagreement_by_score returns")
    )
    with matplotlib.rc_context(STYLE):
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
            for values, label, colour in ((panel.right, "right", COLOURS[0]), (panel.wrong, "wrong", COLOURS[1])):
                low, middle, high = (np.asarray(row) for row in values)
                quartiles.fill_between(panel.centres, low, high, color=colour, alpha=0.25, linewidth=0)
                quartiles.plot(panel.centres, middle, color=colour, marker="o", markersize=3, label=label)
            quartiles.set_title("HV where the confidence is the same")
            quartiles.legend(title="prediction (median, quartiles)", title_fontsize=8)
            for axis in (density, quartiles):
                axis.set_xlabel("confidence")
                axis.set_ylabel("HV")
                axis.grid(alpha=0.25, linewidth=0.6)
        return settled(figure)
