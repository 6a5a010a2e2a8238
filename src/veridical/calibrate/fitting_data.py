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
from veridical.predictions.validation import Array

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
        step = measured_samples(predictions.n_samples)
        known = {"confidence": confidence, "hv": hv}
        known = {name: values if values is None else values[step] for name, values in known.items()}
        return cls.of_measurements(measure(predictions.flat().select(samples=step), n_threads, **known))

    @classmethod
    def of_measurements(cls, measured: Array) -> FittingData:
        """The means and deviations of what :func:`measure` gave for some samples."""
        means_and_spreads = np.stack([measured.mean(axis=1), measured.std(axis=1)], axis=1)
        return cls(measured.shape[1], *means_and_spreads.ravel().tolist())

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


def measured_samples(n_samples: int) -> slice:
    """The samples of so many that are measured."""
    return slice(None, None, max(-(-n_samples // _MOST_SAMPLES), 1))


def measure(predictions: Predictions, n_threads: int | None = None, *, confidence: Any = None, hv: Any = None) -> Array:
    """(2, N) confidence of the mean and HV, where the caller does not have them; (1, N) of one source."""
    sources = SourcesInMemory(predictions, AbsentSkipped(n_threads))
    rows = [Mean().combine_in_memory(sources).probs.max(axis=1) if confidence is None else confidence]
    if predictions.n_sources > 1:
        rows.append(sources.kept_truth.hv if hv is None else hv)
    return np.array(rows, np.float64)


def warn_about_shift(fitted: FittingData | None, predictions: Predictions, n_threads: int | None = None) -> None:
    """Warn if predictions are far more or less confident, or disagree far more or less, than those of the fit."""
    if fitted is not None and predictions.n_samples >= _LEAST_SAMPLES:
        warn_about_difference(fitted, FittingData.of(predictions, n_threads))


def warn_about_difference(fitted: FittingData, new: FittingData) -> None:
    """The same of data that are measured already."""
    if new.n_samples < _LEAST_SAMPLES:
        return
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
