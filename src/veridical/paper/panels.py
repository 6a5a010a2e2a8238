"""The numbers of Figures 3 and A1 to A3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.calibrate import calibrators, full_name
from veridical.evaluation.comparison import run_halves
from veridical.evaluation.curves import Disagreement
from veridical.evaluation.methods import resolve_method
from veridical.metrics import bin_edges, reliability_curve
from veridical.metrics.sample import Booleans, Floats
from veridical.paper.ensembles import Ensemble, EnsembleName
from veridical.paper.posthoc import posthoc_sources
from veridical.predictions.validation import check_choice, check_seed

Nested = tuple[tuple[float, ...], ...]

#: Bins of equal mass in both figures, and cells of the grid of HV and confidence.
N_BINS, _GRID_SHAPE = 15, (60, 60)
#: Quartiles of fewer numbers mean little.
_FEW = 5


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
    counts: Nested
    confidence: Nested
    accuracy: Nested


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
        columns = ([getattr(curve, name) for curve in curves] for name in ("counts", "confidence", "accuracy"))
        panels.append(BinsBeforeAfter(ensemble.name, n, method, tuple(edges.tolist()), *map(_nested, columns)))
    return panels


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
    counts: Nested
    centres: tuple[float, ...]
    right: Nested
    wrong: Nested
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
        parts = np.array_split(np.argsort(confidence, kind="stable"), min(N_BINS, len(confidence)))
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


def _quartiles(hv: Floats, parts: Sequence[Any], among: Booleans) -> Nested:
    groups = [hv[part][among[part]] for part in parts]
    columns = [np.quantile(hvs, (0.25, 0.5, 0.75)) if len(hvs) >= _FEW else np.full(3, np.nan) for hvs in groups]
    return _nested(np.transpose(columns))


def _nested(rows: Iterable[npt.NDArray[Any]]) -> Nested:
    return tuple(tuple(row.tolist()) for row in rows)
