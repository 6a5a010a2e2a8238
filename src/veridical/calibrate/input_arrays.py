"""Arrays that a calibrator is fitted on or predicts for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from veridical.calibrate.parameters import reject_estimators
from veridical.combine.combined import Labels
from veridical.errors import LabelError, ParameterError, ShapeError, shown
from veridical.predictions import Predictions
from veridical.predictions.container import as_predictions
from veridical.predictions.inputs import look_like_probabilities
from veridical.predictions.validation import InputKind, as_numbers

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator


def labelled_samples(predictions: Predictions, y: Any) -> tuple[Predictions, Labels]:
    """The samples whose label is known, on one axis, and their labels; ``y`` replaces labels of the predictions."""
    predictions = (predictions if y is None else predictions.with_labels(y)).flat().labelled()
    if predictions.n_samples == 0:
        raise ShapeError("there are no samples to calibrate on; at least one is needed.")
    if predictions.labels is None:
        raise LabelError("calibration needs labels; give y (labels=), one integer per sample.")
    return predictions, predictions.labels


def predictions_for(calibrator: Calibrator, values: Any, kind: InputKind) -> Predictions:
    """``values`` as predictions for a calibrator; ``kind`` is that of arrays."""
    if isinstance(values, Predictions):
        if calibrator.kind not in ("probs", values.kind, values.input_kind):
            raise ParameterError(
                f"kind={shown(calibrator.kind)} contradicts the predictions, which are {values.kind!r}."
            )
        return values
    reject_estimators(values, type(calibrator).__name__, calibrator.name)
    if kind == "binary" or n_dimensions(values) != 2:
        axis = 0 if kind == "binary" and n_dimensions(values) == 1 else calibrator.sources_axis
        return as_predictions(values, kind, axis)
    if calibrator.needs_sources:
        raise ShapeError(
            f"{calibrator.name} needs every source's predictions and got one array of shape {_shape_of(values)}; "
            "give shape (sources, samples, classes)."
        )
    return as_predictions(values, kind, 0)


def reject_two_dimensions(values: Any, n_sources: int) -> None:
    """Refuse one array (N, L), or one sample (S, L), where several sources were fitted on."""
    if n_dimensions(values) == 2:
        shape = _shape_of(values)
        raise ShapeError(
            f"this calibrator was fitted on {n_sources} sources and got an array of shape {shape}; "
            "give shape (sources, samples, classes), for one sample (sources, 1, classes), or veridical.Predictions of "
            "one source."
        )


def remembered_logits(predictions: Predictions) -> Predictions:
    """An array as the logits that were fitted on, which the caller does not declare; probabilities are refused."""
    if look_like_probabilities(tuple(predictions)):
        raise ParameterError(
            "this calibrator was fitted on logits and the array has probabilities; give logits, or "
            'veridical.Predictions(array, kind="probs").'
        )
    predictions.kind = predictions.input_kind = "logits"
    return predictions


def _shape_of(values: Any) -> tuple[int, ...]:
    """The shape of what n_dimensions takes for an array; rows of different lengths are refused."""
    shape = getattr(values, "shape", None)
    return tuple(shape) if shape is not None else as_numbers(values, "the array of predictions").shape


def n_dimensions(values: Any) -> int:
    """How many axes ``values`` has, without copying a list of arrays."""
    depth = 0
    while isinstance(values, (list, tuple, Mapping)) and values:
        depth, values = depth + 1, next(iter(values.values())) if isinstance(values, Mapping) else values[0]
    n_axes = getattr(values, "ndim", None)
    return depth + (n_axes if isinstance(n_axes, int) else as_numbers(values, "the array of predictions").ndim)
