"""Per-sample results of methods and of single sources, from which all scores follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veridical.calibrate.base import Calibrator
from veridical.evaluation.methods import Method
from veridical.metrics.sample import Floats, Labels, Sample
from veridical.predictions.validation import Array

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Outcome:
    """Predictions of one method for the scored samples, compared with their labels.

    Attributes
    ----------
    method : Method
    prediction, vector_labels : (n,) integers
        The labels that the method predicts, and the most probable classes of its distributions.
    stated : Sample
        The confidence that the method states for its label (``predict_confidence``) and whether that label is right.
    vectors : Sample
        The same of the distributions (``predict_proba``): their largest entry, and whether its class is right.  The
        two differ where a calibrated confidence is below that of another class, or so near to one that a vector
        would have to rule out all other classes.
    probs : (n, L) array, or None
        The distributions, where they are kept.
    calibrator : Calibrator or None
        As fitted; None for a way of combining alone.
    """

    method: Method
    prediction: Labels
    vector_labels: Labels
    stated: Sample
    vectors: Sample
    probs: Array | None = None
    calibrator: Calibrator | None = None


@dataclass(frozen=True, eq=False)
class SourceOutcome:
    """One source on its own: label and confidence for the samples where it is present."""

    samples: Indices
    prediction: Labels
    confidence: Floats
    vectors: Sample | None

    def among(self, samples: Indices | None, n_samples: int) -> SourceOutcome:
        """The part that is about some of the samples; ``samples`` of the result count within them."""
        if samples is None:
            return self
        position = np.full(n_samples, -1)
        position[samples] = np.arange(len(samples))
        kept = np.flatnonzero(position[self.samples] >= 0)
        return SourceOutcome(
            position[self.samples[kept]],
            self.prediction[kept],
            self.confidence[kept],
            None if self.vectors is None else self.vectors.taken(kept),
        )


def top_of(probs: Array) -> tuple[Labels, Floats]:
    """(N,) the most probable class of each row, the first on ties, and its probability."""
    prediction: Labels = probs.argmax(axis=1)
    confidence: Floats = probs[np.arange(len(probs)), prediction].astype(np.float64)
    return prediction, np.minimum(confidence, 1.0)
