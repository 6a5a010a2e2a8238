"""All calibrators on the same random halves: which one is best here?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical._parallel import run_blocks
from veridical._progress import Progress, check_progress
from veridical._tables import TableResult
from veridical._version import versions
from veridical.calibrate import calibrators
from veridical.combine import COMBINERS, label_free_combiners
from veridical.errors import NotConvergedWarning, ParameterError
from veridical.evaluation.engine import Engine, FitsWithEngine, half_split
from veridical.evaluation.evaluating import SCHEMA, MethodScores, score
from veridical.evaluation.facts import DataFacts, labelled
from veridical.evaluation.methods import Method, resolve_method, resolve_methods
from veridical.evaluation.outcomes import Outcome
from veridical.metrics import METRICS, SUMMARY_METRICS
from veridical.predictions.validation import Kind, check_integer, check_seed

#: "auto" repeats all others in every split and identity is the mean: both are left out unless asked for.
_NOT_BY_DEFAULT = ("auto", "identity")
#: Methods on top of a pool that have proved useful.
_ON_POOLS = ("log-pool+vector", "log-pool+truth-logit")


@dataclass(frozen=True)
class MethodComparison(TableResult):
    """The result of :func:`compare_calibrators`.

    Attributes
    ----------
    data : DataFacts
    methods : tuple of str
    values : dict
        Method -> metric -> one value per split.
    floors : dict
        Method -> metric -> mean noise floor over the splits, for calibration errors.
    labels_changed : dict
        Method -> mean number of predictions that differ from the mean's.
    n_splits, random_state : int
    versions : dict

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> comparison = vd.compare_calibrators(predictions, methods=["mean", "platt"], n_splits=2)
    >>> comparison.methods
    ('mean', 'platt')
    """

    data: DataFacts
    methods: tuple[str, ...]
    values: dict[str, dict[str, tuple[float, ...]]]
    floors: dict[str, dict[str, float]]
    labels_changed: dict[str, float]
    n_splits: int
    random_state: int
    versions: dict[str, str]

    def mean(self, method: str, metric: str) -> float:
        """Mean over the splits."""
        return float(np.mean(self.values[method][metric]))

    def std(self, method: str, metric: str) -> float:
        """Standard deviation over the splits, with n - 1 as the paper's tables have it; NaN where one is infinite."""
        values = self.values[method][metric]
        return float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else float("nan")

    def best(self, metric: str) -> str:
        """The method with the best mean."""
        best = min if METRICS[metric].lower_is_better else max
        return best(self.methods, key=lambda method: self.mean(method, metric))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: mean and standard deviation; the best of each column, ties too, with a star."""
        heading = ["method", *(METRICS[name].heading for name in SUMMARY_METRICS)]
        rows = [
            [resolve_method(method).title, *(self._cell(method, metric) for metric in SUMMARY_METRICS)]
            for method in self.methods
        ]
        return heading, rows

    def _cell(self, method: str, metric: str) -> str:
        """``5.26±.12``: no leading zeros and few digits, so that six columns fit a terminal; infinity in words."""
        described, value = METRICS[metric], self.mean(method, metric)
        star = "*" * (value == self.mean(self.best(metric), metric))
        if not math.isfinite(value):
            return described.text(value) + star
        mean, spread = described.scaled(value), described.scaled(self.std(method, metric))
        digits = 3 if not described.in_percent else 1 if described.is_calibration_error and mean >= 10 else 2
        cell = f"{mean:.{digits}f}"
        cell = cell if described.in_percent else _without_leading_zero(cell)
        return cell + ("" if self.n_splits == 1 else f"±{_without_leading_zero(f'{spread:.{digits}f}')}") + star

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        content = asdict(self)
        content["values"] = {m: {k: list(v) for k, v in columns.items()} for m, columns in self.values.items()}
        return {"schema": SCHEMA, "type": "comparison", **content, "best": {m: self.best(m) for m in SUMMARY_METRICS}}

    def _caption(self) -> str:
        return f"{self.n_splits} random halves; errors and accuracy in %; * is the best of its column"

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"method": method}
            | {metric: self.mean(method, metric) for metric in SUMMARY_METRICS}
            | {f"{metric}_std": self.std(method, metric) for metric in SUMMARY_METRICS}
            | {"labels_changed": self.labels_changed[method]}
            for method in self.methods
        ]


def _without_leading_zero(figure: str) -> str:
    return figure.removeprefix("0") if figure.startswith("0.") else figure


def compare_calibrators(
    predictions: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] | None = None,
    n_splits: int = 5,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> MethodComparison:
    """Fit every calibrator on random halves and score it on the others, as the paper's Table 2 does.

    Parameters
    ----------
    predictions, labels, kind, sources_axis, n_threads, progress
        As in :func:`veridical.evaluate`.
    methods : sequence of str, optional
        Default: the mean, TDE, aTDE, every calibrator but "auto" and "identity", and two on top of the log pool.
    n_splits : int
    random_state : int
        Split i uses the seed ``random_state + i``.

    Returns
    -------
    MethodComparison

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(1000))
    >>> comparison = vd.compare_calibrators(predictions, methods=["mean", "temperature"], n_splits=2)
    >>> len(comparison.values["temperature"]["ece"])
    2
    """
    n_splits = check_integer(n_splits, "n_splits", 1)
    random_state = check_seed(random_state)
    labelled_predictions = labelled(predictions, labels, kind, sources_axis)
    default = [*label_free_combiners(), *(name for name in calibrators() if name not in _NOT_BY_DEFAULT), *_ON_POOLS]
    resolved = resolve_methods(default if methods is None else methods)
    chosen = [method for method in resolved if method is not None]
    if len(chosen) < len(resolved):
        raise ParameterError("methods names 'members'; compare takes methods that combine the sources.")
    names = tuple(method.name for method in chosen)
    report = check_progress(progress)
    engine = Engine(labelled_predictions, n_threads=n_threads)
    scores: dict[str, list[MethodScores]] = {name: [] for name in names}
    for i in range(n_splits):
        split = half_split(labelled_predictions, random_state + i)
        reference = engine.reference(split)

        def report_split(done: int, total: int, what: str, i: int = i) -> None:
            report(i * total + done, n_splits * total, f"{what}, split {i + 1}")

        options: dict[str, Any] = {"n_draws": 50, "random_state": random_state + i, "n_threads": n_threads}
        for outcome in engine.run(chosen, split, random_state=random_state + i, progress=report_split):
            scores[outcome.method.name].append(score(outcome, reference, **options))
    report(n_splits * len(names), n_splits * len(names), "done")
    return MethodComparison(
        data=DataFacts.of(labelled_predictions),
        methods=names,
        values={
            name: {metric: tuple(each.summary[metric].value for each in drawn) for metric in SUMMARY_METRICS}
            for name, drawn in scores.items()
        },
        floors={name: _mean_floors(drawn) for name, drawn in scores.items()},
        labels_changed={
            name: float(np.mean([each.labels_changed for each in drawn])) for name, drawn in scores.items()
        },
        n_splits=n_splits,
        random_state=random_state,
        versions=versions(),
    )


def _mean_floors(scores: Sequence[MethodScores]) -> dict[str, float]:
    """Metric -> its mean noise floor, for those that have one."""
    floors: dict[str, list[Any]] = {
        metric: [each.summary[metric].floor for each in scores] for metric in SUMMARY_METRICS
    }
    return {metric: float(np.mean(drawn)) for metric, drawn in floors.items() if None not in drawn}


def run_halves(engine: Engine, methods: Sequence[Method], n_splits: int, random_state: int) -> list[list[Outcome]]:
    """Outcomes on the scored halves: one list per split, in the order of the methods.

    Splits run side by side.  Split i uses the seed ``random_state + i``, for the halves and in calibrators.
    """
    splits = [half_split(engine.predictions, random_state + i) for i in range(n_splits)]
    # Combined before the splits, with all threads.
    engine.combined("mean")
    if any(_may_need_truth(method) for method in methods):
        engine.combined("atde")
    with warnings.catch_warnings():
        # An optimum at the edge of its range is a result here; the same sentence for every split would not help.
        warnings.simplefilter("ignore", NotConvergedWarning)
        return run_blocks(
            lambda i: engine.run(methods, splits[i], random_state=random_state + i), range(n_splits), engine.n_threads
        )


def _may_need_truth(method: Method) -> bool:
    if method.calibrator is None:
        return COMBINERS[method.combiner].discovers_truth
    calibrator = calibrators()[method.calibrator]
    return calibrator.needs_sources or issubclass(calibrator, FitsWithEngine)
