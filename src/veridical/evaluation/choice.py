"""Which pairs of a combiner and a calibrator ``auto`` compares, and which one it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.calibrate.registry import calibrators
from veridical.combine.combined import Floats
from veridical.combine.registry import COMBINERS
from veridical.predictions import Predictions

Pair = tuple[str, str]

#: What is tried on each way of combining beyond the mean, on which everything is tried.
_BEYOND_THE_MEAN = {
    "atde": ("temperature", "spline", "isotonic"),
    "tde": (),
    "consensus": ("consensus", "temperature", "truth-logit"),
    "aconsensus": ("aconsensus", "temperature", "truth-logit"),
    "linear-pool": ("linear-pool", "temperature"),
    "log-pool": ("log-pool", "temperature", "vector", "matrix", "truth-logit"),
}
#: Matrix scaling has L² parameters; beyond this many classes it must be asked for.
_MOST_CLASSES_FOR_MATRIX = 100
#: With fewer labels than this, distributions are not given to methods that fit many numbers: among many candidates one
#: seems good by chance.
_FEW_LABELS = 200
_FOR_FEW_LABELS = {
    "mean": ("identity", "temperature"),
    "consensus": ("consensus", "temperature"),
    "aconsensus": ("aconsensus", "temperature"),
    "linear-pool": ("linear-pool", "temperature"),
    "log-pool": ("log-pool",),
}
#: What is taken for distributions: the first that is behind the best by no more than so many standard errors.  Labels
#: say little of which pair is best, and these were seldom far behind; weights that no label was fitted to come first
#: where there is hardly a difference.
_USUAL: dict[Pair, float] = {
    ("consensus", "consensus"): 0.25,
    ("aconsensus", "aconsensus"): 0.25,
    ("log-pool", "log-pool"): 1.0,
    ("aconsensus", "temperature"): 1.0,
}
_USUAL_WITH_FEW_LABELS: dict[Pair, float] = {("log-pool", "log-pool"): 2.0, ("aconsensus", "temperature"): 1.0}
#: Where sources change, what was learned of them says less than their agreement.
_USUAL_WHERE_SOURCES_CHANGE: dict[Pair, float] = {("consensus", "consensus"): 2.0, ("aconsensus", "aconsensus"): 2.0}
#: A source is new if it should have been there for at least so many labelled samples and was for less than this share.
_LEAST_EXPECTED, _SEEN_SHARE = 5.0, 0.1

#: Columns of the table of pairs.
TABLE_COLUMNS = ("combine", "method", "score", "spread", "behind", "behind_spread", "ece_kde")


@dataclass(frozen=True)
class Situation:
    """What decides the rule.

    Attributes
    ----------
    objective : {"confidence", "distribution"}
    n_labels, n_classes : int
    sources_change : bool
        Whether some sources predict for samples without labels, and hardly for those with one.
    """

    objective: str
    n_labels: int
    n_classes: int
    sources_change: bool = False

    @property
    def has_few_labels(self) -> bool:
        """Whether distributions must do with methods that fit few numbers."""
        return self.objective == "distribution" and self.n_labels < _FEW_LABELS

    def default_pairs(self) -> list[Pair]:
        """The pairs to compare."""
        if self.has_few_labels:
            pairs = [(combine, name) for combine, names in _FOR_FEW_LABELS.items() for name in names]
        else:
            pairs = [("mean", name) for name, known in calibrators().items() if "mean" in known.combiners]
            pairs += [(combine, name) for combine, names in _BEYOND_THE_MEAN.items() for name in names]
        few_classes = self.n_classes <= _MOST_CLASSES_FOR_MATRIX
        return [
            (combine, name)
            for combine, name in pairs
            if name != "auto"
            and (few_classes or name != "matrix")
            and not (self.sources_change and COMBINERS[combine].needs_labels)
        ]

    @property
    def usual(self) -> dict[Pair, float]:
        """Pair -> how many standard errors it may be behind the best."""
        if self.sources_change:
            return _USUAL_WHERE_SOURCES_CHANGE
        return _USUAL_WITH_FEW_LABELS if self.has_few_labels else _USUAL


def sources_change(predictions: Predictions) -> bool:
    """Whether a source predicts for samples without labels, but hardly for those with one: nothing is learned of it."""
    everything = predictions.with_unlabelled()
    if everything is predictions:
        return False
    seen = predictions.present().sum(axis=1)
    elsewhere = everything.present().sum(axis=1) - seen
    expected = elsewhere * predictions.n_samples / max(everything.n_samples - predictions.n_samples, 1)
    return bool(((expected >= _LEAST_EXPECTED) & (seen < _SEEN_SHARE * expected)).any())


def standard_error(values: Floats, groups: npt.NDArray[np.intp] | None) -> float:
    """Standard error of a mean over samples; with groups, of samples that depend on each other within them."""
    if groups is None:
        return float(values.std() / np.sqrt(max(len(values) - 1, 1)))
    sums = np.bincount(groups, values - values.mean())
    return float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)) / len(values))


def compare_losses(
    pairs: Sequence[Pair], losses: Floats, ece_kde: Sequence[float], groups: npt.NDArray[np.intp] | None
) -> list[dict[str, Any]]:
    """A row for each pair: its mean loss, and how far it is behind the best; ``losses`` are (pairs, N)."""
    scores = losses.mean(axis=1)
    apart = losses - losses[int(scores.argmin())]
    rows = [
        (*pair, float(scores[k]), standard_error(losses[k], groups), float(apart[k].mean()))
        for k, pair in enumerate(pairs)
    ]
    spreads = [standard_error(row, groups) for row in apart]
    return [
        dict(zip(TABLE_COLUMNS, (*row, *rest), strict=True)) for row, *rest in zip(rows, spreads, ece_kde, strict=True)
    ]


def choose(rows: Sequence[dict[str, Any]], situation: Situation) -> int:
    """The row to use; the first row is no calibration at all."""

    def simplicity(k: int) -> tuple[int, float]:
        row = rows[k]
        complexity = calibrators()[row["method"]].complexity + COMBINERS[row["combine"]].complexity
        return complexity, row["ece_kde"] if situation.objective == "confidence" else row["score"]

    def within(k: int, n_errors: float) -> bool:
        return bool(rows[k]["behind"] <= n_errors * rows[k]["behind_spread"])

    useful = [k for k, row in enumerate(rows) if row["score"] <= rows[0]["score"]]
    if situation.objective == "confidence":
        return min((k for k in useful if within(k, 1.0)), key=simplicity, default=0)
    # Few labels cannot show what is worse than no calibration; neither can labels of other sources.
    labels_say_little = situation.sources_change or situation.has_few_labels
    places = {(row["combine"], row["method"]): k for k, row in enumerate(rows)}
    usual = (
        places[pair]
        for pair, n_errors in situation.usual.items()
        if pair in places and within(places[pair], n_errors) and (labels_say_little or places[pair] in useful)
    )
    return next(usual, min((k for k in useful if within(k, 0.5)), key=simplicity, default=0))
