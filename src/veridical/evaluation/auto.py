"""Which calibrator should I use?  Cross-validation over the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from veridical._dispatch import also_out_of_memory
from veridical._progress import Progress, check_progress
from veridical.calibrate.base import Calibrator
from veridical.calibrate.registry import calibrators, full_name
from veridical.calibrate.samples import labelled_samples, n_dimensions
from veridical.combine.base import Combiner
from veridical.combine.combined import Combined
from veridical.combine.registry import COMBINERS, label_keeping_combiners
from veridical.combine.state_checks import check_number
from veridical.errors import ParameterError, ShapeError, shown
from veridical.evaluation.choice import TABLE_COLUMNS, Situation, fit_chosen, sources_change
from veridical.predictions import Predictions
from veridical.predictions.validation import (
    RandomState,
    check_choice,
    check_flag,
    check_integer,
    check_random_state,
)

if TYPE_CHECKING:  # a saved choice is loaded and applied without what made it
    from veridical.evaluation.engine import Engine

OBJECTIVES = ("confidence", "distribution")


class Auto(Calibrator):
    """The best of many calibrators by cross-validation on the calibration data.

    Every pair of a way to combine and a method is fitted on all folds but one and scored on that one, and the chosen
    one is refitted on everything.  For the objective "confidence" it is the simplest of the pairs that are within one
    standard error (of the paired difference) of the best.  For "distribution" it is the plain consensus if it is within
    a quarter of a standard error, or else the log pool (where labels must stay, temperature scaling of the consensus)
    if that is within one, or else the simplest that is within half of one.
    Nothing that scores worse than no calibration at all is chosen, but for the two situations below.

    Two situations have rules of their own for "distribution".  With fewer than 200 labels, only the plain mean and the
    plain consensus, temperature scaling and pools are compared, and the log pool is chosen if it is within two standard
    errors.  Where some sources predict for samples without a label, but hardly for those with one, no weights are
    learned, and the plain consensus is chosen if it is within two standard errors.  Both may then score a little worse
    than no calibration on the labels there are.

    Where samples times classes are more than 2**23, pairs are compared on a random part of the samples of that size,
    but at least 5,000 (whole groups, where there are groups); the chosen pair is fitted on all samples.

    Parameters
    ----------
    objective : {"confidence", "distribution"}
        What to be good at: the Brier score of the top label's confidence (ties between equally simple pairs go to
        the lower ECE-KDE), or the negative log-likelihood of the whole distribution.
    keep_labels : bool
        Only pairs that keep the mean's labels.
    candidates : sequence of method names or (combine, method) pairs, optional
        What to try; by default everything in the registry on the mean, and what has proved useful on other ways to
        combine.
    n_folds : int
    random_state : int, Generator or None
        Decides the folds.

    ``combine`` is what identity and a method named alone use.  Other parameters are those of every calibrator.

    Attributes
    ----------
    best_ : Calibrator
        The chosen one, fitted on all calibration data.
    table_ : list of dict
        One row per pair: ``combine``, ``method``, ``score`` (mean over samples, each predicted by a fit that had not
        seen it), ``spread`` (its standard error), ``behind`` and ``behind_spread`` (paired difference to the best
        score), ``ece_kde``; the best score first.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> top = rng.uniform(0.4, 0.6, 2000) + 0.3
    >>> probs, y = np.column_stack((top, 1 - top)), (rng.random(2000) > top - 0.15).astype(int)
    >>> chosen = vd.Auto(candidates=["temperature", "platt", "spline"], random_state=0).fit(probs, y)
    >>> chosen
    Auto(candidates=['temperature', 'platt', 'spline'], random_state=0): temperature on mean
    >>> [row["method"] for row in chosen.table_][-1]
    'identity'
    """

    name = "auto"
    summary = "Chooses by cross-validation among all calibrators."
    keeps_labels = False
    complexity = 9
    combiners = tuple(name for name in label_keeping_combiners() if not COMBINERS[name].has_weights)
    _state = ("best_", "table_")

    objective: str = "confidence"
    keep_labels: bool = True
    candidates: Sequence[str | tuple[str, str]] | None = None
    n_folds: int = 5
    random_state: RandomState = None

    @also_out_of_memory(1, "X", maps=True)
    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:  # noqa: N803
        """Cross-validate all candidates, and refit the chosen one.

        Parameters are those of every calibrator's ``fit``; ``progress`` is told of every candidate on every fold.
        """
        from veridical.evaluation.engine import Engine

        self.check_parameters()
        predictions, _ = labelled_samples(self._predictions(X), y)
        has_sources = isinstance(X, Predictions) or predictions.n_sources > 1 or n_dimensions(X) == 3
        if not has_sources:
            self._reject_candidates_that_need_sources()
        engine = Engine(predictions, n_threads=self.n_threads, missing=self.missing)
        self.fit_with_engine(engine, progress, has_sources=has_sources)
        engine.remember_data(self)
        return self

    def fit_with_engine(self, engine: Engine, progress: Progress | None = None, *, has_sources: bool = True) -> Self:
        """Cross-validate all candidates on an engine's predictions, and refit the chosen one."""
        self.check_parameters()
        situation = Situation(
            self.objective,
            len(engine.labels),
            engine.n_classes,
            has_sources and engine.leaves_out_samples and sources_change(engine.predictions),
        )
        chosen = fit_chosen(
            engine,
            self._pairs(situation, has_sources),
            situation.rule,
            objective=self.objective,
            n_folds=self.n_folds,
            random_state=self.random_state,
            progress=check_progress(progress),
        )
        best, self.table_ = chosen.calibrator, chosen.table
        self.best_ = best
        self.combiner_: Combiner = COMBINERS[self.combine]()
        self.n_sources_, self.n_classes_, self.classes_ = best.n_sources_, best.n_classes_, best.classes_
        self.source_names_ = best.source_names_
        return self

    @property
    def keeps_mean_labels(self) -> bool:
        """What the chosen calibrator promises; before the fit, what was asked for."""
        best = getattr(self, "best_", None)
        return bool(self.keep_labels) if best is None else bool(best.keeps_mean_labels)

    def _combine_array(self, values: Any) -> Combined | None:
        best = self.fitted_calibrator
        same = (best.kind, best.sources_axis) == (self.kind_of_arrays, self.sources_axis)
        return best._combine_array(values) if same else None

    @property
    def fitted_calibrator(self) -> Calibrator:
        """The chosen calibrator."""
        self.check_fitted()
        return self.best_

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.objective, OBJECTIVES, "objective")
        check_flag(self.keep_labels, "keep_labels")
        check_integer(self.n_folds, "n_folds", 2)
        check_random_state(self.random_state)
        if self.candidates is not None:
            self._asked_for(self.candidates)

    def _pairs(self, situation: Situation, has_sources: bool) -> list[tuple[str, str]]:
        """What to try: identity first, each pair once."""
        if self.candidates is not None:
            pairs = self._asked_for(self.candidates)
        else:
            allowed = [pair for pair in situation.default_pairs() if self._allows(*pair)]
            pairs = [pair for pair in allowed if has_sources or not calibrators()[pair[1]].needs_sources]
        return list(dict.fromkeys([(self.combine, "identity"), *pairs]))

    def _reject_candidates_that_need_sources(self) -> None:
        for _, method in self._asked_for(self.candidates or []):
            if calibrators()[method].needs_sources:
                raise ShapeError(
                    f"candidate {method!r} needs every source's predictions and got one array; give shape "
                    "(sources, samples, classes)."
                )

    def _allows(self, combine: str, method: str) -> bool:
        return not self.keep_labels or (calibrators()[method].keeps_labels and combine in label_keeping_combiners())

    def _asked_for(self, candidates: Any) -> list[tuple[str, str]]:
        """The pairs that ``candidates`` name, each checked."""
        if isinstance(candidates, str) or not isinstance(candidates, Sequence):
            raise ParameterError(f'candidates is {shown(candidates)}; give a list, such as ["temperature", "spline"].')
        known, pairs = calibrators(), []
        for candidate in candidates:
            alone = isinstance(candidate, str)
            pair = (self.combine, candidate) if alone else candidate
            if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
                raise ParameterError(
                    f"candidate {candidate!r} is neither a method's name nor a (combine, method) pair."
                )
            combine, method = (full_name(name) for name in pair)
            check_choice(method, [name for name in known if name != self.name], "candidate")
            possible = known[method].combiners
            if alone and combine not in possible:
                combine = next(iter(possible))
            check_choice(combine, possible, f"combine for {method}")
            if not self._allows(combine, method):
                raise ParameterError(f"{method} on {combine} may change labels; say keep_labels=False to allow it.")
            pairs.append((combine, method))
        return pairs

    def _check_state(self) -> None:
        best = self.best_
        fits = isinstance(best, Calibrator) and not isinstance(best, Auto)
        if not fits or (best.n_classes_, best.n_sources_) != (self.n_classes_, self.n_sources_):
            raise ValueError("the chosen calibrator does not fit")
        if self.keep_labels and not best.keeps_mean_labels:
            raise ValueError("the chosen calibrator changes labels, which was not allowed")
        if not isinstance(self.table_, list) or not all(isinstance(row, dict) for row in self.table_):
            raise ValueError("the table of scores is not a list of rows")
        for row in self.table_:
            if set(row) != set(TABLE_COLUMNS):
                raise ValueError(f"a row of the table of scores has the columns {sorted(row)}")
            for column in TABLE_COLUMNS[2:]:
                check_number(row[column], column)
        if (best.combine, best.name) not in [(row["combine"], row["method"]) for row in self.table_]:
            raise ValueError("the chosen calibrator is not in the table of scores")
