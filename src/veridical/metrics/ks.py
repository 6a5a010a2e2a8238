"""Kolmogorov-Smirnov calibration error: no bins, no bandwidth."""

from __future__ import annotations

from typing import Any

from veridical._kernels.binning import largest_cumulative_gap
from veridical.metrics.sample import Sample, check_sample


def ks_error_of(sample: Sample) -> float:
    """:func:`ks_error` of a checked sample."""
    confidence, correct, weight = sample.by_confidence()
    return float(largest_cumulative_gap(confidence, correct, weight)) / sample.total_weight


def ks_error(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    r"""Largest gap between cumulative confidence and cumulative accuracy.

    .. math:: \mathrm{KS} = \max_k \frac{1}{N} \Big| \sum_{i \le k} (w_i - c_i) \Big|

    over samples sorted by confidence :math:`w`, with :math:`c_i` 1 where the prediction is right.  The maximum is
    taken where the confidence changes, so the order of equal confidences does not matter.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.

    Returns
    -------
    float
        From 0 to 1, and at least ``|mean confidence - accuracy|``.

    References
    ----------
    Gupta et al., "Calibration of neural networks using splines", ICLR 2021.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.ks_error([False, True], [0.5, 0.5])
    0.0
    """
    return ks_error_of(check_sample(y_true, probs, sample_weight))
