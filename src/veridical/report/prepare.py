"""From predictions to the numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridical._progress import Progress, no_progress
from veridical._version import versions
from veridical.combine import label_free_combiners
from veridical.errors import ParameterError, ShapeError
from veridical.evaluation.engine import Engine, Outcome
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.inspection import inspect_with_engine
from veridical.evaluation.methods import Method, resolve_method, resolve_methods
from veridical.evaluation.scores import EvaluationRun, labelled, run_evaluation
from veridical.evaluation.source_sweep import sweep_sources
from veridical.metrics import SUMMARY_METRICS, bin_edges, reliability_curve
from veridical.metrics.sample import Sample
from veridical.metrics.selective import aurc_of, risk_at_coverage
from veridical.metrics.table import summary_of
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Array, Kind, check_seed
from veridical.report.data import (
    ConfidenceHistogram,
    ReliabilityPanel,
    ReportData,
    RiskCurve,
    SweepPoint,
)
from veridical.report.disagreement import disagreement_of, disputed_samples
from veridical.report.verdict import verdict_of

#: Shown beside the method that the report is about.
DEFAULT_METHODS = ("mean", "tde", "atde", "temperature")
SWEEP_METRICS = SUMMARY_METRICS
_N_BINS, _HISTOGRAM_BINS = 15, 20
_MOST_STEPS = 10
#: Steps that :func:`report_on` announces.
N_STAGES = 4
_COVERAGE = np.arange(1, 101) / 100


def prepare_report(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "ptde",
    methods: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    title: str | None = None,
    random_state: int = 0,
    intervals: bool = True,
    progress: Progress | None = None,
) -> ReportData:
    """All numbers of a report; the parameters are those of :func:`veridical.build_report`."""
    sources = as_predictions(predictions, kind, sources_axis)
    sources = sources if labels is None else labelled(sources, labels, None, None)
    if sources.n_samples == 0:
        raise ShapeError("there are no samples to report on; at least one is needed.")
    check_seed(random_state)
    if title is not None and not isinstance(title, str):
        raise ParameterError(f"title is {title!r}; give text.")
    engine = Engine(sources)
    chosen, shown = choose_methods(method, methods, sources.n_sources, parameters)
    stages = Stages(progress, len(shown) * (sources.labels is not None) + N_STAGES)
    data = DataFacts.of(sources)
    run = None
    if sources.labels is not None:
        options = {"floors": True, "intervals": intervals, "random_state": random_state}
        run = run_evaluation(engine, shown, options, data=data, progress=stages.within(len(shown)))
    return report_on(engine, run, chosen, data, title, random_state, stages.within(N_STAGES))


def report_on(
    engine: Engine,
    run: EvaluationRun | None,
    method: Method,
    data: DataFacts,
    title: str | None,
    random_state: int,
    progress: Progress | None = None,
) -> ReportData:
    """All numbers of a report on an evaluation that was run already; without labels there is none."""
    predictions = engine.predictions
    sizes = _sweep_sizes(predictions)
    stages = Stages(progress, N_STAGES)
    stages.begin("sources")
    inspection = inspect_with_engine(engine, data)
    stages.begin("numbers of sources")
    sweep = sweep_sources(engine, sizes) if sizes else {}
    stages.begin("where the sources disagree")
    mean, hv = engine.combined("mean"), engine.combined("atde").truth.hv
    evaluation, name = (None, None) if run is None else (run.evaluation, method.name)
    method_title = "" if run is None else _method_title(run.outcomes[method.name])
    verdict, tone = verdict_of(evaluation, inspection, name, method_title)
    right = None if predictions.labels is None else mean.correct(predictions.labels)
    disagreement = disagreement_of(hv, mean.probs.max(axis=1), right)
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
        reliability=() if run is None else _reliability(run),
        histograms=() if run is None else _histograms(run),
        sweep=tuple(_sweep_point(key, sample) for key, sample in sweep.items()),
        risk=() if run is None else _risk(engine, run, method),
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
    shown = [one for one in resolve_methods(["mean", *methods]) if one is None or one.name != chosen.name]
    return chosen, [*shown, chosen] if chosen.name != "mean" else [chosen, *shown]


def _method_title(outcome: Outcome) -> str:
    """How sentences call the method; of a choice, what was chosen."""
    best = getattr(outcome.calibrator, "best_", None)
    return outcome.method.title if best is None else f"{outcome.method.title} ({best.title} on {best.combine})"


def _parameters(run: EvaluationRun) -> dict[str, dict[str, Any]]:
    fitted = {name: outcome.calibrator for name, outcome in run.outcomes.items()}
    return {name: calibrator.get_params() for name, calibrator in fitted.items() if calibrator is not None}


class Stages:
    """One count over everything that takes time, whoever does it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress: Progress = progress or no_progress
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
    panels = []
    for method, outcome in run.outcomes.items():
        for binning, edges in fixed.items():
            curve = reliability_curve(outcome.vectors.correct, outcome.vectors.confidence, edges=edges)
            columns = (curve.edges, curve.counts, curve.confidence, curve.accuracy, curve.low, curve.high)
            panels.append(ReliabilityPanel(method, binning, *(_floats(column) for column in columns)))
    return tuple(panels)


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _histograms(run: EvaluationRun) -> tuple[ConfidenceHistogram, ...]:
    edges = np.linspace(0, 1, _HISTOGRAM_BINS + 1)
    histograms = []
    for method, outcome in run.outcomes.items():
        confidence, right = outcome.vectors.confidence, outcome.vectors.correct
        counts = [np.histogram(confidence[side], edges)[0].tolist() for side in (right, ~right)]
        scores = run.evaluation[method]
        histograms.append(
            ConfidenceHistogram(
                method=method,
                edges=_floats(edges),
                right=tuple(counts[0]),
                wrong=tuple(counts[1]),
                mean_confidence=scores.mean_confidence,
                accuracy=scores.summary["accuracy"].value,
            )
        )
    return tuple(histograms)


