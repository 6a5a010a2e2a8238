"""All calibrators on the same random halves: which one is best here?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from veridical._progress import Progress, no_progress
from veridical._version import versions
from veridical.calibrate import calibrators
from veridical.evaluation.facts import DataFacts
from veridical.evaluation.methods import COMBINERS, combine, make_calibrator, resolve_methods, title_of
from veridical.evaluation.scores import SCHEMA, labelled, labels_of, score
from veridical.evaluation.tables import html_table
from veridical.metrics import METRICS
from veridical.predictions.validation import Kind, check_integer

_COLUMNS = ("ece_kde", "ece", "ks_error", "nll", "brier", "accuracy")
#: "auto" repeats all others in every split and identity is the mean: both are left out unless asked for.
_NOT_BY_DEFAULT = ("auto", "identity")
#: Methods on top of a pool that have proved useful.
_ON_POOLS = ("log-pool+vector", "log-pool+truth-logit")


@dataclass(frozen=True)
class MethodComparison:
    """What :func:`compare_calibrators` found.

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
        sign = 1 if METRICS[metric].lower_is_better else -1
        return min(self.methods, key=lambda method: sign * self.mean(method, metric))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: mean and standard deviation; the best of each column, ties too, with a star."""
        heading = ["method", "ECE-KDE", "ECE", "KS", "NLL", "Brier", "Acc"]
        best = {metric: self.mean(self.best(metric), metric) for metric in _COLUMNS}
        rows = [
            [title_of(method)]
            + [self._cell(method, metric) + "*" * (self.mean(method, metric) == best[metric]) for metric in _COLUMNS]
            for method in self.methods
        ]
        return heading, rows

    def _cell(self, method: str, metric: str) -> str:
        """``5.26±.12``: no leading zeros and few digits, so that six columns fit a terminal; infinity in words."""
        if not math.isfinite(self.mean(method, metric)):
            return METRICS[metric].text(self.mean(method, metric))
        in_percent = METRICS[metric].in_percent
        scale, digits = (100, 2) if in_percent else (1, 3)
        mean, spread = scale * self.mean(method, metric), scale * self.std(method, metric)
        if in_percent and METRICS[metric].is_calibration_error and mean >= 10:
            digits = 1
        cell = f"{mean:.{digits}f}" if in_percent else _without_leading_zero(f"{mean:.{digits}f}")
        return cell if self.n_splits == 1 else f"{cell}±{_without_leading_zero(f'{spread:.{digits}f}')}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = asdict(self)
        found["values"] = {m: {k: list(v) for k, v in columns.items()} for m, columns in self.values.items()}
        return {"schema": SCHEMA, "type": "comparison", **found, "best": {m: self.best(m) for m in _COLUMNS}}

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=f"{self.n_splits} random halves, best of each column with *")


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
    """
    check_integer(n_splits, "n_splits", 1)
    given = labelled(predictions, labels, kind, sources_axis)
    every = [*COMBINERS, *(name for name in calibrators() if name not in _NOT_BY_DEFAULT), *_ON_POOLS]
    names = resolve_methods(every if methods is None else methods)
    report = progress or no_progress
    values: dict[str, dict[str, list[float]]] = {name: {metric: [] for metric in _COLUMNS} for name in names}
    floors: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    changed: dict[str, list[int]] = {name: [] for name in names}
    for i in range(n_splits):
        fitted_on, scored_on = given.split(random_state=random_state + i)
        reference = combine(scored_on, "mean", n_threads).prediction
        for j, name in enumerate(names):
            report(i * len(names) + j, n_splits * len(names), f"{title_of(name)}, split {i + 1}")
            if name in COMBINERS:
                probs = combine(scored_on, name, n_threads).probs
            else:
                chosen = make_calibrator(name, random_state + i, n_threads=n_threads)
                probs = chosen.fit(fitted_on).predict_proba(scored_on)
            options: dict[str, Any] = {"n_draws": 50, "random_state": random_state + i, "n_threads": n_threads}
            scores = score(name, title_of(name), labels_of(scored_on), probs, reference, **options)
            changed[name].append(scores.labels_changed)
            for metric in _COLUMNS:
                row = scores.summary[metric]
                values[name][metric].append(row.value)
                if row.floor is not None:
                    floors[name].setdefault(metric, []).append(row.floor)
    report(n_splits * len(names), n_splits * len(names), "done")
    return MethodComparison(
        data=DataFacts.of(given),
        methods=names,
        values={name: {metric: tuple(found) for metric, found in columns.items()} for name, columns in values.items()},
        floors={
            name: {metric: float(np.mean(found)) for metric, found in kept.items()} for name, kept in floors.items()
        },
        labels_changed={name: float(np.mean(found)) for name, found in changed.items()},
        n_splits=n_splits,
        random_state=random_state,
        versions=versions(),
    )
