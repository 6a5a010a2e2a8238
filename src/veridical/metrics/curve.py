"""Reliability curves: confidence against accuracy, with consistency bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from veridical._kernels.outcomes import count_distribution
from veridical.errors import ParameterError
from veridical.metrics.binned import Binning, bins_of, checked_options, sums_per_bin
from veridical.metrics.groups import GroupCorrelation, draw_uniforms
from veridical.metrics.resampling import run_draws
from veridical.metrics.sample import Floats, Sample, check_sample
from veridical.predictions.validation import as_numbers, check_real

#: Bins up to this size get the exact distribution of their accuracy, whose cost grows with the square.
_EXACT_UP_TO = 2000
_DRAWS_OF_GROUPS = 400


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Confidence and accuracy per bin.

    Attributes
    ----------
    edges : (B + 1,) array
        Bins are (lo, hi].
    counts : (B,) array
        Samples, or their total weight, per bin.  Weights whose sum exceeds 2^53 are scaled down to it.
    confidence, accuracy : (B,) arrays
        Means per bin; NaN where it is empty.
    low, high : (B,) arrays
        Consistency band: where the accuracy of a perfectly calibrated model would fall with ``confidence_level``.
    confidence_level : float

    Examples
    --------
    >>> from veridical import metrics
    >>> curve = metrics.reliability_curve([True, True, False, True], [0.9, 0.8, 0.7, 0.6], n_bins=2)
    >>> curve.confidence.round(2), curve.accuracy.round(2)
    (array([0.7, 0.9]), array([0.67, 1.  ]))
    """

    edges: Floats
    counts: Floats
    confidence: Floats
    accuracy: Floats
    low: Floats
    high: Floats
    confidence_level: float


def _exact_band(confidence: Floats, tail: float) -> tuple[float, float]:
    """Quantiles of the share of right predictions among samples that are right with probability ``confidence``."""
    n_samples = len(confidence)
    chances = np.empty(n_samples + 1)
    count_distribution(confidence, chances)
    cumulative = np.cumsum(chances)
    low, high = np.searchsorted(cumulative, (tail, 1 - tail))
    return low / n_samples, min(high, n_samples) / n_samples


def _approximate_band(confidence: Floats, weight: Floats, tail: float) -> tuple[float, float]:
    """The same from the first three moments, for weighted samples and large bins."""
    shares = weight / weight.sum()
    spread = confidence * (1 - confidence)
    mean, variance = float(shares @ confidence), float(shares**2 @ spread)
    return band_from_moments(mean, variance, float(shares**3 @ (spread * (1 - 2 * confidence))), tail)


def band_from_moments(mean: float, variance: float, third_moment: float, tail: float) -> tuple[float, float]:
    """Quantiles of a share from its first three central moments (Cornish and Fisher).

    For few and very skewed samples the expansion may exclude the mean; the band is then extended to it.
    """
    if tail == 0.0:
        return 0.0, 1.0
    if variance == 0.0:
        return mean, mean
    z = ndtri(np.array([tail, 1 - tail]))
    low, high = mean + np.sqrt(variance) * z + third_moment / variance * (z**2 - 1) / 6
    return max(min(float(low), mean), 0.0), min(max(float(high), mean), 1.0)


def _band(confidence: Floats, weight: Floats, tail: float) -> tuple[float, float]:
    """The band of one bin; exact if its samples have equal weights."""
    if tail == 0.0:
        return 0.0, 1.0
    if len(confidence) <= _EXACT_UP_TO and np.all(weight == weight[0]):
        return _exact_band(confidence, tail)
    return _approximate_band(confidence, weight, tail)


