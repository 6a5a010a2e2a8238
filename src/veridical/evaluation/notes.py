"""Notes on data that make figures doubtful: labels in another order, samples that a calibrator was fitted on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from veridical.calibrate import Calibrator
from veridical.calibrate.fitting_data import FittingData
from veridical.errors import LabelError
from veridical.evaluation.engine import Engine
from veridical.evaluation.methods import Method
from veridical.predictions import Predictions
from veridical.predictions.classes import UNKNOWN

_QUESTION = "are the labels in the order of the predictions, and do they name the same classes?"
#: With fewer samples an accuracy near chance says little.
_LEAST_SAMPLES = 20
#: An accuracy within so many standard errors of chance is not above it.
_STANDARD_ERRORS = 2.0
#: Sources agree far more than chance if they do so on this part of what chance leaves open.
_LEAST_AGREEMENT = 0.3
#: Means over the same samples differ by rounding only.
_ROUNDING = 1e-6


def notes_on(engine: Engine, methods: Sequence[Method | None]) -> tuple[str, ...]:
    """Everything to know about an evaluation of these methods."""
    fitted = [method for method in methods if method is not None and method.fitted is not None]
    in_sample = [
        f"{method.title} was fitted on these very samples: its figures are in-sample, and new samples will show worse "
        "ones."
        for method in fitted
        if method.fitted is not None and _was_fitted_on(method.fitted, engine)
    ]
    return *label_order_notes(engine), *in_sample


def label_order_notes(engine: Engine) -> tuple[str, ...]:
    """That labels may be in another order: accuracy is that of chance although sources agree; empty otherwise."""
    predictions, labels = engine.predictions, engine.predictions.labels
    if labels is None or predictions.n_labelled < _LEAST_SAMPLES:
        return ()
    known = labels != UNKNOWN
    named, truth = engine.combined("mean").prediction[known], labels[known]
    shares = (np.bincount(column, minlength=predictions.n_classes) / len(truth) for column in (named, truth))
    accuracy, chance = float((named == truth).mean()), float(np.dot(*shares))
    margin = _STANDARD_ERRORS * math.sqrt(chance * (1 - chance) / len(truth))
    if predictions.n_sources < 2 and accuracy < chance - 2 * margin:
        return (f"Accuracy is {accuracy:.1%}, far below chance ({chance:.1%}): {_QUESTION}",)
    if predictions.n_sources < 2 or accuracy > chance + margin:
        return ()
    agreement, by_chance = _agreement(engine)
    if agreement - by_chance < _LEAST_AGREEMENT * (1 - by_chance) or by_chance == 1:
        return ()
    return (
        f"Accuracy is {accuracy:.1%}, no better than chance, while the sources agree on {agreement:.0%} of the "
        f"samples: {_QUESTION}",
    )


def check_label_order(predictions: Predictions) -> None:
    """Refuse predictions whose labels seem to be in another order."""
    for note in label_order_notes(Engine(predictions).labelled):
        raise LabelError(f"{note}  Nothing was written.")


def _agreement(engine: Engine) -> tuple[float, float]:
    """How often two sources name the same label, on average; and how often they would by chance."""
    labels = engine.source_labels
    pairs = [(a == b)[(a >= 0) & (b >= 0)] for a, b in combinations(labels, 2)]
    present = labels[labels >= 0]
    shares = np.bincount(present, minlength=engine.predictions.n_classes) / max(len(present), 1)
    return float(np.mean([pair.mean() for pair in pairs if len(pair)] or [0.0])), float(np.square(shares).sum())


def _was_fitted_on(calibrator: Calibrator, engine: Engine) -> bool:
    """Whether the data of the fit, as far as the calibrator remembers it, is the engine's."""
    fitted: FittingData | None = getattr(calibrator, "fitting_data_", None)
    if fitted is None:
        return False
    here = FittingData.of(engine.predictions, engine.n_threads, confidence=engine.combined("mean").confidence)
    pairs = ((fitted.confidence, here.confidence), (fitted.confidence_spread, here.confidence_spread))
    same = all(math.isclose(a, b, rel_tol=_ROUNDING, abs_tol=1e-12) for a, b in pairs)
    return fitted.n_samples == here.n_samples and same
