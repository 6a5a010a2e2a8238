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
#: The standard error of what one group cannot tell.
_UNKNOWN = 1e9
_LEAST_FREEDOM = 1e-3
#: What is known of samples with groups alone.
_WITH_GROUPS = ("n_groups", "confidence_error", "hv_error")


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
    n_groups : float or None
        How many groups the samples belong to, where they have groups: counted as fewer if some are much larger.
    confidence_error, hv_error : float or None
        Standard errors of the means, with samples of one group as dependent as they are; None without groups.
    """

    n_samples: int
    confidence: float
    confidence_spread: float
    hv: float | None = None
    hv_spread: float | None = None
    n_groups: float | None = None
    confidence_error: float | None = None
    hv_error: float | None = None

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
        some = predictions.flat().select(samples=step)
        return cls.of_measurements(measure(some, n_threads, **known), some.groups)

    @classmethod
    def of_measurements(cls, measured: Array, groups: Array | None = None) -> FittingData:
        """The means and deviations of what :func:`measure` gave for some samples."""
        means: dict[str, float] = {}
        for name, values in zip(("confidence", "hv"), measured, strict=False):
            means |= {name: float(values.mean()), f"{name}_spread": float(values.std())}
            if groups is not None:
                means[f"{name}_error"], means["n_groups"] = _error_of_groups(values, groups)
        return cls(measured.shape[1], **means)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; without groups nothing is said of them."""
        return {key: value for key, value in asdict(self).items() if value is not None or key not in _WITH_GROUPS}

    @classmethod
    def from_dict(cls, content: Any) -> FittingData:
        """What :meth:`to_dict` returned, checked; ValueError if it is something else."""
        names = set(cls.__dataclass_fields__)
        if isinstance(content, dict):
            content = dict.fromkeys(_WITH_GROUPS) | content  # files of earlier versions know of no groups
        if not isinstance(content, dict) or set(content) != names:
            raise ValueError(f"the data of the fit is described by {sorted(names)}")
        for name, value in content.items():
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not (is_number and value >= 0) and not (value is None and name.startswith(("hv", *_WITH_GROUPS))):
                raise ValueError(f"{name} of the data of the fit is {value!r}")
        return cls(**content)


def measured_samples(n_samples: int) -> slice:
    """The samples of so many that are measured."""
    return slice(None, None, max(-(-n_samples // _MOST_SAMPLES), 1))


def measure(predictions: Predictions, n_threads: int | None = None, *, confidence: Any = None, hv: Any = None) -> Array:
    """(2, N) confidence of the mean and HV, where the caller does not have them; (1, N) of one source."""
    sources = SourcesInMemory(predictions, AbsentSkipped(n_threads))
    sources.expects_truth = predictions.n_sources > 1 and hv is None
    rows = [Mean().combine_in_memory(sources).probs.max(axis=1) if confidence is None else confidence]
    if predictions.n_sources > 1:
        rows.append(sources.kept_truth.hv if hv is None else hv)
    return np.array(rows, np.float64)


def _error_of_groups(values: Any, groups: Any) -> tuple[float, float]:
    """The standard error of a mean over samples that depend on each other within groups; how many groups there are.

    One group tells nothing about others: the error is infinite.
    """
    codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    sums = np.bincount(codes.reshape(-1), values - values.mean())
    n_groups = float(sizes.sum()) ** 2 / float((sizes.astype(np.float64) ** 2).sum())
    if n_groups <= 1:
        return _UNKNOWN, n_groups
    return math.sqrt(float(sums @ sums) * n_groups / (n_groups - 1)) / len(values), n_groups


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
    if shift > max(_chance_of(new, fitted, "confidence"), _LEAST_SHIFT):
        differences.append(f"their mean confidence is {100 * new.confidence:.1f}% ({100 * fitted.confidence:.1f}%)")
    if new.hv is not None and fitted.hv is not None:
        low, high = sorted((new.hv, fitted.hv))
        if high - low > _chance_of(new, fitted, "hv") and high > _LEAST_RATIO * low:
            differences.append(f"their mean HV is {new.hv:.3g} ({fitted.hv:.3g})")
    if differences:
        warn_caller(
            f"the predictions differ from those that the calibrator was fitted on (in brackets): "
            f"{' and '.join(differences)}; confidences may be wrong unless both were made in the same way, for example "
            "both out of fold or both averages over folds.",
            ShiftedDataWarning,
        )


def _chance_of(new: FittingData, fitted: FittingData, name: str) -> float:
    """The largest difference of means that is chance: so many standard errors, and more where groups are few."""
    variance = shares = 0.0
    for data in (new, fitted):
        error = getattr(data, f"{name}_error") or 0.0
        own = max(getattr(data, f"{name}_spread") / math.sqrt(data.n_samples), error) ** 2
        variance += own
        shares += 0.0 if data.n_groups is None else own**2 / max(data.n_groups - 1, _LEAST_FREEDOM)
    if shares == 0.0:
        return _STANDARD_ERRORS * math.sqrt(variance)
    # Degrees of freedom by Satterthwaite; of Student's t, the quantile that corresponds to a normal one by Wallace.
    freedom = variance**2 / shares
    scaled = _STANDARD_ERRORS * (8 * freedom + 3) / (8 * freedom + 1)
    return math.sqrt(variance * freedom * math.expm1(min(scaled**2 / freedom, 300.0)))
