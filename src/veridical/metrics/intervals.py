"""Bootstrap intervals and paired comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from veridical.errors import ParameterError
from veridical.metrics.inversion import DRAWS_SHARE, ErrorDraws, draw_errors, interval_of_difference
from veridical.metrics.registry import Metric, get_metric
from veridical.metrics.resampling import MOST_DRAWS, defined_only, evaluator, resample
from veridical.metrics.sample import Floats, Sample, check_sample
from veridical.predictions.validation import RandomState, check_choice, check_integer, check_real

Interval = Literal["inverted", "basic", "percentile"]
INTERVALS = ("inverted", "basic", "percentile")


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """A metric's value with an interval.

    Attributes
    ----------
    metric : str
    value : float
        On the sample itself.
    low, high : float
        Within what the metric can be; all but percentile intervals contain ``value``.  Where ``value`` is infinite: the
        lowest finite draw (if any) and infinity; where it is undefined, NaN.
    confidence_level : float
    standard_error : float
        Standard deviation over the resamples; NaN where ``value`` is not finite.
    bias : float
        Mean over the resamples minus ``value``: calibration errors grow when samples repeat.  NaN where ``value`` is
        not finite.
    draws : (n_resamples,) array

    Examples
    --------
    >>> from veridical import metrics
    >>> result = metrics.bootstrap("accuracy", [True] * 8 + [False] * 2, [0.8] * 10, n_resamples=50)
    >>> result.value, len(result.draws)
    (0.8, 50)
    """

    metric: str
    value: float
    low: float
    high: float
    confidence_level: float
    standard_error: float
    bias: float
    draws: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sets of predictions on the same samples, by one metric.

    Attributes
    ----------
    metric : str
    value_a, value_b, difference : float
        On the sample itself; ``difference`` is a minus b, and NaN where both are infinite.
    low, high : float
        Interval of the difference (of calibration errors: of the true ones); as in :class:`Bootstrap` where that is not
        finite.
    confidence_level : float
    wins, losses, n_resamples : int
        In how many resamples a was better, and b.  The rest are ties, and resamples on which the difference is
        undefined.
    draws : (n_resamples,) array of differences

    Examples
    --------
    >>> from veridical import metrics
    >>> result = metrics.compare("ece", [True, False] * 20, [0.5] * 40, [0.9] * 40, n_resamples=50)
    >>> result.wins
    50
    """

    metric: str
    value_a: float
    value_b: float
    difference: float
    low: float
    high: float
    confidence_level: float
    wins: int
    losses: int
    n_resamples: int
    draws: Floats = field(repr=False)


