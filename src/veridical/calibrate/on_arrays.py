"""Fitted calibrators on arrays of other libraries: the same formulas with operations of the array API standard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veridical.backends.foreign import Foreign, NeedsHostError
from veridical.backends.namespace import LABEL_MARGIN, at_label, one_hot, project, softmax, widest_float
from veridical.calibrate.base import Calibrator
from veridical.calibrate.isotonic import TIE_BREAKER
from veridical.calibrate.logistic import CLOSEST
from veridical.calibrate.matching import warn_about_number
from veridical.calibrate.temperature import SMALLEST_PROBABILITY
from veridical.calibrate.truth_logit import FURTHEST
from veridical.combine.combined import Combined as CombinedArrays
from veridical.combine.sources import Sources as LoadedArrays
from veridical.combine.sources import load_arrays
from veridical.errors import ParameterError, ShapeError


def predict_proba(calibrator: Calibrator, foreign: Foreign) -> Any:
    """Distributions, as arrays of the same library on the same device."""
    return _predict(calibrator, foreign, "predict_proba")


def predict_confidence(calibrator: Calibrator, foreign: Foreign) -> Any:
    """Confidences, as an array of the same library on the same device."""
    return _predict(calibrator, foreign, "predict_confidence")


def predict(calibrator: Calibrator, foreign: Foreign) -> Any:
    """Labels, as an array of the same library on the same device."""
    return _predict(calibrator, foreign, "predict")


def predict_all(calibrator: Calibrator, foreign: Foreign) -> Any:
    """All three, as arrays of the same library on the same device."""
    return _predict(calibrator, foreign, "predict_all")


def _predict(calibrator: Calibrator, foreign: Foreign, answer: str) -> Any:
    calibrator.check_fitted()
    fitted = calibrator.fitted_calibrator
    if _matched_by_name(fitted, foreign):
        raise NeedsHostError
    loaded = _load(fitted, foreign)
    _check_shape(fitted, loaded.probs.shape)
    names = tuple(foreign.values) if isinstance(foreign.values, Mapping) else None
    warn_about_number(fitted, loaded.probs.shape[0], names, loaded.probs.shape[1])
    results = answer_arrays(fitted, fitted.combiner_.combine_arrays(loaded), answer)
    if answer == "predict_all":
        return tuple(loaded.in_sample_shape(result) for result in results)
    return loaded.in_sample_shape(results)


def _matched_by_name(calibrator: Calibrator, foreign: Foreign) -> bool:
    """Whether fitted weights are matched to sources that are not in the order of the fit."""
    if not isinstance(foreign.values, Mapping) or not calibrator.combiner_.has_weights:
        return False
    return calibrator.source_names_ is not None and tuple(foreign.values) != calibrator.source_names_


def _load(calibrator: Calibrator, foreign: Foreign) -> LoadedArrays:
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


def _check_shape(calibrator: Calibrator, shape: tuple[int, ...]) -> None:
    if shape[2] != calibrator.n_classes_:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_classes_} classes and the predictions have {shape[2]}; fit "
            "one for them."
        )
    needs_same = calibrator.fixed_number_of_sources or calibrator.combiner_.has_weights
    if shape[0] != calibrator.n_sources_ and needs_same:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_sources_} sources and the predictions have {shape[0]}; "
            f"{calibrator.name} with combine={calibrator.combine!r} needs the same ones."
        )


def _distributions(calibrator: Calibrator, combined: CombinedArrays) -> Any:
    """(N, L) calibrated distributions; labels are kept where the method keeps them."""
    xp = combined.xp
    if calibrator._top_label:
        confidence = confidence_of(calibrator, combined)
        # A confidence of exactly one would leave nothing for the other classes.
        confidence = xp.minimum(confidence, xp.full_like(confidence, 1.0 - LABEL_MARGIN))
        probs = _replace_top(xp, combined.probs, combined.prediction, confidence)
    else:
        probs = distribution_of(calibrator, combined)
    if calibrator._top_label or calibrator.keeps_labels:
        probs = probs / xp.sum(probs, axis=1, keepdims=True)
        probs = project(xp, probs, combined.prediction, LABEL_MARGIN)
    return xp.astype(probs, combined.dtype, copy=False)


def _replace_top(xp: Any, probs: Any, labels: Any, confidence: Any) -> Any:
    """The labels' scores become ``confidence``; the others share the rest as they did, or equally where they are 0."""
    is_label = one_hot(xp, labels, probs.shape[1])
    confidence = xp.astype(confidence, probs.dtype, copy=False)
    others = xp.where(is_label, xp.zeros_like(probs), probs)
    total = xp.sum(others, axis=1, keepdims=True)
    some = total > float(xp.finfo(probs.dtype).smallest_normal)
    equal = xp.where(is_label, xp.zeros_like(probs), xp.full_like(probs, 1 / (probs.shape[1] - 1)))
    shares = xp.where(some, others / xp.where(some, total, xp.ones_like(total)), equal)
    return xp.where(is_label, confidence[:, None], shares * (1 - confidence)[:, None])


