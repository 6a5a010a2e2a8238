"""Advice: the simplest method that cannot be told from the best, and what other methods would gain.

All comparisons are paired: metrics of different methods on the same resamples of the same held-out samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical._tables import TableResult
from veridical.calibrate import calibrators
from veridical.combine import COMBINERS
from veridical.evaluation.choice import choose
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.evaluating import EvaluationRun
from veridical.evaluation.methods import resolve_method
from veridical.evaluation.outcomes import Outcome
from veridical.metrics import METRICS
from veridical.metrics.intervals import Resamples
from veridical.metrics.sample import Sample

#: Question -> the metric that answers it.
QUESTIONS = {"confidence": "ece", "distribution": "nll"}
#: Compared where two methods are equally good at the question.
_COMPARED = ("nll", "brier", "ks_error", "accuracy")
_N_RESAMPLES, _LEVEL = 400, 0.95
#: At most this many numbers of each half are used to see what letting labels change would gain.
_MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class Standing:
    """One method's answer to a question.

    Attributes
    ----------
    method, title : str
    value : float
        Of the metric, on held-out samples.
    behind, low, high : float
        Difference to the best method, with its 95% interval.
    at_floor : bool
        Whether a calibration error is one that calibrated confidences would have too; also with the halves swapped,
        where that is known.
    ties_with_best : bool
        Whether the method cannot be told from the best.
    """

    method: str
    title: str
    value: float
    behind: float
    low: float
    high: float
    at_floor: bool
    ties_with_best: bool


@dataclass(frozen=True)
class Choice:
    """Which method to use for one purpose.

    Attributes
    ----------
    question : {"confidence", "distribution"}
        The confidence of the label, by ECE, among methods that keep the mean's labels; or the whole distribution, by
        NLL, among all.
    metric, best, recommended : str
        ``recommended`` is the simplest of the methods that cannot be told from the best.
    standings : tuple of Standing
        The best first.
    """

    question: str
    metric: str
    best: str
    recommended: str
    standings: tuple[Standing, ...]

    def __getitem__(self, method: str) -> Standing:
        return {standing.method: standing for standing in self.standings}[method]

    def __contains__(self, method: str) -> bool:
        return any(standing.method == method for standing in self.standings)


@dataclass(frozen=True)
class Advantage:
    """A metric by which one method is better than another, by more than chance."""

    metric: str
    better: str
    worse: str
    better_value: float
    worse_value: float


@dataclass(frozen=True)
class LabelChange:
    """What a method that may change labels would gain over the one that is recommended for distributions."""

    method: str
    title: str
    nll_before: float
    nll_after: float
    accuracy_before: float
    accuracy_after: float

    @property
    def sentence(self) -> str:
        """What would be gained, and how to get it."""
        points = 100 * (self.accuracy_after - self.accuracy_before)
        accuracy = f"{'raises' if points > 0 else 'lowers'} accuracy by {abs(points):.1f} points"
        if abs(points) < 0.05:
            accuracy = "leaves accuracy as it is"
        return (
            f"Letting labels change lowers NLL from {self.nll_before:.3f} to {self.nll_after:.3f} and {accuracy}: "
            'objective="distribution", keep_labels=False.'
        )


@dataclass(frozen=True)
class Advice(TableResult):
    """Which of the evaluated methods to use.

    Attributes
    ----------
    method : str
        The method that was asked about.
    confidence, distribution : Choice
    advantages : tuple of Advantage
        Where the method and the one that is recommended for confidences differ by more than chance.
    label_change : LabelChange or None
        What letting labels change would gain, where that is more than chance.
    n_samples : int
    """

    method: str
    confidence: Choice
    distribution: Choice
    advantages: tuple[Advantage, ...]
    label_change: LabelChange | None
    n_samples: int

    @property
    def sentences(self) -> tuple[str, ...]:
        """The advice in plain words."""
        gain = [] if self.label_change is None else [self.label_change.sentence]
        return (*self._on_confidence(), *self._on_advantages(), *self._on_distribution(), *gain)

    def _on_confidence(self) -> list[str]:
        choice = self.confidence
        recommended = choice[choice.recommended]
        if self.method not in choice or self.method == choice.recommended:
            return []
        own, ece = choice[self.method], METRICS[choice.metric].text(recommended.value).replace(" %", "%")
        if not own.ties_with_best:
            return [f"{recommended.title} does better here: ECE {ece}."]
        if own.at_floor and recommended.at_floor:
            return [f"{recommended.title}, which is simpler, is calibrated as well: ECE {ece}, at its noise floor too."]
        return [
            f"{recommended.title}, which is simpler, cannot be told from it with {self.n_samples:,} samples: ECE {ece}."
        ]

    def _on_advantages(self) -> list[str]:
        parts = []
        for method in (self.confidence.recommended, self.method):
            won = [
                f"{METRICS[a.metric].title} ({METRICS[a.metric].text(a.better_value)} against "
                f"{METRICS[a.metric].text(a.worse_value)})".replace(" %", "%")
                for a in self.advantages
                if a.better == method
            ]
            if won:
                parts.append(f"{_title(method)} is better in {_listed(won)}")
        if parts:
            return [f"{', '.join(parts)}."]
        tied = self.method in self.confidence and self.confidence[self.method].ties_with_best
        if not tied or self.method == self.confidence.recommended:
            return []
        compared = _listed([METRICS[name].title for name in _COMPARED]).replace("Accuracy", "accuracy")
        return [f"They do not differ by more than chance in {compared}."]

    def _on_distribution(self) -> list[str]:
        choice = self.distribution
        as_good = self.method in choice and choice[self.method].ties_with_best
        if as_good or choice.recommended in (self.confidence.recommended, self.method):
            return []
        recommended = choice[choice.recommended]
        return [f"For the whole distribution {recommended.title} is enough: NLL {recommended.value:.3f}."]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: every method's answer to each question, the recommended one with a star."""
        rows = []
        for choice in (self.confidence, self.distribution):
            for standing in choice.standings:
                row = advice_row(choice, standing)
                row[1] += " *" * (standing.method == choice.recommended)
                rows.append(row)
        return ["question", "method", "ECE or NLL", "behind the best (95%)", "as good as the best"], rows

    def _caption(self) -> str:
        return f"Methods on {self.n_samples:,} held-out samples; * is the simplest that cannot be told from the best"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "sentences": list(self.sentences)}


