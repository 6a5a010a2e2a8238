"""Accuracy and proper scoring rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical._minimisation import zero_between
from veridical.metrics.sample import Floats, Sample, check_sample
from veridical.predictions.validation import RandomState, check_random_state


def accuracy_of(sample: Sample) -> float:
    """:func:`accuracy` of a checked sample."""
    return sample.mean(sample.correct)


def accuracy(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    """Share of samples whose most probable class (the first, on ties) is the label.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.accuracy([0, 1], [[0.8, 0.2], [0.6, 0.4]])
    0.5
    """
    return accuracy_of(check_sample(y_true, probs, sample_weight))


def _log_losses(sample: Sample) -> Floats:
    probs, labels = sample.vectors("nll")
    with np.errstate(divide="ignore"):  # an infinite loss is part of the definition
        losses: Floats = -np.log(probs[np.arange(len(labels)), labels].astype(np.float64))
    return losses


def nll_of(sample: Sample) -> float:
    """:func:`nll` of a checked sample."""
    return sample.mean(sample.per_sample("nll", lambda: _log_losses(sample)))


def nll(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    r"""Negative log-likelihood, the mean of :math:`-\ln p_i[y_i]`.

    Nothing is clipped: if a label has probability zero, the result is infinite.

    Parameters
    ----------
    y_true : (N,) integers
    probs : (N, L) array
    sample_weight : (N,) array, optional

    Returns
    -------
    float
        From 0 to infinity, in nats.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.nll([0, 1], [[0.5, 0.5], [0.5, 0.5]]), 6)
    0.693147
    """
    return nll_of(check_sample(y_true, probs, sample_weight))


def _squared_errors(sample: Sample) -> Floats:
    probs, labels = sample.vectors("brier")
    # |p - onehot|^2 = |p|^2 - 2 p[y] + 1, without building the one-hot matrix
    lengths = np.einsum("il,il->i", probs, probs, dtype=np.float64)
    errors: Floats = lengths - 2 * probs[np.arange(len(labels)), labels].astype(np.float64) + 1
    return np.maximum(errors, 0.0)


def brier_of(sample: Sample) -> float:
    """:func:`brier` of a checked sample."""
    return sample.mean(sample.per_sample("brier", lambda: _squared_errors(sample)))


def brier(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    r"""Brier score, the mean over samples of :math:`\sum_l (p_{il} - [y_i = l])^2`.

    The sum over classes, from 0 to 2, for any number of classes; the mean squared error (MSE) of the paper.

    Parameters
    ----------
    y_true : (N,) integers
    probs : (N, L) array
    sample_weight : (N,) array, optional

    Returns
    -------
    float
        From 0 to 2.

    References
    ----------
    Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78, 1950.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.brier([0, 1], [[0.5, 0.5], [0.5, 0.5]])
    0.5
    """
    return brier_of(check_sample(y_true, probs, sample_weight))


#: Bounds of the inverse temperature: separable samples have no finite optimum.
_MOST_INVERSE, _LEAST_INVERSE = 1e2, 1e-2
#: Stands for ln 0: its exponential is 0 at every temperature in the bounds.
_LOG_OF_ZERO = -1e5


def _log_normalisers(logits: Floats, inverse: float) -> tuple[Floats, Floats]:
    """ln sum exp(inverse * logits) per row, and its derivative by ``inverse``."""
    scaled = logits * inverse
    highest = scaled.max(axis=1)
    scaled -= highest[:, None]
    np.exp(scaled, out=scaled)
    sums = scaled.sum(axis=1)
    return highest + np.log(sums), np.einsum("il,il->i", scaled, logits) / sums


def _fit_inverse_temperature(logits: Floats, chosen: Floats, weight: Floats) -> float:
    """The inverse temperature of least negative log-likelihood, which is convex in it."""
    data = logits, chosen, weight
    if not weight.any():
        return 1.0
    if _slope(_LEAST_INVERSE, *data) >= 0:
        return _LEAST_INVERSE
    if _slope(_MOST_INVERSE, *data) <= 0:
        return _MOST_INVERSE
    return zero_between(_slope, _LEAST_INVERSE, _MOST_INVERSE, *data, tolerance=1e-10)


def _slope(inverse: float, logits: Floats, chosen: Floats, weight: Floats) -> float:
    """The derivative of the total negative log-likelihood by the inverse temperature."""
    return float((_log_normalisers(logits, inverse)[1] - chosen) @ weight)


def calibrated_nll_of(sample: Sample, *, random_state: RandomState = 0) -> float:
    """:func:`calibrated_nll` of a checked sample."""
    probs, labels = sample.vectors("calibrated_nll")
    n_samples = len(sample)
    uncalibrated = nll_of(sample)
    if n_samples == 1 or not np.isfinite(uncalibrated):
        return uncalibrated
    logits = np.full(probs.shape, _LOG_OF_ZERO)
    np.log(probs, out=logits, where=probs > 0)
    chosen = logits[np.arange(n_samples), labels]
    weight = np.ones(n_samples) if sample.weight is None else sample.weight
    in_first = np.arange(n_samples) < n_samples // 2
    check_random_state(random_state).shuffle(in_first)
    if sample.origin is not None:  # the halves must not depend on the order of the samples
        in_first = in_first[sample.origin]
    halves = np.flatnonzero(in_first), np.flatnonzero(~in_first)
    total = 0.0
    for fitted, evaluated in (halves, halves[::-1]):
        inverse = _fit_inverse_temperature(logits[fitted], chosen[fitted], weight[fitted])
        losses = _log_normalisers(logits[evaluated], inverse)[0] - inverse * chosen[evaluated]
        total += float(losses @ weight[evaluated])
    return total / sample.total_weight


def calibrated_nll(y_true: Any, probs: Any, *, random_state: RandomState = 0, sample_weight: Any = None) -> float:
    """Negative log-likelihood after temperature scaling, cross-fitted on two halves.

    The samples are split at random into two halves.  A temperature is fitted on each by negative log-likelihood and
    evaluated on the other; the result is the mean over all samples.  Models that differ only in how confident they are
    become comparable.

    Parameters
    ----------
    y_true : (N,) integers
    probs : (N, L) array
    random_state : int, numpy.random.Generator or None
        Determines the halves.
    sample_weight : (N,) array, optional
        Weights of the losses, in fitting and in evaluation.  A sample is in one half, whatever its weight.

    Returns
    -------
    float
        From 0 to infinity.  Infinite, like :func:`nll`, if a label has probability zero at all temperatures.  For one
        sample, its :func:`nll`.  Temperatures are bounded by 0.01 and 100.

    References
    ----------
    Ashukha et al., "Pitfalls of in-domain uncertainty estimation and ensembling in deep learning", ICLR 2020.

    Examples
    --------
    >>> from veridical import metrics
    >>> over_confident = [[0.99, 0.01], [0.01, 0.99], [0.99, 0.01], [0.01, 0.99]] * 25
    >>> labels = [0, 1, 1, 1] * 25
    >>> metrics.calibrated_nll(labels, over_confident) < metrics.nll(labels, over_confident)
    True
    """
    return calibrated_nll_of(check_sample(y_true, probs, sample_weight), random_state=random_state)
