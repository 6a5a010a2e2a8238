"""The one rule that chooses among methods, for ``Auto``, the report's advice, ``CalibratedEnsemble`` and juries.

Methods are compared sample by sample, on samples that their fits have not seen: the first of the usual ones that is
not clearly behind the best is taken, or else the simplest that is not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from veridical._progress import Progress, no_progress
from veridical.calibrate.base import Calibrator
from veridical.calibrate.registry import calibrators
from veridical.combine.combined import Floats
from veridical.combine.registry import COMBINERS
from veridical.errors import NotConvergedWarning
from veridical.metrics.sample import Sample
from veridical.predictions import Predictions
from veridical.predictions.arrays import is_whole_number
from veridical.predictions.splitting import fold_indices, split_groups, split_samples
from veridical.predictions.validation import RandomState, check_random_state

if TYPE_CHECKING:  # a saved choice is loaded and applied without what made it
    from veridical.evaluation.engine import Engine
    from veridical.evaluation.outcomes import Outcome

Pair = tuple[str, str]
Name = TypeVar("Name")

#: What is tried on each way of combining beyond the mean, on which everything is tried.
_BEYOND_THE_MEAN = {
    "atde": ("temperature", "spline", "isotonic"),
    "tde": (),
    "consensus": ("consensus", "temperature", "truth-logit"),
    "aconsensus": ("aconsensus", "temperature", "truth-logit"),
    "linear-pool": ("linear-pool", "temperature"),
    "log-pool": ("log-pool", "temperature", "vector", "matrix", "truth-logit"),
}
#: Matrix scaling has L² parameters; beyond this many classes it must be asked for.
_MOST_CLASSES_FOR_MATRIX = 100
#: With fewer labels than this, distributions are not given to methods that fit many numbers: among many candidates one
#: seems good by chance.
_FEW_LABELS = 200
_FOR_FEW_LABELS = {
    "mean": ("identity", "temperature"),
    "consensus": ("consensus", "temperature"),
    "aconsensus": ("aconsensus", "temperature"),
    "linear-pool": ("linear-pool", "temperature"),
    "log-pool": ("log-pool",),
}
#: What ``CalibratedEnsemble`` and juries try beside the plain mean.  All of them correct whole distributions: log loss
#: depends on every class, and on a hundred samples methods that correct the confidence alone were worse.
_WITH_THE_LOG_POOL = {
    "mean": ("identity", "temperature", "ets", "vector"),
    "atde": ("temperature",),
    "linear-pool": ("linear-pool", "temperature"),
    "log-pool": ("log-pool", "temperature", "vector"),
}
#: A source is new if it should have been there for at least so many labelled samples and was for less than this share.
_LEAST_EXPECTED, _SEEN_SHARE = 5.0, 0.1
#: The loss of a label with probability 1e-12 or less; one sample must not decide.
_LARGEST_LOSS = -math.log(1e-12)
#: Pairs are compared on at most so many numbers (samples times classes), but on no fewer samples than this: many folds
#: of many candidates would need many times the memory of the predictions.
_MOST_NUMBERS, _LEAST_SAMPLES = 1 << 23, 5000

#: Columns of the table of pairs.
TABLE_COLUMNS = ("combine", "method", "score", "spread", "behind", "behind_spread", "ece_kde")


@dataclass(frozen=True)
class Rule:
    """What is taken where labels say little of which pair is best.

    Attributes
    ----------
    usual : dict
        Pair -> by how many standard errors of the paired difference it may be behind the best; the first that is not
        further behind is taken.
    tolerance : float
        If none of them is, the simplest of the pairs that are behind by no more than so many.
    must_help : bool
        Whether a usual pair must score at least as well as no calibration.
    tie_breaker : str
        The column of the table that decides between equally simple pairs.
    """

    usual: Mapping[Pair, float] = field(default_factory=dict)
    tolerance: float = 0.0
    must_help: bool = True
    tie_breaker: str = "score"


_FOR_CONFIDENCE = Rule(tolerance=1.0, tie_breaker="ece_kde")
#: The usual pairs were seldom far behind; weights that no label was fitted to come first where there is hardly a
#: difference.
_FOR_DISTRIBUTION = Rule(
    {
        ("consensus", "consensus"): 0.25,
        ("aconsensus", "aconsensus"): 0.25,
        ("log-pool", "log-pool"): 1.0,
        ("aconsensus", "temperature"): 1.0,
    },
    0.5,
)
#: Few labels cannot show what is worse than no calibration; neither can labels of other sources.
_WITH_FEW_LABELS = Rule({("log-pool", "log-pool"): 2.0, ("aconsensus", "temperature"): 1.0}, 0.5, must_help=False)
#: Where sources change, what was learned of them says less than their agreement.
_WHERE_SOURCES_CHANGE = Rule({("consensus", "consensus"): 2.0, ("aconsensus", "aconsensus"): 2.0}, 0.5, must_help=False)
#: The log pool, unless the best is clearly better.  Of a hundred samples the simplest is nearly always the plain mean,
#: and the best often an overfit; ``benchmarks/ensemble.py`` and ``benchmarks/jury.py`` have the figures.
_LOG_POOL = Rule({("log-pool", "log-pool"): 2.0}, must_help=False)


@dataclass(frozen=True)
class Situation:
    """What decides the rule.

    Attributes
    ----------
    objective : {"confidence", "distribution"}
    n_labels, n_classes : int
    sources_change : bool
        Whether some sources predict for samples without labels, and hardly for those with one.
    """

    objective: str
    n_labels: int
    n_classes: int
    sources_change: bool = False

    @property
    def has_few_labels(self) -> bool:
        """Whether distributions must do with methods that fit few numbers."""
        return self.objective == "distribution" and self.n_labels < _FEW_LABELS

    def default_pairs(self) -> list[Pair]:
        """The pairs to compare."""
        if self.has_few_labels:
            pairs = _pairs_of(_FOR_FEW_LABELS)
        else:
            on_mean = [name for name, known in calibrators().items() if "mean" in known.combiners]
            pairs = _pairs_of({"mean": on_mean, **_BEYOND_THE_MEAN})
        few_classes = self.n_classes <= _MOST_CLASSES_FOR_MATRIX
        return [
            (combine, name)
            for combine, name in pairs
            if not hasattr(calibrators()[name], "fit_with_engine")  # which chooses itself
            and (few_classes or name != "matrix")
            and not (self.sources_change and COMBINERS[combine].needs_labels)
        ]

    @property
    def rule(self) -> Rule:
        """What is taken."""
        if self.objective == "confidence":
            return _FOR_CONFIDENCE
        if self.sources_change:
            return _WHERE_SOURCES_CHANGE
        return _WITH_FEW_LABELS if self.has_few_labels else _FOR_DISTRIBUTION


def _pairs_of(names: Mapping[str, Iterable[str]]) -> list[Pair]:
    return [(combine, name) for combine, of_combine in names.items() for name in of_combine]


#: No calibration, the log pool and eight other pairs.
LOG_POOL_AND_OTHERS = _pairs_of(_WITH_THE_LOG_POOL)


def sources_change(predictions: Predictions) -> bool:
    """Whether a source predicts for samples without labels, but hardly for those with one: nothing is learned of it."""
    everything = predictions.with_unlabelled()
    if everything is predictions:
        return False
    seen = predictions.present().sum(axis=1)
    elsewhere = everything.present().sum(axis=1) - seen
    expected = elsewhere * predictions.n_samples / max(everything.n_samples - predictions.n_samples, 1)
    return bool(((expected >= _LEAST_EXPECTED) & (seen < _SEEN_SHARE * expected)).any())


def standard_error(values: Floats, groups: npt.NDArray[np.intp] | None) -> float:
    """Standard error of a mean over samples; with groups, of samples that depend on each other within them."""
    if groups is None:
        return float(values.std() / np.sqrt(max(len(values) - 1, 1)))
    sums = np.bincount(groups, values - values.mean())
    return float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)) / len(values))


def compare_losses(
    pairs: Sequence[Pair], losses: Floats, ece_kde: Sequence[float], groups: npt.NDArray[np.intp] | None
) -> list[dict[str, Any]]:
    """A row for each pair: its mean loss, and how far it is behind the best; ``losses`` are (pairs, N)."""
    scores = losses.mean(axis=1)
    apart = losses - losses[int(scores.argmin())]
    rows = [
        (*pair, float(scores[k]), standard_error(losses[k], groups), float(apart[k].mean()))
        for k, pair in enumerate(pairs)
    ]
    spreads = [standard_error(row, groups) for row in apart]
    return [
        dict(zip(TABLE_COLUMNS, (*row, *rest), strict=True)) for row, *rest in zip(rows, spreads, ece_kde, strict=True)
    ]


def choose(
    names: Sequence[Name],
    is_within: Callable[[Name, float], bool],
    simplicity: Callable[[Name], Any],
    usual: Iterable[tuple[Name, float]] = (),
    tolerance: float = 1.0,
) -> Name:
    """The first usual name that is within its tolerance of the best, or else the simplest that is within the other."""
    taken = (name for name, most in usual if name in names and is_within(name, most))
    within = (name for name in names if is_within(name, tolerance))
    return next(taken, min(within, key=simplicity, default=names[0]))


def choose_row(rows: Sequence[dict[str, Any]], rule: Rule) -> int:
    """The row to use; the first row is no calibration at all."""
    places = {(row["combine"], row["method"]): k for k, row in enumerate(rows)}

    def helps(k: int) -> bool:
        return bool(rows[k]["score"] <= rows[0]["score"])

    def simplicity(k: int) -> tuple[bool, int, float]:
        row = rows[k]
        complexity = calibrators()[row["method"]].complexity + COMBINERS[row["combine"]].complexity
        return not helps(k), complexity, row[rule.tie_breaker]

    usual = [(places[pair], most) for pair, most in rule.usual.items() if pair in places]
    return choose(
        range(len(rows)),
        lambda k, most: bool(rows[k]["behind"] <= most * rows[k]["behind_spread"]),
        simplicity,
        [(k, most) for k, most in usual if helps(k) or not rule.must_help],
        rule.tolerance,
    )


class Chosen(NamedTuple):
    """The chosen calibrator, fitted on everything; the table of all pairs, the best score first.

    ``held_out`` has its confidence for each compared sample, by the fit that had not seen it, and whether the label is
    right.
    """

    calibrator: Calibrator
    table: list[dict[str, Any]]
    held_out: Sample


def fit_chosen(
    engine: Engine,
    pairs: Sequence[Pair],
    rule: Rule,
    *,
    objective: str = "distribution",
    n_folds: int = 5,
    random_state: RandomState = None,
    progress: Progress = no_progress,
) -> Chosen:
    """Cross-validate pairs on an engine's predictions, and fit the chosen one; the first pair is no calibration."""
    from veridical.evaluation.methods import Method
    from veridical.metrics.kde import ece_kde_of

    methods = [Method(f"{combine}+{name}", f"{name} on {combine}", combine, name) for combine, name in pairs]
    generator = check_random_state(random_state)
    seed: Any = random_state if is_whole_number(random_state) else None  # what is random in a candidate follows it
    compared = engine.part(_compared_samples(engine, generator))
    n_samples = len(compared.labels)
    folds = fold_indices(n_samples, compared.groups, n_folds, generator) if n_samples > 1 else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # a fold's troubles are in its score
        losses, stated = _cross_validate(methods, compared, folds, objective, seed, progress)
    rows = compare_losses(pairs, losses, [ece_kde_of(sample) for sample in stated], compared.groups)
    chosen = choose_row(rows, rule)
    (outcome,) = engine.run([methods[chosen]], random_state=seed, weights_of_all=True)
    assert outcome.calibrator is not None
    return Chosen(outcome.calibrator, sorted(rows, key=lambda row: row["score"]), stated[chosen])


