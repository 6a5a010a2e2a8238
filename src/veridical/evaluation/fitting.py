"""Fitting a calibrator and judging it honestly; applying it to new predictions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import atomic_file
from veridical.calibrate import Calibrator
from veridical.calibrate.base import Progress
from veridical.evaluation.methods import make_calibrator
from veridical.evaluation.scores import Evaluation, evaluate, labelled
from veridical.predictions import as_predictions
from veridical.predictions.validation import Array, Kind


@dataclass(frozen=True)
class Calibration:
    """A fitted calibrator with the evidence for it.

    Attributes
    ----------
    calibrator : Calibrator
        Fitted on all labelled samples.
    evaluation : Evaluation
        The mean against the same method fitted on one random half and scored on the other.
    method : str
    """

    calibrator: Calibrator
    evaluation: Evaluation
    method: str

    @property
    def chosen(self) -> str | None:
        """What "auto" chose, as "method on combine"."""
        best = getattr(self.calibrator, "best_", None)
        return None if best is None else f"{best.name} on {best.combine}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = {**self.evaluation.to_dict(), "type": "calibration", "method": self.method}
        return found if self.chosen is None else {**found, "chosen": self.chosen}


@dataclass(frozen=True)
class Calibrated:
    """Calibrated predictions: distributions, confidences of the predicted labels, and those labels."""

    probs: Array
    confidence: Array
    prediction: Array

    @property
    def mean_confidence(self) -> float:
        """Mean over the samples."""
        return float(np.mean(self.confidence)) if len(self.confidence) else float("nan")

    def save(self, path: str | Path) -> None:
        """Write an .npz with the arrays probs, confidence and prediction; it appears whole or not at all."""
        with atomic_file(path) as stream:
            np.savez(stream, probs=self.probs, confidence=self.confidence, prediction=self.prediction)


def fit_calibrator(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    kind: Kind | None = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Calibration:
    """Fit a calibrator on labelled predictions, and say what it is worth on samples it has not seen.

    Parameters
    ----------
    predictions, labels, kind, sources_axis, n_threads, progress
        As in :func:`veridical.evaluate`.
    method : str
        The name of a calibrator; "auto" chooses one by cross-validation.
    random_state : int
    **parameters
        Passed on to the calibrator.

    Returns
    -------
    Calibration
    """
    given = labelled(predictions, labels, kind, sources_axis)
    calibrator = make_calibrator(method, random_state, n_threads=n_threads, **parameters)
    judged = evaluate(given, methods=["mean", method], random_state=random_state, n_threads=n_threads)
    return Calibration(calibrator.fit(given, progress=progress), judged, calibrator.name)


def apply_calibrator(
    calibrator: Calibrator, predictions: Any, *, kind: Kind | None = None, sources_axis: int | None = None
) -> Calibrated:
    """Calibrated distributions, confidences and labels of new predictions; nothing is learned from them."""
    given = as_predictions(predictions, kind, sources_axis)
    return Calibrated(calibrator.predict_proba(given), calibrator.predict_confidence(given), calibrator.predict(given))
