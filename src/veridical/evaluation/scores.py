"""How good each way of using an ensemble is, in one frozen object."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical._progress import Progress, no_progress
from veridical._version import versions
from veridical.calibrate.base import Calibrator
from veridical.errors import AbsentSourceWarning, LabelError
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.methods import (
    COMBINERS,
    MEMBERS,
    combine,
    make_calibrator,
    resolve_methods,
    source_probs,
    title_of,
)
from veridical.evaluation.tables import html_table
from veridical.metrics import Summary, summary
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Array, Kind, check_labels

DEFAULT_METHODS = (MEMBERS, *COMBINERS)
#: Version of the JSON that ``to_dict`` gives.
SCHEMA = 1


@dataclass(frozen=True)
class MethodScores:
    """One method's figures.

    Attributes
    ----------
    method, title : str
    summary : Summary
        The paper's columns, with floors and intervals where asked for.
    mean_confidence : float
    gap : float
        Mean confidence minus accuracy: positive is over-confident.
    labels_changed : int
        Predictions that differ from the mean's.
    is_source : bool
        Whether this is a single source.
    """

    method: str
    title: str
    summary: Summary
    mean_confidence: float
    gap: float
    labels_changed: int
    is_source: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "summary": self.summary.to_dict(), "n_samples": self.summary.n_samples}


@dataclass(frozen=True)
class Evaluation:
    """What :func:`evaluate` found; tables, reports and ``--json`` are made from it.

    Attributes
    ----------
    data : DataFacts
    methods : tuple of MethodScores
    protocol : {"all samples", "held-out half"}
        Where calibrators take part, everything is scored on the half they have not seen.
    random_state : int
    versions : dict
    """

    data: DataFacts
    methods: tuple[MethodScores, ...]
    protocol: str
    random_state: int
    versions: dict[str, str]

    def __getitem__(self, method: str) -> MethodScores:
        return {scores.method: scores for scores in self.methods}[method]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; ``schema`` counts up when keys change their meaning."""
        return {
            "schema": SCHEMA,
            "type": "evaluation",
            "data": asdict(self.data),
            "protocol": self.protocol,
            "random_state": self.random_state,
            "methods": [scores.to_dict() for scores in self.methods],
            "versions": self.versions,
        }

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as terminal and notebook show them; sources are summed up in one row."""
        heading = ["method", "ECE-KDE", "ECE", "KS", "NLL", "Brier", "Acc", "gap"]
        rows = [self._source_row()] if any(scores.is_source for scores in self.methods) else []
        rows += [_row(scores) for scores in self.methods if not scores.is_source]
        return heading, rows

    def _source_row(self) -> list[str]:
        sources = [scores for scores in self.methods if scores.is_source]
        names = ("ece_kde", "ece", "ks_error", "nll", "brier", "accuracy")
        means = {name: float(np.mean([scores.summary[name].value for scores in sources])) for name in names}
        gap = float(np.mean([scores.gap for scores in sources]))
        return [f"one source (mean of {len(sources)})", *_cells(means), f"{100 * gap:+.2f}"]

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=f"{self.data.n_sources} sources, {self.protocol}")


def _cells(values: dict[str, float]) -> list[str]:
    percent = [f"{100 * values[name]:.2f}" for name in ("ece_kde", "ece", "ks_error")]
    return [*percent, f"{values['nll']:.4f}", f"{values['brier']:.4f}", f"{100 * values['accuracy']:.2f}"]


def _row(scores: MethodScores) -> list[str]:
    values = {row.metric: row.value for row in scores.summary}
    return [scores.title, *_cells(values), f"{100 * scores.gap:+.2f}"]


def score(
    method: str,
    title: str,
    labels: Array,
    probs: Array,
    reference: Array,
    *,
    is_source: bool = False,
    **options: Any,
) -> MethodScores:
    """Figures of one method's distributions, as a user gets them; ``reference`` are the mean's labels."""
    predicted = probs.argmax(axis=1)
    top = probs[np.arange(len(probs)), predicted]
    found = summary(labels, probs, **options)
    mean_confidence = float(np.mean(top, dtype=np.float64)) if len(top) else float("nan")
    return MethodScores(
        method=method,
        title=title,
        summary=found,
        mean_confidence=mean_confidence,
        gap=mean_confidence - found["accuracy"].value,
        labels_changed=int((predicted != reference).sum()),
        is_source=is_source,
    )


def labelled(predictions: Any, labels: Any, kind: Kind | None, sources_axis: int | None) -> Predictions:
    """Predictions with labels, from wherever they come."""
    given = as_predictions(predictions, kind, sources_axis)
    if labels is not None:
        given = given.with_labels(check_labels(labels, given.n_samples, given.n_classes))
    elif given.labels is None:
        raise LabelError("this needs labels and the predictions have none; give labels, one integer per sample.")
    absent = int((~given.present()).sum())
    if absent:
        warnings.warn(
            f"{absent:,} of {given.n_sources * given.n_samples:,} predictions are absent (rows of NaN) and left out.",
            AbsentSourceWarning,
            stacklevel=3,
        )
    return given


def labels_of(predictions: Predictions) -> Array:
    """Labels of predictions that are known to have some."""
    assert predictions.labels is not None
    return predictions.labels


def evaluate(
    predictions: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    floors: bool = True,
    intervals: bool = False,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """How well calibrated, and how good, an ensemble is: its members, its mean, truth discovery, calibrators.

    Parameters
    ----------
    predictions : Predictions, or array of shape (S, N, L)
    labels : array of N integers, optional
        Where ``predictions`` have none.
    methods : sequence of str
        Of "members", "mean", "tde", "atde" and the names of calibrators, also on a pool as in "log-pool+matrix".
        Where a calibrator takes part, the samples are split into two random halves: calibrators are fitted on one,
        and everything is scored on the other.  What is scored are the distributions that ``predict_proba`` gives.
    kind, sources_axis
        As in :func:`veridical.discover`.
    floors : bool
        Put beside calibration errors what they would be under perfect calibration.
    intervals : bool
        Put bootstrap intervals beside all metrics.
    random_state : int
        Decides the halves, floors and intervals.
    n_threads : int, optional
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]])
    >>> vd.evaluate(probs, [0, 1], methods=["mean"], floors=False)["mean"].summary["accuracy"].value
    1.0
    """
    given = labelled(predictions, labels, kind, sources_axis)
    options: dict[str, Any] = {"floors": floors, "intervals": intervals, "random_state": random_state}
    return judge(given, resolve_methods(methods), options, n_threads, progress).evaluation


@dataclass(frozen=True)
class Judged:
    """An evaluation with what it is about, for those who draw it.

    Attributes
    ----------
    evaluation : Evaluation
    scored_on : Predictions
    probs : dict
        Method -> (N, L) distributions for the samples of ``scored_on``; without single sources.
    calibrators : dict
        Method -> fitted calibrator.
    """

    evaluation: Evaluation
    scored_on: Predictions
    probs: dict[str, Array]
    calibrators: dict[str, Calibrator]


def judge(
    given: Predictions,
    names: Sequence[str],
    options: dict[str, Any],
    n_threads: int | None = None,
    progress: Progress | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> Judged:
    """Score canonical ``names`` on labelled predictions, and keep the distributions.

    ``options`` go to the summary, ``parameters[name]`` to the calibrator of that name.
    """
    report = progress or no_progress
    random_state = options["random_state"]
    held_out = any(name != MEMBERS and name not in COMBINERS for name in names)
    fitted_on, scored_on = given.split(random_state=random_state) if held_out else (given, given)
    reference = combine(scored_on, "mean", n_threads).prediction
    found: list[MethodScores] = []
    probs: dict[str, Array] = {}
    fitted: dict[str, Calibrator] = {}
    for done, name in enumerate(names):
        report(done, len(names), title_of(name))
        if name == MEMBERS:
            found += _score_members(scored_on, reference, n_threads, options)
            continue
        if name in COMBINERS:
            probs[name] = combine(scored_on, name, n_threads).probs
        else:
            chosen = make_calibrator(name, random_state, **{"n_threads": n_threads, **(parameters or {}).get(name, {})})
            fitted[name] = chosen.fit(fitted_on, progress=progress)
            probs[name] = fitted[name].predict_proba(scored_on)
        found.append(
            score(name, title_of(name), labels_of(scored_on), probs[name], reference, n_threads=n_threads, **options)
        )
    report(len(names), len(names), "done")
    evaluation = Evaluation(
        data=DataFacts.of(given),
        methods=tuple(found),
        protocol="held-out half" if held_out else "all samples",
        random_state=random_state,
        versions=versions(),
    )
    return Judged(evaluation, scored_on, probs, fitted)


def _score_members(
    predictions: Predictions, reference: Array, n_threads: int | None, options: dict[str, Any]
) -> list[MethodScores]:
    found = []
    names = predictions.source_names or tuple(f"source {s}" for s in range(predictions.n_sources))
    for s, name in enumerate(names):
        probs, here = source_probs(predictions, s, n_threads)
        if not here.size:
            warnings.warn(f"{name} says nothing about any sample; it has no row.", AbsentSourceWarning, stacklevel=4)
            continue
        labels = labels_of(predictions)[here]
        found.append(
            score(f"source:{s}", name, labels, probs, reference[here], is_source=True, n_threads=n_threads, **options)
        )
    return found
