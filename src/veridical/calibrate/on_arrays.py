"""Fitted calibrators on arrays of other libraries: the same formulas with operations of the array API standard."""

from __future__ import annotations

from typing import Any

from veridical.arrays.foreign import Foreign, results_from_host, to_host
from veridical.arrays.truth import LABEL_MARGIN, at_label, one_hot, project
from veridical.calibrate.base import Calibrator
from veridical.calibrate.isotonic import TIE_BREAKER
from veridical.calibrate.logistic import CLOSEST
from veridical.calibrate.temperature import SMALLEST_PROBABILITY
from veridical.calibrate.truth_logit import FURTHEST
from veridical.combine.on_arrays import CombinedArrays, InvalidOnDeviceError, load_arrays, softmax
from veridical.combine.pools import FLOORS
from veridical.errors import ParameterError, ShapeError


def predict_foreign(calibrator: Calibrator, foreign: Foreign, answer: str) -> Any:
    """What a calibrator's method ``answer`` returns, as arrays of the same library on the same device."""
    calibrator.check_fitted()
    fitted = calibrator.fitted_calibrator
    needs_host = fitted.combiner_.dependence is not None and fitted.missing == "skip"
    if foreign.takes_array_path and (not needs_host or foreign.traced):
        try:
            loaded = load_arrays(_as_sources(fitted, foreign), fitted.kind, fitted.sources_axis, fitted.missing)
            _check_shape(fitted, loaded.probs.shape)
            combined = CombinedArrays(loaded, fitted.combiner_, missing=fitted.missing)
            return _ANSWERS[answer](fitted, combined)
        except InvalidOnDeviceError:
            pass  # the host says what is wrong
    return results_from_host(getattr(calibrator, answer)(to_host(foreign.values)), foreign)


def _as_sources(calibrator: Calibrator, foreign: Foreign) -> Foreign:
    if foreign.values.ndim == 2 and calibrator.needs_sources:
        raise ShapeError(
            f"{calibrator.name} needs every source's predictions and got one array of shape "
            f"{tuple(foreign.values.shape)}; give shape (sources, samples, classes)."
        )
    if foreign.values.ndim == 2 and calibrator.sources_axis:
        one = foreign.values[:, None, :]
        return Foreign(one, foreign.library, foreign.on_host, foreign.traced, foreign.differentiated)
    return foreign


def _check_shape(calibrator: Calibrator, shape: tuple[int, ...]) -> None:
    if shape[2] != calibrator.n_classes_:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_classes_} classes and the predictions have {shape[2]}; fit "
            "one for them."
        )
    needs_same = calibrator.fixed_number_of_sources or calibrator.combiner_.needs_same_sources
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
        # A top score of exactly one would leave nothing for the other classes.
        confidence = xp.minimum(confidence, xp.full_like(confidence, 1.0 - LABEL_MARGIN))
        probs = _replace_top(xp, combined.probs, combined.prediction, confidence)
    else:
        probs = distribution_of(calibrator, combined)
    if calibrator._top_label or calibrator.keeps_labels:
        probs = probs / xp.sum(probs, axis=1, keepdims=True)
        probs = project(xp, probs, combined.prediction, LABEL_MARGIN)
    return probs


def _replace_top(xp: Any, probs: Any, labels: Any, confidence: Any) -> Any:
    """The labels' scores become ``confidence``; the others share the rest as they did, or equally where they are 0."""
    is_label = one_hot(xp, labels, probs.shape[1])
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
    top = at_label(combined.xp, probs, _labels(calibrator, combined, probs))
    return combined.xp.minimum(top, combined.xp.ones_like(top))


def _labels(calibrator: Calibrator, combined: CombinedArrays, probs: Any = None) -> Any:
    if calibrator.keeps_labels:
        return combined.prediction
    return combined.xp.argmax(_distributions(calibrator, combined) if probs is None else probs, axis=1)


def _all_three(calibrator: Calibrator, combined: CombinedArrays) -> tuple[Any, Any, Any]:
    probs = _distributions(calibrator, combined)
    return probs, _confidences(calibrator, combined), _labels(calibrator, combined, probs)


_ANSWERS = {
    "predict_proba": _distributions,
    "predict_confidence": _confidences,
    "predict": _labels,
    "predict_all": _all_three,
}


# Methods that correct whole vectors -----------------------------------------------------------------------------------


def distribution_of(calibrator: Any, combined: CombinedArrays) -> Any:
    """(N, L) calibrated distributions of a method that corrects whole vectors."""
    xp, probs, constant = combined.xp, combined.probs, combined.loaded.constant
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
    knots, values = combined.loaded.constant(x), combined.loaded.constant(y)
    flat = xp.reshape(at, (-1,))
    upper = xp.searchsorted(knots, flat, side="right")
    upper = xp.clip(upper, 1, knots.shape[0] - 1)
    low, high = xp.take(knots, upper - 1), xp.take(knots, upper)
    low_value, high_value = xp.take(values, upper - 1), xp.take(values, upper)
    width = high - low
    share = (flat - low) / xp.where(width > 0, width, xp.ones_like(width))
    share = xp.clip(share, 0.0, 1.0)
    return xp.reshape(low_value + share * (high_value - low_value), at.shape)


# Methods that correct the top score -----------------------------------------------------------------------------------


def confidence_of(calibrator: Any, combined: CombinedArrays) -> Any:
    """(N,) calibrated score of the predicted label, of a method that corrects the top score."""
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
            constant = combined.loaded.constant
            centred = (_truth_features(combined) - constant(calibrator.centres_)) / constant(calibrator.spreads_)
            features = xp.clip(centred, -FURTHEST, FURTHEST)
            coefficients = constant(calibrator.coefficients_)
            return _expit(xp, coefficients[0] + features @ coefficients[1:])
        case _:
            raise ParameterError(f"{calibrator.name} has no form for arrays that are not in host memory.")


def _of_bin(combined: CombinedArrays, edges: Any, values: Any) -> Any:
    """The value of each score's bin (lo, hi]."""
    xp = combined.xp
    if not len(edges):
        return xp.full_like(combined.confidence, float(values[0]))
    bins = xp.searchsorted(combined.loaded.constant(edges), combined.confidence, side="left")
    return xp.take(combined.loaded.constant(values), bins)


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
    xp, loaded, label = combined.xp, combined.loaded, combined.prediction
    truth = combined.truth.probs
    is_label = one_hot(xp, label, truth.shape[1])
    runner_up = xp.max(xp.where(is_label, xp.full_like(truth, -1.0), truth), axis=1)
    log_hv = xp.log(combined.hv / combined.n_sources + CLOSEST)
    present = xp.astype(loaded.present, truth.dtype)
    logs = xp.log(xp.maximum(loaded.probs, xp.full_like(loaded.probs, FLOORS[1])))
    shares = present / xp.sum(present, axis=0)
    geometric = softmax(xp, xp.sum(shares[:, :, None] * logs, axis=0))
    columns = (
        _logit(xp, combined.confidence),
        log_hv,
        _logit(xp, at_label(xp, truth, label)),
        xp.log(xp.maximum(runner_up, xp.full_like(runner_up, CLOSEST))),
        combined.confidence * log_hv,
        _logit(xp, at_label(xp, geometric, label)),
    )
    return xp.stack(columns, axis=1)