def _confidences(calibrator: Calibrator, combined: CombinedArrays) -> Any:
    if calibrator._top_label:
        return confidence_of(calibrator, combined)
    probs = _distributions(calibrator, combined)
    top = widest_float(combined.xp, at_label(combined.xp, probs, _labels(calibrator, combined, probs)))
    return combined.xp.minimum(top, combined.xp.ones_like(top))


def _labels(calibrator: Calibrator, combined: CombinedArrays, probs: Any = None) -> Any:
    if calibrator.keeps_labels:
        return combined.prediction
    return combined.xp.argmax(_distributions(calibrator, combined) if probs is None else probs, axis=1)


def _all_three(calibrator: Calibrator, combined: CombinedArrays) -> tuple[Any, Any, Any]:
    probs = _distributions(calibrator, combined)
    return probs, _confidences(calibrator, combined), _labels(calibrator, combined, probs)


def answer_arrays(calibrator: Calibrator, combined: CombinedArrays, answer: str) -> Any:
    """What a fitted calibrator's method ``answer`` returns for combined arrays."""
    return _ANSWERS[answer](calibrator, combined)


_ANSWERS = {
    "predict_proba": _distributions,
    "predict_confidence": _confidences,
    "predict": _labels,
    "predict_all": _all_three,
}


# Methods that correct whole vectors -----------------------------------------------------------------------------------


def distribution_of(calibrator: Any, combined: CombinedArrays) -> Any:
    """(N, L) calibrated distributions of a method that corrects whole vectors."""
    xp, probs, constant = combined.xp, combined.probs, combined.constant
    match calibrator.name:
        case "identity" | "linear-pool" | "log-pool" | "consensus" | "aconsensus":
            return probs
        case "temperature":
            return softmax(xp, _logs(xp, probs) / calibrator.temperature_)
        case "ets":
            scaled = softmax(xp, _logs(xp, probs) / calibrator.temperature_)
            first, second, third = (float(weight) for weight in calibrator.weights_)
            return first * scaled + second * probs + third / probs.shape[1]
        case "vector" | "matrix":
            logs = _logs(xp, probs)
            logs = logs - xp.mean(logs, axis=1, keepdims=True)
            scores = logs * constant(calibrator.factors_)[None, :] + constant(calibrator.offsets_)[None, :]
            if calibrator.name == "matrix":
                scores = scores + logs @ constant(calibrator.matrix_.T)
            return softmax(xp, scores)
        case "irm":
            fitted = _interpolate(combined, probs, calibrator.thresholds_, calibrator.values_) + TIE_BREAKER * probs
        case "irova":
            columns = [
                _interpolate(combined, probs[:, l], *calibrator._steps_of(l)) for l in range(calibrator.n_classes_)
            ]
            fitted = xp.stack(columns, axis=1) + TIE_BREAKER * probs
        case _:
            raise ParameterError(f"{calibrator.name} has no form for arrays that are not in host memory.")
    return fitted / xp.sum(fitted, axis=1, keepdims=True)


def _logs(xp: Any, probs: Any) -> Any:
    """ln p, each row shifted so that its largest entry is 0."""
    logs = xp.log(xp.maximum(probs, xp.full_like(probs, SMALLEST_PROBABILITY)))
    return logs - xp.max(logs, axis=1, keepdims=True)


def _interpolate(combined: CombinedArrays, at: Any, x: Any, y: Any) -> Any:
    """``numpy.interp`` with constants of a fitted method."""
    xp = combined.xp
    if len(x) == 1:
        return xp.full_like(at, float(y[0]))
    # Of equal thresholds, which NumPy answers with the last, only the ends are kept.
    knots, values = combined.constant(x), combined.constant(y)
    flat = xp.reshape(at, (-1,)) + 0.0  # a column of a matrix becomes contiguous, which PyTorch's search wants
    upper = xp.searchsorted(knots, flat, side="right")
    upper = xp.clip(upper, 1, knots.shape[0] - 1)
    low, high = xp.take(knots, upper - 1), xp.take(knots, upper)
    low_value, high_value = xp.take(values, upper - 1), xp.take(values, upper)
    width = high - low
    share = (flat - low) / xp.where(width > 0, width, xp.ones_like(width))
    share = xp.clip(share, 0.0, 1.0)
    return xp.reshape(low_value + share * (high_value - low_value), at.shape)


