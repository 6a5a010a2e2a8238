"""From predictions to the numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridical._progress import Progress, check_progress
from veridical._version import versions
from veridical.combine import Combined, label_free_combiners
from veridical.errors import ParameterError, ShapeError, shown
from veridical.evaluation.advice import Advice, advise
from veridical.evaluation.curves import (
    HV_ROUNDING,
    ConfidenceHistogram,
    Disagreement,
    ReliabilityPanel,
    RiskCurve,
    sweep_points,
)
from veridical.evaluation.engine import Engine
from veridical.evaluation.evaluating import EvaluationRun, run_evaluation
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.inspection import inspect_with_engine
from veridical.evaluation.methods import Method, resolve_method, resolve_methods
from veridical.evaluation.other_half import with_other_half
from veridical.evaluation.outcomes import Outcome
from veridical.metrics import bin_edges
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import Array, InputKind, check_flag, check_seed
from veridical.report.data import DisputedSample, ReportData
from veridical.report.verdict import verdict_of

#: Shown beside the method that the report is about.
DEFAULT_METHODS = ("mean", "tde", "atde", "temperature")
_N_BINS = 15
#: Steps that :func:`report_on` announces.
N_STAGES = 4


def prepare_report(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "ptde",
    methods: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    title: str | None = None,
    random_state: int = 0,
    intervals: bool = True,
    progress: Progress | None = None,
) -> ReportData:
    """All numbers of a report; the parameters are those of :func:`veridical.build_report`."""
    sources = as_predictions(predictions, kind, sources_axis)
    sources = sources if labels is None else sources.with_labels(labels)
    if sources.n_samples == 0:
        raise ShapeError("there are no samples to report on; at least one is needed.")
    random_state = check_seed(random_state)
    check_flag(intervals, "intervals")
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title is {shown(title)}; give text.")
    engine = Engine(sources)
    chosen, selected = choose_methods(method, methods, sources.n_sources, parameters)
    stages = Stages(progress, len(selected) * (sources.labels is not None) + N_STAGES)
    data = DataFacts.of(sources)
    run = None
    if sources.labels is not None:
        options = {"floors": True, "intervals": intervals, "random_state": random_state}
        run = run_evaluation(engine.labelled, selected, options, data=data, progress=stages.within(len(selected)))
        run = with_other_half(run, engine.labelled, chosen.name)
    return report_on(engine, run, chosen, data, title, random_state, stages.within(N_STAGES))


def report_on(
    engine: Engine,
    run: EvaluationRun | None,
    method: Method,
    data: DataFacts,
    title: str | None,
    random_state: int,
    progress: Progress | None = None,
    advice: Advice | None = None,
) -> ReportData:
    """All numbers of a report on an evaluation that was run already; without labels there is none.

    ``advice`` is that on the method, if the caller has it already.
    """
    predictions, scored = engine.predictions, engine.labelled
    stages = Stages(progress, N_STAGES)
    stages.begin("sources")
    inspection = inspect_with_engine(engine, data, random_state)
    stages.begin("numbers of sources")
    sweep = sweep_points(engine)
    stages.begin("where the sources disagree")
    mean, hv = engine.combined("mean"), engine.combined("atde").truth.hv
    evaluation, name = (None, None) if run is None else (run.evaluation, method.name)
    method_title = "" if run is None else _method_title(run.outcomes[method.name])
    if run is not None and advice is None:
        advice = advise(run, scored, method.name)
    verdict, tone = verdict_of(evaluation, inspection, name, method_title, advice)
    scored_mean, scored_hv = scored.combined("mean"), scored.combined("atde").truth.hv
    right = None if predictions.labels is None else scored_mean.correct(scored.labels)
    disagreement = Disagreement.of(scored_hv, scored_mean.probs.max(axis=1), right)
    disputed = disputed_samples(predictions, hv, mean)
    stages.begin("drawing")
    return ReportData(
        title=title or ("What are these sources like?" if run is None else "How well calibrated is this ensemble?"),
        verdict=verdict,
        tone=tone,
        method=name,
        method_title=method_title,
        inspection=inspection,
        evaluation=evaluation,
        advice=advice,
        reliability=() if run is None else _reliability(run),
        histograms=() if run is None else tuple(ConfidenceHistogram.of(m, o.vectors) for m, o in run.outcomes.items()),
        sweep=sweep,
        risk=() if run is None else _risk(scored, run, method),
        disagreement=disagreement,
        disputed=disputed,
        parameters={} if run is None else _parameters(run),
        random_state=random_state,
        versions=versions("matplotlib"),
    )


def choose_methods(
    method: str, methods: Sequence[str] | None, n_sources: int, parameters: Mapping[str, Any] | None = None
) -> tuple[Method, list[Method | None]]:
    """The method that the report is about, and all that it shows, the mean first."""
    chosen = resolve_method(method, parameters)
    if methods is None:  # one source is its own truth
        methods = [name for name in DEFAULT_METHODS if n_sources > 1 or name not in label_free_combiners()]
    names = ["mean", *methods] if isinstance(methods, list | tuple) else methods  # what is not a list is refused
    others = [one for one in resolve_methods(names) if one is None or one.name != chosen.name]
    return chosen, [*others, chosen] if chosen.name != "mean" else [chosen, *others]


def _method_title(outcome: Outcome) -> str:
    """The method's title in sentences, with what "auto" chose."""
    best = getattr(outcome.calibrator, "best_", None)
    return outcome.method.title if best is None else f"{outcome.method.title} ({best.title} on {best.combine})"


