"""How good each way of using an ensemble is, in one frozen object."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from veridical._dispatch import also_out_of_memory
from veridical._progress import Progress, check_progress
from veridical._tables import TableResult
from veridical._version import versions
from veridical.combine import label_free_combiners
from veridical.errors import AbsentSourceWarning, ParameterError
from veridical.evaluation.engine import Engine, Shared, Split, half_split
from veridical.evaluation.facts import DataFacts, labelled, names_of_sources
from veridical.evaluation.methods import MEMBERS, Method, resolve_methods
from veridical.evaluation.notes import notes_on
from veridical.evaluation.outcomes import Indices, Outcome
from veridical.evaluation.walk_forward import PeriodOrder, period_splits, periods_of, run_periods, scored_samples
from veridical.metrics import METRICS, SUMMARY_METRICS, Summary
from veridical.metrics.sample import Labels, Sample
from veridical.metrics.table import summary_of
from veridical.predictions import as_predictions
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import InputKind, check_flag, check_seed

DEFAULT_METHODS = (MEMBERS, *label_free_combiners())
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

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> vd.evaluate(predictions, methods=["mean"], floors=False)["mean"].title
    'DE'
    """

    method: str
    title: str
    summary: Summary
    mean_confidence: float
    gap: float
    labels_changed: int
    is_source: bool = False

    @property
    def is_at_floor(self) -> bool:
        """Whether the ECE is one that a perfectly calibrated method would have too, in 95 of 100 cases at most."""
        row = self.summary["ece"]
        return row.floor_high is not None and row.value <= row.floor_high

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "summary": self.summary.to_dict(), "n_samples": self.summary.n_samples}


