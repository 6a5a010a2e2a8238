"""Sources and classes of new predictions, and those that a calibrator was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from veridical.combine.base import Combiner
from veridical.errors import ChangedSourcesWarning, ParameterError, ShapeError, warn_caller
from veridical.predictions import Predictions

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator

#: More names than these are counted.
_MOST_NAMES = 10


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
    by_name = combiner.has_weights and fitted is not None and names is not None
    if predictions.n_sources != calibrator.n_sources_ and (
        calibrator.fixed_number_of_sources or (combiner.has_weights and not by_name)
    ):
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_sources_} sources and the predictions have "
            f"{predictions.n_sources}; {calibrator.name} with combine={calibrator.combine!r} needs the same ones."
        )
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
