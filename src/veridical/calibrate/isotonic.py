"""Isotonic calibrators: over all pairs, per class, and of the top label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks
from veridical.backends.rows import interpolate, interpolate_columns
from veridical.calibrate.base import Calibrator
from veridical.calibrate.binning import cells_of
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.state_checks import check_array, check_rising
from veridical.errors import LongComputationWarning, warn_caller

#: Breaks ties between scores that were fitted as equal, in the order that they had.
TIE_BREAKER = 1e-9
#: Scores that are closer than this are one: between them, the slope of a line would be infinite.
_LEAST_GAP = 1e-300


def fit_steps(scores: Floats, right_scores: Floats, single: bool = False) -> tuple[Floats, Floats]:
    """Isotonic regression of "is it right?" on a score.

    Parameters
    ----------
    scores : all scores; sorted in place
    right_scores : the scores, among them, of what was right
    single : whether they were rounded to single precision

    Returns
    -------
    (thresholds, values)
        Ends of the fitted steps; between and beyond them, interpolate linearly and clip.

    Notes
    -----
    Scores that are equal up to rounding are one.  What is wrong counts 0, so between two scores with something right
    there is one run of zeros, and fitting needs only as many blocks as there are right scores, not as many as pairs:
    sorting the scores is the one thing left that takes time in their number.
    """
    from veridical._kernels.isotonic import pool_violators  # loads the compiler

    scores.sort()
    cells = cells_of(scores, single)
    levels, rights = np.unique(cells_of(right_scores, single), return_counts=True)
    below = np.searchsorted(cells, levels, side="left")
    up_to = np.searchsorted(cells, levels, side="right")
    # A block per level, with a block of zeros before, between and after them; each from scores[first] to scores[last].
    first = np.empty(2 * len(levels) + 1, dtype=np.int64)
    first[0], first[1::2], first[2::2] = 0, below, up_to
    stop = np.append(first[1:], len(scores))
    hits = np.zeros(len(first))
    hits[1::2] = rights
    filled = stop > first
    ends, values = pool_violators(first[filled], stop[filled], hits[filled])
    return _without_repeats(scores[ends].ravel(), np.repeat(values, 2))


def fit_weighted_steps(
    scores: Floats, right: npt.NDArray[np.bool_], weight: Floats, single: bool = False
) -> tuple[Floats, Floats]:
    """:func:`fit_steps` of scores that stand for ``weight`` equal ones each."""
    from veridical._kernels.isotonic import pool_violators

    _, first, which = np.unique(cells_of(scores, single), return_index=True, return_inverse=True)
    levels = scores[first]
    counts = np.rint(np.bincount(which, weights=weight)).astype(np.int64)
    stop = np.cumsum(counts)
    ends, values = pool_violators(stop - counts, stop, np.bincount(which, weights=weight * right))
    return _without_repeats(levels[np.searchsorted(stop, ends, side="right")].ravel(), np.repeat(values, 2))


def _without_repeats(thresholds: Floats, values: Floats) -> tuple[Floats, Floats]:
    keep = np.append(True, np.diff(thresholds) > _LEAST_GAP)
    return thresholds[keep], values[keep]


def check_steps(thresholds: Floats, values: Floats) -> None:
    """Raise ValueError unless this is a non-decreasing function from scores to [0, 1]."""
    check_array(thresholds, "thresholds_", (-1,), 0.0, 1.0 + 1e-5)  # means of float32 may round to just above one
    check_array(values, "values_", thresholds.shape, 0.0, 1.0)
    check_rising(thresholds, "thresholds_", _LEAST_GAP)
    if not len(thresholds) or (np.diff(values) < 0).any():
        raise ValueError("the fitted steps do not rise from 0 to 1")


class IRM(Calibrator):
    r"""Isotonic regression over all N·L pairs of probability and one-hot label (accuracy preserving).

    One non-decreasing function for all classes; 1e-9 p is added to break ties, so that labels stay; rows are
    normalised when a distribution is returned.

    Parameters are those of every calibrator.

    Attributes
    ----------
    thresholds_, values_ : (K,) arrays
        Ends of the fitted steps, interpolated linearly.

    References
    ----------
    Zhang, Kailkhura, Han: Mix-n-Match.  ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> vd.IRM().fit(probs, np.zeros(10, dtype=int)).predict_confidence(probs)[0].round(3)
    np.float64(0.9)
    """

    name = "irm"
    title = "IRM"
    summary = "One isotonic regression over all pairs of probability and one-hot label."
    complexity = 4
    whole_vectors = True
    _state = ("thresholds_", "values_")

    def _fit(self, combined: Combined, labels: Labels) -> None:
        right = combined.probs[np.arange(len(labels)), labels].astype(np.float64)
        self.thresholds_, self.values_ = fit_steps(
            combined.probs.astype(np.float64).ravel(), right, combined.dtype != np.float64
        )

    def formula(self, xp: Any, combined: Any) -> Any:
        knots, values = combined.constant(self.thresholds_), combined.constant(self.values_)
        return interpolate(xp, combined.probs, knots, values) + TIE_BREAKER * combined.probs

    def _check_state(self) -> None:
        check_steps(self.thresholds_, self.values_)


class IROvA(Calibrator):
    """One isotonic regression per class, one against all, then normalised.  Labels may change.

    Parameters are those of every calibrator.

    Attributes
    ----------
    thresholds_, values_ : (K,) arrays
        The ends of all classes' fitted steps, class after class.
    starts_ : (L + 1,) array
        Where each class's steps start.

    References
    ----------
    Zadrozny, Elkan: Transforming Classifier Scores into Accurate Multiclass Probability Estimates.  KDD 2002.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> vd.IROvA().fit(probs, np.zeros(10, dtype=int)).predict(probs)[0]
    np.int64(0)
    """

    name = "irova"
    title = "IROvA"
    summary = "One isotonic regression per class, then normalised."
    keeps_labels = False
    complexity = 6
    whole_vectors = True
    _state = ("thresholds_", "values_", "starts_")

    def _fit(self, combined: Combined, labels: Labels) -> None:
        if combined.n_classes > 100_000:
            cost = f"irova fits {combined.n_classes:,} isotonic regressions, which takes minutes"
            warn_caller(f"{cost}; irm fits one for all classes.", LongComputationWarning)
        probs = combined.probs.astype(np.float64, copy=False)
        single = combined.dtype != np.float64
        fits = run_blocks(
            lambda l: fit_steps(probs[:, l].copy(), probs[labels == l, l], single),
            range(probs.shape[1]),
            self.n_threads,
        )
        self.thresholds_ = np.concatenate([thresholds for thresholds, _ in fits])
        self.values_ = np.concatenate([values for _, values in fits])
        self.starts_ = np.cumsum([0, *(len(values) for _, values in fits)]).astype(np.float64)

    def _steps_of(self, l: int) -> tuple[Floats, Floats]:
        part = slice(int(self.starts_[l]), int(self.starts_[l + 1]))
        return self.thresholds_[part], self.values_[part]

    def formula(self, xp: Any, combined: Any) -> Any:
        starts = self.starts_.astype(np.int64)
        fitted = interpolate_columns(xp, combined.probs, starts, self.thresholds_, self.values_, combined.constant)
        return fitted + TIE_BREAKER * combined.probs

    def _check_state(self) -> None:
        starts = self.starts_
        check_array(starts, "starts_", (-1,), 0.0)
        check_array(self.thresholds_, "thresholds_", (-1,))
        check_array(self.values_, "values_", self.thresholds_.shape)
        if len(starts) != self.n_classes_ + 1 or starts[0] != 0 or starts[-1] != len(self.thresholds_):
            raise ValueError(f"the steps of {self.n_classes_} classes start at {starts}")
        if (starts != np.floor(starts)).any() or (np.diff(starts) < 1).any():
            raise ValueError(f"the steps of {self.n_classes_} classes start at {starts}")
        for l in range(self.n_classes_):
            check_steps(*self._steps_of(l))


class Isotonic(Calibrator):
    """Isotonic regression of correctness on the top label's score.

    Parameters are those of every calibrator.

    Attributes
    ----------
    thresholds_, values_ : (K,) arrays
        Ends of the fitted steps, interpolated linearly.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> vd.Isotonic().fit(probs, np.zeros(10, dtype=int)).predict_confidence(probs)[0].round(3)
    np.float64(0.9)
    """

    name = "isotonic"
    summary = "Isotonic regression of correctness on the top label's score."
    monotone = True
    complexity = 4
    _state = ("thresholds_", "values_")

    def _fit_pairs(
        self, confidence: Floats, correct: npt.NDArray[np.bool_], weight: Floats | None = None, *, single: bool = False
    ) -> None:
        if weight is None:
            self.thresholds_, self.values_ = fit_steps(confidence.copy(), confidence[correct], single)
        else:
            self.thresholds_, self.values_ = fit_weighted_steps(confidence, correct, weight, single)

    def formula(self, xp: Any, combined: Any) -> Any:
        knots, values = combined.constant(self.thresholds_), combined.constant(self.values_)
        return interpolate(xp, combined.confidence, knots, values)

    def _check_state(self) -> None:
        check_steps(self.thresholds_, self.values_)