def _parameters(run: EvaluationRun) -> dict[str, dict[str, Any]]:
    fitted = {name: outcome.calibrator for name, outcome in run.outcomes.items()}
    return {name: calibrator.get_params() for name, calibrator in fitted.items() if calibrator is not None}


class Stages:
    """One count over everything that takes time, whoever does it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress: Progress = check_progress(progress)
        self._done, self._total = 0, total

    def begin(self, what: str) -> None:
        """Another stage starts."""
        self._progress(self._done, self._total, what)
        self._done += 1

    def within(self, size: int) -> Progress:
        """A report of ``size`` stages of another function, as part of these."""
        first = self._done
        self._done += size
        return lambda done, total, what: self._progress(first + done, self._total, what)


def _reliability(run: EvaluationRun) -> tuple[ReliabilityPanel, ...]:
    before = run.outcomes["mean"].vectors.confidence
    fixed = {"mass": bin_edges(before, _N_BINS), "width": np.linspace(0, 1, _N_BINS + 1)}
    return tuple(
        ReliabilityPanel.of(method, binning, outcome.vectors, edges)
        for method, outcome in run.outcomes.items()
        for binning, edges in fixed.items()
    )


def _risk(engine: Engine, run: EvaluationRun, method: Method) -> tuple[RiskCurve, ...]:
    """By the confidence of the mean, of aTDE and of the method, and by HV."""
    names = [name for name in dict.fromkeys(("mean", "atde", method.name)) if name in run.outcomes]
    outcomes = [run.outcomes[name] for name in names]
    curves = [RiskCurve.of(o.method.name, f"{o.method.title} confidence", o.vectors) for o in outcomes]
    if engine.predictions.n_sources > 1:
        hv = engine.combined("atde").truth.hv.astype(np.float64)
        doubt = hv if run.split.scored_on is None else hv[run.split.scored_on]
        curves.append(RiskCurve.of("hv", "HV", run.outcomes["mean"].vectors, doubt))
    return tuple(curves)


#: How many samples are listed: the most disputed of all, and some of every class so that each can be looked at.
_MOST_DISPUTED, _MOST_LISTED, _PER_CLASS = 100, 300, 10


def disputed_samples(predictions: Predictions, hv: Array, mean: Combined) -> tuple[DisputedSample, ...]:
    """The samples with the largest HV, of all and of each predicted class; the largest first."""
    order = np.argsort(-hv, kind="stable")
    order = order[hv[order] > HV_ROUNDING]
    chosen = _listed(order, mean.prediction[order], predictions.n_classes)
    return tuple(
        DisputedSample(
            sample=int(n),
            hv=float(hv[n]),
            prediction=int(mean.prediction[n]),
            confidence=float(mean.probs[n].max()),
            label=_label(predictions, n),
            votes=votes,
            sample_id=None if predictions.sample_ids is None else predictions.sample_ids[n].item(),
        )
        for n, votes in zip(chosen, _votes(predictions, chosen), strict=True)
    )


def _label(predictions: Predictions, n: int) -> int | None:
    label = UNKNOWN if predictions.labels is None else int(predictions.labels[n])
    return None if label == UNKNOWN else label


def _listed(order: Array, predicted: Array, n_classes: int) -> Array:
    """The first of ``order``, and the first of every predicted class up to the limit."""
    remaining = _MOST_LISTED - _MOST_DISPUTED
    per_class = min(max(remaining // n_classes, 1), _PER_CLASS)
    seen = np.zeros(n_classes, dtype=np.int64)
    kept = []
    for position, (sample, label) in enumerate(zip(order, predicted, strict=True)):
        if position < _MOST_DISPUTED or seen[label] < per_class:
            kept.append(sample)
        seen[label] += 1
        if len(kept) == _MOST_LISTED:
            break
    return np.asarray(kept, dtype=np.int64)


def _votes(predictions: Predictions, samples: Array) -> list[tuple[tuple[int, int], ...]]:
    """Which labels the sources name for each sample, and how many name them."""
    values = predictions.select(samples=samples).values.astype(np.float64)
    present: Array = np.logical_not(np.isnan(values).any(axis=2))
    named = np.nan_to_num(values, nan=0.0).argmax(axis=2)
    votes = []
    for n in range(len(samples)):
        labels, counts = np.unique(named[present[:, n], n], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        votes.append(tuple((int(labels[k]), int(counts[k])) for k in order))
    return votes