def _sweep_sizes(predictions: Predictions) -> list[int]:
    """About ten numbers of sources, up to all of them."""
    if predictions.labels is None or predictions.n_sources < 2:
        return []
    step = max(predictions.n_sources / _MOST_STEPS, 1)
    sizes = {round(step * k) for k in range(1, _MOST_STEPS + 1)}
    return sorted(size for size in sizes if size <= predictions.n_sources)


def _sweep_point(key: tuple[int, str], sample: Sample) -> SweepPoint:
    n_sources, name = key
    return SweepPoint(name, n_sources, {row.metric: row.value for row in summary_of(sample, floors=False)})


def _risk(engine: Engine, run: EvaluationRun, method: Method) -> tuple[RiskCurve, ...]:
    """By the confidence of the mean, of aTDE and of the method, and by HV."""
    names = [name for name in dict.fromkeys(("mean", "atde", method.name)) if name in run.outcomes]
    curves = []
    for name in names:
        outcome = run.outcomes[name]
        curves.append(_risk_curve(name, f"{outcome.method.title} confidence", outcome.vectors))
    if engine.predictions.n_sources > 1:
        hv = engine.combined("atde").truth.hv.astype(np.float64)
        doubt = hv if run.split.scored_on is None else hv[run.split.scored_on]
        curves.append(_risk_curve("hv", "HV", run.outcomes["mean"].vectors, doubt))
    return tuple(curves)


def _risk_curve(ranking: str, title: str, sample: Sample, doubt: Array | None = None) -> RiskCurve:
    ranked = Sample(sample.confidence, sample.correct, doubt=doubt)
    return RiskCurve(ranking, title, _floats(_COVERAGE), _floats(risk_at_coverage(ranked, _COVERAGE)), aurc_of(ranked))
