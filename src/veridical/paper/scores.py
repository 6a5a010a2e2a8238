"""What a method's output on some samples amounts to: four numbers per sample, from which every column follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from veridical.metrics.proper import brier_of, nll_of
from veridical.metrics.registry import METRICS, SUMMARY_METRICS
from veridical.metrics.sample import Booleans, Floats, Labels, Sample
from veridical.paper.tables import in_paper_units
from veridical.predictions.validation import Array

#: All columns of the paper's tables, in its order.
COLUMNS = SUMMARY_METRICS
#: Metrics that are means of a loss per sample, which is all that is kept of the full vectors.
LOSSES = ("nll", "brier")


@dataclass(frozen=True, eq=False)
class Scores:
    """Per sample: the top label's confidence, whether it is right, and the two losses of the whole vector.

    Full vectors of every method for every number of sources would not fit into memory; these do.

    Attributes
    ----------
    confidence, nll, brier : (N,) float64
    correct : (N,) bool
    """

    confidence: Floats
    correct: Booleans
    nll: Floats
    brier: Floats

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """Scores of consecutive blocks of samples as one."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__dataclass_fields__))

    def sample(self) -> Sample:
        """The confidences, as metrics take them."""
        return Sample(self.confidence, self.correct)

    def metric(self, name: str) -> float:
        """A metric of the paper's columns, as a fraction."""
        if name in LOSSES:
            return float(getattr(self, name).mean())
        return METRICS[name].of_sample(self.sample())

    def metrics(self, names: Iterable[str]) -> dict[str, float]:
        """Metrics in the paper's units."""
        return {name: in_paper_units(name, self.metric(name)) for name in names}


def score_vectors(probs: Array, labels: Labels, confidence: Floats, prediction: Labels) -> Scores:
    """Scores of distributions (n, L) whose top label and its confidence are known already.

    The two may differ from the vectors' largest entry: calibrated confidences below 1/L exist, vectors that keep the
    label while saying so do not.
    """
    whole = Sample(confidence, prediction == labels, probs=probs, labels=labels)
    nll_of(whole)
    brier_of(whole)
    return Scores(confidence, whole.correct, whole.per_sample("nll", _unreached), whole.per_sample("brier", _unreached))


def _unreached() -> Floats:
    raise AssertionError("the losses per sample were computed above")
