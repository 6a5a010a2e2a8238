"""Fits from calibration states, for methods that need only confidences and outcomes."""

from __future__ import annotations

from typing import Any, TypeVar

from veridical.calibrate.base import Calibrator
from veridical.combine.registry import COMBINERS
from veridical.errors import ParameterError
from veridical.metrics import CalibrationState
from veridical.predictions.validation import check_integer, check_names

_Fitted = TypeVar("_Fitted", bound=Calibrator)


def fit_from_state(
    calibrator: _Fitted, state: CalibrationState, n_classes: int, n_sources: int, source_names: Any
) -> _Fitted:
    """Fit a calibrator; see :meth:`veridical.calibrate.Calibrator.fit_state`."""
    calibrator.check_parameters()
    if not calibrator.fits_pairs():
        raise ParameterError(
            f"{calibrator.name} with combine={calibrator.combine!r} needs more than confidences and outcomes; fit it "
            "on predictions."
        )
    calibrator._fit_pairs(*state.pairs())
    calibrator._set_fitted(
        COMBINERS[calibrator.combine](),
        check_integer(n_sources, "n_sources", 1),
        check_integer(n_classes, "n_classes", 2),
        check_names(source_names, n_sources, "source"),
    )
    return calibrator
