"""Noise floors: values of a metric under perfect calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from veridical.errors import ParameterError, ShapeError, shown
from veridical.metrics.registry import Metric, get_metric
from veridical.metrics.resampling import MOST_DRAWS, defined_only, evaluator, redraw_outcomes
from veridical.metrics.sample import Floats, Sample, check_sample
from veridical.predictions.validation import (
    RandomState,
    as_numbers,
    check_confidences,
    check_integer,
    check_real,
)


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """A metric's distribution if the same confidences were perfectly calibrated.

    Attributes
    ----------
    metric : str
    mean : float
    quantiles : dict
        Probability -> value.
    draws : (n_draws,) array

    Examples
    --------
    >>> from veridical import metrics
    >>> floor = metrics.noise_floor("ece", [0.5] * 100, n_draws=20, quantiles=[0.95])
    >>> list(floor.quantiles), len(floor.draws)
    ([0.95], 20)
    """

    metric: str
    mean: float
    quantiles: dict[float, float]
    draws: Floats = field(repr=False)

    @classmethod
    def from_draws(cls, metric: str, draws: Floats, levels: Sequence[float]) -> NoiseFloor:
        """Mean and quantiles of the draws on which the metric is defined."""
        defined = defined_only(draws)
        return cls(
            metric, float(defined.mean()), {level: float(np.quantile(defined, level)) for level in levels}, draws
        )


def _unlabelled(confidence: Any, metric: Metric, sample_weight: Any, doubt: Any) -> Sample:
    """A sample without outcomes."""
    values = as_numbers(confidence, "confidence")
    if values.ndim == 1 and metric.needs_vectors:
        raise ShapeError(f"{metric.name} needs whole distributions; give probabilities of shape (samples, classes).")
    if values.ndim == 0:
        check_confidences(values)  # raises an error
    placeholder = np.zeros(len(values), dtype=bool if values.ndim == 1 else np.int64)
    sample = check_sample(placeholder, values, sample_weight, doubt)
    if not metric.needs_vectors:
        sample.probs = sample.labels = None
    return sample


def check_quantiles(quantiles: Any) -> list[float]:
    levels = as_numbers(quantiles, "quantiles")
    if levels.ndim != 1:
        raise ParameterError(f"quantiles is {shown(quantiles)}; give a list of numbers from 0 to 1.")
    return [check_real(level, "a quantile", 0.0, 1.0) for level in levels.tolist()]


def noise_floor(
    metric: str,
    confidence: Any,
    *,
    n_draws: int = 200,
    quantiles: Sequence[float] = (0.05, 0.5, 0.95),
    random_state: RandomState = 0,
    sample_weight: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> NoiseFloor:
    """The distribution of a metric if these confidences were perfectly calibrated.

    Outcomes are drawn many times from the predictions themselves, right with probability ``confidence``.  An error
    within these quantiles is not evidence of miscalibration, and an error below them is not better than one within.

    Parameters
    ----------
    metric : str
        A name in :data:`veridical.metrics.METRICS`.
    confidence : (N,) array, or (N, L) array of probabilities
        Probabilities are needed by metrics of whole distributions; labels are then drawn from them.
    n_draws : int
    quantiles : sequence of numbers from 0 to 1
    random_state : int, numpy.random.Generator or None
    sample_weight : (N,) array, optional
    n_threads : int, optional
    **options
        Passed on to the metric, for example ``n_bins=10``.

    Returns
    -------
    NoiseFloor

    References
    ----------
    Bröcker and Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting 22, 2007.

    Examples
    --------
    >>> from veridical import metrics
    >>> floor = metrics.noise_floor("ece", [0.5] * 100, n_draws=50)
    >>> 0 < floor.mean < 0.1
    True
    """
    described = get_metric(metric)
    n_draws = check_integer(n_draws, "n_draws", 1, MOST_DRAWS)
    levels = check_quantiles(quantiles)
    evaluate = evaluator(described, options)
    sample = _unlabelled(confidence, described, sample_weight, options.get("doubt"))
    draws = redraw_outcomes([evaluate], sample, n_draws=n_draws, random_state=random_state, n_threads=n_threads)
    return NoiseFloor.from_draws(metric, draws[:, 0], levels)
