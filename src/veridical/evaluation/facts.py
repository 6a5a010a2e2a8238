"""The data of an evaluation: its labelled samples, and facts to check a result or to make it again."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veridical.errors import AbsentSourceWarning, LabelError, ShapeError
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.labels import LABELS_NEEDED
from veridical.predictions.validation import InputKind


@dataclass(frozen=True)
class DataFacts:
    """Which data a result is about.

    Attributes
    ----------
    n_sources, n_samples, n_classes : int
    kind, dtype : str
    sha256 : str
        Of the numbers and labels, in the order of sources and samples; empty for predictions read in blocks.
    source_names, class_names : tuple of str

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> data = vd.evaluate(predictions, methods=["mean"], floors=False).data
    >>> data.n_sources, data.kind
    (3, 'logits')
    """

    n_sources: int
    n_samples: int
    n_classes: int
    kind: str
    dtype: str
    sha256: str
    source_names: tuple[str, ...]
    class_names: tuple[str, ...]

    @classmethod
    def of(cls, predictions: Predictions) -> DataFacts:
        """The facts of ``predictions``; reads all of them once, for the hash."""
        return replace(cls.without_hash(predictions), sha256=_hash(predictions))

    @classmethod
    def without_hash(cls, predictions: Predictions) -> DataFacts:
        """The facts of ``predictions``, whose numbers are not read."""
        return cls(
            n_sources=predictions.n_sources,
            n_samples=predictions.n_samples,
            n_classes=predictions.n_classes,
            kind=predictions.kind,
            dtype=str(predictions.dtype),
            sha256="",
            source_names=names_of_sources(predictions),
            class_names=predictions.class_names or tuple(f"class {l}" for l in range(predictions.n_classes)),
        )


def _hash(predictions: Predictions) -> str:
    digest = hashlib.sha256()
    for source in predictions:
        digest.update(np.ascontiguousarray(source).data)
    if predictions.labels is not None:
        digest.update(np.ascontiguousarray(predictions.labels).data)
    return digest.hexdigest()


def names_of_sources(predictions: Predictions) -> tuple[str, ...]:
    """The names of the sources, or their numbers."""
    return predictions.source_names or tuple(f"source {s}" for s in range(predictions.n_sources))


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
    warn_of_absent(int((~labelled_predictions.present()).sum()), n_sources * n_samples)
    return labelled_predictions


def warn_of_absent(n_absent: int, n_predictions: int) -> None:
    """Say how many predictions of labelled samples are absent, if any are."""
    if n_absent:
        warnings.warn(
            f"{n_absent:,} of {n_predictions:,} predictions are absent (rows of NaN) and left out.",
            AbsentSourceWarning,
            stacklevel=4,
        )
