"""Logistic regression of correctness on a few features, and Platt scaling with it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from veridical._minimisation import warn_not_converged
from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.state_checks import check_number

#: Scores closer to 0 or 1 than this have the logit of this.
CLOSEST = 1e-6
_MOST_STEPS, _SMALL_STEP = 100, 1e-9


def logit(scores: Floats) -> Floats:
    """ln(p / (1 - p)) of scores kept ``CLOSEST`` away from 0 and 1."""
    inside = np.clip(scores, CLOSEST, 1 - CLOSEST)
    odds: Floats = np.log(inside) - np.log1p(-inside)
    return odds


def sigmoid(scores: Floats) -> Floats:
    """1 / (1 + exp(-x)), precise at both ends."""
    probs: Floats = np.exp(-np.logaddexp(0.0, -scores))
    return probs


def smoothed_targets(correct: npt.NDArray[np.bool_], weight: Floats | None = None) -> Floats:
    """Platt's targets: (n₊ + 1)/(n₊ + 2) for right and 1/(n₋ + 2) for wrong, so that no fit runs to infinity."""
    n_right = int(correct.sum()) if weight is None else float(weight[correct].sum())
    n_wrong = len(correct) - n_right if weight is None else float(weight.sum()) - n_right
    return np.where(correct, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))


def fit_logistic(features: Floats, targets: Floats, penalty: float, weight: Floats | None = None) -> Floats:
    r"""Coefficients b, the first for the constant, that minimise a penalised cross-entropy.

    .. math:: -\sum_n \big[t_n \ln \sigma_n + (1 - t_n) \ln (1 - \sigma_n)\big] + \tfrac{\lambda}{2} \sum_{k>0} b_k^2,
              \quad \sigma_n = \sigma(b_0 + \sum_k b_k x_{nk})

    by Newton's method, halving steps that do not descend; ``weight`` is how often each sample counts.
    """
    counts = np.ones(1) if weight is None else weight
    design = np.column_stack((np.ones(len(features)), features))
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 1e-6  # targets of exactly 0 or 1 still have a finite constant
    coefficients = np.zeros(design.shape[1])

    def loss(at: Floats) -> float:
        scores = design @ at
        return float((counts * (np.logaddexp(0.0, scores) - targets * scores)).sum() + 0.5 * ridge @ at**2)

    current = loss(coefficients)
    for _ in range(_MOST_STEPS):
        fitted = sigmoid(design @ coefficients)
        gradient = design.T @ (counts * (fitted - targets)) + ridge * coefficients
        hessian = (design * (counts * (fitted * (1 - fitted)))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(hessian, gradient)
        while loss(coefficients - step) > current and np.abs(step).max() > _SMALL_STEP:
            step /= 2
        coefficients = coefficients - step
        current = loss(coefficients)
        if np.abs(step).max() <= _SMALL_STEP * max(1.0, np.abs(coefficients).max()):
            break
    else:
        warn_not_converged("a logistic curve", _MOST_STEPS)
    return coefficients


class Platt(Calibrator):
    r"""Platt scaling of the top label: a logistic curve in the logit of its score.

    .. math:: w = \sigma(a \,\mathrm{logit}(v) + b), \quad a \ge 0

    Parameters are those of every calibrator.

    Attributes
    ----------
    slope_, intercept_ : float
        Fitted to Platt's smoothed targets; a slope below zero is set to zero.

    References
    ----------
    Platt: Probabilistic Outputs for Support Vector Machines.  1999.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> bool(vd.Platt().fit(probs, np.zeros(10, dtype=int)).predict_confidence(probs)[0] > 0.7)
    True
    """

    name = "platt"
    summary = "Platt scaling: a logistic curve in the logit of the top label's score."
    monotone = True
    complexity = 2
    _state = ("slope_", "intercept_")

    def _fit(self, combined: Combined, labels: Labels) -> None:
        self._fit_pairs(combined.confidence, combined.correct(labels))

    def _fit_pairs(self, confidence: Floats, correct: npt.NDArray[np.bool_], weight: Floats | None = None) -> None:
        targets = smoothed_targets(correct, weight)
        intercept, slope = fit_logistic(logit(confidence)[:, None], targets, 1e-3, weight)
        if slope < 0:  # a higher score must not mean less confidence
            slope = 0.0
            intercept = logit(np.average(targets, weights=weight, keepdims=True))[0]
        self.slope_, self.intercept_ = float(slope), float(intercept)

    def _confidence(self, combined: Combined) -> Floats:
        confidence: Floats = sigmoid(self.slope_ * logit(combined.confidence) + self.intercept_)
        return confidence

    def _check_state(self) -> None:
        check_number(self.slope_, "slope_", 0.0)
        check_number(self.intercept_, "intercept_")
