"""Accuracy, reliability and agreement of an ensemble's sources, with notes on what looks wrong."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical._json import to_plain
from veridical._tables import TableResult
from veridical.evaluation.engine import Engine
from veridical.evaluation.evaluating import SCHEMA
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.notes import label_order_notes
from veridical.evaluation.source_effects import mean_of_some, value_sources
from veridical.evaluation.source_value import SourceValues, in_percent
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Array, Kind


@dataclass(frozen=True)
class SourceFacts:
    """One source; what is a mean over its predictions is NaN, in JSON null, for a source that has none.

    Attributes
    ----------
    name : str
    accuracy : float or None
        Where labels are known.
    mean_confidence : float
    mean_reliability : float
        Mean over its samples of the share of trust that truth discovery gave it; :attr:`Inspection.equal_share`
        is that of the average source.  It is about agreement with the other sources, not about labels.
    agreement : float
        How often its label is the mean's.
    missing : int
        Samples that it has no prediction for.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> vd.inspect(predictions).sources[0].missing
    0
    """

    name: str
    accuracy: float | None
    mean_confidence: float
    mean_reliability: float
    agreement: float
    missing: int


@dataclass(frozen=True)
class Inspection(TableResult):
    """The result of :func:`inspect`.

    Attributes
    ----------
    data : DataFacts
    sources : tuple of SourceFacts
    agreement : (S, S) nested tuple
        How often two sources name the same label, over the samples that both have a prediction for; NaN, in JSON
        null, if there are none.
    warnings : tuple of str
    value : SourceValues or None
        What each source is worth to the mean; where there are labels and several sources.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> inspection = vd.inspect(predictions)
    >>> len(inspection.agreement), len(inspection.sources)
    (3, 3)
    """

    data: DataFacts
    sources: tuple[SourceFacts, ...]
    agreement: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]
    value: SourceValues | None = None

    @property
    def n_present(self) -> int:
        """How many sources have predictions."""
        return sum(source.missing < self.data.n_samples for source in self.sources)

    @property
    def equal_share(self) -> float:
        """The mean reliability of sources that are trusted alike: 1/S, and more where sources are absent."""
        n_rows = sum(self.data.n_samples - source.missing for source in self.sources)
        return self.data.n_samples / n_rows if n_rows else 1 / self.data.n_sources

    @property
    def mean_agreement(self) -> float:
        """How often a source with predictions names the mean's label, on average."""
        return mean_of_some(np.array([source.agreement for source in self.sources]))

    @property
    def outlier(self) -> int:
        """The source that truth discovery trusts least: it agrees least with the others, right or wrong."""
        reliabilities = np.array([source.mean_reliability for source in self.sources])
        return int(np.argmin(np.where(np.isnan(reliabilities), np.inf, reliabilities)))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, one per source."""
        heading = ["source", "accuracy", "confidence", "reliability", "agrees with mean", "missing"]
        rows = [
            [
                source.name,
                in_percent(source.accuracy, 2),
                in_percent(source.mean_confidence, 2),
                in_percent(source.mean_reliability, 2),
                in_percent(source.agreement, 2),
                str(source.missing) if source.missing else "",
            ]
            for source in self.sources
        ]
        return heading, rows

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: a mean over no samples is None, and so is the outlier without samples."""
        value = None if self.value is None else self.value.to_dict()
        outlier = self.outlier if self.data.n_samples else None
        content = {"schema": SCHEMA, "type": "inspection", **asdict(self), "value": value, "outlier": outlier}
        plain: dict[str, Any] = to_plain(content)
        return plain

    @property
    def least_trusted(self) -> str:
        """The source that truth discovery trusts least, without labels, which say more; empty for two sources."""
        labelled = any(source.accuracy is not None for source in self.sources)
        if labelled or self.n_present < 3:
            return ""
        return self.sources[self.outlier].name

    def _caption(self) -> str:
        return f"{self.data.n_sources} sources, all {self.data.n_samples:,} samples; in %"

    def _records(self) -> list[dict[str, Any]]:
        return [asdict(source) for source in self.sources]


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

    Examples
    --------
    >>> import veridical as vd
    >>> inspection = vd.inspect(vd.load_demo().select(sources=slice(3), samples=slice(500)))
    >>> [source.name for source in inspection.sources]
    ['seed-00', 'seed-01', 'seed-02']
    >>> bool(inspection.sources[0].accuracy > 0.7)
    True
    """
    return inspect_with_engine(Engine(as_predictions(predictions, kind, sources_axis), n_threads=n_threads))


def inspect_with_engine(engine: Engine, data: DataFacts | None = None, random_state: int = 0) -> Inspection:
    """:func:`inspect` of an engine's predictions."""
    predictions, truth, labels = engine.predictions, engine.combined("atde").truth, engine.source_labels
    data = data or DataFacts.of(predictions)
    sources = tuple(
        SourceFacts(
            name=data.source_names[s],
            accuracy=_accuracy(labels[s], predictions.labels),
            mean_confidence=_mean(outcome.confidence),
            mean_reliability=_mean(truth.reliability[s, outcome.samples]),
            agreement=_share(labels[s], truth.prediction),
            missing=int((labels[s] < 0).sum()),
        )
        for s, outcome in enumerate(engine.sources)
    )
    agreement = tuple(tuple(_share(a, b) for b in labels) for a in labels)
    value = value_sources(engine, agreement, random_state)
    warnings = (*label_order_notes(engine.labelled), *_warnings(predictions, sources, agreement))
    return Inspection(data, sources, agreement, warnings, value)


def _mean(values: Array) -> float:
    return float(values.mean(dtype=np.float64)) if len(values) else float("nan")


def _share(labels: Array, others: Array) -> float:
    """How often two label vectors agree, where both have a label; NaN where there are no such samples."""
    both = (labels >= 0) & (others >= 0)
    return _mean(labels[both] == others[both])


def _accuracy(labels: Array, truth: Array | None) -> float | None:
    share = float("nan") if truth is None else _share(labels, truth)
    return None if np.isnan(share) else share


def _warnings(
    predictions: Predictions, sources: tuple[SourceFacts, ...], agreement: tuple[tuple[float, ...], ...]
) -> list[str]:
    if predictions.n_samples == 0:
        return ["There are no samples: nothing is known about the sources."]
    messages = []
    if predictions.n_sources == 1:
        messages.append("There is one source: truth discovery has nothing to compare, HV is 0 everywhere.")
    if predictions.n_sources == 2:
        messages.append("There are two sources: truth discovery stays at their mean.")
    if predictions.labels is None:
        messages.append("There are no labels: accuracy and calibration cannot be measured.")
    absent = sum(source.missing for source in sources)
    if absent:
        n_rows = predictions.n_sources * predictions.n_samples
        messages.append(f"{absent} of {n_rows} rows are absent (all NaN) and will be left out.")
    values = list(predictions)
    for s, row in enumerate(agreement):
        twins = [t for t in range(s) if row[t] == 1.0 and np.array_equal(values[s], values[t], equal_nan=True)]
        if twins:
            messages.append(f"{sources[s].name} and {sources[twins[0]].name} are identical: one of them adds nothing.")
    accuracies = [source.accuracy for source in sources if source.accuracy is not None]
    middle = float(np.median(accuracies)) if len(accuracies) > 2 else 0.0
    messages += [
        f"{source.name} is right on {source.accuracy:.1%} of the samples, the middle source on {middle:.1%}; a learned "
        "pool (log-pool) or leaving it out will help more than averaging."
        for source in sources
        if source.accuracy is not None and source.accuracy < 0.75 * middle
    ]
    return messages
