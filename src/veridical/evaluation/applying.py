"""Applying a fitted calibrator to new predictions; nothing here needs what fitting needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import as_path, atomic_file
from veridical._dispatch import also_out_of_memory
from veridical._outputs import check_outputs
from veridical._tables import TableResult
from veridical.calibrate import Calibrator
from veridical.calibrate.base import check_calibrator
from veridical.errors import FileFormatError
from veridical.predictions import as_predictions
from veridical.predictions.validation import Array, Kind


@dataclass(frozen=True)
class Calibrated(TableResult):
    """Calibrated predictions: distributions, confidences of the predicted labels, and those labels."""

    probs: Array = field(repr=False)
    confidence: Array = field(repr=False)
    prediction: Array = field(repr=False)
    labels: Array | None = field(default=None, repr=False)
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    #: The files that the predictions were read from; :meth:`save` does not replace them.
    files: tuple[Path, ...] = field(default=(), repr=False)

    @property
    def mean_confidence(self) -> float:
        """Mean over the samples."""
        confidence = np.asarray(self.confidence)  # results of blocks are read from their file here
        return float(confidence.mean()) if len(confidence) else float("nan")

    def save(self, path: str | Path) -> None:
        """Write an .npz with the arrays probs, confidence and prediction, and labels and class_names if known.

        It appears whole or not at all, and :func:`veridical.load` reads it as the predictions of one source.
        """
        if as_path(path).suffix != ".npz":
            raise FileFormatError(f"calibrated predictions cannot be written to {str(path)!r}; use the extension .npz.")
        check_outputs({"path": path}, self.files)
        arrays = {"probs": self.probs, "confidence": self.confidence, "prediction": self.prediction}
        if self.labels is not None:
            arrays["labels"] = self.labels
        if self.class_names is not None:
            arrays["class_names"] = np.array(self.class_names)
        with atomic_file(path) as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: number of samples and mean confidence."""
        facts = [["samples", str(self.prediction.shape[0])], ["mean confidence", f"{100 * self.mean_confidence:.2f} %"]]
        return ["calibrated", ""], facts

    def _records(self) -> list[dict[str, Any]]:
        names = self.class_names or tuple(f"class {label}" for label in range(self.probs.shape[1]))
        return [
            {"prediction": int(label), "confidence": float(confidence)} | dict(zip(names, row.tolist(), strict=True))
            for label, confidence, row in zip(self.prediction, self.confidence, self.probs, strict=True)
        ]


@also_out_of_memory(1)
def apply_calibrator(
    calibrator: Calibrator, predictions: Any, *, kind: Kind | None = None, sources_axis: int | None = None
) -> Calibrated:
    """Calibrated distributions, confidences and labels of new predictions; nothing is learned from them."""
    sources = as_predictions(predictions, kind, sources_axis)
    probs, confidence, prediction = check_calibrator(calibrator).predict_all(sources)
    return Calibrated(probs, confidence, prediction, sources.labels, sources.class_names, sources.files)