@dataclass(frozen=True)
class Evaluation(TableResult):
    """The result of :func:`evaluate`; tables, reports and JSON are made from it.

    Attributes
    ----------
    data : DataFacts
    methods : tuple of MethodScores
    protocol : {"all samples", "held-out half"}
        Where calibrators take part, everything is scored on the half they have not seen.
    random_state : int
    versions : dict
    other_half : tuple of MethodScores
        ECE and accuracy of some methods with the halves swapped: scored on the half that they were fitted on for
        ``methods``, after a fit on the half that is scored there.
    notes : tuple of str
        What makes the figures doubtful.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> evaluation = vd.evaluate(predictions, methods=["mean", "atde"], floors=False)
    >>> evaluation["atde"].labels_changed
    0
    """

    data: DataFacts
    methods: tuple[MethodScores, ...]
    protocol: str
    random_state: int
    versions: dict[str, str]
    other_half: tuple[MethodScores, ...] = ()
    notes: tuple[str, ...] = ()

    def __getitem__(self, method: str) -> MethodScores:
        return {scores.method: scores for scores in self.methods}[method]

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"Note: {note}" for note in self.notes)])

    def only(self, *names: str) -> Evaluation:
        """The same evaluation of some of the methods."""
        kept = (tuple(one for one in scores if one.method in names) for scores in (self.methods, self.other_half))
        methods, other_half = kept
        return replace(self, methods=methods, other_half=other_half)

    def halves(self, method: str) -> tuple[MethodScores, ...]:
        """A method's scores and, where they are known, those with the halves swapped."""
        return self[method], *(scores for scores in self.other_half if scores.method == method)

    def is_at_floor(self, method: str) -> bool:
        """Whether the ECE of a method cannot be told from that of perfect calibration, on every half that is known.

        A calibrated method is above in 5 of 100 cases, however many halves there are.
        """
        return not self.above_floor(method)

    def above_floor(self, method: str) -> tuple[MethodScores, ...]:
        """The halves on which a method has an ECE that is no chance, or no noise floor."""
        halves = self.halves(method)
        rows = [scores.summary["ece"] for scores in halves]
        limits = [-math.inf if row.floor_high is None else row.most_by_chance(len(halves)) for row in rows]
        return tuple(s for s, row, limit in zip(halves, rows, limits, strict=True) if not row.value <= limit)

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
            "other_half": [scores.to_dict() for scores in self.other_half],
            "notes": list(self.notes),
        }

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as terminal and notebook show them; sources are summed up in one row."""
        heading = ["method", *(METRICS[name].heading for name in SUMMARY_METRICS), "gap"]
        rows = [self._source_row()] if any(scores.is_source for scores in self.methods) else []
        rows += [
            _row(scores.title, {row.metric: row.value for row in scores.summary}, scores.gap)
            for scores in self.methods
            if not scores.is_source
        ]
        return heading, rows

    def _source_row(self) -> list[str]:
        sources = [scores for scores in self.methods if scores.is_source]
        means = {name: float(np.mean([scores.summary[name].value for scores in sources])) for name in SUMMARY_METRICS}
        gap = float(np.mean([scores.gap for scores in sources]))
        return _row(f"one source (mean of {len(sources)})", means, gap)

    def _caption(self) -> str:
        return f"{self.data.n_sources} sources, scored on {self.protocol}; errors and accuracy in %"

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"method": scores.method, "title": scores.title}
            | {row.metric: row.value for row in scores.summary}
            | {"mean_confidence": scores.mean_confidence, "gap": scores.gap, "labels_changed": scores.labels_changed}
            for scores in self.methods
        ]


def _row(title: str, values: dict[str, float], gap: float) -> list[str]:
    return [title, *(METRICS[name].number(values[name]) for name in SUMMARY_METRICS), f"{100 * gap:+.2f}"]


def score(outcome: Outcome, reference: Labels, **options: Any) -> MethodScores:
    """The scores of a method's distributions; ``reference`` are the mean's labels, ``options`` go to the summary."""
    changed = int((outcome.vector_labels != reference).sum())
    return _scores_of(outcome.method.name, outcome.method.title, outcome.vectors, changed, options)


def _scores_of(
    name: str, title: str, sample: Sample, n_changed: int, options: dict[str, Any], is_source: bool = False
) -> MethodScores:
    summary = summary_of(sample, **options)
    confidence = float(sample.confidence.mean()) if len(sample) else float("nan")
    gap = confidence - summary["accuracy"].value
    return MethodScores(name, title, summary, confidence, gap, n_changed, is_source)


@also_out_of_memory(maps=True)
def evaluate(
    predictions: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    floors: bool = True,
    intervals: bool = False,
    random_state: int = 0,
    walk_forward: Any = False,
    period_order: PeriodOrder = "value",
    n_threads: int | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Evaluation:
    """How well calibrated, and how good, an ensemble is: its members, its mean, truth discovery, calibrators.

    Parameters
    ----------
    predictions : Predictions, or array of shape (S, N, L)
    labels : array of N labels, optional
        In any form that :class:`veridical.Predictions` accepts; they replace labels of ``predictions``.  Samples whose
        label is not known (None, NaN, -1) are left out.
    methods : sequence of str
        Of "members", "mean", "tde", "atde" and the names of calibrators, also on a pool as in "log-pool+matrix"; or the
        path of a saved calibrator, as in "cal.json", or a fitted calibrator itself, which are scored as they are (on
        samples that they were not fitted on, if the scores are to be honest).
        Where a calibrator is to be fitted, the samples are split into two random halves: calibrators are fitted on one,
        and everything is scored on the other.  What is scored are the distributions that ``predict_proba`` gives.
    kind, sources_axis
        As in :func:`veridical.discover`.
    floors : bool
        Put beside calibration errors what they would be under perfect calibration.
    intervals : bool
        Put bootstrap intervals beside all metrics.
    random_state : int
        Decides the halves, floors and intervals.
    walk_forward : bool, or array of N periods
        Fit calibrators on the samples of all earlier periods and score each period in turn, in place of random halves.
        Periods are numbers, dates, or texts of one form, as in 2024-01-31, 2024-01, 2024-W05, 2024Q1 or "week 9"; True
        takes the groups of the predictions.
    period_order : {"value", "appearance"}
        Periods are ordered by what they mean, or, for texts such as "Jan", as they first appear among the samples.
    n_threads : int, optional
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    client : dask.distributed.Client, optional
        Where Dask arrays, and files opened with :func:`veridical.scale.open`, are evaluated.

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
    if client is not None:
        raise ParameterError("a client evaluates Dask arrays or veridical.scale.open(path); leave it out for arrays.")
    options: dict[str, Any] = {
        "floors": check_flag(floors, "floors"),
        "intervals": check_flag(intervals, "intervals"),
        "random_state": check_seed(random_state),
    }
    all_predictions = as_predictions(predictions, kind, sources_axis)
    all_predictions = all_predictions if labels is None else all_predictions.with_labels(labels)
    periods = periods_of(all_predictions, walk_forward, period_order)
    if periods is not None and all_predictions.labels is not None:
        periods = periods[all_predictions.labels != UNKNOWN]
    engine = Engine(labelled(all_predictions, None, None, None), n_threads=n_threads)
    return run_evaluation(engine, resolve_methods(methods), options, periods=periods, progress=progress).evaluation


