"""Bootstrap intervals and paired comparisons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from veridical.errors import ParameterError
from veridical.metrics.registry import get_metric
from veridical.metrics.resampling import MOST_DRAWS, defined_only, evaluator, resample
from veridical.metrics.sample import Floats, check_sample
from veridical.predictions.validation import RandomState, check_choice, check_integer, check_real

Interval = Literal["basic", "percentile"]
INTERVALS = ("basic", "percentile")


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """A metric's value with an interval.

    Attributes
    ----------
    metric : str
    value : float
        On the sample itself.
    low, high : float
        Within what the metric can be; a basic interval contains ``value``.  Where ``value`` is infinite: the lowest
        finite draw (if any) and infinity; where it is undefined, NaN.
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
        Interval of the difference; as in :class:`Bootstrap` where that is not finite.
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


def interval_of(
    value: float, draws: Floats, confidence_level: float, method: str, least: float = 0.0, most: float = np.inf
) -> tuple[float, float]:
    """The interval's ends, from ``least`` to ``most``; draws on which the metric is undefined (NaN) are left out.

    The interval of an infinite value reaches from the furthest finite draw to infinity.  A basic interval that
    would end before the value, because resampling adds more to the metric than it spreads it, ends at the value.
    """
    level = check_real(confidence_level, "confidence_level", 0.0, 1.0)
    check_choice(method, INTERVALS, "method")
    if np.isnan(value):
        return np.nan, np.nan
    if np.isinf(value):
        finite = draws[np.isfinite(draws)]
        if value > 0:
            return float(finite.min(initial=np.inf)), np.inf
        return -np.inf, float(finite.max(initial=-np.inf))
    tail = (1 - level) / 2
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


def bootstrap(
    metric: str,
    y_true: Any,
    probs: Any,
    *,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    method: Interval = "basic",
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
    method : {"basic", "percentile"}
        Quantiles of the resampled values, mirrored at the value itself; or as they are.  Calibration errors are larger
        on resamples than on the sample, as they are larger on the sample than in truth; mirroring corrects for
        this, while the plain quantiles often miss the true error altogether.
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
    Efron and Tibshirani, "An introduction to the bootstrap", Chapman & Hall 1993.

    Examples
    --------
    >>> from veridical import metrics
    >>> result = metrics.bootstrap("accuracy", [True] * 80 + [False] * 20, [0.8] * 100)
    >>> result.value, 0.65 < result.low < 0.8 < result.high < 0.95
    (0.8, True)
    """
    described = get_metric(metric)
    evaluate = evaluator(described, options)
    check_integer(n_resamples, "n_resamples", 1, MOST_DRAWS)
    sample = check_sample(y_true, probs, sample_weight, options.get("doubt"), groups=groups)
    value = evaluate(sample)
    draws = resample([evaluate], [sample], n_resamples=n_resamples, random_state=random_state, n_threads=n_threads)[
        :, 0
    ]
    low, high = interval_of(value, draws, confidence_level, method, most=described.highest)
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
    method: Interval = "basic",
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
    evaluate = evaluator(described, options)
    check_integer(n_resamples, "n_resamples", 1, MOST_DRAWS)
    both = options.get("doubt")
    sides = ((probs_a, both if doubt_a is None else doubt_a), (probs_b, both if doubt_b is None else doubt_b))
    samples = [check_sample(y_true, probs, sample_weight, doubt, groups=groups) for probs, doubt in sides]
    value_a, value_b = (evaluate(sample) for sample in samples)
    draws = resample([evaluate], samples, n_resamples=n_resamples, random_state=random_state, n_threads=n_threads)
    with np.errstate(invalid="ignore"):  # infinity minus infinity is undefined: NaN
        differences = draws[:, 0] - draws[:, 1]
    low, high = interval_of(
        value_a - value_b, differences, confidence_level, method, least=-described.highest, most=described.highest
    )
    better = -differences if described.lower_is_better else differences
    return Comparison(
        metric=metric,
        value_a=value_a,
        value_b=value_b,
        difference=value_a - value_b,
        low=low,
        high=high,
        confidence_level=confidence_level,
        wins=int(np.sum(better > 0)),
        losses=int(np.sum(better < 0)),
        n_resamples=n_resamples,
        draws=differences,
    )
