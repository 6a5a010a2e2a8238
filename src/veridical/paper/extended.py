"""Beyond the paper: what its figures are worth.  Noise floors, intervals, and which differences are real."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy.stats

from veridical.metrics.intervals import interval_of
from veridical.metrics.registry import METRICS
from veridical.metrics.resampling import Evaluate, redraw_outcomes, resample
from veridical.metrics.sample import Floats, Sample
from veridical.paper.scores import LOSSES, Scores
from veridical.paper.tables import PairedDifference, Row, in_paper_units

CONFIDENCE_LEVEL = 0.95
_FLOOR_NOTE = "Floor: what perfectly calibrated predictions with these confidences would score."
_PAIRS_NOTE = (
    "A difference is called real where its interval leaves out zero.  Pairs are judged one by one at 95%: of pairs "
    "that are equal but for chance, about one in twenty is called different."
)
NOTE = f"{_FLOOR_NOTE}  Intervals are 95%, by the bootstrap over samples.  {_PAIRS_NOTE}"
HALVES_NOTE = (
    f"{_FLOOR_NOTE}  Intervals are 95%, from the spread over the random halves, corrected for their overlap.  "
    f"{_PAIRS_NOTE}"
)


@dataclass(frozen=True)
class Extended:
    """How much work goes into what the figures are worth.

    Attributes
    ----------
    n_resamples : int
        Bootstrap resamples behind an interval.
    n_draws : int
        Draws of outcomes behind a noise floor.
    seed : int
    """

    n_resamples: int = 400
    n_draws: int = 40
    seed: int = 0


def floors(scores: Scores, metrics: Sequence[str], how: Extended) -> dict[str, float]:
    """Calibration errors of the same confidences with outcomes drawn from them, in the paper's units."""
    errors = [name for name in metrics if METRICS[name].is_calibration_error]
    if not errors:
        return {}
    evaluators: list[Evaluate] = [METRICS[name].of_sample for name in errors]
    draws = redraw_outcomes(evaluators, scores.sample(), n_draws=how.n_draws, random_state=how.seed)
    return {name: in_paper_units(name, float(value)) for name, value in zip(errors, draws.mean(axis=0), strict=True)}


def bootstrap_draws(scores: Sequence[Scores], metrics: Sequence[str], how: Extended) -> dict[str, Floats]:
    """Metric -> (n_resamples, methods) in the paper's units; every method and metric sees the same resamples."""
    by_confidence = [name for name in metrics if name not in LOSSES]
    found: dict[str, Floats] = {}
    evaluators: list[Evaluate] = [METRICS[name].of_sample for name in by_confidence]
    if by_confidence:
        samples = [one.sample() for one in scores]
        draws = resample(evaluators, samples, n_resamples=how.n_resamples, random_state=how.seed)
        shaped = draws.reshape(how.n_resamples, len(scores), len(by_confidence))
        found = {name: in_paper_units(name, 1.0) * shaped[:, :, j] for j, name in enumerate(by_confidence)}
    for name in (loss for loss in LOSSES if loss in metrics):
        # A loss per sample is stored as the sample's doubt, so that it is sorted and reweighted with it.
        samples = [Sample(one.confidence, one.correct, doubt=getattr(one, name)) for one in scores]
        found[name] = resample([_mean_score], samples, n_resamples=how.n_resamples, random_state=how.seed)
    return found


def _mean_score(sample: Sample) -> float:
    assert sample.doubt is not None
    return sample.mean(sample.doubt)


def judge_by_bootstrap(
    rows: Sequence[Row], scores: Mapping[str, Scores], how: Extended
) -> tuple[list[Row], list[PairedDifference]]:
    """Rows of one group with floors and bootstrap intervals, and all pairs of them compared."""
    metrics = list(rows[0].values)
    draws = bootstrap_draws([scores[row.method] for row in rows], metrics, how)
    judged = []
    for j, row in enumerate(rows):
        floor = floors(scores[row.method], metrics, how)
        values = {}
        for metric, value in row.values.items():
            low, high = interval_of(value.mean, draws[metric][:, j], CONFIDENCE_LEVEL, "basic")
            values[metric] = replace(value, floor=floor.get(metric), low=low, high=high)
        judged.append(replace(row, values=values))
    pairs = []
    for metric in metrics:
        for i, j in combinations(range(len(rows)), 2):
            difference = rows[i].values[metric].mean - rows[j].values[metric].mean
            with np.errstate(invalid="ignore"):  # infinity minus infinity is undefined, and no real difference
                apart = draws[metric][:, i] - draws[metric][:, j]
            low, high = interval_of(difference, apart, CONFIDENCE_LEVEL, "basic", least=-np.inf)
            pairs.append(_pair(rows[i], rows[j], metric, difference, low, high))
    return judged, pairs


def judge_by_halves(
    rows: Sequence[Row], results: Sequence[Sequence[Scores]], how: Extended
) -> tuple[list[Row], list[PairedDifference]]:
    """Rows of one group with floors and intervals over random halves, and all pairs of them compared.

    Halves of the same data overlap, so their spread is too small; with equal halves the variance of the mean over R
    splits is taken as (1/R + 1) times that of one, with R - 1 degrees of freedom (Nadeau and Bengio, "Inference for
    the generalization error", Machine Learning 52, 2003).
    """
    metrics, n_splits = list(rows[0].values), len(results)
    figures = np.array([[list(one.metrics(metrics).values()) for one in split] for split in results])
    levels = [[floors(one, metrics, how) for one in split] for split in results]
    judged = []
    for j, row in enumerate(rows):
        values = {}
        for m, (metric, value) in enumerate(row.values.items()):
            known = [split[j][metric] for split in levels if metric in split[j]]
            low, high = _overlapping_interval(figures[:, j, m]) if n_splits > 1 else (None, None)
            least = None if low is None else max(low, 0.0)
            values[metric] = replace(value, floor=float(np.mean(known)) if known else None, low=least, high=high)
        judged.append(replace(row, values=values))
    pairs = []
    if n_splits > 1:
        for m, metric in enumerate(metrics):
            for i, j in combinations(range(len(rows)), 2):
                with np.errstate(invalid="ignore"):  # infinity minus infinity is undefined, and no real difference
                    apart = figures[:, i, m] - figures[:, j, m]
                pairs.append(_pair(rows[i], rows[j], metric, float(apart.mean()), *_overlapping_interval(apart)))
    return judged, pairs


def _overlapping_interval(drawn: Floats) -> tuple[float, float]:
    """The mean's 95% interval; where it is infinite, from there to the furthest finite split."""
    if not np.isfinite(drawn).all():
        with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
            return interval_of(float(drawn.mean()), drawn, CONFIDENCE_LEVEL, "basic", least=-np.inf)
    n_splits = len(drawn)
    spread = float(drawn.std(ddof=1)) * math.sqrt(1 / n_splits + 1)
    reach = float(scipy.stats.t.ppf((1 + CONFIDENCE_LEVEL) / 2, n_splits - 1)) * spread
    return float(drawn.mean()) - reach, float(drawn.mean()) + reach


def _pair(a: Row, b: Row, metric: str, difference: float, low: float, high: float) -> PairedDifference:
    return PairedDifference(a.name, a.sources, metric, a.shown_method, b.shown_method, difference, low, high)
