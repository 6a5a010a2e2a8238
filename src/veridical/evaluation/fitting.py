"""Fitting a calibrator and judging it honestly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veridical._dispatch import also_out_of_memory
from veridical._progress import Progress
from veridical._tables import TableResult
from veridical.calibrate import Calibrator
from veridical.errors import ParameterError
from veridical.evaluation.advice import Advice, advise
from veridical.evaluation.engine import Engine
from veridical.evaluation.evaluating import Evaluation, EvaluationRun, run_evaluation
from veridical.evaluation.facts import labelled
from veridical.evaluation.methods import Method, resolve_method
from veridical.evaluation.other_half import chosen_method, only_methods, with_method, with_other_half, with_title
from veridical.predictions.validation import InputKind, check_seed


@dataclass(frozen=True)
class Calibration(TableResult):
    """A fitted calibrator with the evidence for it.

    Attributes
    ----------
    calibrator : Calibrator
        Fitted on all labelled samples.
    evaluation : Evaluation
        The mean against the same method fitted on one random half and scored on the other.  If "auto" chooses another
        method on that half than on all samples, both have a row.
    method : str
    chosen_on_half : str or None
        What "auto" chose on the half that it was fitted on for the evaluation; with all samples it may choose another.
    advice : Advice or None
        Whether a simpler method does as well, and what other methods would gain.
    judged : str
        The method in ``evaluation`` that is the calibrator's: ``method``, or what "auto" chose on all samples if that
        is not what it chose on the half.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> calibration = vd.fit_calibrator(predictions, method="platt")
    >>> calibration.method, calibration.chosen
    ('platt', None)
    """

    calibrator: Calibrator
    evaluation: Evaluation
    method: str
    chosen_on_half: str | None = None
    advice: Advice | None = None
    judged: str = ""

    def __post_init__(self) -> None:
        if not self.judged:
            object.__setattr__(self, "judged", self.method)

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: the mean and the method on held-out samples."""
        return self.evaluation.rows()

    def _records(self) -> list[dict[str, Any]]:
        return self.evaluation._records()

    def _caption(self) -> str:
        chosen = "" if self.chosen is None else f" ({self.chosen})"
        return f"{self.method}{chosen}, scored on {self.evaluation.protocol}; errors and accuracy in %"

    @property
    def chosen(self) -> str | None:
        """The choice of "auto", as "method on combine"."""
        return _choice_of(self.calibrator)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        advice = None if self.advice is None else self.advice.to_dict()
        content = {**self.evaluation.to_dict(), "type": "calibration", "method": self.method, "advice": advice}
        content["judged"] = self.judged
        if self.chosen is None:
            return content
        candidates = getattr(self.calibrator, "table_", [])
        return {**content, "chosen": self.chosen, "chosen_on_half": self.chosen_on_half, "candidates": candidates}


def _choice_of(calibrator: Calibrator | None) -> str | None:
    best = getattr(calibrator, "best_", None)
    return None if best is None else f"{best.name} on {best.combine}"


@also_out_of_memory(maps=True)
def fit_calibrator(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
    **parameters: Any,
) -> Calibration:
    """Fit a calibrator on labelled predictions, and score it on samples that it was not fitted on.

    Parameters
    ----------
    predictions, labels, kind, sources_axis, n_threads, progress
        As in :func:`veridical.evaluate`.
    method : str
        The name of a calibrator, also on a pool as in "log-pool+matrix"; "auto" chooses one by cross-validation.
    random_state : int
    **parameters
        Passed on to the calibrator.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(1000))
    >>> calibration = vd.fit_calibrator(predictions, method="temperature")
    >>> [scores.method for scores in calibration.evaluation.methods]
    ['mean', 'temperature']
    >>> 0.5 < calibration.calibrator.temperature_ < 1.5
    True
    """
    random_state = check_seed(random_state)
    labelled_predictions = labelled(predictions, labels, kind, sources_axis)
    resolved = resolve_calibrator(method, parameters)
    engine = Engine(labelled_predictions, n_threads=n_threads)
    return fit_with_engine(engine, resolved, random_state, progress)[0]


def fit_with_engine(
    engine: Engine,
    method: Method,
    random_state: int,
    progress: Progress | None = None,
    *,
    shown: Sequence[Method | None] = (),
    options: Mapping[str, Any] | None = None,
) -> tuple[Calibration, EvaluationRun]:
    """Score a method on held-out samples, beside the mean and what else is shown; then fit it on all samples.

    Returns the calibration, and the whole evaluation for a report to show.
    """
    chosen = {"floors": True, "intervals": False, "random_state": random_state, **(options or {})}
    compared = {name: resolve_method(name) for name in ("mean", "temperature")} | {method.name: method}
    run = run_evaluation(engine, shown or list(compared.values()), chosen, progress=progress)
    on_half = run.outcomes[method.name].calibrator
    (whole,) = engine.run([method], random_state=random_state, progress=progress)
    assert whole.calibrator is not None
    engine.remember_data(whole.calibrator)
    judged = method.name
    if method.chooses and on_half is not None:
        saved, tried = chosen_method(whole.calibrator), chosen_method(on_half)
        if saved.name == tried.name:
            run = with_title(run, method.name, f"{method.title} ({saved.title})")
        else:
            run = with_title(run, method.name, f"{method.title} (chose {tried.title} on that half)")
            run, judged = with_method(run, engine, saved, chosen), saved.name
    run = with_other_half(run, engine, judged)
    advice = advise(only_methods(run, "mean", "temperature", judged), engine, judged)
    evaluation = run.evaluation.only("mean", judged, method.name)
    return Calibration(whole.calibrator, evaluation, method.name, _choice_of(on_half), advice, judged), run


def resolve_calibrator(method: str, parameters: Mapping[str, Any]) -> Method:
    """A method that can be fitted, by name."""
    resolved = resolve_method(method, parameters, only_calibrators=True)
    if resolved.calibrator is None:
        raise ParameterError(f"{resolved.name} has nothing to fit; name a calibrator, such as 'temperature'.")
    return resolved
