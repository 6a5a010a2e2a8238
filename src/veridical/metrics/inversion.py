"""Intervals of calibration errors: all true errors under which the measured one is not unusual.

A calibration error is larger on a finite sample than in truth, and in truth it is never below zero; so a bootstrap
interval, centred at the measured value, misses the true one.  Here outcomes are drawn under several assumed true
errors, from none (which gives the noise floor) to more than was measured, and an error is in the interval if the
measured value is within what its draws show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from veridical._minimisation import zero_between
from veridical.metrics.groups import GroupCorrelation
from veridical.metrics.registry import Evaluate
from veridical.metrics.resampling import redraw_outcomes
from veridical.metrics.sample import Booleans, Floats, Sample
from veridical.predictions.validation import RandomState, check_random_state

#: Outcomes are drawn under these parts of the measured error, and of the reach above it; draws in between are
#: interpolated.
_BELOW, _ABOVE = (0.0, 1 / 3, 2 / 3, 1.0), (0.1, 0.4, 1.0)
#: A test of one error needs so many times fewer draws than a standard error needs resamples.
DRAWS_SHARE = 5
#: The largest assumed error is the measured one plus so many standard errors.
_REACH = 3.5
#: Steps at which true errors are tested, over the whole range and near the measured value.
_STEPS = 150
#: Miscalibration is estimated in so many groups of samples of similar confidence.
_N_BINS = 15
#: Neighbouring bins have one gap unless two improve the chi-squared statistic by more than this; a gap of zero saves
#: a part of it.
_COST_OF_A_PIECE, _SAVED_BY_ZERO = 9.0, 3.0


@dataclass(frozen=True, eq=False)
class ErrorDraws:
    """Draws of a calibration error under assumed true ones.

    Attributes
    ----------
    value : float
        The measured error.
    true : (T,) array
        The assumed true errors, from 0 on.
    draws : (n_draws, T) array
    reach : float
        A few standard errors.
    """

    value: float
    true: Floats
    draws: Floats
    reach: float

    def at(self, errors: Floats) -> Floats:
        """(n_draws, K) draws under other true errors."""
        left = np.clip(np.searchsorted(self.true, errors, side="right") - 1, 0, len(self.true) - 2)
        share = np.clip((errors - self.true[left]) / (self.true[left + 1] - self.true[left]), 0.0, 1.0)
        between: Floats = self.draws[:, left] * (1 - share) + self.draws[:, left + 1] * share
        return between

    def tested_errors(self) -> Floats:
        """True errors to test, closest together around the measured one."""
        most = float(self.true[-1])
        near = np.linspace(max(self.value - self.reach, 0.0), min(self.value + self.reach, most), _STEPS)
        return np.unique(np.concatenate((np.linspace(0.0, most, _STEPS), near)))

    def interval(self, level: float) -> tuple[float, float]:
        """The interval of the true error; it contains the measured value, and 0 if that is within its noise floor.

        An error below the measured value is rejected where too few draws reach that value, one above it where too
        few stay below.  Where draws are hardly ever below their true error, that side rejects nothing, and the
        other has the whole of ``1 - level``.
        """
        errors = self.tested_errors()
        draws = np.sort(self.at(errors), axis=0)
        least = np.minimum(_quantiles(draws, (1 - level) / 2), errors)
        missed = np.mean(draws < least, axis=0)
        most = _quantiles(draws, np.minimum(level + missed, 1.0))
        most[0] = np.quantile(draws[:, 0], level)  # of the noise floor, whose quantiles are these
        accepted = errors[(least <= self.value) & (self.value <= most)]
        if not accepted.size:
            return self.value, self.value
        return min(float(accepted[0]), self.value), max(float(accepted[-1]), self.value)

    def estimate(self) -> float:
        """The true error under which the measured one is the mean of the draws; 0 if the mean is never as low."""
        means = np.maximum.accumulate(self.draws.mean(axis=0))
        return float(np.interp(self.value, means, self.true)) if self.value > means[0] else 0.0


def _quantiles(draws: Floats, levels: float | Floats) -> Floats:
    """The quantile of each column of sorted draws; one more draw is below it with exactly this probability."""
    position = np.clip(np.broadcast_to(levels, draws.shape[1]) * (len(draws) + 1) - 1, 0, len(draws) - 1)
    lower, columns = position.astype(np.intp), np.arange(draws.shape[1])
    upper = np.minimum(lower + 1, len(draws) - 1)
    between: Floats = draws[lower, columns] + (position - lower) * (draws[upper, columns] - draws[lower, columns])
    return between


def interval_of_difference(a: ErrorDraws, b: ErrorDraws, level: float) -> tuple[float, float]:
    """The interval of the true error of ``a`` minus that of ``b``; it contains the measured difference.

    A difference is accepted if the measured one is within its standard errors of what is drawn for two errors that
    differ by so much, and whose mean is the estimated one.
    """
    measured, centre = a.value - b.value, (a.estimate() + b.estimate()) / 2
    reach = a.reach + b.reach
    farthest = float(max(a.true[-1], b.true[-1]))
    near = np.linspace(measured - reach, measured + reach, 2 * _STEPS)
    differences = np.unique(np.concatenate((np.linspace(-farthest, farthest, 2 * _STEPS), near, [0.0, measured])))
    smaller = np.maximum(centre - np.abs(differences) / 2, 0.0)
    drawn = a.at(smaller + np.maximum(differences, 0.0)) - b.at(smaller + np.maximum(-differences, 0.0))
    allowed = float(scipy.special.ndtri((1 + level) / 2)) * drawn.std(axis=0) + 1e-12
    accepted = differences[np.abs(measured - drawn.mean(axis=0)) <= allowed]
    return min(float(accepted.min(initial=measured)), measured), max(float(accepted.max(initial=measured)), measured)


def draw_errors(
    evaluate: Evaluate,
    limit: Evaluate,
    sample: Sample,
    *,
    flipped: Booleans | None = None,
    n_draws: int,
    random_state: RandomState,
    n_threads: int | None = None,
) -> ErrorDraws:
    """Draws of a calibration error under assumed true ones.

    Parameters
    ----------
    evaluate, limit : functions of a sample
        The error, and what it would be without chance in the outcomes.
    sample : Sample
    flipped : (N,) booleans, optional
        To draw several methods together: where this one predicts another label than the first of them.
    n_draws, random_state, n_threads
        As for noise floors, whose draws are those under a true error of 0.
    """
    order = sample.order()
    ordered = sample.with_confidence(sample.confidence, sample.correct).taken(
        order if sample.weight is None else order[sample.weight[order] > 0], in_order=True
    )
    value, noise = evaluate(ordered), GroupCorrelation.of(ordered)
    reach = _REACH * _standard_error(ordered, noise)
    gap = _miscalibration(ordered, noise)
    # The error of a given size that shows least on a sample is the one that is spread evenly.
    room = ordered.mean(1 - ordered.confidence)
    evenly = np.full(len(ordered), -1.0 if gap.sum() < 0 and room > value + reach else 1.0)
    chances = _with_errors(ordered, limit, gap, [part * value for part in _BELOW])
    chances += _with_errors(ordered, limit, evenly, [value + part * reach for part in _ABOVE])
    true = np.array([0.0, *(limit(_expected(ordered, chance)) for chance in chances[1:])])
    # Errors increase, except for rounding and where chances end at 0 or 1.
    true = np.maximum.accumulate(true) + 1e-12 * np.arange(len(true))
    how: dict[str, Any] = {"flipped": flipped, "n_draws": n_draws, "random_state": random_state, "n_threads": n_threads}
    draws = redraw_outcomes([evaluate], ordered, chances=chances, **how)
    # Other samples would have other confidences, whose gaps differ.
    weight = np.ones(len(ordered)) if ordered.weight is None else ordered.weight
    shares, size = weight / weight.sum(), np.abs(gap)
    spread = float(np.sqrt(shares**2 @ (size - shares @ size) ** 2 * noise.inflation) / (shares @ size))
    draws += spread * np.minimum(true, value) * check_random_state(random_state).standard_normal((n_draws, 1))
    return ErrorDraws(value, true, draws, reach)


def _with_errors(sample: Sample, limit: Evaluate, gap: Floats, errors: list[float]) -> list[Floats]:
    """Chances to be right whose confidences have about these true errors, with gaps in proportion to ``gap``.

    Errors are in proportion to the mean gap, which is less than that of ``gap`` where chances end at 0 or 1.
    """

    small, most = 0.01 / np.abs(gap).max(), 1 / np.abs(gap[gap != 0]).min()
    limit_of_small = limit(_expected(sample, sample.confidence - small * gap))
    ratio = _excess_gap(small, sample, gap, 0.0) / max(limit_of_small, 1e-12)
    scales = []
    for wanted in (error * ratio for error in errors):
        reachable = _excess_gap(most, sample, gap, wanted) > 0
        step = zero_between(_excess_gap, 0.0, most, sample, gap, wanted, tolerance=1e-4 * small) if reachable else most
        scales.append(step)
    return [np.clip(sample.confidence - scale * gap, 0.0, 1.0) for scale in scales]


def _excess_gap(scale: float, sample: Sample, gap: Floats, wanted: float) -> float:
    """The mean distance of confidences from the chances that ``scale`` gives, minus the wanted one."""
    chance = np.clip(sample.confidence - scale * gap, 0.0, 1.0)
    return sample.mean(np.abs(sample.confidence - chance)) - wanted


def _standard_error(sample: Sample, noise: GroupCorrelation) -> float:
    """Of the mean of the outcomes."""
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    spread = weight**2 * np.maximum(sample.confidence * (1 - sample.confidence), 0.25 / len(sample))
    return float(np.sqrt(spread.sum() * noise.inflation)) / sample.total_weight


def _expected(sample: Sample, chance: Floats) -> Sample:
    """A sample that is right exactly as often as ``chance`` says: each prediction is right in part, wrong in part."""
    chance = np.clip(chance, 0.0, 1.0)
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    shares = np.stack((weight * chance, weight * (1 - chance)), axis=1).ravel()
    correct = np.tile([True, False], len(sample))
    return Sample(np.repeat(sample.confidence, 2), correct, weight=shares, in_order=True)


def _miscalibration(sample: Sample, noise: GroupCorrelation) -> Floats:
    """(N,) how far confidences exceed the accuracy, for a sample in order: constant over a few ranges."""
    n_bins = min(_N_BINS, len(sample))
    bins = np.arange(len(sample)) * n_bins // len(sample)
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    total = np.maximum(np.bincount(bins, weight), np.finfo(float).tiny)
    gaps = np.bincount(bins, weight * (sample.confidence - sample.correct)) / total
    spread = np.bincount(bins, weight**2 * sample.confidence * (1 - sample.confidence))
    least = np.bincount(bins, weight**2) * 0.25 / len(sample)  # of bins that are all but sure
    variance = np.maximum(spread, least) / total**2 * noise.inflation
    gap: Floats = _pieces(gaps, np.maximum(variance, 1e-300))[bins]
    return gap if gap.any() else np.full(len(sample), 0.01)  # any gap, to assume errors of


def _pieces(gaps: Floats, variance: Floats) -> Floats:
    """The gaps as few constant pieces, some of them zero: least squares with a cost for each piece."""
    precision = 1 / variance
    sums = [np.concatenate(([0.0], np.cumsum(precision * gaps**k))) for k in range(3)]
    n_bins = len(gaps)
    cost, last = np.zeros(n_bins + 1), [(0, 0.0)] * (n_bins + 1)
    for stop in range(1, n_bins + 1):
        weight, linear, squares = (s[stop] - s[:stop] for s in sums)
        zero = squares + _COST_OF_A_PIECE - _SAVED_BY_ZERO + cost[:stop]
        level = squares - linear**2 / weight + _COST_OF_A_PIECE + cost[:stop]
        start = int(np.argmin(np.minimum(zero, level)))
        cost[stop] = min(zero[start], level[start])
        last[stop] = start, 0.0 if zero[start] <= level[start] else float(linear[start] / weight[start])
    pieces, stop = np.empty(n_bins), n_bins
    while stop:
        start, piece = last[stop]
        pieces[start:stop] = piece
        stop = start
    return pieces if pieces.any() else np.full(n_bins, float(sums[1][-1] / sums[0][-1]))
