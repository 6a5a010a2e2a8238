"""Predictions of fitted calibrators for whatever is handed to them, and their results in any array namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from veridical._dispatch import handler_of
from veridical.backends.foreign import Foreign, NeedsHostError, as_foreign, results_from_host
from veridical.backends.namespace import at_label
from veridical.backends.rows import at_most, cast, row_sums, with_confidence, with_leading_labels
from veridical.calibrate.samples import check_number_of_classes, check_number_of_sources, warn_about_number
from veridical.combine.sources import Sources, load_arrays

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator


def predict(calibrator: Calibrator, wanted: str, values: Any) -> Any:
    """What the method called ``wanted`` returns for arrays and predictions of every kind."""
    calibrator.check_fitted()
    chosen = calibrator.fitted_calibrator
    combined = calibrator._combine_array(values)
    if combined is not None:
        return chosen.predict_combined(combined, wanted)
    out_of_memory = handler_of(wanted, values)
    if out_of_memory is not None:
        return out_of_memory(calibrator, values)
    foreign = as_foreign(values)
    if foreign is not None and foreign.takes_array_path:
        try:
            return _predict_on_device(calibrator, wanted, foreign)
        except NeedsHostError:
            pass
    predictions = calibrator.new_predictions(values)
    shaped = _in_shape(chosen.predict_combined(chosen.combine_new(predictions), wanted), predictions)
    return shaped if foreign is None else results_from_host(shaped, foreign)


def results(calibrator: Calibrator, wanted: str, combined: Any) -> Any:
    """What the method called ``wanted`` returns for combined samples, in their namespace."""
    xp, label = combined.xp, combined.prediction
    if wanted == "predict" and calibrator.keeps_labels:
        return label
    values = calibrator.formula(xp, combined)
    if calibrator.whole_vectors:
        probs = cast(xp, values / row_sums(xp, values), combined.dtype)
    elif wanted == "predict_confidence":
        return values
    else:
        probs = cast(xp, with_confidence(xp, combined.probs, label, values), combined.dtype)
    if calibrator.keeps_labels:
        probs = with_leading_labels(xp, probs, label)
    else:
        label = xp.argmax(probs, axis=1)
    if wanted in ("predict_proba", "predict"):
        return label if wanted == "predict" else probs
    if calibrator.whole_vectors:
        values = at_most(xp, cast(xp, at_label(xp, probs, label), combined.probs.dtype), 1.0)
    return values if wanted == "predict_confidence" else (probs, values, label)


def _predict_on_device(calibrator: Calibrator, wanted: str, foreign: Foreign) -> Any:
    """What the method called ``wanted`` returns, as arrays of the same library on the same device."""
    fitted = calibrator.fitted_calibrator
    names = tuple(foreign.values) if isinstance(foreign.values, Mapping) else None
    by_name = names is not None and fitted.combiner_.has_weights and fitted.source_names_ is not None
    if by_name and names != fitted.source_names_:
        raise NeedsHostError  # weights are matched there
    loaded = _load(calibrator, foreign)
    n_sources, n_samples, n_classes = loaded.probs.shape
    check_number_of_classes(fitted, n_classes)
    check_number_of_sources(fitted, n_sources)
    warn_about_number(fitted, n_sources, names, n_samples)
    return _in_shape(fitted.predict_combined(fitted.combiner_.combine_arrays(loaded), wanted), loaded)


def _in_shape(answer: Any, samples: Any) -> Any:
    """One result or several with pixels in the shape of their images."""
    if isinstance(answer, tuple):
        return tuple(map(samples.in_sample_shape, answer))
    return samples.in_sample_shape(answer)


def _load(calibrator: Calibrator, foreign: Foreign) -> Sources:
    kind = calibrator.kind_of_arrays
    n_axes = foreign.parts[0].ndim + (foreign.values is not foreign.parts[0])
    if kind == "binary" and n_axes == 1:
        return load_arrays(foreign, kind, 0, calibrator.missing)
    if kind == "binary" or n_axes != 2:
        loaded = load_arrays(foreign, kind, calibrator.sources_axis, calibrator.missing)
        if kind == "logits" != calibrator.kind and not foreign.traced and _are_probabilities(loaded.xp, foreign):
            raise NeedsHostError
        return loaded
    if calibrator.needs_sources or calibrator.n_sources_ > 1:
        raise NeedsHostError
    return load_arrays(foreign, kind, 0, calibrator.missing)


def _are_probabilities(xp: Any, foreign: Foreign) -> bool:
    """Whether what would be taken for logits sums to one."""
    first = foreign.parts[0]
    return bool(xp.all(first >= 0)) and bool(xp.all(xp.abs(xp.sum(first, axis=-1) - 1) < 1e-3))