def fit_log_pool_or_better(predictions: Predictions, random_state: RandomState, *, few: bool = False) -> Chosen:
    """The log pool, unless the best of nine other pairs is better by more than two standard errors.

    If the labels show ``few`` mistakes the only other pair is the plain mean.
    """
    from veridical.evaluation.engine import Engine

    engine = Engine(predictions)
    without_calibration, *others = LOG_POOL_AND_OTHERS
    pairs = [without_calibration, *(_LOG_POOL.usual if few else others)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # sources that are always right are not a fault
        chosen = fit_chosen(engine, pairs, _LOG_POOL, random_state=random_state)
    engine.remember_data(chosen.calibrator)
    return chosen


def _compared_samples(engine: Engine, generator: np.random.Generator) -> npt.NDArray[np.intp] | None:
    """The samples on which pairs are compared; None for all of them."""
    n_samples, size = len(engine.labels), max(_MOST_NUMBERS // engine.n_classes, _LEAST_SAMPLES)
    if n_samples <= size:
        return None
    groups = engine.groups
    if groups is None or (groups == groups[0]).all():
        return split_samples(n_samples, size / n_samples, generator)[0]
    return split_groups(groups, size / n_samples, generator)[0]


def _cross_validate(
    methods: Sequence[Any], engine: Engine, folds: Sequence[Any], objective: str, seed: Any, report: Progress
) -> tuple[Floats, list[Sample]]:
    """Out-of-fold losses (methods, N), and the stated confidences of each method."""
    from veridical.evaluation.engine import Split

    n_samples = len(engine.labels)
    shape = (len(methods), n_samples)
    losses, confidence, correct = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    for fold, held_out in enumerate(folds):
        split = Split(np.setdiff1d(np.arange(n_samples), held_out), held_out)

        def report_fold(done: int, total: int, what: str, fold: int = fold) -> None:
            report(fold * total + done, len(folds) * total, f"{what}, fold {fold + 1}")

        outcomes = engine.run(methods, split, random_state=seed, weights_of_all=True, progress=report_fold)
        for k, outcome in enumerate(outcomes):
            confidence[k, held_out], correct[k, held_out] = outcome.stated.confidence, outcome.stated.correct
            losses[k, held_out] = _losses(outcome, objective)
    report(len(folds) * len(methods), len(folds) * len(methods), "refit")
    return losses, [Sample(*columns) for columns in zip(confidence, correct, strict=True)]


def _losses(outcome: Outcome, objective: str) -> Floats:
    """(n,) loss of each sample."""
    if objective == "confidence":
        return np.square(outcome.stated.confidence - outcome.stated.correct)
    losses: Floats = np.minimum(outcome.stated.losses("nll"), _LARGEST_LOSS)
    return losses
