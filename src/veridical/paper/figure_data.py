"""What the figures show, as numbers: computed here, drawn elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.stats

from veridical._json import to_plain
from veridical.calibrate import calibrators, full_name
from veridical.combine import discover
from veridical.metrics import bin_edges
from veridical.metrics.sample import Booleans, Floats
from veridical.paper.halves import Halves
from veridical.paper.inputs import Ensemble
from veridical.paper.methods import Method
from veridical.paper.names import EnsembleName
from veridical.paper.posthoc import posthoc_sources
from veridical.predictions.validation import check_choice

N_BINS = 15
_GRID = 60


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
        Before and after; NaN (None in JSON) in empty bins.
    """

    name: EnsembleName
    sources: int
    method: str
    edges: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]
    confidence: tuple[tuple[float, ...], ...]
    accuracy: tuple[tuple[float, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        stored: dict[str, Any] = to_plain(asdict(self))
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> BinsBeforeAfter:
        """What :meth:`to_dict` wrote."""
        pairs = {
            key: tuple(tuple(float("nan") if value is None else value for value in row) for row in stored[key])
            for key in ("counts", "confidence", "accuracy")
        }
        return cls(EnsembleName(**stored["name"]), stored["sources"], stored["method"], tuple(stored["edges"]), **pairs)


@dataclass(frozen=True)
class DisagreementByScore:
    """Figures A1 to A3: HV against the winning score.

    Attributes
    ----------
    name : EnsembleName
    sources : int
    score_edges, hv_edges : tuples of numbers
        Of the grid that samples are counted on.
    counts : tuple of tuples of numbers
        Samples per cell, (score, HV).
    centres : tuple of numbers
        Mean winning score in bins of equal mass.
    right, wrong : tuples of three tuples of numbers
        Lower quartile, median and upper quartile of HV there, among right and among wrong predictions; NaN where
        there are fewer than five.
    spearman : float
        Rank correlation of HV and winning score over all samples.
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

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        stored: dict[str, Any] = to_plain(asdict(self))
        return stored

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DisagreementByScore:
        """What :meth:`to_dict` wrote."""
        return cls(
            EnsembleName(**stored["name"]),
            stored["sources"],
            tuple(stored["score_edges"]),
            tuple(stored["hv_edges"]),
            _stored_rows(stored["counts"]),
            tuple(stored["centres"]),
            _stored_rows(stored["right"]),
            _stored_rows(stored["wrong"]),
            float("nan") if stored["spearman"] is None else stored["spearman"],
        )


def _stored_rows(rows: Sequence[Sequence[float | None]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float("nan") if value is None else value for value in row) for row in rows)


def bins_before_after(
    ensemble: Ensemble,
    *,
    sources: Sequence[int] | None = None,
    method: str = "opt-hist",
    seed: int = 0,
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
    seed : int
        Decides the halves.
    n_threads : int, optional
    """
    method = check_choice(full_name(method), calibrators(), "method")
    found = []
    for n in posthoc_sources(ensemble, sources):
        halves = Halves(ensemble.first(n), 1, seed)
        (scores,) = halves.run([Method("before", "identity"), Method(method, method)], n_threads)
        edges = bin_edges(scores[0].confidence, N_BINS)
        before_after = [_binned(one.confidence, one.correct, edges) for one in scores]
        counts, confidence, accuracy = zip(*before_after, strict=True)
        found.append(BinsBeforeAfter(ensemble.name, n, method, _numbers(edges), counts, confidence, accuracy))
    return found


def _binned(confidence: Floats, correct: Booleans, edges: Floats) -> tuple[tuple[float, ...], ...]:
    """Count, mean confidence and accuracy of bins (lo, hi]; what lies outside goes to the end bins."""
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    sums = [np.bincount(bins, weights=values, minlength=len(counts)) for values in (confidence, correct)]
    means = [np.divide(total, counts, out=np.full(len(counts), np.nan), where=counts > 0) for total in sums]
    return _numbers(counts), _numbers(means[0]), _numbers(means[1])


def disagreement_by_score(
    ensemble: Ensemble, *, sources: Sequence[int] | None = None, n_threads: int | None = None
) -> list[DisagreementByScore]:
    """The numbers of Figures A1 to A3, for each number of sources (all of them by default)."""
    assert ensemble.predictions.labels is not None
    found = []
    for n in posthoc_sources(ensemble, sources):
        mean = discover(ensemble.first(n), max_iter=0, n_threads=n_threads)
        hv = discover(ensemble.first(n), n_threads=n_threads).hv.astype(np.float64)
        score = np.minimum(mean.probs.max(axis=1).astype(np.float64), 1.0)
        correct = mean.prediction == ensemble.predictions.labels
        top = float(hv.max()) or 1.0
        counts, score_edges, hv_edges = np.histogram2d(score, hv, _GRID, [(min(score.min(), 0.99), 1.0), (0.0, top)])
        order = np.array_split(np.argsort(score, kind="stable"), min(N_BINS, len(score)))
        spread = len(np.unique(hv)) > 1 and len(np.unique(score)) > 1
        found.append(
            DisagreementByScore(
                ensemble.name,
                n,
                _numbers(score_edges),
                _numbers(hv_edges),
                tuple(_numbers(row) for row in counts),
                tuple(float(score[part].mean()) for part in order),
                _quartiles(hv, order, correct),
                _quartiles(hv, order, ~correct),
                float(scipy.stats.spearmanr(score, hv).statistic) if spread else float("nan"),
            )
        )
    return found


def _quartiles(hv: Floats, parts: Sequence[Any], among: Booleans) -> tuple[tuple[float, ...], ...]:
    few = 5
    chosen = [hv[part][among[part]] for part in parts]
    columns = [np.quantile(one, (0.25, 0.5, 0.75)) if len(one) >= few else np.full(3, np.nan) for one in chosen]
    return tuple(_numbers(row) for row in np.transpose(columns))


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
