"""Samples that a calibrator is fitted on or predicts for: read, and matched with those of the fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from veridical.calibrate.parameters import reject_estimators
from veridical.combine.base import Combiner
from veridical.combine.combined import Labels
from veridical.errors import ChangedSourcesWarning, LabelError, ParameterError, ShapeError, shown, warn_caller
from veridical.predictions import Predictions
from veridical.predictions.container import as_predictions
from veridical.predictions.inputs import look_like_probabilities
from veridical.predictions.validation import InputKind, as_numbers

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator

#: More names than these are counted.
_MOST_NAMES = 10


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


def check_classes(calibrator: Calibrator, predictions: Predictions) -> None:
    """Raise where the classes are not those of the fit, in their order where both have names."""
    check_number_of_classes(calibrator, predictions.n_classes)
    fitted, names = getattr(calibrator, "class_names_", None), predictions.class_names
    if fitted is None or names is None or names == fitted:
        return
    number = next(label for label in range(len(names)) if names[label] != fitted[label])
    remedy = (
        "apply_calibrator matches classes by name, and predictions.in_class_order orders them"
        if set(names) == set(fitted)
        else "give the classes of the fit, or leave their names out"
    )
    raise ParameterError(
        f"class {number} of the predictions is {names[number]!r} and was {fitted[number]!r} at the fit; {remedy}."
    )


def order_of_fit(calibrator: Calibrator, predictions: Predictions) -> tuple[str, ...] | None:
    """The names of the classes in the order of the fit, where the predictions have the same ones in another order."""
    fitted, names = getattr(calibrator, "class_names_", None), predictions.class_names
    if fitted is None or names is None or names == fitted or sorted(names) != sorted(fitted):
        return None
    order: tuple[str, ...] = fitted
    return order


def match_sources(calibrator: Calibrator, predictions: Predictions) -> tuple[Combiner, Predictions]:
    """Learned weights and the sources that they belong to, matched by name where both have names."""
    combiner, fitted, names = calibrator.combiner_, calibrator.source_names_, predictions.source_names
    by_name = combiner.has_weights and fitted is not None and names is not None
    check_number_of_sources(calibrator, predictions.n_sources, matched=by_name)
    if not by_name or fitted is None or names is None:
        warn_about_number(calibrator, predictions.n_sources, names, predictions.n_samples)
        return combiner, predictions
    if names == fitted:
        return combiner, predictions
    known = [name for name in fitted if name in names]
    if not known:
        raise ParameterError(
            f"none of the sources ({', '.join(names)}) is one that this calibrator has a weight for "
            f"({', '.join(fitted)}); give the sources it was fitted on, or leave their names out."
        )
    new = [name for name in names if name not in fitted]
    _warn_about_changes(new, [name for name in fitted if name not in names])
    ordered = predictions.select(sources=[*known, *new])
    if len(known) == len(fitted) and not new:
        return combiner, ordered
    return combiner.for_sources([fitted.index(name) for name in known], len(new)), ordered


def warn_about_number(
    calibrator: Calibrator, n_sources: int, names: Sequence[str] | None = None, n_samples: int | None = None
) -> None:
    """Warn about more, fewer or partly other sources than those of the fit, where any number can be combined.

    Names that have nothing in common are those of other files for the same sources, such as net1_val and net1_test.
    """
    fitted = calibrator.source_names_
    new = [name for name in names or () if name not in (fitted or ())]
    gone = [name for name in fitted or () if name not in (names or ())]
    is_named = fitted is not None and names is not None and len(gone) < len(fitted)
    if n_sources == calibrator.n_sources_ and not (is_named and new):
        return
    message = f"the calibrator was fitted on {_sources(calibrator.n_sources_)} and {_these_are(n_sources)}"
    details = _changes(new, gone, "not fitted on") if is_named else []
    message += f" ({'; '.join(details)})" if details else ""
    if n_sources != calibrator.n_sources_ == n_samples:
        advice = "if the axes are swapped, give shape (sources, samples, classes), or pass sources_axis"
    else:
        advice = "they are combined all the same, and confidences are right only for the sources of the fit: fit again"
    warn_caller(f"{message}; {advice}.", ChangedSourcesWarning)


def _sources(count: int) -> str:
    return f"{count:,} source{'s' * (count != 1)}"


def _these_are(count: int) -> str:
    return "this is 1" if count == 1 else f"these are {count:,}"


def _warn_about_changes(new: list[str], gone: list[str]) -> None:
    """Name the sources that have no fitted weight, and the fitted ones that are not there."""
    changes = _changes(new, gone, "not fitted on, with the mean weight")
    if changes:
        warn_caller(
            f"the sources are not those of the fit ({'; '.join(changes)}); fit again when labels are there.",
            ChangedSourcesWarning,
        )


def _changes(new: list[str], gone: list[str], about_new: str) -> list[str]:
    """What to say about new sources and about those that are not there."""
    parts = ((about_new, new), ("fitted on, left out", gone))
    return [f"{about}: {_listed(names)}" for about, names in parts if names]


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + rest


def check_number_of_classes(calibrator: Calibrator, n_classes: int) -> None:
    if n_classes != calibrator.n_classes_:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_classes_} classes and the predictions have {n_classes}; fit "
            "one for them."
        )


def check_number_of_sources(calibrator: Calibrator, n_sources: int, *, matched: bool = False) -> None:
    """Raise where another number of sources cannot be combined; weights may be ``matched`` by name."""
    needs_same = calibrator.fixed_number_of_sources or (calibrator.combiner_.has_weights and not matched)
    if n_sources != calibrator.n_sources_ and needs_same:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_sources_} sources and the predictions have {n_sources}; "
            f"{calibrator.name} with combine={calibrator.combine!r} needs the same ones."
        )
