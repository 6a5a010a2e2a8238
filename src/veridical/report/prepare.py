"""From predictions to the numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from veridical._progress import Progress, no_progress
from veridical._version import versions
from veridical.errors import MissingSourceError, ParameterError, ShapeError
from veridical.evaluation import inspect
from veridical.evaluation.methods import COMBINERS, MEMBERS, combine, resolve_methods
from veridical.evaluation.scores import Judged, judge, labelled, labels_of
from veridical.metrics import SUMMARY_METRICS, aurc, bin_edges, reliability_curve, summary
from veridical.metrics.sample import check_sample
from veridical.metrics.selective import risk_at_coverage
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Array, Kind, check_integer
from veridical.report.data import (
    ConfidenceHistogram,
    ReliabilityPanel,
    ReportData,
    RiskCurve,
    SweepPoint,
)
from veridical.report.disagreement import disagreement_of, disputed_samples
from veridical.report.names import shown_title
from veridical.report.verdict import verdict_of

#: Shown beside the method that the report is about.
DEFAULT_METHODS = ("mean", "tde", "atde", "temperature")
SWEEP_METRICS = SUMMARY_METRICS
_N_BINS, _HISTOGRAM_BINS = 15, 20
_MOST_STEPS = 10
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
    given = as_predictions(predictions, kind, sources_axis)
    given = given if labels is None else labelled(given, labels, None, None)
    if given.n_samples == 0:
        raise ShapeError("there are no samples to report on; at least one is needed.")
    check_integer(random_state, "random_state", 0)
    chosen, names = _choose(method, methods, given.n_sources)
    steps = _sweep_steps(given)
    stages = _Stages(progress, len(names) * (given.labels is not None) + len(steps) + 3)
    judged = None
    if given.labels is not None:
        options = {"floors": True, "intervals": intervals, "random_state": random_state}
        judged = judge(
            given, names, options, progress=stages.within(len(names)), parameters={chosen: dict(parameters or {})}
        )
    stages.begin("sources")
    inspection = inspect(given)
    truth, mean = combine(given, "atde"), combine(given, "mean")
    points = [point for k in steps for point in _sweep_at(given, k, stages)]
    stages.begin("where the sources disagree")
    evaluation, about = (None, None) if judged is None else (judged.evaluation, chosen)
    method_title = "" if judged is None else _method_title(judged, chosen)
    verdict, tone = verdict_of(evaluation, inspection, about, method_title)
    disagreement = disagreement_of(truth.hv, mean.probs.max(axis=1), _right(mean.prediction, given.labels))
    disputed = disputed_samples(given, truth.hv, mean)
    stages.begin("drawing")
    return ReportData(
        title=title or ("What are these sources like?" if judged is None else "How well calibrated is this ensemble?"),
        verdict=verdict,
        tone=tone,
        method=about,
        method_title=method_title,
        inspection=inspection,
        evaluation=evaluation,
        reliability=() if judged is None else _reliability(judged),
        histograms=() if judged is None else _histograms(judged),
        sweep=tuple(points),
        risk=() if judged is None else _risk(judged, chosen),
        disagreement=disagreement,
        disputed=disputed,
        parameters={} if judged is None else {name: c.get_params() for name, c in judged.calibrators.items()},
        random_state=random_state,
        versions=versions("matplotlib"),
    )


def _choose(method: str, methods: Sequence[str] | None, n_sources: int) -> tuple[str, tuple[str, ...]]:
    """The method that the report is about, and all that it shows, the mean first."""
    (chosen,) = resolve_methods([method])
    if chosen == MEMBERS:
        raise ParameterError("method is 'members'; a report is about one way to use them all, such as 'ptde'.")
    if methods is None:  # one source is its own truth
        methods = [name for name in DEFAULT_METHODS if n_sources > 1 or name not in COMBINERS]
    return chosen, resolve_methods(["mean", *methods, chosen])


def _method_title(judged: Judged, chosen: str) -> str:
    """How sentences call the method; of a choice, what was chosen."""
    best = getattr(judged.calibrators.get(chosen), "best_", None)
    return (
        shown_title(chosen) if best is None else f"{shown_title(chosen)} ({shown_title(best.name)} on {best.combine})"
    )


class _Stages:
    """One count over everything that takes time, whoever does it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress or no_progress
        self._done, self._total = 0, total

    def begin(self, what: str) -> None:
        """Another stage starts."""
        self._progress(self._done, self._total, what)
        self._done += 1

    def within(self, size: int) -> Progress:
        """A report of someone else's ``size`` stages, as part of these."""
        first = self._done
        self._done += size
        return lambda done, total, what: self._progress(first + done, self._total, what)


