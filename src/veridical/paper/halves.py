"""Random halves, calibrated on one and evaluated on the other: Tables 2 to 4 and Figure 3."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks
from veridical.calibrate import Calibrator
from veridical.calibrate.pooling import Pooled, Pooling
from veridical.errors import NotConvergedWarning, ShapeError
from veridical.metrics.sample import Labels
from veridical.paper.extended import HALVES_NOTE, Extended, judge_by_halves
from veridical.paper.inputs import Ensemble, check_sources
from veridical.paper.methods import Method, table_methods
from veridical.paper.published import published_sources
from veridical.paper.scores import Scores, score_vectors
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published
from veridical.predictions import Predictions
from veridical.predictions.validation import check_integer
from veridical.truth import Truth

#: Table -> what it measures; its rows' titles; where the paper's figures for it stand.
_TABLES = {
    "table2": (("ece", "ece_kde"), "Post-hoc calibration", ("2",)),
    "table3": (("ece", "ece_kde"), "The four variants of direct optimisation", ("3",)),
    "table4": (("ks_error",), "KS error of every method", ("4",)),
}
Indices = npt.NDArray[np.intp]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class _Part(Pooled):
    """Some samples of a pooled ensemble, whose truth was found with the rest of them.

    ``predictions`` are those of the whole ensemble, from which nothing but their numbers of sources and classes is
    read: copying half of all sources for every split would cost gigabytes.
    """

    known_truth: Truth | None = None

    @cached_property
    def truth(self) -> Truth:
        assert self.known_truth is not None
        return self.known_truth


class Halves:
    """An ensemble, pooled once, and its random halves.

    Parameters
    ----------
    predictions : Predictions
        With labels.
    n_splits : int
    seed : int
    """

    def __init__(self, predictions: Predictions, n_splits: int, seed: int) -> None:
        assert predictions.labels is not None
        if predictions.n_samples < 2:
            raise ShapeError(f"{predictions.n_samples} sample cannot be split into halves; at least two are needed.")
        self.predictions = predictions
        self.labels: Labels = predictions.labels
        self.seed = check_integer(seed, "seed", 0)
        generators = np.random.default_rng(self.seed).spawn(check_integer(n_splits, "splits", 1))
        self.splits: list[tuple[Indices, Indices]] = [self._split(generator) for generator in generators]
        self._options = Calibrator()
        self._pooling = Pooling("mean")

    def _split(self, generator: np.random.Generator) -> tuple[Indices, Indices]:
        order = generator.permutation(self.predictions.n_samples)
        half = len(order) // 2
        return np.sort(order[:half]), np.sort(order[half:])

    @cached_property
    def pooled(self) -> Pooled:
        """The mean of the sources, on all samples."""
        return self._pooling.apply(self.predictions, self._options)

    def _part(self, index: Indices, with_truth: bool) -> _Part:
        truth = None
        if with_truth:
            whole = self.pooled.truth
            fields = (whole.probs, whole.hv, whole.prediction, whole.n_iter, whole.converged)
            probs, hv, prediction, n_iter, converged = (array[index] for array in fields)
            truth = Truth(probs, whole.reliability[:, index], hv, prediction, n_iter, converged)
        pooled = self.pooled
        return _Part(pooled.probs[index], pooled.prediction[index], self.predictions, self._options, truth)

    def run(self, methods: Sequence[Method], n_threads: int | None = None) -> list[list[Scores]]:
        """Scores on the evaluation halves: one list per split, in the order of the methods."""
        with_truth = any(method.needs_truth for method in methods if method.shares_the_mean)
        if with_truth:
            _ = self.pooled.truth  # found here, with all threads, before the splits ask for it at once
        with warnings.catch_warnings():
            # An optimum at the edge of its range is a result here, and the same sentence five times over no news.
            warnings.simplefilter("ignore", NotConvergedWarning)
            return run_blocks(lambda k: self._run_split(k, methods, with_truth), range(len(self.splits)), n_threads)

    def _run_split(self, k: int, methods: Sequence[Method], with_truth: bool) -> list[Scores]:
        calibration, evaluation = self.splits[k]
        fitted_on, applied_to = self._part(calibration, with_truth), self._part(evaluation, with_truth)
        whole = [] if all(method.shares_the_mean for method in methods) else self._copied(calibration, evaluation)
        scores = []
        for method in methods:
            calibrator = method.make(self.seed + k)
            if method.shares_the_mean:
                calibrator.fit_pooled(self._pooling, fitted_on, self.labels[calibration])
                probs = calibrator.full_vectors(applied_to)
                confidence, label = calibrator.confidence_and_label(applied_to, probs)
            else:
                calibrator.fit(whole[0])
                probs, confidence = calibrator.predict_proba(whole[1]), calibrator.predict_confidence(whole[1])
                label = calibrator.predict(whole[1])
            scores.append(score_vectors(probs, self.labels[evaluation], confidence, label))
        return scores

    def _copied(self, *parts: Indices) -> list[Predictions]:
        return [self.predictions.select(samples=index) for index in parts]


def posthoc_sources(ensemble: Ensemble, sources: Sequence[int] | None) -> list[int]:
    """As asked; else those the paper uses for this ensemble, as far as they are there; else all."""
    there = ensemble.predictions.n_sources
    if sources:
        return check_sources(sources, ensemble)
    name = ensemble.name
    known = published_sources(name.dataset, name.architecture, name.ensemble, ("2", "3", "4"))
    return [n for n in known if n <= there] or [there]


def _title(table: str, n_splits: int) -> str:
    return f"{_TABLES[table][1]}: mean and standard deviation over {n_splits} random halves"


def posthoc_rows(
    ensemble: Ensemble, n_sources: int, methods: Sequence[Method], results: list[list[Scores]], metrics: Sequence[str]
) -> list[Row]:
    """One row per method: mean and (population) standard deviation over the splits."""
    rows = []
    for j, method in enumerate(methods):
        measured = [split[j].metrics(metrics) for split in results]
        values = {}
        for metric in metrics:
            drawn = np.array([figures[metric] for figures in measured])
            values[metric] = Value(float(drawn.mean()), float(drawn.std()))
        rows.append(Row(ensemble.name, n_sources, method.label, values))
    return rows


def posthoc_table(
    table: str,
    ensembles: Sequence[Ensemble],
    *,
    sources: Sequence[int] | None = None,
    n_splits: int = 5,
    seed: int = 0,
    literal: bool = False,
    extended: Extended | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """One of Tables 2 to 4."""
    metrics, _, published = _TABLES[table]
    methods = table_methods(table, literal=literal, extended=extended is not None)
    rows: list[Row] = []
    pairs: list[PairedDifference] = []
    for ensemble in ensembles:
        for n in posthoc_sources(ensemble, sources):
            if progress is not None:
                progress(f"{ensemble.name}, {n} sources: {', '.join(method.label for method in methods)}")
            results = Halves(ensemble.first(n), n_splits, seed).run(methods, n_threads)
            found = posthoc_rows(ensemble, n, methods, results, metrics)
            if extended is not None:
                found, compared = judge_by_halves(found, results, extended)
                pairs += compared
            rows += found
    return Table(
        table,
        _title(table, n_splits),
        metrics,
        tuple(with_best_marked(with_published(rows, published, lambda method: method))),
        {"splits": n_splits, "seed": seed, "setting": "paper" if literal else "library"},
        () if extended is None else (HALVES_NOTE,),
        tuple(pairs),
    )
