"""The calibrator of ``method="auto"``: chosen by cross-validated log loss among those that calibrate distributions."""

from __future__ import annotations

from typing import Any

from veridical.calibrate import Calibrator
from veridical.evaluation.auto import Auto
from veridical.evaluation.methods import resolve_method
from veridical.predictions import Predictions

#: Pairs of combiner and method that are tried beside the plain mean.  All of them correct whole distributions: log loss
#: depends on every class, and on a hundred samples methods that correct the confidence alone were worse.
CANDIDATES = (
    *(("mean", method) for method in ("temperature", "ets", "vector")),
    ("atde", "temperature"),
    *(("linear-pool", method) for method in ("linear-pool", "temperature")),
    *(("log-pool", method) for method in ("log-pool", "temperature", "vector")),
)


#: Kept unless another candidate is better by so many standard errors of the difference.  On a hundred samples, methods
#: without a penalty are often better by one, and worse on new samples.
_INCUMBENT = ("log-pool", "log-pool")
_STANDARD_ERRORS = 2.0


def fit_best(predictions: Predictions, random_state: int | None) -> tuple[Calibrator, list[dict[str, Any]]]:
    """The chosen candidate, fitted on all samples; and the table of cross-validated log losses, the best first.

    The log pool is kept unless the candidate with the lowest log loss is better by more than two standard errors of
    the paired difference.  :class:`veridical.Auto` prefers the simplest instead, which on a hundred samples is nearly
    always the plain mean; the lowest loss alone is then often an overfit.  ``benchmarks/ensemble.py`` has the figures.
    """
    choice = Auto(
        objective="distribution", keep_labels=False, candidates=list(CANDIDATES), random_state=random_state
    ).fit(predictions)
    best, *_ = choice.table_
    (incumbent,) = (row for row in choice.table_ if (row["combine"], row["method"]) == _INCUMBENT)
    chosen = incumbent if incumbent["behind"] <= _STANDARD_ERRORS * incumbent["behind_spread"] else best
    method = resolve_method(f"{chosen['combine']}+{chosen['method']}")
    return method.make(random_state).fit(predictions), choice.table_