def _right(prediction: Array, labels: Array | None) -> Array | None:
    return None if labels is None else np.asarray(prediction == labels)


def _reliability(judged: Judged) -> tuple[ReliabilityPanel, ...]:
    labels = labels_of(judged.scored_on)
    fixed = {"mass": bin_edges(judged.probs["mean"].max(axis=1), _N_BINS), "width": np.linspace(0, 1, _N_BINS + 1)}
    panels = []
    for method, probs in judged.probs.items():
        for binning, edges in fixed.items():
            curve = reliability_curve(labels, probs, edges=edges)
            columns = (curve.edges, curve.counts, curve.confidence, curve.accuracy, curve.low, curve.high)
            panels.append(ReliabilityPanel(method, binning, *(_floats(column) for column in columns)))
    return tuple(panels)


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _histograms(judged: Judged) -> tuple[ConfidenceHistogram, ...]:
    edges = np.linspace(0, 1, _HISTOGRAM_BINS + 1)
    found = []
    for method, probs in judged.probs.items():
        confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels_of(judged.scored_on)
        counts = [np.histogram(np.minimum(confidence[side], 1.0), edges)[0].tolist() for side in (right, ~right)]
        scores = judged.evaluation[method]
        found.append(
            ConfidenceHistogram(
                method=method,
                edges=_floats(edges),
                right=tuple(counts[0]),
                wrong=tuple(counts[1]),
                mean_confidence=scores.mean_confidence,
                accuracy=scores.summary["accuracy"].value,
            )
        )
    return tuple(found)


def _sweep_steps(given: Predictions) -> list[int]:
    """About ten numbers of sources, up to all of them."""
    if given.labels is None or given.n_sources < 2:
        return []
    step = max(given.n_sources / _MOST_STEPS, 1)
    return sorted({round(step * k) for k in range(1, _MOST_STEPS + 1) if round(step * k) <= given.n_sources})


def _sweep_at(given: Predictions, n_sources: int, stages: _Stages) -> list[SweepPoint]:
    stages.begin(f"{n_sources} of {given.n_sources} sources")
    first = given.select(sources=slice(0, n_sources))
    found = []
    for name in COMBINERS:
        try:
            scores = summary(labels_of(given), combine(first, name).probs, floors=False)
        except MissingSourceError:  # some sample has none of the first sources
            return []
        found.append(SweepPoint(name, n_sources, {row.metric: row.value for row in scores}))
    return found


def _risk(judged: Judged, chosen: str) -> tuple[RiskCurve, ...]:
    """By the confidence of the mean, of aTDE and of the method, and by HV."""
    labels = labels_of(judged.scored_on)
    shown = [name for name in dict.fromkeys(("mean", "atde", chosen)) if name in judged.probs]
    curves = [_risk_curve(name, f"{shown_title(name)} confidence", labels, judged.probs[name]) for name in shown]
    if judged.scored_on.n_sources > 1:
        hv = combine(judged.scored_on, "atde").hv
        curves.append(_risk_curve("hv", "HV", labels, judged.probs["mean"], hv))
    return tuple(curves)


def _risk_curve(score: str, title: str, labels: Array, probs: Array, doubt: Array | None = None) -> RiskCurve:
    sample = check_sample(labels, probs, None, doubt)
    risk = risk_at_coverage(sample, _COVERAGE)
    return RiskCurve(score, title, _floats(_COVERAGE), _floats(risk), aurc(labels, probs, doubt=doubt))