@dataclass(frozen=True)
class EvaluationRun:
    """An evaluation with the outcomes that it was made from.

    Attributes
    ----------
    evaluation : Evaluation
    split : Split
    outcomes : dict
        Name of a method -> its outcome on the scored samples; without single sources.
    shared : Shared
        What was fitted on this split for several methods.
    """

    evaluation: Evaluation
    split: Split
    outcomes: dict[str, Outcome]
    shared: Shared


def run_evaluation(
    engine: Engine,
    methods: Sequence[Method | None],
    options: dict[str, Any],
    *,
    data: DataFacts | None = None,
    keep_probs: bool = False,
    periods: Indices | None = None,
    progress: Progress | None = None,
) -> EvaluationRun:
    """Score methods on an engine's predictions, with calibrators on the half that they were not fitted on.

    Parameters
    ----------
    engine : Engine
    methods : sequence of Method, or None for all single sources
    options : dict
        ``floors``, ``intervals`` and ``random_state`` of the summaries; ``random_state`` also decides the halves.
    data : DataFacts, optional
        Where the caller has them already.
    keep_probs : bool
        Keep the distributions in the outcomes.
    periods : (N,) array, optional
        Fit on earlier periods and score each in turn, in place of halves; distributions are then not kept.
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    """
    report = check_progress(progress)
    random_state = options["random_state"]
    options = {**options, "n_threads": engine.n_threads}
    held_out = any(method is not None and method.needs_fit for method in methods)
    splits = [] if periods is None else period_splits(periods)
    if splits:
        split = Split(None, scored_samples(splits))
    else:
        split = half_split(engine.predictions, random_state) if held_out else Split()
    engine.expect(methods)
    reference = engine.reference(split)
    scores: list[MethodScores] = []
    outcomes: dict[str, Outcome] = {}
    shared = Shared()
    for done, method in enumerate(methods):
        report(done, len(methods), "single sources" if method is None else method.title)
        shared.keep_for(methods[done:])
        if method is None:
            scores += _score_sources(engine, split, reference, options)
            continue
        if splits and method.needs_fit:
            outcome = run_periods(engine, method, splits, random_state, progress)
        else:
            outcome = engine.run_one(
                method, split, shared, random_state=random_state, keep_probs=keep_probs, progress=progress
            )
        outcomes[method.name] = outcome
        scores.append(score(outcome, reference, **options))
    report(len(methods), len(methods), "done")
    evaluation = Evaluation(
        data=data or DataFacts.of(engine.predictions),
        methods=tuple(scores),
        protocol=_protocol(held_out, len(splits)),
        random_state=random_state,
        versions=versions(),
        notes=notes_on(engine, methods),
    )
    return EvaluationRun(evaluation, split, outcomes, shared)


def _protocol(held_out: bool, n_periods: int) -> str:
    if n_periods:
        return f"{n_periods} period{'s' * (n_periods != 1)}, after a fit on those before"
    return "held-out half" if held_out else "all samples"


def _score_sources(engine: Engine, split: Split, reference: Labels, options: dict[str, Any]) -> list[MethodScores]:
    predictions = engine.predictions
    scores = []
    for s, (name, outcome) in enumerate(zip(names_of_sources(predictions), engine.sources, strict=True)):
        part = outcome.among(split.scored_on, predictions.n_samples)
        if not part.samples.size:
            warnings.warn(f"{name} has no prediction for any sample; it has no row.", AbsentSourceWarning, stacklevel=4)
            continue
        assert part.vectors is not None
        changed = int((part.prediction != reference[part.samples]).sum())
        scores.append(_scores_of(f"source:{s}", name, part.vectors, changed, options, is_source=True))
    return scores
