"""Values, bounds and noise floors of a calibration state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from veridical._json import to_plain
from veridical.errors import ParameterError, shown
from veridical.metrics.cells import (
    Bounded,
    Cells,
    binned_error,
    cumulative_error,
    cumulative_value,
    curve_of_cells,
    density_error,
    density_value,
    equal_mass_bins,
    equal_mass_error,
    equal_width_bins,
    equal_width_error,
)
from veridical.metrics.curve import ReliabilityCurve
from veridical.metrics.registry import METRICS, SUMMARY_METRICS
from veridical.metrics.resampling import run_draws
from veridical.metrics.sample import Floats
from veridical.predictions.validation import RandomState, check_choice

#: The ECE over equally wide bins, which is not a metric of its own in the registry.
EQUAL_WIDTH = "ece_width"


@dataclass(frozen=True, eq=False)
class StateSummary:
    """Metrics of a :class:`~veridical.metrics.CalibrationState`.

    Attributes
    ----------
    n_samples : int
    values : mapping metric -> float
        The default metrics (``ece`` over bins of equal mass) and ``ece_width``; NLL and Brier only if all samples have
        distributions.
    bounds : mapping metric -> float
        How far each value can be from the exact one.
    resolution : float
        The cell width: the values are exact for confidences moved by less than this.
    curve : ReliabilityCurve
        Over bins of equal mass; its edges are edges of the grid.

    Examples
    --------
    >>> from veridical import metrics
    >>> state = metrics.CalibrationState()
    >>> _ = state.update([True, False], [0.9, 0.6])
    >>> state.compute()["accuracy"]
    0.5
    """

    n_samples: int
    values: Mapping[str, float]
    bounds: Mapping[str, float]
    resolution: float
    curve: ReliabilityCurve

    def __getitem__(self, metric: str) -> float:
        return self.values[check_choice(metric, self.values, "metric")]

    def __str__(self) -> str:
        names = {name: "ECE, equal width" if name == EQUAL_WIDTH else METRICS[name].title for name in self.values}
        width = max(map(len, names.values()))
        lines = [f"{self.n_samples:,} samples"]
        for name, value in self.values.items():
            metric = METRICS["ece" if name == EQUAL_WIDTH else name]
            lines.append(f"{names[name]:<{width}}  {metric.text(value):>10}  ± {metric.scaled(self.bounds[name]):.1e}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        curve = {name: np.asarray(values).tolist() for name, values in vars(self.curve).items()}
        plain: dict[str, Any] = to_plain(
            {
                "n_samples": self.n_samples,
                "values": self.values,
                "bounds": self.bounds,
                "resolution": self.resolution,
                "curve": curve,
            }
        )
        return plain


#: Calibration error -> how to compute it from cells and a number of bins.
_ERRORS: dict[str, Callable[[Cells, int], Bounded]] = {
    "ece_kde": lambda cells, _: density_error(cells),
    "ece": equal_mass_error,
    EQUAL_WIDTH: equal_width_error,
    "ks_error": lambda cells, _: cumulative_error(cells),
}


#: Calibration error -> its value, without a bound, for cells of the same confidences: bins are those of the first.
_VALUES: dict[str, Callable[[Cells, int], Callable[[Cells], float]]] = {
    "ece_kde": lambda *_: density_value,
    "ece": lambda cells, n_bins: partial(binned_error, bins=equal_mass_bins(cells, n_bins)[0]),
    EQUAL_WIDTH: lambda cells, n_bins: partial(binned_error, bins=equal_width_bins(cells, n_bins)[0]),
    "ks_error": lambda *_: cumulative_value,
}

#: The calibration errors that summaries show.
SUMMARY_ERRORS = tuple(name for name in SUMMARY_METRICS if name in _ERRORS)


def summarise(cells: Cells, losses: Mapping[str, float], n_bins: int, confidence_level: float) -> StateSummary:
    """Everything that a state knows."""
    bounded = {name: error(cells, n_bins) for name, error in _ERRORS.items()}
    bounded |= {name: Bounded(value, cells.rounding) for name, value in losses.items()}
    bounded["accuracy"] = Bounded(float(cells.correct.sum() / cells.n_samples), 0.0)
    order = [name for name in (*SUMMARY_METRICS, EQUAL_WIDTH) if name in bounded]
    return StateSummary(
        n_samples=int(cells.n_samples),
        values={name: bounded[name].value for name in order},
        bounds={name: bounded[name].bound for name in order},
        resolution=1 / cells.n_cells,
        curve=curve_of_cells(cells, n_bins, confidence_level),
    )


def check_errors(metrics: Collection[str] | None) -> list[str]:
    """Names of calibration errors, by default all of them."""
    if metrics is None:
        return list(_ERRORS)
    if not isinstance(metrics, (list, tuple, set, frozenset, dict)):
        raise ParameterError(f"metrics is {shown(metrics)}; give a list of: {', '.join(_ERRORS)}.")
    return [check_choice(name, _ERRORS, "metric") for name in metrics]


def floor_draws(
    cells: Cells, names: list[str], n_bins: int, n_draws: int, random_state: RandomState, n_threads: int | None
) -> dict[str, Floats]:
    """Calibration errors with right samples drawn per cell; metric -> (n_draws,) values."""
    errors = [_VALUES[name](cells, n_bins) for name in names]
    count, chance = cells.count.astype(np.int64), np.clip(cells.confidence / cells.count, 0.0, 1.0)

    def draw(generator: np.random.Generator) -> list[float]:
        drawn = cells.with_correct(generator.binomial(count, chance).astype(np.float64))
        return [error(drawn) for error in errors]

    draws = run_draws(draw, n_draws, random_state, n_threads)
    return {name: draws[:, j] for j, name in enumerate(names)}
