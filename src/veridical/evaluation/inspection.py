"""What an ensemble's sources are like: accuracy, reliability, agreement, and what looks wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical.evaluation.facts import DataFacts
from veridical.evaluation.methods import combine, source_probs
from veridical.evaluation.scores import SCHEMA
from veridical.evaluation.tables import html_table
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Array, Kind


@dataclass(frozen=True)
class SourceFacts:
    """One source.

    Attributes
    ----------
    name : str
    accuracy : float or None
        Where labels are known.
    mean_confidence : float
    mean_reliability : float
        Mean over samples of the share of trust that truth discovery gave it; 1/S is the average source.
    agreement : float
        How often its label is the mean's.
    missing : int
        Samples it says nothing about.
    """

    name: str
    accuracy: float | None
    mean_confidence: float
    mean_reliability: float
    agreement: float
    missing: int


@dataclass(frozen=True)
class Inspection:
    """What :func:`inspect` found.

    Attributes
    ----------
    data : DataFacts
    sources : tuple of SourceFacts
    agreement : (S, S) nested tuple
        How often two sources name the same label, over the samples both speak about.
    warnings : tuple of str
    """

    data: DataFacts
    sources: tuple[SourceFacts, ...]
    agreement: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]

    @property
    def outlier(self) -> int:
        """The source that was trusted least."""
        return int(np.argmin([source.mean_reliability for source in self.sources]))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, one per source."""
        heading = ["source", "accuracy", "confidence", "reliability", "agrees", "missing"]
        rows = [
            [
                source.name,
                "" if source.accuracy is None else f"{100 * source.accuracy:.2f}",
                f"{100 * source.mean_confidence:.2f}",
                f"{100 * source.mean_reliability:.2f}",
                f"{100 * source.agreement:.2f}",
                str(source.missing) if source.missing else "",
            ]
            for source in self.sources
        ]
        return heading, rows

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"schema": SCHEMA, "type": "inspection", **asdict(self), "outlier": self.outlier}

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=f"{self.data.n_sources} sources, {self.data.n_samples} samples")


def inspect(
    predictions: Any, *, kind: Kind | None = None, sources_axis: int | None = None, n_threads: int | None = None
) -> Inspection:
    """Look at predictions before using them: shapes, kinds, per-source accuracy and reliability, warnings.

    Parameters
    ----------
    predictions : Predictions, or array of shape (S, N, L)
    kind, sources_axis, n_threads
        As in :func:`veridical.discover`.

    Returns
    -------
    Inspection
    """
    given = as_predictions(predictions, kind, sources_axis)
    truth = combine(given, "atde", n_threads)
    labels = np.full((given.n_sources, given.n_samples), -1, dtype=np.int64)
    confidences = []
    for s in range(given.n_sources):
        probs, here = source_probs(given, s, n_threads)
        labels[s, here] = probs.argmax(axis=1)
        confidences.append(float(probs.max(axis=1).mean(dtype=np.float64)) if here.size else float("nan"))
    data = DataFacts.of(given)
    sources = tuple(
        SourceFacts(
            name=data.source_names[s],
            accuracy=_share(labels[s], given.labels),
            mean_confidence=confidences[s],
            mean_reliability=float(truth.reliability[s].mean(dtype=np.float64)) if given.n_samples else float("nan"),
            agreement=_share(labels[s], truth.prediction) or 0.0,
            missing=int((labels[s] < 0).sum()),
        )
        for s in range(given.n_sources)
    )
    agreement = tuple(tuple(_share(a, b) or 0.0 for b in labels) for a in labels)
    return Inspection(data, sources, agreement, tuple(_warnings(given, sources, agreement)))


def _share(found: Array, expected: Array | None) -> float | None:
    """How often two label vectors agree, where both have a label."""
    if expected is None:
        return None
    both = (found >= 0) & (expected >= 0)
    return float((found[both] == expected[both]).mean()) if both.any() else None


def _warnings(
    given: Predictions, sources: tuple[SourceFacts, ...], agreement: tuple[tuple[float, ...], ...]
) -> list[str]:
    found = []
    if given.n_sources == 1:
        found.append("There is one source: truth discovery has nothing to compare, HV is 0 everywhere.")
    if given.n_sources == 2:
        found.append("There are two sources: truth discovery stays at their mean.")
    if given.labels is None:
        found.append("There are no labels: accuracy and calibration cannot be measured.")
    absent = sum(source.missing for source in sources)
    if absent:
        found.append(f"{absent} of {given.n_sources * given.n_samples} rows are absent (all NaN) and will be left out.")
    for s, row in enumerate(agreement):
        twins = [t for t in range(s) if row[t] == 1.0 and _same_numbers(given, s, t)]
        if twins:
            found.append(f"{sources[s].name} and {sources[twins[0]].name} are identical: one of them adds nothing.")
    accuracies = [source.accuracy for source in sources if source.accuracy is not None]
    middle = float(np.median(accuracies)) if len(accuracies) > 2 else 0.0
    found += [
        f"{source.name} is right on {source.accuracy:.1%} of the samples, the middle source on {middle:.1%}; a learned "
        "pool (log-pool) or leaving it out will help more than averaging."
        for source in sources
        if source.accuracy is not None and source.accuracy < 0.75 * middle
    ]
    return found


def _same_numbers(given: Predictions, s: int, t: int) -> bool:
    values = list(given)
    return np.array_equal(values[s], values[t], equal_nan=True)
