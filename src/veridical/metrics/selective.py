"""Error detection and selective prediction: how well a per-sample doubt separates wrong predictions from right ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import digamma

from veridical.metrics.sample import Floats, Sample, check_sample


def _by_doubt(sample: Sample) -> tuple[Floats, Floats]:
    """Weights of right and of wrong predictions per group of equal doubt, from the least doubtful group on."""
    doubt = -sample.confidence if sample.doubt is None else sample.doubt
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    order = np.argsort(doubt, kind="stable")
    weight, correct = weight[order], sample.correct[order]
    ordered = doubt[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    return np.add.reduceat(weight * correct, starts), np.add.reduceat(weight * ~correct, starts)


def error_auroc_of(sample: Sample) -> float:
    """:func:`error_auroc` of a checked sample."""
    right, wrong = _by_doubt(sample)
    n_right, n_wrong = right.sum(), wrong.sum()
    if n_right == 0 or n_wrong == 0:
        return float("nan")
    right, wrong = right / n_right, wrong / n_wrong
    right_below = np.cumsum(right) - right
    return min(float(wrong @ (right_below + right / 2)), 1.0)


def error_auroc(y_true: Any, probs: Any, *, doubt: Any = None, sample_weight: Any = None) -> float:
    """Area under the ROC curve of detecting wrong predictions by their doubt.

    The probability that a wrong prediction has a larger doubt than a right one; ties count half.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.
    doubt : (N,) array, optional
        Larger where the prediction is more doubtful: HV, entropy, mutual information.  By default minus the confidence.

    Returns
    -------
    float
        From 0 to 1, where 0.5 is chance; NaN if all predictions are right or all are wrong.

    References
    ----------
    Hendrycks and Gimpel, "A baseline for detecting misclassified and out-of-distribution examples in neural
    networks", ICLR 2017.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.error_auroc([True, True, False], [0.9, 0.8, 0.5])
    1.0
    """
    return error_auroc_of(check_sample(y_true, probs, sample_weight, doubt))


def risk_at_coverage(sample: Sample, coverage: Floats) -> Floats:
    """Error rate among the least doubtful samples, for each share ``coverage`` in (0, 1] that is kept.

    If a share ends within a group of equal doubt, the group counts in proportion, which is the mean over all orders.
    """
    right, wrong = _by_doubt(sample)
    covered, missed = np.cumsum(right + wrong), np.cumsum(wrong)
    kept = coverage * covered[-1]
    risk: Floats = np.interp(kept, np.concatenate(([0.0], covered)), np.concatenate(([0.0], missed))) / kept
    return risk


def aurc_of(sample: Sample) -> float:
    """:func:`aurc` of a checked sample."""
    right, wrong = _by_doubt(sample)
    counted = right + wrong > 0
    total, wrong = (right + wrong)[counted], wrong[counted]
    covered, missed = np.cumsum(total), np.cumsum(wrong)
    rate = wrong / total
    before, missed_before = covered - total, missed - wrong
    # Within a group of ties the k-th sample adds its group's rate, so the risk after k samples is
    # rate + (missed_before - before * rate) / k, and sums of 1/k are differences of the digamma function.
    harmonic = digamma(covered + 1) - digamma(before + 1)
    return float((rate @ total + (missed_before - before * rate) @ harmonic) / covered[-1])


def aurc(y_true: Any, probs: Any, *, doubt: Any = None, sample_weight: Any = None) -> float:
    r"""Area under the risk-coverage curve: the error rate among the k least doubtful samples, averaged over k.

    .. math:: \mathrm{AURC} = \frac1N \sum_{k=1}^N \frac1k \sum_{i \le k} [\text{sample } i \text{ is wrong}]

    over samples sorted by doubt.  Samples of equal doubt enter in all orders, averaged.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.
    doubt : (N,) array, optional
        Larger where the prediction is more doubtful; by default minus the confidence.

    Returns
    -------
    float
        From 0 (all right) to 1 (all wrong).

    References
    ----------
    Geifman, Uziel and El-Yaniv, "Bias-reduced uncertainty estimation for deep neural classifiers", ICLR 2019.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.aurc([True, False], [0.9, 0.5]), 12)
    0.25
    """
    return aurc_of(check_sample(y_true, probs, sample_weight, doubt))
