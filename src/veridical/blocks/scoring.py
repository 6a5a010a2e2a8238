"""Scores of methods from calibration states: one per method, updated block by block and merged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from veridical._version import versions
from veridical.calibrate import Calibrator
from veridical.errors import AbsentSourceWarning
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.evaluating import Evaluation, MethodScores
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.methods import Method
from veridical.metrics import SUMMARY_METRICS, CalibrationState, Summary
from veridical.metrics.sample import Labels, Sample
from veridical.metrics.state_summary import SUMMARY_ERRORS
from veridical.metrics.table import SummaryRow
from veridical.predictions import Predictions


@dataclass
class ScoreStates:
    """What is known of methods after some samples.

    Attributes
    ----------
    states : dict
        Method -> state of its distributions.
    changed : dict
        Method -> how many labels differ from those of the mean.
    n_samples, n_absent : int
        How many samples were scored, and how many predictions of single sources were absent.
    """

    states: dict[str, CalibrationState] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    n_samples: int = 0
    n_absent: int = 0

    def add(self, method: str, sample: Sample, prediction: Labels, reference: Labels) -> None:
        """Add the outcomes of a method."""
        self.states.setdefault(method, CalibrationState()).update_sample(sample)
        self.changed[method] = self.changed.get(method, 0) + int((prediction != reference).sum())

    def merge(self, *others: ScoreStates) -> ScoreStates:
        """The states over the samples of all of them; the order does not matter."""
        merged = ScoreStates()
        for part in (self, *others):
            for method, state in part.states.items():
                known = merged.states.get(method)
                merged.states[method] = state if known is None else known.merge(state)
                merged.changed[method] = merged.changed.get(method, 0) + part.changed[method]
            merged.n_samples += part.n_samples
            merged.n_absent += part.n_absent
        return merged


def score_block(
    predictions: Predictions,
    methods: Sequence[Method | None],
    fitted: Mapping[str, Calibrator],
    n_threads: int | None = None,
    scores: ScoreStates | None = None,
) -> ScoreStates:
    """States of the methods on the labelled samples of a block; None stands for every single source.

    They are added to ``scores`` where those are passed.
    """
    scores = ScoreStates() if scores is None else scores
    block = predictions.labelled()
    if block.labels is None or block.n_samples == 0:
        return scores
    engine, split, shared = Engine(block, n_threads=n_threads), Split(), Shared()
    engine.expect(methods)
    reference = engine.reference(split)
    scores.n_samples += block.n_samples
    scores.n_absent += int((~block.present()).sum())
    for method in methods:
        if method is None:
            for s, source in enumerate(engine.sources):
                if source.vectors is not None:
                    scores.add(f"source:{s}", source.vectors, source.prediction, reference[source.samples])
            continue
        if method.calibrator is None:
            outcome = engine.run_one(method, split, shared)
        else:
            outcome = engine.apply(fitted[method.name], split, shared, method=method)
        scores.add(method.name, outcome.vectors, outcome.vector_labels, reference)
    return scores


def evaluation_of(
    whole: Predictions,
    scores: ScoreStates,
    methods: Sequence[Method | None],
    *,
    protocol: str,
    floors: bool,
    random_state: int,
    n_threads: int | None,
) -> Evaluation:
    """The evaluation that the states describe; ``whole`` has shape and names, its numbers are not looked at."""
    if scores.n_absent:
        n_predictions = whole.n_sources * scores.n_samples
        warnings.warn(
            f"{scores.n_absent:,} of {n_predictions:,} predictions are absent (rows of NaN) and left out.",
            AbsentSourceWarning,
            stacklevel=4,
        )
    names = whole.source_names or tuple(f"source {s}" for s in range(whole.n_sources))
    rows: list[MethodScores] = []
    for method in methods:
        sources = {f"source:{s}": name for s, name in enumerate(names)}
        titles = sources if method is None else {method.name: method.title}
        for name, title in titles.items():
            if name not in scores.states:
                warnings.warn(f"{title} has no prediction for any sample; it has no row.", AbsentSourceWarning, 4)
                continue
            rows.append(_method_scores(name, title, scores, floors, random_state, n_threads, is_source=method is None))
    return Evaluation(
        data=DataFacts.without_hash(whole),
        methods=tuple(rows),
        protocol=protocol,
        random_state=random_state,
        versions=versions(),
    )


def _method_scores(
    name: str,
    title: str,
    scores: ScoreStates,
    floors: bool,
    random_state: int,
    n_threads: int | None,
    *,
    is_source: bool,
) -> MethodScores:
    state = scores.states[name]
    result = state.compute()
    options: dict[str, Any] = {"quantiles": (0.95,), "random_state": random_state, "n_threads": n_threads}
    noise = state.noise_floors(SUMMARY_ERRORS, **options) if floors else {}
    rows = [
        SummaryRow(
            metric,
            result.values[metric],
            noise[metric].mean if metric in noise else None,
            noise[metric].quantiles[0.95] if metric in noise else None,
            bound=result.bounds[metric],
        )
        for metric in SUMMARY_METRICS
        if metric in result.values
    ]
    cells = state.cells()
    mean_confidence = float(np.sum(cells.confidence)) / state.n_samples
    return MethodScores(
        method=name,
        title=title,
        summary=Summary(tuple(rows), state.n_samples),
        mean_confidence=mean_confidence,
        gap=mean_confidence - result["accuracy"],
        labels_changed=scores.changed[name],
        is_source=is_source,
    )
