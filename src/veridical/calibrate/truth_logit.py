"""Correctness from what truth discovery knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.calibrate.base import Calibrator
from veridical.calibrate.logistic import CLOSEST, fit_logistic, logit, sigmoid, smoothed_targets
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.in_memory import over_rows
from veridical.combine.state_checks import LARGEST, check_array
from veridical.predictions.validation import Array, check_real

#: Standardised features are kept within so many standard deviations.
FURTHEST = 6.0
#: Features that hardly vary are taken to vary by this.
_LEAST_SPREAD = 1e-9


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
        self.coefficients_ = fit_logistic(self._standardised(features), targets, penalty)

    def _standardised(self, features: Floats) -> Floats:
        within: Floats = np.clip((features - self.centres_) / self.spreads_, -FURTHEST, FURTHEST)
        return within

    def _confidence(self, combined: Combined) -> Floats:
        features = self._standardised(combined.derived(_features))
        confidence: Floats = sigmoid(self.coefficients_[0] + features @ self.coefficients_[1:])
        return confidence

    def check_parameters(self) -> None:
        super().check_parameters()
        check_real(self.penalty, "penalty", 1e-6, LARGEST)

    def _check_state(self) -> None:
        check_array(self.coefficients_, "coefficients_", (7,))
        check_array(self.centres_, "centres_", (6,))
        check_array(self.spreads_, "spreads_", (6,), _LEAST_SPREAD)


def _features(xp: Any, combined: Combined) -> Floats:
    """(N, 6): what is known of each sample's predicted label."""
    rows, label = np.arange(len(combined.prediction)), combined.prediction
    truth = combined.truth.probs
    log_hv = np.log(combined.hv / combined.n_sources + CLOSEST)
    return np.column_stack(
        (
            logit(combined.confidence),
            log_hv,
            logit(truth[rows, label].astype(np.float64)),
            np.log(np.maximum(_runner_up(truth, label, combined.options.n_threads), CLOSEST)),
            combined.confidence * log_hv,
            logit(_geometric_share(combined)),
        )
    )


def _runner_up(probs: Array, label: Labels, n_threads: int | None) -> Floats:
    """(N,) the largest probability of another class."""
    largest = np.empty(len(probs))

    def work(part: slice) -> None:
        others = probs[part].astype(np.float64)
        others[np.arange(len(others)), label[part]] = -1.0
        largest[part] = others.max(axis=1)

    over_rows(work, probs, n_threads)
    return largest


def _geometric_share(combined: Combined) -> Floats:
    """(N,) the predicted class's score in the sources' normalised geometric mean."""
    share: Floats = combined.over_samples(
        lambda rows: rows.geometric_mean[np.arange(len(rows.prediction)), rows.prediction]
    )
    return share
