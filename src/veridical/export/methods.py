"""The formulas of all calibrators as ONNX graphs, by name: what they make of combined sources.

A method that corrects the top label's score returns confidences (N, 1), one that corrects the whole vector returns
scores (N, L) that are normalised afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from veridical.backends.rows import CLOSEST, SMALLEST_PROBABILITY
from veridical.calibrate.isotonic import TIE_BREAKER
from veridical.calibrate.logistic import _FURTHEST as FURTHEST
from veridical.export.combining import CombinedSources
from veridical.export.graph import Graph, Tensor, interpolate, padded, search

#: Calibrator and combined sources -> confidences or scores.  Calibrators are fitted, and have the attributes of theirs.
Formula = Callable[[Any, CombinedSources], Tensor]


def _identity(calibrator: Any, combined: CombinedSources) -> Tensor:
    return combined.probs


def _temperature(calibrator: Any, combined: CombinedSources) -> Tensor:
    return (_logs(combined) / float(calibrator.temperature_)).softmax()


def _ensemble_temperature(calibrator: Any, combined: CombinedSources) -> Tensor:
    scaled, plain, uniform = map(float, calibrator.weights_)
    mixture = _temperature(calibrator, combined) * scaled + combined.probs * plain
    return mixture + uniform / combined.probs.graph.n_classes


def _vector(calibrator: Any, combined: CombinedSources) -> Tensor:
    logs = _centred_logs(combined)
    return _affine(calibrator, logs).softmax()


def _matrix(calibrator: Any, combined: CombinedSources) -> Tensor:
    logs = _centred_logs(combined)
    product = logs.graph.op("MatMul", logs, calibrator.matrix_.T)
    return (product + _affine(calibrator, logs)).softmax()


def _affine(calibrator: Any, logs: Tensor) -> Tensor:
    return logs * logs.graph.constant(calibrator.factors_) + logs.graph.constant(calibrator.offsets_)


def _logs(combined: CombinedSources) -> Tensor:
    return combined.probs.at_least(SMALLEST_PROBABILITY).log()


def _centred_logs(combined: CombinedSources) -> Tensor:
    logs = _logs(combined)
    return logs - logs.sum(1) / float(logs.graph.n_classes)


def _irm(calibrator: Any, combined: CombinedSources) -> Tensor:
    return _interpolated(combined.probs, [calibrator.thresholds_], [calibrator.values_]) + combined.probs * TIE_BREAKER


def _irova(calibrator: Any, combined: CombinedSources) -> Tensor:
    thresholds, values = zip(*map(calibrator._steps_of, range(calibrator.n_classes_)), strict=True)
    return _interpolated(combined.probs, [*thresholds], [*values]) + combined.probs * TIE_BREAKER


def _isotonic(calibrator: Any, combined: CombinedSources) -> Tensor:
    return _interpolated(combined.confidence, [calibrator.thresholds_], [calibrator.values_])


def _spline(calibrator: Any, combined: CombinedSources) -> Tensor:
    corrected = _interpolated(combined.confidence, [calibrator.scores_], [calibrator.recalibrated_])
    return corrected.at_least(0.0).at_most(1.0)


def _interpolated(scores: Tensor, thresholds: list[Any], values: list[Any]) -> Tensor:
    return interpolate(scores.graph, scores, thresholds, values)


def _histogram(calibrator: Any, combined: CombinedSources) -> Tensor:
    return _value_of_bin(calibrator.accuracy_, calibrator.edges_, combined.confidence)


def _value_of_bin(values: Any, edges: Any, scores: Tensor) -> Tensor:
    """The value of the bin (lo, hi] that a score falls in."""
    graph: Graph = scores.graph
    return graph.constant(values).gather(search(graph, padded([edges], np.inf)[0], scores, right=False))


def _platt(calibrator: Any, combined: CombinedSources) -> Tensor:
    return (_logit(combined.confidence) * float(calibrator.slope_) + float(calibrator.intercept_)).sigmoid()


def _logit(scores: Tensor) -> Tensor:
    inside = scores.at_least(CLOSEST).at_most(1 - CLOSEST)
    return inside.log() - (1.0 - inside).log()


def _opt(calibrator: Any, combined: CombinedSources) -> Tensor:
    psi = _value_of_bin(calibrator.psi_, calibrator.edges_, combined.confidence)
    return (combined.confidence - psi).at_least(0.0).at_most(1.0)


def _ptde(calibrator: Any, combined: CombinedSources) -> Tensor:
    psi = _value_of_bin(calibrator.psi_, calibrator.edges_, combined.confidence)
    if calibrator.hv_scale == "raw":
        psi = psi * (combined.truth.hv + 1.0)
    elif calibrator.hv_unit_ > 0 and calibrator.hv_gain_ > 0:
        psi = psi * ((combined.truth.hv / calibrator.hv_unit_).at_most(1.0) * calibrator.hv_gain_ + 1.0)
    return (combined.confidence - psi).at_least(0.0).at_most(1.0)


def _truth_logit(calibrator: Any, combined: CombinedSources) -> Tensor:
    graph: Graph = combined.probs.graph
    truth, winner = combined.truth, combined.winner
    log_hv = (truth.hv / float(combined.sources.n_sources) + CLOSEST).log()
    features = (
        _logit(combined.confidence),
        log_hv,
        _logit(truth.probs.where(winner, 0.0).sum(1)),
        graph.constant(-1.0).where(winner, truth.probs).max(1).at_least(CLOSEST).log(),
        combined.confidence * log_hv,
        _logit(combined.sources.geometric_mean.where(winner, 0.0).sum(1)),
    )
    score = graph.constant(calibrator.coefficients_[0])
    for feature, centre, spread, coefficient in zip(
        features, calibrator.centres_, calibrator.spreads_, calibrator.coefficients_[1:], strict=True
    ):
        score = score + ((feature - centre) / spread).at_least(-FURTHEST).at_most(FURTHEST) * coefficient
    return score.sigmoid()


#: Name of a calibrator -> its formula.  "auto" is exported as the calibrator that it chose.
FORMULAS: dict[str, Formula] = {
    "identity": _identity,
    "temperature": _temperature,
    "vector": _vector,
    "matrix": _matrix,
    "ets": _ensemble_temperature,
    "irm": _irm,
    "irova": _irova,
    "histogram": _histogram,
    "isotonic": _isotonic,
    "platt": _platt,
    "spline": _spline,
    "opt-hist": _opt,
    "opt-kde": _opt,
    "ptde-hist": _ptde,
    "ptde-kde": _ptde,
    "truth-logit": _truth_logit,
    "consensus": _identity,
    "aconsensus": _identity,
    "linear-pool": _identity,
    "log-pool": _identity,
}
