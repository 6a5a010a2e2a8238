"""What the data of a fit looked like, so that data that looks different can be noticed when a calibrator is applied."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical.combine.base import Mean
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.errors import ShiftedDataWarning, warn_caller
from veridical.predictions import Predictions

#: Enough samples to see a difference that matters.
_MOST_SAMPLES = 2000
#: With fewer new samples a difference says little.
_LEAST_SAMPLES = 50
#: A difference must exceed so many standard errors, and these amounts, to be reported.
_STANDARD_ERRORS = 4.0
_LEAST_SHIFT = 0.02
_LEAST_RATIO = 1.25


@dataclass(frozen=True)
class FittingData:
    """Means and standard deviations over samples before calibration.

    Attributes
    ----------
    n_samples : int
        How many samples were measured: at most 2,000, evenly spaced.
    confidence, confidence_spread : float
        Of the confidence of the sources' mean.
    hv, hv_spread : float or None
        Of the heterogeneity HV; None with one source.
    """

    n_samples: int
    confidence: float
    confidence_spread: float
    hv: float | None = None
    hv_spread: float | None = None

    @classmethod
    def of(
        cls, predictions: Predictions, n_threads: int | None = None, *, confidence: Any = None, hv: Any = None
    ) -> FittingData:
        """The measurements of some predictions, at least one.

        ``confidence`` of the mean and ``hv`` are those of all samples, if the caller has them already.
        """
        step = slice(None, None, -(-predictions.n_samples // _MOST_SAMPLES))
        some = predictions.flat().select(samples=step)
        sources = SourcesInMemory(some, AbsentSkipped(n_threads))
        if confidence is None:
            means = _mean_and_spread(Mean().combine_in_memory(sources).probs.max(axis=1))
        else:
            means = _mean_and_spread(confidence[step])
        if predictions.n_sources > 1:
            means += _mean_and_spread(sources.kept_truth.hv if hv is None else hv[step])
        return cls(some.n_samples, *means)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> FittingData:
        """What :meth:`to_dict` returned, checked; ValueError if it is something else."""
        names = set(cls.__dataclass_fields__)
        if not isinstance(content, dict) or set(content) != names:
            raise ValueError(f"the data of the fit is described by {sorted(names)}")
        for name, value in content.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not (is_number and value >= 0) and not (value is None and name.startswith("hv")):
                raise ValueError(f"{name} of the data of the fit is {value!r}")
        return cls(**content)


def _mean_and_spread(values: Any) -> list[float]:
    numbers = np.asarray(values, np.float64)
    return [float(numbers.mean()), float(numbers.std())]


def warn_about_shift(fitted: FittingData | None, predictions: Predictions, n_threads: int | None = None) -> None:
    """Warn if predictions are far more or less confident, or disagree far more or less, than those of the fit."""
    if fitted is None or predictions.n_samples < _LEAST_SAMPLES:
        return
    new = FittingData.of(predictions, n_threads)
    differences = []
    shift = abs(new.confidence - fitted.confidence)
    error = _standard_error(new.confidence_spread, new.n_samples, fitted.confidence_spread, fitted.n_samples)
    if shift > max(_STANDARD_ERRORS * error, _LEAST_SHIFT):
        differences.append(f"their mean confidence is {100 * new.confidence:.1f}% ({100 * fitted.confidence:.1f}%)")
    if new.hv is not None and new.hv_spread is not None and fitted.hv is not None and fitted.hv_spread is not None:
        error = _standard_error(new.hv_spread, new.n_samples, fitted.hv_spread, fitted.n_samples)
        low, high = sorted((new.hv, fitted.hv))
        if high - low > _STANDARD_ERRORS * error and high > _LEAST_RATIO * low:
            differences.append(f"their mean HV is {new.hv:.3g} ({fitted.hv:.3g})")
    if differences:
        warn_caller(
            f"the predictions differ from those that the calibrator was fitted on (in brackets): "
            f"{' and '.join(differences)}; confidences may be wrong unless both were made in the same way, for example "
            "both out of fold or both averages over folds.",
            ShiftedDataWarning,
        )


def _standard_error(spread: float, n: int, other_spread: float, other_n: int) -> float:
    return math.sqrt(spread**2 / n + other_spread**2 / other_n)