def _bands_of_groups(sample: Sample, edges: Floats, tail: float) -> tuple[Floats, Floats]:
    """Quantiles of the accuracy in drawn outcomes, which depend on each other within groups, as for noise floors."""
    noise, n_bins = GroupCorrelation.of(sample), len(edges) - 1
    bins = np.clip(np.searchsorted(edges, sample.confidence, side="left") - 1, 0, n_bins - 1)
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    counts = np.bincount(bins, weight, n_bins)

    def accuracies(generator: np.random.Generator) -> list[float]:
        right = weight * (draw_uniforms(generator, noise, len(sample)) < sample.confidence)
        shares: list[float] = (np.bincount(bins, right, n_bins) / np.where(counts > 0, counts, np.nan)).tolist()
        return shares

    low, high = np.quantile(run_draws(accuracies, _DRAWS_OF_GROUPS, 0), (tail, 1 - tail), axis=0)
    return low, high


def _bands(sample: Sample, edges: Floats, tail: float) -> tuple[Floats, Floats]:
    if sample.group is not None and tail > 0:
        return _bands_of_groups(sample, edges, tail)
    n_bins = len(edges) - 1
    confidence, _, weight = sample.by_confidence()
    cuts = np.searchsorted(confidence, edges[1:-1], side="right")
    starts, stops = np.concatenate(([0], cuts)), np.concatenate((cuts, [len(sample)]))
    low, high = np.full(n_bins, np.nan), np.full(n_bins, np.nan)
    for b, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        weights = np.ones(stop - start) if weight is None else weight[start:stop]
        counted = weights > 0
        if counted.any():
            low[b], high[b] = _band(confidence[start:stop][counted], weights[counted], tail)
    return low, high


def _check_edges(edges: Any) -> Floats:
    fixed = as_numbers(edges, "edges").astype(np.float64)
    if fixed.ndim != 1 or len(fixed) < 2 or fixed[0] != 0 or fixed[-1] != 1 or not np.all(np.diff(fixed) >= 0):
        raise ParameterError("edges must be at least two increasing numbers, the first 0 and the last 1.")
    return fixed


def reliability_curve(
    y_true: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    binning: Binning = "mass",
    edges: Any = None,
    confidence_level: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
) -> ReliabilityCurve:
    """Mean confidence and accuracy per bin, with a consistency band.

    The band contains a bin's accuracy with probability ``confidence_level`` if its confidences are right.  Its ends are
    quantiles of the Poisson binomial distribution of right predictions, exact for bins of up to 2,000 samples of equal
    weight, otherwise from its mean, variance and skewness.  A weighted sample is one draw, right or wrong as a whole.
    A bin outside its band is evidence of miscalibration.

    Parameters
    ----------
    y_true, probs, n_bins, binning, sample_weight
        As in :func:`veridical.metrics.ece`, whose bins these are.
    edges : increasing numbers from 0 to 1, optional
        Fixed bins, for instance those of another method's curve.
    confidence_level : float
        From 0 to 1; with 1 the band is all of [0, 1].
    groups : (N,) texts or integers, optional
        Samples that belong together: the band is drawn, with outcomes that depend on each other within groups, and is
        wider.

    Returns
    -------
    ReliabilityCurve

    References
    ----------
    Bröcker and Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting 22, 2007.

    Examples
    --------
    >>> from veridical import metrics
    >>> curve = metrics.reliability_curve([True, True, False, True], [0.9, 0.8, 0.7, 0.6], n_bins=2)
    >>> curve.counts, curve.accuracy.round(3)
    (array([3., 1.]), array([0.667, 1.   ]))
    """
    sample = check_sample(y_true, probs, sample_weight, groups=groups)
    level = check_real(confidence_level, "confidence_level", 0.0, 1.0)
    if edges is None:
        fixed, sums = bins_of(sample, **checked_options({"n_bins": n_bins, "binning": binning}))
    else:
        fixed = _check_edges(edges)
        sums = sums_per_bin(sample, fixed)
    counts, confidence, correct = sums
    low, high = _bands(sample, fixed, (1 - level) / 2)
    filled = counts > 0
    unfilled = np.full(len(counts), np.nan)
    return ReliabilityCurve(
        edges=fixed,
        counts=counts,
        confidence=np.divide(confidence, counts, out=unfilled.copy(), where=filled),
        accuracy=np.divide(correct, counts, out=unfilled.copy(), where=filled),
        low=low,
        high=high,
        confidence_level=level,
    )
