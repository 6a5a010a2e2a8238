"""Sources and classes of new predictions, and those that a calibrator was fitted on."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from veridical.combine.combiner import Combiner
from veridical.errors import ChangedSourcesWarning, ParameterError, ShapeError
from veridical.predictions import Predictions

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator


def check_classes(calibrator: Calibrator, predictions: Predictions) -> None:
    """Raise where the classes are not those of the fit, in their order where both have names."""
    if predictions.n_classes != calibrator.n_classes_:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_classes_} classes and the predictions have "
            f"{predictions.n_classes}; fit one for them."
        )
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
    by_name = combiner.needs_same_sources and fitted is not None and names is not None
    if predictions.n_sources != calibrator.n_sources_ and (
        calibrator.fixed_number_of_sources or (combiner.needs_same_sources and not by_name)
    ):
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_sources_} sources and the predictions have "
            f"{predictions.n_sources}; {calibrator.name} with combine={calibrator.combine!r} needs the same ones."
        )
    if not by_name or fitted is None or names is None or names == fitted:
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


def _warn_about_changes(new: list[str], gone: list[str]) -> None:
    """Name the sources that have no fitted weight, and the fitted ones that are not there."""
    parts = []
    if new:
        parts.append(f"not fitted on, with the mean weight: {', '.join(new)}")
    if gone:
        parts.append(f"fitted on, left out: {', '.join(gone)}")
    if parts:
        warnings.warn(
            f"the sources are not those of the fit ({'; '.join(parts)}); fit again when labels are there.",
            ChangedSourcesWarning,
            stacklevel=5,
        )
