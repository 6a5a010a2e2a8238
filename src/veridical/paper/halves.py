"""Random halves of an ensemble's samples: methods are fitted on one and scored on the other."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks
from veridical.calibrate import Calibrator
from veridical.combine.combined import Combined
from veridical.combine.combiner import Combiner
from veridical.errors import NotConvergedWarning, ShapeError
from veridical.metrics.sample import Labels
from veridical.paper.methods import Method
from veridical.paper.scores import Scores, score_vectors
from veridical.predictions import Predictions
from veridical.predictions.validation import check_integer, check_seed

Indices = npt.NDArray[np.intp]


class Halves:
    """An ensemble, pooled once, and its random halves.

    Parameters
    ----------
    predictions : Predictions
        With labels.
    n_splits : int
    seed : int
        Split k uses the seed ``seed + k``, as :func:`veridical.compare_calibrators` does.
    """

    def __init__(self, predictions: Predictions, n_splits: int, seed: int) -> None:
        assert predictions.labels is not None
        if predictions.n_samples < 2:
            raise ShapeError(f"{predictions.n_samples} sample cannot be split into halves; at least two are needed.")
        self.predictions = predictions
        self.labels: Labels = predictions.labels
        self.seed = check_seed(seed, "seed")
        n_splits = check_integer(n_splits, "splits", 1)
        self.splits: list[tuple[Indices, Indices]] = [self._split(self.seed + k) for k in range(n_splits)]
        self._options = Calibrator()
        self._pooling = Combiner("mean")

    def _split(self, seed: int) -> tuple[Indices, Indices]:
        """The halves that :meth:`veridical.Predictions.split` makes with this seed, as indices."""
        order = np.random.default_rng(seed).permutation(self.predictions.n_samples)
        half = len(order) // 2
        return np.sort(order[:half]), np.sort(order[half:])

    @cached_property
    def pooled(self) -> Combined:
        """The mean of the sources, on all samples."""
        return self._pooling.apply(self.predictions, self._options)

    def run(self, methods: Sequence[Method], n_threads: int | None = None) -> list[list[Scores]]:
        """Scores on the evaluation halves: one list per split, in the order of the methods."""
        with_truth = any(method.needs_truth for method in methods if method.shares_the_mean)
        if with_truth:
            _ = self.pooled.truth  # found here, with all threads, before the splits ask for it at once
        with warnings.catch_warnings():
            # An optimum at the edge of its range is a result here, and the same sentence five times over no news.
            warnings.simplefilter("ignore", NotConvergedWarning)
            return run_blocks(lambda k: self._run_split(k, methods), range(len(self.splits)), n_threads)

    def _run_split(self, k: int, methods: Sequence[Method]) -> list[Scores]:
        calibration, evaluation = self.splits[k]
        fitted_on, applied_to = self.pooled.take(calibration), self.pooled.take(evaluation)
        whole = [] if all(method.shares_the_mean for method in methods) else self._copied(calibration, evaluation)
        scores = []
        for method in methods:
            calibrator = method.make(self.seed + k)
            if method.shares_the_mean:
                calibrator.fit_combined(self._pooling, fitted_on, self.labels[calibration])
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