class Resamples:
    """Metrics of several methods on the same resamples of the same samples, and the intervals that follow.

    By default calibration errors of the top label have their intervals from outcomes drawn under assumed true errors
    (``method`` "inverted").

    Parameters
    ----------
    metrics : sequence of Metric
    samples : sequence of Sample
        One per method; sample i is the same in all of them.
    method : {"inverted", "basic", "percentile"}, optional
    options : mapping
        Of the metrics.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        samples: Sequence[Sample],
        *,
        n_resamples: int,
        level: float = 0.95,
        method: Interval | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> None:
        self._metrics, self._samples = metrics, samples
        self._n_resamples, self._level, self._method = n_resamples, level, method
        self._options = options or {}
        # Resamples and draws of outcomes are made from one state, whichever comes first.
        self._how: dict[str, Any] = {"random_state": random_state, "n_threads": n_threads}
        self.evaluators = [evaluator(metric, self._options) for metric in metrics]
        self.values = np.array([[evaluate(sample) for evaluate in self.evaluators] for sample in samples])
        self._inverted = [m for m, metric in enumerate(metrics) if self._is_inverted(metric)]
        self._errors: dict[tuple[int, int], ErrorDraws] = {}

    def _is_inverted(self, metric: Metric) -> bool:
        possible = metric.is_calibration_error and not metric.needs_vectors
        if self._method == "inverted" and not possible:
            raise ParameterError(
                f"{metric.name} has no inverted interval, which errors of the top label have; "
                'use method="basic" or "percentile".'
            )
        return possible and self._method in (None, "inverted")

    @cached_property
    def draws(self) -> Floats:
        """(n_resamples, methods, metrics) metrics on resamples."""
        return self._draws_of(range(len(self._metrics)))

    @cached_property
    def _other_draws(self) -> Floats:
        """The draws of metrics whose intervals are made of resamples; the rest is NaN."""
        if not self._inverted or "draws" in self.__dict__:  # one pass of resamples serves both
            return self.draws
        return self._draws_of([m for m in range(len(self._metrics)) if m not in self._inverted])

    def _draws_of(self, metrics: Sequence[int]) -> Floats:
        draws = np.full((self._n_resamples, len(self._samples), len(self._metrics)), np.nan)
        if metrics:
            evaluators = [self.evaluators[m] for m in metrics]
            drawn = resample(evaluators, self._samples, n_resamples=self._n_resamples, **self._how)
            draws[:, :, list(metrics)] = drawn.reshape(self._n_resamples, len(self._samples), len(metrics))
        return draws

    def _errors_of(self, s: int, m: int) -> ErrorDraws:
        if (s, m) not in self._errors:
            limit = evaluator(self._metrics[m], self._options, limit=True)
            n_draws = -(-self._n_resamples // DRAWS_SHARE)
            sample, first = self._samples[s], self._samples[0]
            self._errors[s, m] = draw_errors(
                self.evaluators[m],
                limit,
                sample,
                flipped=None if len(self._samples) == 1 else sample.correct != first.correct,
                n_draws=n_draws,
                **self._how,
            )
        return self._errors[s, m]

    def interval(self, s: int, m: int) -> tuple[float, float]:
        """The interval of metric m of method s."""
        if m in self._inverted:
            return self._errors_of(s, m).interval(self._level)
        value, most = float(self.values[s, m]), self._metrics[m].highest
        return interval_of(value, self._other_draws[:, s, m], self._level, self._method or "basic", most=most)

    def difference(self, a: int, b: int, m: int) -> tuple[float, float, float]:
        """Metric m of method a minus that of method b, and its interval."""
        with np.errstate(invalid="ignore"):  # infinity minus infinity is undefined: NaN
            value = float(self.values[a, m] - self.values[b, m])
            if m not in self._inverted:
                draws, most = self._other_draws[:, a, m] - self._other_draws[:, b, m], self._metrics[m].highest
                return value, *interval_of(value, draws, self._level, self._method or "basic", least=-most, most=most)
        low, high = interval_of_difference(self._errors_of(a, m), self._errors_of(b, m), self._level)
        most = max(_most_apart(self._samples[a], self._samples[b]), abs(value))
        return value, max(low, -most), min(high, most)


def _most_apart(a: Sample, b: Sample) -> float:
    """By how much calibration errors of two methods can differ: as far as confidences and outcomes are moved."""
    moved = float(np.sqrt(a.mean(np.square(a.confidence - b.confidence))))
    return moved + float(a.mean((a.correct != b.correct).astype(np.float64)))


def interval_of(
    value: float, draws: Floats, confidence_level: float, method: str, least: float = 0.0, most: float = np.inf
) -> tuple[float, float]:
    """The interval's ends, from ``least`` to ``most``; draws on which the metric is undefined (NaN) are left out.

    The interval of an infinite value reaches from the furthest finite draw to infinity.  A basic interval that
    would end before the value, because resampling adds more to the metric than it spreads it, ends at the value.
    """
    if np.isnan(value):
        return np.nan, np.nan
    if np.isinf(value):
        finite = draws[np.isfinite(draws)]
        if value > 0:
            return float(finite.min(initial=np.inf)), np.inf
        return -np.inf, float(finite.max(initial=-np.inf))
    tail = (1 - confidence_level) / 2
    low, high = (float(end) for end in np.quantile(defined_only(draws), (tail, 1 - tail)))
    if method == "basic":
        low, high = min(2 * value - high, value), max(2 * value - low, value)
    return min(max(low, least), most), min(max(high, least), most)


def _spread_and_bias(value: float, draws: Floats) -> tuple[float, float]:
    """Standard deviation of the draws, and how far their mean lies above the value."""
    if not np.isfinite(value):
        return np.nan, np.nan
    defined = defined_only(draws)
    return float(defined.std()), float(defined.mean()) - value


def _checked(
    n_resamples: Any, confidence_level: Any, method: Any, random_state: RandomState, n_threads: int | None
) -> dict[str, Any]:
    """Parameters of resamples, checked."""
    if method is not None:
        check_choice(method, INTERVALS, "method")
    return {
        "n_resamples": check_integer(n_resamples, "n_resamples", 1, MOST_DRAWS),
        "level": check_real(confidence_level, "confidence_level", 0.0, 1.0),
        "method": method,
        "random_state": random_state,
        "n_threads": n_threads,
    }


def bootstrap(
    metric: str,
    y_true: Any,
    probs: Any,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: Interval | None = None,
    random_state: RandomState = 0,
    sample_weight: Any = None,
    groups: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> Bootstrap:
    """A metric with a bootstrap interval over samples.

    Parameters
    ----------
    metric : str
        A name in :data:`veridical.metrics.METRICS`.
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.
    n_resamples : int
    confidence_level : float
    method : {"inverted", "basic", "percentile"}, optional
        "inverted", the default for calibration errors of the top label: all true errors under which the measured one is
        not unusual, from outcomes drawn under several of them.  A calibrated model has a lower end of 0.
        "basic", the default for other metrics: quantiles of the resampled values, mirrored at the value itself.
        "percentile": those quantiles as they are.
    random_state : int, numpy.random.Generator or None
    groups : (N,) texts or integers, optional
        Samples that belong together: whole groups are resampled.
    n_threads : int, optional
    **options
        Passed on to the metric, for example ``n_bins=10``.

    Returns
    -------
    Bootstrap

    References
    ----------
    Efron and Tibshirani, "An introduction to the bootstrap", Chapman & Hall 1993; for inverted intervals, Chuang and
    Lai, "Hybrid resampling methods for confidence intervals", Statistica Sinica 10, 2000, and Feldman and Cousins,
    "Unified approach to the classical statistical analysis of small signals", Physical Review D 57, 1998.

    Examples
    --------
    >>> from veridical import metrics
    >>> result = metrics.bootstrap("accuracy", [True] * 80 + [False] * 20, [0.8] * 100)
    >>> result.value, 0.65 < result.low < 0.8 < result.high < 0.95
    (0.8, True)
    """
    described = get_metric(metric)
    evaluator(described, options)  # an unknown option is an error
    how = _checked(n_resamples, confidence_level, method, random_state, n_threads)
    sample = check_sample(y_true, probs, sample_weight, options.get("doubt"), groups=groups)
    resamples = Resamples([described], [sample], options=options, **how)
    value, draws = float(resamples.values[0, 0]), resamples.draws[:, 0, 0]
    low, high = resamples.interval(0, 0)
    return Bootstrap(metric, value, low, high, confidence_level, *_spread_and_bias(value, draws), draws)


def compare(
    metric: str,
    y_true: Any,
    probs_a: Any,
    probs_b: Any,
    *,
    doubt_a: Any = None,
    doubt_b: Any = None,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: Interval | None = None,
    random_state: RandomState = 0,
    sample_weight: Any = None,
    groups: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> Comparison:
    """Compare two sets of predictions by one metric, on the same resamples of the same samples.

    Parameters
    ----------
    metric : str
        A name in :data:`veridical.metrics.METRICS`.
    y_true : (N,) integers
    probs_a, probs_b : (N, L) arrays
        Or, with boolean ``y_true``, two sets of confidences (N,) in the same predictions.
    doubt_a, doubt_b : (N,) arrays, optional
        For metrics that rank samples by ``doubt``: one per side, by default minus the confidence.
    n_resamples, confidence_level, method, random_state, sample_weight, groups, n_threads, **options
        As in :func:`bootstrap`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from veridical import metrics
    >>> right = [True, True, True, False] * 50
    >>> result = metrics.compare("ece", right, [0.75] * 200, [0.95] * 200, n_resamples=100)
    >>> result.wins, round(result.difference, 12)
    (100, -0.2)
    """
    described = get_metric(metric)
    if doubt_a is not None or doubt_b is not None:
        if options.get("doubt") is not None:
            raise ParameterError("doubt is for both sides, doubt_a and doubt_b for one each; do not give both.")
        options["doubt"] = None  # the metric must have that option
    evaluator(described, options)
    how = _checked(n_resamples, confidence_level, method, random_state, n_threads)
    both = options.get("doubt")
    sides = ((probs_a, both if doubt_a is None else doubt_a), (probs_b, both if doubt_b is None else doubt_b))
    samples = [check_sample(y_true, probs, sample_weight, doubt, groups=groups) for probs, doubt in sides]
    resamples = Resamples([described], samples, options=options, **how)
    with np.errstate(invalid="ignore"):  # infinity minus infinity is undefined: NaN
        differences = resamples.draws[:, 0, 0] - resamples.draws[:, 1, 0]
    value, low, high = resamples.difference(0, 1, 0)
    better = -differences if described.lower_is_better else differences
    return Comparison(
        metric=metric,
        value_a=float(resamples.values[0, 0]),
        value_b=float(resamples.values[1, 0]),
        difference=value,
        low=low,
        high=high,
        confidence_level=confidence_level,
        wins=int(np.sum(better > 0)),
        losses=int(np.sum(better < 0)),
        n_resamples=n_resamples,
        draws=differences,
    )