def advice_row(choice: Choice, standing: Standing) -> list[str]:
    """Question, method, value of the metric, how far it is behind the best, whether it is as good."""
    return [
        choice.question,
        standing.title,
        METRICS[choice.metric].text(standing.value),
        _difference_text(choice.metric, standing),
        "yes" if standing.ties_with_best else "no",
    ]


def _title(method: str) -> str:
    return resolve_method(method).title


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _difference_text(metric: str, standing: Standing) -> str:
    if standing.behind == 0 and standing.low == standing.high == 0:
        return ""
    scale, digits = (100, 2) if METRICS[metric].in_percent else (1, 4)
    behind, low, high = (f"{scale * value:.{digits}f}" for value in (standing.behind, standing.low, standing.high))
    return f"{behind} ({low} to {high})"


class _Paired:
    """Metrics of several methods on the same resamples, by name."""

    def __init__(self, samples: dict[str, Sample], metrics: Sequence[str], random_state: int, n_threads: int | None):
        self._methods, self._metrics = list(samples), list(metrics)
        self._resamples = Resamples(
            [METRICS[name] for name in metrics],
            list(samples.values()),
            n_resamples=_N_RESAMPLES,
            level=_LEVEL,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.values = {
            (method, metric): float(value)
            for method, row in zip(samples, self._resamples.values, strict=True)
            for metric, value in zip(metrics, row, strict=True)
        }

    def difference(self, metric: str, method: str, other: str) -> tuple[float, float, float]:
        """How much worse ``method`` is than ``other``, with its interval; negative where it is better."""
        pair = (method, other) if METRICS[metric].lower_is_better else (other, method)
        a, b = (self._methods.index(name) for name in pair)
        value, low, high = self._resamples.difference(a, b, self._metrics.index(metric))
        return (value, low, high) if np.isfinite(value) else (value, value, value)


def advise(run: EvaluationRun, engine: Engine, method: str, *, change_labels: bool = True) -> Advice | None:
    """Advice on an evaluation that was run with noise floors; None with fewer than two scored samples.

    Parameters
    ----------
    run : EvaluationRun
        Of the mean and other methods.
    engine : Engine
        Of the same predictions.
    method : str
        The method that was asked about.
    change_labels : bool
        Also find out what a method that may change labels would gain.
    """
    n_samples = len(run.outcomes["mean"].vectors)
    if n_samples < 2:
        return None
    samples = {name: outcome.vectors for name, outcome in run.outcomes.items()}
    paired = _Paired(samples, ("ece", *_COMPARED), run.evaluation.random_state, engine.n_threads)
    keeping = [name for name in samples if run.evaluation[name].labels_changed == 0]
    confidence = _choice("confidence", keeping, run, paired)
    distribution = _choice("distribution", list(samples), run, paired)
    gain = None
    if change_labels and run.evaluation[distribution.recommended].labels_changed == 0:
        gain = _label_change(run, engine, distribution.recommended)
    advantages = _advantages(method, confidence.recommended, paired)
    return Advice(method, confidence, distribution, advantages, gain, n_samples)


def _choice(question: str, names: Sequence[str], run: EvaluationRun, paired: _Paired) -> Choice:
    metric = QUESTIONS[question]
    ranked = sorted(names, key=lambda name: (paired.values[name, metric], _complexity(run.outcomes[name])))
    best = ranked[0]
    at_floor = {name: metric == "ece" and run.evaluation.is_at_floor(name) for name in names}
    differences = {name: paired.difference(metric, name, best) for name in ranked}

    def ties(name: str, _: float = 1.0) -> bool:
        # Two calibrated methods cannot be told apart by their calibration errors.
        return bool(not differences[name][1] > 0 or (at_floor[name] and at_floor[best]))

    standings = tuple(
        Standing(
            name,
            run.outcomes[name].method.title,
            paired.values[name, metric],
            *differences[name],
            at_floor[name],
            ties(name),
        )
        for name in ranked
    )
    recommended = choose(ranked, ties, lambda name: _complexity(run.outcomes[name]))
    return Choice(question, metric, best, recommended, standings)


def _complexity(outcome: Outcome) -> tuple[int, int]:
    """How many things a method fits, and how its combiner ranks."""
    if outcome.calibrator is None:
        return 0, COMBINERS[outcome.method.combiner].complexity
    fitted = outcome.calibrator.fitted_calibrator
    return calibrators()[fitted.name].complexity, COMBINERS[fitted.combine].complexity


def _advantages(method: str, other: str, paired: _Paired) -> tuple[Advantage, ...]:
    advantages = []
    for metric in _COMPARED if method != other else ():
        _, low, high = paired.difference(metric, method, other)
        if low > 0 or high < 0:
            better, worse = (other, method) if low > 0 else (method, other)
            values = (paired.values[name, metric] for name in (better, worse))
            advantages.append(Advantage(metric, better, worse, *values))
    return tuple(advantages)


def _label_change(run: EvaluationRun, engine: Engine, recommended: str) -> LabelChange | None:
    """What the log pool with vector scaling would gain; of one source, vector scaling alone."""
    predictions = engine.predictions
    if run.split.scored_on is None or run.split.fitted_on is None:
        return None
    method = resolve_method("log-pool+vector" if predictions.n_sources > 1 else "vector")
    per_sample = predictions.n_sources * predictions.n_classes
    step = -(-len(run.split.fitted_on) * per_sample // _MOST_NUMBERS)
    split = Split(run.split.fitted_on[::step], run.split.scored_on[::step])
    shared = run.shared if step == 1 else Shared()
    state = run.evaluation.random_state
    after = engine.run_one(method, split, shared, random_state=state).vectors
    before = run.outcomes[recommended].vectors
    before = before if step == 1 else before.taken(np.arange(0, len(before), step))
    paired = _Paired({"before": before, "after": after}, ("nll", "accuracy"), state, engine.n_threads)
    if not paired.difference("nll", "after", "before")[2] < 0:
        return None
    values = [paired.values[side, metric] for metric in ("nll", "accuracy") for side in ("before", "after")]
    return LabelChange(method.name, method.title, *values)
