"""Logistic regression of correctness: on the top label's score (Platt), and on what truth discovery knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._minimisation import warn_not_converged
from veridical.backends.namespace import at_label, one_hot, widest_float
from veridical.backends.rows import CLOSEST, at_least, bounded, logit, row_maxima, row_sums, sigmoid
from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.state_checks import LARGEST, check_array, check_number
from veridical.predictions.validation import check_real

_MOST_STEPS, _SMALL_STEP = 100, 1e-9
#: Standardised features are kept within so many standard deviations.
_FURTHEST = 6.0
#: Features that hardly vary are taken to vary by this.
_LEAST_SPREAD = 1e-9


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
        fitted = sigmoid(np, design @ coefficients)
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

    def _fit_pairs(
        self, confidence: Floats, correct: npt.NDArray[np.bool_], weight: Floats | None = None, *, single: bool = False
    ) -> None:
        targets = smoothed_targets(correct, weight)
        intercept, slope = fit_logistic(logit(np, confidence)[:, None], targets, 1e-3, weight)
        if slope < 0:  # a higher score must not mean less confidence
            slope = 0.0
            intercept = logit(np, np.average(targets, weights=weight, keepdims=True))[0]
        self.slope_, self.intercept_ = float(slope), float(intercept)

    def formula(self, xp: Any, combined: Any) -> Any:
        return sigmoid(xp, self.slope_ * logit(xp, combined.confidence) + self.intercept_)

    def _check_state(self) -> None:
        check_number(self.slope_, "slope_", 0.0)
        check_number(self.intercept_, "intercept_")


class TruthLogit(Calibrator):
    r"""P(correct) by a logistic regression on six things that the sources say about the predicted label.

    The features, standardised on the calibration data: the logit of the combined score v; ln HV (per source); the logit
    of the truth vector's score for the predicted class; the logarithm of the truth vector's runner-up; v times ln HV;
    and the logit of the predicted class's share in the sources' geometric mean.  The same mean of scores can come from
    sources that agree on doubt or that contradict each other; these tell the two apart.

    Parameters
    ----------
    penalty : float
        Ridge on the coefficients of the standardised features, in units of one sample's log-likelihood.

    Other parameters are those of every calibrator.

    Attributes
    ----------
    coefficients_ : (7,) array
        The constant first.
    centres_, spreads_ : (6,) arrays
        Mean and standard deviation of the features.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([3, 2, 1], size=(5, 1000))
    >>> y = rng.integers(0, 3, 1000)
    >>> confidence = vd.TruthLogit().fit(probs, y).predict_confidence(probs)
    >>> bool(abs(confidence.mean() - (probs.mean(axis=0).argmax(axis=1) == y).mean()) < 0.02)
    True
    """

    name = "truth-logit"
    summary = "Logistic regression of correctness on scores, disagreement and the truth vector."
    needs_sources = True
    fixed_number_of_sources = True
    complexity = 3
    _state = ("coefficients_", "centres_", "spreads_")

    penalty: float = 1.0

    def _fit(self, combined: Combined, labels: Labels) -> None:
        penalty = float(self.penalty)
        features = combined.derived(_features)
        self.centres_, self.spreads_ = features.mean(axis=0), np.maximum(features.std(axis=0), _LEAST_SPREAD)
        targets = smoothed_targets(combined.correct(labels))
        self.coefficients_ = fit_logistic(self._standardised(np, features), targets, penalty)

    def formula(self, xp: Any, combined: Any) -> Any:
        features = self._standardised(xp, combined.derived(_features), combined.constant)
        score = float(self.coefficients_[0]) + row_sums(xp, features * combined.constant(self.coefficients_[1:]))
        return sigmoid(xp, score[:, 0])

    def _standardised(self, xp: Any, features: Any, constant: Any = np.asarray) -> Any:
        return bounded(xp, (features - constant(self.centres_)) / constant(self.spreads_), -_FURTHEST, _FURTHEST)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_real(self.penalty, "penalty", 1e-6, LARGEST)

    def _check_state(self) -> None:
        check_array(self.coefficients_, "coefficients_", (7,))
        check_array(self.centres_, "centres_", (6,))
        check_array(self.spreads_, "spreads_", (6,), _LEAST_SPREAD)


def _features(xp: Any, combined: Any) -> Any:
    """(N, 6): what is known of each sample's predicted label."""
    label = combined.prediction
    truth = widest_float(xp, combined.truth.probs)
    truth = truth / row_sums(xp, truth)
    others = xp.where(one_hot(xp, label, combined.n_classes), xp.zeros_like(truth), truth)
    log_hv = xp.log(combined.hv / combined.n_sources + CLOSEST)
    columns = (
        logit(xp, combined.confidence),
        log_hv,
        logit(xp, at_label(xp, truth, label)),
        xp.log(at_least(xp, row_maxima(xp, others)[:, 0], CLOSEST)),
        combined.confidence * log_hv,
        logit(xp, at_label(xp, combined.geometric_mean, label)),
    )
    return xp.stack(columns, axis=1)
