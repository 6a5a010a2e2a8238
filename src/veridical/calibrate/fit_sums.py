"""Fits from sums over samples, which merge: for calibrators that need no more than that of data in blocks."""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Combined, Labels
from veridical.combine.registry import COMBINERS
from veridical.errors import ParameterError
from veridical.metrics.sample import Sample
from veridical.metrics.state import CalibrationState
from veridical.predictions import Predictions
from veridical.predictions.validation import check_integer, check_names

_Fitted = TypeVar("_Fitted", bound=Calibrator)


class FitSums(Protocol):
    """Sums over samples from which a calibrator is fitted."""

    def prepared(self, combined: Combined, labels: Labels) -> Self:
        """Sums without samples, prepared for data such as these samples."""

    def of(self, combined: Combined, labels: Labels) -> Self:
        """The sums over some samples, with what these sums without samples are prepared for."""

    def merge(self, other: Self) -> Self:
        """The sums over the samples of both."""

    def covering(self, sums: Self) -> Self:
        """These sums without samples, if ``sums`` are enough for a fit; otherwise ones that are prepared for more."""

    def fit(self, calibrator: Calibrator) -> None:
        """Set the fitted attributes."""


class PairSums:
    """Confidences and outcomes, as a calibration state, for calibrators that need nothing else."""

    def __init__(self, state: CalibrationState | None = None) -> None:
        self._state = CalibrationState() if state is None else state

    def prepared(self, combined: Combined, labels: Labels) -> PairSums:
        """States hold any confidences."""
        return self

    def of(self, combined: Combined, labels: Labels) -> PairSums:
        """The state of some samples."""
        state = CalibrationState()
        return PairSums(
            state.update_sample(Sample(combined.confidence, combined.correct(labels))) if len(labels) else state
        )

    def merge(self, other: PairSums) -> PairSums:
        """The state of the samples of both."""
        return PairSums(self._state.merge(other._state))

    def covering(self, sums: PairSums) -> PairSums:
        """States are always enough."""
        return self

    def fit(self, calibrator: Calibrator) -> None:
        """Fit on weighted pairs, at most two for each cell of the state."""
        calibrator._fit_pairs(*self._state.pairs())


def fit_from_sums(calibrator: Calibrator, sums: FitSums, predictions: Predictions) -> None:
    """Fit a calibrator on sums over all samples of ``predictions``, whose numbers are not looked at."""
    sums.fit(calibrator)
    calibrator._set_fitted(
        COMBINERS[calibrator.combine](), predictions.n_sources, predictions.n_classes, predictions.source_names
    )
    calibrator.remember_scores(predictions.input_kind, predictions.class_names)


def fit_from_state(
    calibrator: _Fitted, state: CalibrationState, n_classes: int, n_sources: int, source_names: Any
) -> _Fitted:
    """Fit a calibrator; see :meth:`veridical.calibrate.Calibrator.fit_state`."""
    calibrator.check_parameters()
    if not isinstance(calibrator.new_sums(), PairSums):
        raise ParameterError(
            f"{calibrator.name} with combine={calibrator.combine!r} needs more than confidences and outcomes; fit it "
            "on predictions."
        )
    PairSums(state).fit(calibrator)
    calibrator._set_fitted(
        COMBINERS[calibrator.combine](),
        check_integer(n_sources, "n_sources", 1),
        check_integer(n_classes, "n_classes", 2),
        check_names(source_names, n_sources, "source"),
    )
    return calibrator
