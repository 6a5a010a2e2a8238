"""The default metrics in one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from veridical._json import to_plain
from veridical._tables import TableResult
from veridical.metrics.floors import NoiseFloor
from veridical.metrics.intervals import Resamples
from veridical.metrics.registry import METRICS, SUMMARY_METRICS, Metric
from veridical.metrics.resampling import MOST_DRAWS, redraw_outcomes
from veridical.metrics.sample import Sample, check_sample
from veridical.predictions.validation import RandomState, check_choice, check_flag, check_integer, check_real


@dataclass(frozen=True)
class SummaryRow:
    """One metric's value with its noise floor and interval.

    Attributes
    ----------
    metric : str
    value : float
    floor, floor_high : float or None
        Mean and 95 % quantile under perfect calibration; for calibration errors only.
    low, high : float or None
        Interval of the true value.
    bound : float or None
        How far the value can be from the exact one, where it comes from a
        :class:`~veridical.metrics.CalibrationState`; None for exact values.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.SummaryRow("ece", 0.05, floor=0.01).value
    0.05
    """

    metric: str
    value: float
    floor: float | None = None
    floor_high: float | None = None
    low: float | None = None
    high: float | None = None
    bound: float | None = None

    def most_by_chance(self, n_samples: int = 1) -> float:
        """What perfect calibration exceeds in 5 of 100 cases, on any of so many samples; infinite without a floor.

        The quantile that several samples need is further from the mean in the ratio of normal quantiles.
        """
        if self.floor is None or self.floor_high is None:
            return math.inf
        normal = NormalDist()
        ratio = normal.inv_cdf(0.95 ** (1 / n_samples)) / normal.inv_cdf(0.95)
        return self.floor + ratio * (self.floor_high - self.floor)

    def cells(self) -> list[str]:
        """The row as text: title, value, floor, interval."""
        metric = METRICS[self.metric]
        floor = interval = ""
        if self.floor is not None and self.floor_high is not None:
            floor = f"{metric.text(self.floor)} (95 %: {metric.text(self.floor_high)})"
        if self.low is not None and self.high is not None:
            low, high = metric.text(self.low), metric.text(self.high)
            # An interval that is a point at infinity, or undefined, is printed once.
            interval = f"{low} to {high}" if math.isfinite(self.low) else high
        return [metric.title, metric.text(self.value), floor, interval]


@dataclass(frozen=True)
class Summary(TableResult):
    """A small table of metrics: iterate over its rows, index it by metric name, print it.

    Attributes
    ----------
    rows : tuple of SummaryRow
    n_samples : int

    Examples
    --------
    >>> from veridical import metrics
    >>> scores = metrics.summary([True, True, False], [0.9, 0.8, 0.7], floors=False)
    >>> round(scores["accuracy"].value, 2), scores.n_samples
    (0.67, 3)
    """

    rows: tuple[SummaryRow, ...]
    n_samples: int

    def __iter__(self) -> Iterator[SummaryRow]:
        return iter(self.rows)

    def __getitem__(self, metric: str) -> SummaryRow:
        rows = {row.metric: row for row in self.rows}
        return rows[check_choice(metric, rows, "metric")]

    def to_dict(self) -> dict[str, dict[str, float | str | None]]:
        """Metric name -> its figures, ready for JSON: undefined is None, infinite is "infinity"."""
        return {
            row.metric: {
                key: to_plain(value)
                for key, value in asdict(row).items()
                if key != "metric" and not (key == "bound" and value is None)
            }
            for row in self.rows
        }

    def table(self) -> list[list[str]]:
        """Heading and rows, without the columns that are empty throughout."""
        cells = [["metric", "value", "noise floor", "interval"], *(row.cells() for row in self.rows)]
        kept = [j for j in range(4) if any(row[j] for row in cells[1:])]
        return [[row[j] for j in kept] for row in cells]

    def _heading_and_rows(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        heading, *rows = self.table()
        return heading, rows

    def _records(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]


def _floors(metrics: list[Metric], sample: Sample, n_draws: int, **how: Any) -> dict[str, NoiseFloor]:
    errors = [metric for metric in metrics if metric.is_calibration_error and not metric.needs_vectors]
    if not errors:
        return {}
    only_confidence = sample.with_confidence(sample.confidence, sample.correct)
    draws = redraw_outcomes([metric.of_sample for metric in errors], only_confidence, n_draws=n_draws, **how)
    return {metric.name: NoiseFloor.from_draws(metric.name, draws[:, j], (0.95,)) for j, metric in enumerate(errors)}


def summary(
    y_true: Any,
    probs: Any,
    *,
    floors: bool = True,
    intervals: bool = False,
    n_draws: int = 200,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: RandomState = 0,
    sample_weight: Any = None,
    groups: Any = None,
    n_threads: int | None = None,
) -> Summary:
    """The default metrics, ECE-KDE, ECE, NLL, Brier, KS and accuracy, with noise floors and intervals.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.  NLL and Brier need probabilities of shape (N, L).
    floors : bool
        Add the noise floor of each calibration error.
    intervals : bool
        Add an interval of each metric, as :func:`veridical.metrics.bootstrap` does; all use the same draws.
    n_draws, n_resamples : int
    confidence_level : float
    random_state : int, numpy.random.Generator or None
    groups : (N,) texts or integers, optional
        Samples that belong together, such as the images of one patient: intervals resample whole groups, and floors
        keep the correlation of outcomes within groups.
    n_threads : int, optional
        Threads for floors and intervals; all cores by default.  Results do not depend on it.

    Returns
    -------
    Summary

    Examples
    --------
    >>> from veridical import metrics
    >>> print(metrics.summary([True, True, True, False], [0.75, 0.75, 0.75, 0.75], floors=False))
    metric      value
    ECE-KDE    0.00 %
    ECE        0.00 %
    KS         0.00 %
    Accuracy  75.00 %
    """
    floors, intervals = check_flag(floors, "floors"), check_flag(intervals, "intervals")
    n_draws = check_integer(n_draws, "n_draws", 1, MOST_DRAWS)
    n_resamples = check_integer(n_resamples, "n_resamples", 1, MOST_DRAWS)
    level = check_real(confidence_level, "confidence_level", 0.0, 1.0)
    sample = check_sample(y_true, probs, sample_weight, groups=groups)
    return summary_of(
        sample,
        floors=floors,
        intervals=intervals,
        n_draws=n_draws,
        n_resamples=n_resamples,
        confidence_level=level,
        random_state=random_state,
        n_threads=n_threads,
    )


def summary_of(
    sample: Sample,
    *,
    metrics: Sequence[str] = SUMMARY_METRICS,
    floors: bool = True,
    intervals: bool = False,
    n_draws: int = 200,
    n_resamples: int = 1000,
    confidence_level: float = 0.95,
    random_state: RandomState = 0,
    n_threads: int | None = None,
) -> Summary:
    """:func:`summary` of a checked sample, with some of the metrics."""
    # Floors and intervals redraw N numbers, never the (N, L) distributions.
    sample = sample.without_vectors()
    shown = [METRICS[name] for name in metrics if not METRICS[name].needs_vectors or sample.has(name)]
    how: dict[str, Any] = {"random_state": random_state, "n_threads": n_threads}
    floor = _floors(shown, sample, n_draws, **how) if floors else {}
    resamples = Resamples(shown, [sample], n_resamples=n_resamples, level=confidence_level, **how)
    rows = []
    for m, metric in enumerate(shown):
        low, high = resamples.interval(0, m) if intervals else (None, None)
        noise = floor.get(metric.name)
        mean, quantile = (None, None) if noise is None else (noise.mean, noise.quantiles[0.95])
        rows.append(SummaryRow(metric.name, float(resamples.values[0, m]), mean, quantile, low, high))
    return Summary(tuple(rows), len(sample))
