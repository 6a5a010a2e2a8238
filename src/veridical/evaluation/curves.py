"""Numbers behind figures: reliability bins, confidence histograms, risk and coverage, HV grids, metric sweeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.stats

from veridical.evaluation.engine import Engine
from veridical.evaluation.source_sweep import sweep_sources
from veridical.metrics import reliability_curve
from veridical.metrics.binned import MOST_BINS
from veridical.metrics.sample import Sample
from veridical.metrics.selective import aurc_of, risk_at_coverage
from veridical.metrics.table import summary_of
from veridical.predictions.validation import Array, check_integer

Numbers = tuple[float, ...]

#: Steps of HV and of confidence.
_GRID_SHAPE = (32, 40)
#: The mean of equal numbers differs from them by rounding; HV up to this is not disagreement.
HV_ROUNDING = 1e-9
#: The few samples with the largest HV would stretch the axis; they are counted in its last row.
_SHOWN_QUANTILE = 0.995
_COVERAGE = np.arange(1, 101) / 100
_MOST_STEPS = 10


def floats(values: Iterable[Any]) -> Numbers:
    """Numbers as Python floats."""
    return tuple(float(value) for value in values)


@dataclass(frozen=True)
class ReliabilityPanel:
    """One method's reliability diagram.

    Attributes
    ----------
    method : str
    binning : {"mass", "width"}
        "mass": bins with equally many samples before calibration, kept where they are for every method, as in the
        paper's Figure 3.  "width": equally wide bins.
    edges : B + 1 numbers
    counts, confidence, accuracy, low, high : B numbers each
        Samples, mean confidence, share of right predictions, and where that share would fall by chance if the
        confidences were right; NaN in empty bins.
    """

    method: str
    binning: str
    edges: Numbers
    counts: Numbers
    confidence: Numbers
    accuracy: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, method: str, binning: str, sample: Sample, edges: Array) -> ReliabilityPanel:
        """The diagram of a sample in fixed bins."""
        curve = reliability_curve(sample.correct, sample.confidence, edges=edges, groups=sample.group)
        columns = (curve.edges, curve.counts, curve.confidence, curve.accuracy, curve.low, curve.high)
        return cls(method, binning, *(floats(column) for column in columns))


@dataclass(frozen=True)
class ConfidenceHistogram:
    """How often a method states which confidence, in equally wide bins, for right and wrong predictions."""

    method: str
    edges: Numbers
    right: tuple[int, ...]
    wrong: tuple[int, ...]
    mean_confidence: float
    accuracy: float

    @classmethod
    def of(cls, method: str, sample: Sample, n_bins: int = 20) -> ConfidenceHistogram:
        """The histogram of a sample."""
        edges = np.linspace(0, 1, check_integer(n_bins, "n_bins", 1, MOST_BINS) + 1)
        right, wrong = (
            tuple(np.histogram(sample.confidence[side], edges)[0].tolist())
            for side in (sample.correct, ~sample.correct)
        )
        return cls(method, floats(edges), right, wrong, sample.mean(sample.confidence), sample.mean(sample.correct))


@dataclass(frozen=True)
class RiskCurve:
    """Error rate among the least doubtful samples, by the share of samples that is kept.

    Attributes
    ----------
    ranking : str
        What samples are ordered by: the confidence of the method of that name, or "hv".
    title : str
    coverage, risk : numbers
    aurc : float
        Area under the curve.
    """

    ranking: str
    title: str
    coverage: Numbers
    risk: Numbers
    aurc: float

    @classmethod
    def of(cls, ranking: str, title: str, sample: Sample, doubt: Array | None = None) -> RiskCurve:
        """The curve of a sample, by ``doubt`` or, where it is None, by confidence."""
        ranked = Sample(sample.confidence, sample.correct, doubt=doubt)
        return cls(ranking, title, floats(_COVERAGE), floats(risk_at_coverage(ranked, _COVERAGE)), aurc_of(ranked))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, where the ranking is called "score"."""
        return {"score" if key == "ranking" else key: value for key, value in asdict(self).items()}


@dataclass(frozen=True)
class Disagreement:
    """HV against the confidence of the mean, on a grid.

    Attributes
    ----------
    confidence_edges, hv_edges : numbers
        HV beyond the last edge (by default the 99.5% quantile) is counted in the last row.
    right, wrong : rows of counts, one row per step of HV
        Without labels all samples are in ``right``.
    median : numbers
        Median HV per column of the grid; NaN where it is empty.
    correlation : float
        Spearman's; NaN where HV or the confidence is the same for all samples.
    """

    confidence_edges: Numbers
    hv_edges: Numbers
    right: tuple[tuple[int, ...], ...]
    wrong: tuple[tuple[int, ...], ...]
    median: Numbers
    correlation: float

    @classmethod
    def of(
        cls,
        hv: Array,
        confidence: Array,
        right: Array | None,
        *,
        shape: tuple[int, int] = _GRID_SHAPE,
        shown_quantile: float = _SHOWN_QUANTILE,
    ) -> Disagreement:
        """The grid of one HV and one confidence per sample; its shape is (steps of HV, steps of confidence)."""
        n_rows, n_columns = shape
        quantile = float(np.quantile(hv, shown_quantile))
        top = quantile if quantile > HV_ROUNDING else 1.0
        confidence_edges = np.linspace(min(float(confidence.min()), 0.99), 1.0, n_columns + 1)
        hv_edges = np.linspace(0.0, top, n_rows + 1)
        column = _position(confidence, confidence_edges)
        cell = _position(hv, hv_edges) * n_columns + column
        right = np.ones(len(hv), dtype=bool) if right is None else right
        grids = [np.bincount(cell[side], minlength=n_rows * n_columns).reshape(shape) for side in (right, ~right)]
        inside = [hv[column == c] for c in range(n_columns)]
        return cls(
            confidence_edges=floats(confidence_edges),
            hv_edges=floats(hv_edges),
            right=tuple(tuple(line) for line in grids[0].tolist()),
            wrong=tuple(tuple(line) for line in grids[1].tolist()),
            median=tuple(float(np.median(values)) if len(values) else float("nan") for values in inside),
            correlation=rank_correlation(hv, confidence),
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, where the edges of the confidence are called "score_edges"."""
        return {"score_edges" if key == "confidence_edges" else key: value for key, value in asdict(self).items()}


def _position(values: Array, edges: Array) -> Array:
    """In which step between the edges each value lies."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)


def rank_correlation(hv: Array, confidence: Array) -> float:
    """Spearman's correlation; NaN where HV or the confidence is the same for all samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.ConstantInputWarning)  # the result is NaN
        return float(scipy.stats.spearmanr(hv, confidence).statistic) if len(hv) > 1 else float("nan")


@dataclass(frozen=True)
class SweepPoint:
    """Metrics of one way to combine the first ``n_sources`` sources, on all samples."""

    method: str
    n_sources: int
    values: dict[str, float]


def sweep_points(engine: Engine) -> tuple[SweepPoint, ...]:
    """Metrics of the mean, TDE and aTDE for about ten numbers of sources; none without labels or with one source."""
    engine = engine.labelled
    predictions = engine.predictions
    if predictions.labels is None or predictions.n_sources < 2:
        return ()
    step = max(predictions.n_sources / _MOST_STEPS, 1)
    steps = {round(step * k) for k in range(1, _MOST_STEPS + 1)}
    sizes = sorted(size for size in steps if size <= predictions.n_sources)
    return tuple(
        SweepPoint(name, n_sources, {row.metric: row.value for row in summary_of(sample, floors=False)})
        for (n_sources, name), sample in sweep_sources(engine, sizes).items()
    )
