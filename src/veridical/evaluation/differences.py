"""Which differences between methods are real: intervals of every method and of every pair of methods.

The evidence is either the bootstrap over samples, for methods scored on the same samples, or the spread over random
halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.stats

from veridical.metrics.intervals import Resamples, interval_of
from veridical.metrics.registry import METRICS
from veridical.metrics.sample import Floats, Sample

#: Methods that compute the same in different ways differ by the rounding of float32, on every resample alike; no figure
#: is printed with so many digits that this would be a difference.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Difference:
    """Two methods by one metric.

    Attributes
    ----------
    metric, a, b : str
    difference : float
        a minus b.
    low, high : float
        Its interval.
    """

    metric: str
    a: str
    b: str
    difference: float
    low: float
    high: float

    @property
    def better(self) -> str | None:
        """The better method; None where the interval contains zero, up to rounding, or is undefined."""
        if self.low > _ROUNDING or self.high < -_ROUNDING:
            return self.a if METRICS[self.metric].is_better(self.difference, 0.0) else self.b
        return None


@dataclass(frozen=True)
class Differences:
    """Methods compared with each other.

    Attributes
    ----------
    intervals : dict
        (method, metric) -> low and high end of the interval of the metric.
    pairs : tuple of Difference
        Every pair of methods, by every metric.
    """

    intervals: dict[tuple[str, str], tuple[float, float]]
    pairs: tuple[Difference, ...]


def bootstrap_differences(
    samples: Mapping[str, Sample],
    metrics: Sequence[str],
    *,
    n_resamples: int,
    confidence_level: float = 0.95,
    random_state: int = 0,
    n_threads: int | None = None,
) -> Differences:
    """Compare methods on the same resamples of the same samples.

    Parameters
    ----------
    samples : mapping of str to Sample
        Method -> its confidences, correctness and losses; sample i is the same in all of them.
    metrics : sequence of str
    n_resamples : int
    confidence_level : float
    random_state : int
    n_threads : int, optional
        Results do not depend on it.
    """
    resamples = Resamples(
        [METRICS[metric] for metric in metrics],
        list(samples.values()),
        n_resamples=n_resamples,
        level=confidence_level,
        random_state=random_state,
        n_threads=n_threads,
    )
    return _differences(list(samples), metrics, resamples.interval, resamples.difference)


def differences_over_halves(
    values: Mapping[str, Mapping[str, Sequence[float]]], *, confidence_level: float = 0.95
) -> Differences:
    """Compare methods by their values on the same random halves.

    The halves overlap, so the mean varies more than independent halves would suggest: the variance over n splits is
    multiplied by 1/n + 1, the ratio of scored to fitted samples being one.

    Parameters
    ----------
    values : mapping
        Method -> metric -> one value per split, at least two.
    confidence_level : float

    References
    ----------
    Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
    """
    metrics = list(next(iter(values.values())))
    draws = np.array([[columns[metric] for metric in metrics] for columns in values.values()]).transpose(2, 0, 1)

    def around(drawn: Floats, least: float, most: float) -> tuple[float, float, float]:
        with np.errstate(invalid="ignore"):  # infinities of both signs have no mean
            value = float(drawn.mean())
        if not np.isfinite(drawn).all():
            return value, *interval_of(value, drawn, confidence_level, "basic", least=least, most=most)
        n_splits = len(drawn)
        spread = float(drawn.std(ddof=1)) * math.sqrt(1 / n_splits + 1)
        reach = float(scipy.stats.t.ppf((1 + confidence_level) / 2, n_splits - 1)) * spread
        return value, max(value - reach, least), min(value + reach, most)

    def interval(i: int, m: int) -> tuple[float, float]:
        return around(draws[:, i, m], 0.0, METRICS[metrics[m]].highest)[1:]

    def difference(i: int, j: int, m: int) -> tuple[float, float, float]:
        highest = METRICS[metrics[m]].highest
        with np.errstate(invalid="ignore"):  # infinity minus infinity is undefined: NaN
            return around(draws[:, i, m] - draws[:, j, m], -highest, highest)

    return _differences(list(values), metrics, interval, difference)


def _differences(
    methods: Sequence[str],
    metrics: Sequence[str],
    interval: Callable[[int, int], tuple[float, float]],
    difference: Callable[[int, int, int], tuple[float, float, float]],
) -> Differences:
    """Intervals of all methods and pairs, from those of (method, metric) and (method, method, metric) by number."""
    intervals = {
        (method, metric): interval(i, m) for m, metric in enumerate(metrics) for i, method in enumerate(methods)
    }
    pairs = tuple(
        Difference(metric, methods[i], methods[j], *difference(i, j, m))
        for m, metric in enumerate(metrics)
        for i, j in combinations(range(len(methods)), 2)
    )
    return Differences(intervals, pairs)
