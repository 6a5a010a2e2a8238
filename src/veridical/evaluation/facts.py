"""What was evaluated, with what: enough to check a report or to run it again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from veridical.predictions import Predictions


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
            source_names=predictions.source_names or tuple(f"source {s}" for s in range(predictions.n_sources)),
            class_names=predictions.class_names or tuple(f"class {l}" for l in range(predictions.n_classes)),
        )


def _hash(predictions: Predictions) -> str:
    digest = hashlib.sha256()
    for source in predictions:
        digest.update(np.ascontiguousarray(source).data)
    if predictions.labels is not None:
        digest.update(np.ascontiguousarray(predictions.labels).data)
    return digest.hexdigest()
