"""A second opinion: methods that are fitted on the scored half and scored on the other one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from veridical.calibrate import Calibrator
from veridical.errors import VeridicalWarning
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.evaluating import EvaluationRun, MethodScores, score
from veridical.evaluation.methods import Method, resolve_method
from veridical.evaluation.outcomes import Outcome
from veridical.metrics.sample import Labels

#: Cheap enough to be fitted twice, whatever the method that was asked about.
_CHEAP = "temperature"


def chosen_method(calibrator: Calibrator) -> Method:
    """The method of what a calibrator uses: what "auto" chose, otherwise its own."""
    fitted = calibrator.fitted_calibrator
    alone = resolve_method(fitted.name)
    return alone if alone.combiner == fitted.combine else resolve_method(f"{fitted.combine}+{fitted.name}")


def with_other_half(run: EvaluationRun, engine: Engine, judged: str) -> EvaluationRun:
    """The run with the ECE of some methods on the other half: the judged one, and those that cost little.

    One half alone is a matter of luck: a method can be at its noise floor on one and above it on the other.
    """
    if run.split.fitted_on is None or run.split.scored_on is None or len(run.split.fitted_on) < 2:
        return run
    split = Split(run.split.scored_on, run.split.fitted_on)
    reference, shared = engine.reference(split), Shared()
    options = {"random_state": run.evaluation.random_state, "n_threads": engine.n_threads}
    other_half = tuple(
        _score(outcome, engine, split, shared, reference, options)
        for name, outcome in run.outcomes.items()
        if name in (judged, _CHEAP) or not outcome.method.needs_fit
    )
    return replace(run, evaluation=replace(run.evaluation, other_half=other_half))


def _score(
    outcome: Outcome, engine: Engine, split: Split, shared: Shared, reference: Labels, options: dict[str, Any]
) -> MethodScores:
    """ECE and accuracy of a method; of what it chose, if it chooses."""
    method = outcome.method
    if method.chooses and outcome.calibrator is not None:
        method = replace(chosen_method(outcome.calibrator), name=method.name, title=method.title)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridicalWarning)  # given for the first half
        swapped = engine.run_one(method, split, shared, random_state=options["random_state"])
    return score(swapped, reference, metrics=("ece", "accuracy"), floors=True, intervals=False, **options)


def with_method(run: EvaluationRun, engine: Engine, method: Method, options: dict[str, Any]) -> EvaluationRun:
    """The run with one more method, on the same split; in tables it comes before the last one."""
    if method.name in run.outcomes:
        return run
    outcome = engine.run_one(method, run.split, run.shared, random_state=run.evaluation.random_state)
    scores = score(outcome, engine.reference(run.split), **options, n_threads=engine.n_threads)
    *others, last = run.evaluation.methods
    evaluation = replace(run.evaluation, methods=(*others, scores, last))
    return replace(run, evaluation=evaluation, outcomes={**run.outcomes, method.name: outcome})


def with_title(run: EvaluationRun, method: str, title: str) -> EvaluationRun:
    """The run with another title of a method in its tables."""
    methods = tuple(replace(s, title=title) if s.method == method else s for s in run.evaluation.methods)
    return replace(run, evaluation=replace(run.evaluation, methods=methods))


def only_methods(run: EvaluationRun, *names: str) -> EvaluationRun:
    """The run with some of its methods."""
    outcomes = {name: outcome for name, outcome in run.outcomes.items() if name in names}
    return replace(run, evaluation=run.evaluation.only(*names), outcomes=outcomes)
