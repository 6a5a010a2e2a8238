"""The samples whose label is known, from wherever labels come."""

from __future__ import annotations

import warnings
from typing import Any

from veridical.errors import AbsentSourceWarning, LabelError, ShapeError
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.labels import LABELS_NEEDED
from veridical.predictions.validation import InputKind


def labelled(predictions: Any, labels: Any, kind: InputKind | None, sources_axis: int | None) -> Predictions:
    """Predictions for the samples whose label is known, from wherever labels come."""
    all_predictions = as_predictions(predictions, kind, sources_axis)
    if labels is not None:
        all_predictions = all_predictions.with_labels(labels)
    if all_predictions.labels is None:
        raise LabelError(LABELS_NEEDED)
    labelled_predictions = all_predictions.labelled()
    n_sources, n_samples = labelled_predictions.n_sources, labelled_predictions.n_samples
    if n_samples == 0:
        raise ShapeError("there are no samples to score; at least one is needed.")
    n_absent = int((~labelled_predictions.present()).sum())
    if n_absent:
        warnings.warn(
            f"{n_absent:,} of {n_sources * n_samples:,} predictions are absent (rows of NaN) and left out.",
            AbsentSourceWarning,
            stacklevel=3,
        )
    return labelled_predictions