# Methods that correct the confidence ----------------------------------------------------------------------------------


def confidence_of(calibrator: Any, combined: CombinedArrays) -> Any:
    """(N,) calibrated confidence of the predicted label, of a method that corrects the confidence."""
    xp, confidence = combined.xp, combined.confidence
    match calibrator.name:
        case "histogram":
            return _of_bin(combined, calibrator.edges_, calibrator.accuracy_)
        case "isotonic":
            return _interpolate(combined, confidence, calibrator.thresholds_, calibrator.values_)
        case "platt":
            return _expit(xp, calibrator.slope_ * _logit(xp, confidence) + calibrator.intercept_)
        case "spline":
            spline = _interpolate(combined, confidence, calibrator.scores_, calibrator.recalibrated_)
            return xp.clip(spline, 0.0, 1.0)
        case "opt-hist" | "opt-kde" | "ptde-hist" | "ptde-kde":
            psi = _of_bin(combined, calibrator.edges_, calibrator.psi_)
            return xp.clip(confidence - psi * _reach(calibrator, combined), 0.0, 1.0)
        case "truth-logit":
            constant = combined.constant
            features = _truth_features(combined)
            centres, spreads = constant(calibrator.centres_), constant(calibrator.spreads_)
            features = xp.clip((features - centres) / spreads, -FURTHEST, FURTHEST)
            coefficients = constant(calibrator.coefficients_)
            return _expit(xp, coefficients[0] + features @ coefficients[1:])
        case _:
            raise ParameterError(f"{calibrator.name} has no form for arrays that are not in host memory.")


def _of_bin(combined: CombinedArrays, edges: Any, values: Any) -> Any:
    """The value of each score's bin (lo, hi]."""
    xp = combined.xp
    if not len(edges):
        return xp.full_like(combined.confidence, float(values[0]))
    bins = xp.searchsorted(combined.constant(edges), combined.confidence, side="left")
    return xp.take(combined.constant(values), bins)


def _reach(calibrator: Any, combined: CombinedArrays) -> Any:
    """1 + g min(HV / unit, 1) for pTDE, or 1 + HV where it was fitted on raw HV; 1 for opt."""
    unit, gain = getattr(calibrator, "hv_unit_", 0.0), getattr(calibrator, "hv_gain_", 0.0)
    if calibrator.name.startswith("ptde") and calibrator.hv_scale == "raw":
        return 1 + combined.hv
    if unit == 0.0 or gain == 0.0:
        return 1.0
    ratio = combined.hv / unit
    return 1 + gain * combined.xp.minimum(ratio, combined.xp.ones_like(ratio))


def _logit(xp: Any, scores: Any) -> Any:
    # In float32, 1 - CLOSEST is 1 where CLOSEST is below its rounding.
    least = max(CLOSEST, float(xp.finfo(scores.dtype).eps))
    inside = xp.clip(scores, CLOSEST, 1 - least)
    return xp.log(inside) - xp.log1p(-inside)


def _expit(xp: Any, scores: Any) -> Any:
    return 1 / (1 + xp.exp(-scores))


def _truth_features(combined: CombinedArrays) -> Any:
    """(N, 6): what is known of each sample's predicted label."""
    xp, label = combined.xp, combined.prediction
    truth = widest_float(xp, combined.truth.probs)
    is_label = one_hot(xp, label, truth.shape[1])
    runner_up = xp.max(xp.where(is_label, xp.full_like(truth, -1.0), truth), axis=1)
    log_hv = xp.log(combined.hv / combined.n_sources + CLOSEST)
    geometric = combined.geometric_mean
    columns = (
        _logit(xp, combined.confidence),
        log_hv,
        _logit(xp, at_label(xp, truth, label)),
        xp.log(xp.maximum(runner_up, xp.full_like(runner_up, CLOSEST))),
        combined.confidence * log_hv,
        _logit(xp, at_label(xp, geometric, label)),
    )
    return xp.stack(columns, axis=1)
