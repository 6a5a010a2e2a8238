"""Notes on data that make figures doubtful: labels in another order, samples that a calibrator was fitted on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from veridical.calibrate import Calibrator
from veridical.calibrate.fitting_data import FittingData
from veridical.errors import LabelError
from veridical.evaluation.engine import Engine
from veridical.evaluation.methods import Method
from veridical.metrics.sample import Labels
from veridical.predictions import Predictions
from veridical.predictions.classes import UNKNOWN

_QUESTION = "are the labels in the order of the predictions, and do they name the same classes?"
#: With fewer samples an accuracy near chance says little.
_LEAST_SAMPLES = 20
#: An accuracy within so many standard errors of chance is not above it.
_STANDARD_ERRORS = 2.0
#: Sources agree far more than chance if they do so on this part of what chance leaves open.
_LEAST_AGREEMENT = 0.3
#: Mean confidence is far above accuracy from such a difference on, and from so many standard errors of chance on.
_CONFIDENT, _CONFIDENT_ERRORS = 0.2, 5.0
#: Means over the same samples differ by rounding only.
_ROUNDING = 1e-6


def notes_on(engine: Engine, methods: Sequence[Method | None]) -> tuple[str, ...]:
    """Everything to know about an evaluation of these methods."""
    return *label_order_notes(engine), *in_sample_notes(engine, methods)


def in_sample_notes(engine: Engine, methods: Sequence[Method | None]) -> list[str]:
    """Which fitted calibrators are scored on the samples of their fit."""
    fitted = [method for method in methods if method is not None and method.fitted is not None]
    return [
        f"{method.title} was fitted on these very samples: its figures are in-sample, and new samples will show worse "
        "ones."
        for method in fitted
        if method.fitted is not None and _was_fitted_on(method.fitted, engine)
    ]


def label_order_notes(engine: Engine) -> tuple[str, ...]:
    """That labels may be in another order: accuracy is that of chance although sources agree or one is confident."""
    if engine.predictions.labels is None or engine.predictions.n_labelled < _LEAST_SAMPLES:
        return ()
    counts = label_counts(engine)
    return label_order_note(*counts, *source_counts(engine)) if _above_chance(*counts[:3]) <= 0 else ()


def label_counts(engine: Engine) -> tuple[Any, Labels, Labels, Any]:
    """How many labels of the mean are right, how often the mean and the labels name each class, and its confidence."""
    labels, n_classes = engine.predictions.labels, engine.predictions.n_classes
    assert labels is not None
    known = labels != UNKNOWN
    mean = engine.combined("mean")
    named, truth = mean.prediction[known], labels[known]
    counts = (np.bincount(classes, minlength=n_classes) for classes in (named, truth))
    return (named == truth).sum(), *counts, mean.confidence[known].sum(dtype=np.float64)


def source_counts(engine: Engine) -> tuple[Labels, Labels, Labels]:
    """For each pair of sources, on how many samples both name the same label and are present; how often each class."""
    labels = engine.source_labels
    pairs = [((a == b) & (a >= 0), (a >= 0) & (b >= 0)) for a, b in combinations(labels, 2)]
    equal, shared = (np.array([pair[k].sum() for pair in pairs], np.int64) for k in range(2))
    return equal, shared, np.bincount(labels[labels >= 0], minlength=engine.predictions.n_classes)


def _chance(named: Labels, truth: Labels) -> float:
    return float(np.dot(named / truth.sum(), truth / truth.sum()))


def _error_of_chance(named: Labels, truth: Labels) -> float:
    chance = _chance(named, truth)
    return math.sqrt(chance * (1 - chance) / truth.sum())


def _above_chance(n_right: int, named: Labels, truth: Labels) -> float:
    """By how many margins of chance accuracy is above it; at most 0 where it is not."""
    margin = _STANDARD_ERRORS * _error_of_chance(named, truth)
    return (n_right / int(truth.sum()) - _chance(named, truth) - margin) / max(margin, 1e-300)


def label_order_note(
    n_right: int, named: Labels, truth: Labels, confidence: float, equal: Labels, shared: Labels, classes: Labels
) -> tuple[str, ...]:
    """The note of :func:`label_order_notes`, from counts over the samples, which add up."""
    above = _above_chance(n_right, named, truth)
    if above > 0 or truth.sum() < _LEAST_SAMPLES:
        return ()
    accuracy = n_right / truth.sum()
    if not len(shared):  # one source
        return _note_on_one(accuracy, above, confidence / truth.sum(), named, truth)
    agreement = float(np.mean(equal[shared > 0] / shared[shared > 0])) if shared.any() else 0.0
    by_chance = float(np.square(classes / max(classes.sum(), 1)).sum())
    if agreement - by_chance < _LEAST_AGREEMENT * (1 - by_chance) or by_chance == 1:
        return ()
    return (
        f"Accuracy is {accuracy:.1%}, no better than chance, while the sources agree on {agreement:.0%} of the "
        f"samples: {_QUESTION}",
    )


def _note_on_one(accuracy: float, above: float, confidence: float, named: Labels, truth: Labels) -> tuple[str, ...]:
    """That the accuracy of one source is far below chance, or that of chance and far below its confidence."""
    if above < -3:
        return (f"Accuracy is {accuracy:.1%}, far below chance ({_chance(named, truth):.1%}): {_QUESTION}",)
    # A source that names one class, or labels that are of one, are right as often in any order.
    by_one_class = np.maximum(named, truth).max() / truth.sum()
    least = max(_CONFIDENT, _CONFIDENT_ERRORS * _error_of_chance(named, truth))
    if confidence - max(accuracy, by_one_class) <= least:
        return ()
    while_confident = f"no better than chance, while the mean confidence is {confidence:.0%}"
    return (f"Accuracy is {accuracy:.1%}, {while_confident}: {_QUESTION}",)


def check_label_order(predictions: Predictions) -> None:
    """Refuse predictions whose labels seem to be in another order."""
    for note in label_order_notes(Engine(predictions).labelled):
        raise LabelError(f"{note}  Nothing was written.")


def _was_fitted_on(calibrator: Calibrator, engine: Engine) -> bool:
    """Whether the data of the fit, as far as the calibrator remembers it, is the engine's."""
    fitted: FittingData | None = getattr(calibrator, "fitting_data_", None)
    if fitted is None:
        return False
    here = FittingData.of(engine.predictions, engine.n_threads, confidence=engine.combined("mean").confidence)
    pairs = ((fitted.confidence, here.confidence), (fitted.confidence_spread, here.confidence_spread))
    same = all(math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=1e-12) for a, b in pairs)
    return fitted.n_samples == here.n_samples and same
