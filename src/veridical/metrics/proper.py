"""Accuracy and proper scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.metrics.sample import Floats, Sample, check_sample


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
    with np.errstate(divide="ignore"):  # infinite by definition, see the docstring
        losses: Floats = -np.log(probs[np.arange(len(labels)), labels].astype(np.float64))
    return losses


def nll_of(sample: Sample) -> float:
    """:func:`nll` of a checked sample."""
    return sample.mean(sample.per_sample("nll", lambda: _log_losses(sample)))


def nll(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    r"""Negative log-likelihood, the mean of :math:`-\ln p_i[y_i]`.

    Nothing is clipped: where a label has probability zero the result is infinite, because the model said that this
    could not happen.

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
