"""Pools of sources with fitted weights: their loss and its gradient."""

from __future__ import annotations

import numpy as np

from veridical._kernels.elementary import exp_in_place
from veridical._kernels.jit import inner, kernel


@inner
def _weighted_logs(logs, shares, n, scores):
    """``scores[l] = sum_s shares[s, n] logs[s, n, l]``, shifted so that the largest is 0; returns the shift."""
    scores[:] = 0.0
    for s in range(logs.shape[0]):
        row, share = logs[s, n], shares[s, n]
        for l in range(scores.shape[0]):
            scores[l] += share * row[l]
    largest = scores.max()
    for l in range(scores.shape[0]):
        scores[l] -= largest
    return largest


@kernel
def log_pool_loss(logs, shares, labels, gradient):
    """Sum over samples of -ln q[y] with q = softmax(sum_s a_s ln p_s).

    Adds d/da_s = sum_l q[l] ln p_s[l] - ln p_s[y] to ``gradient``; a share of zero marks an absent source,
    whose logs are zero.
    """
    q = np.empty(logs.shape[2])
    loss = 0.0
    for n in range(labels.shape[0]):
        y = labels[n]
        _weighted_logs(logs, shares, n, q)
        at_label = q[y]
        exp_in_place(q)
        total = q.sum()
        loss += np.log(total) - at_label
        for s in range(logs.shape[0]):
            row = logs[s, n]
            expected = 0.0
            for l in range(q.shape[0]):
                expected += q[l] * row[l]
            gradient[s] += expected / total - row[y]
    return loss


@kernel
def mixture_loss(scores, present, shares, gradient):
    """Sum over samples of -ln(m / A) with m = sum_s a_s p_s[y] and A = sum_s a_s, both over the present sources.

    Absent sources score 0 and have ``present`` 0.  Adds d/da_s = present / A - p_s[y] / m to ``gradient``.
    """
    loss = 0.0
    for n in range(scores.shape[0]):
        row, here = scores[n], present[n]
        mixture = 0.0
        present_share = 0.0
        for s in range(row.shape[0]):
            mixture += shares[s] * row[s]
            present_share += shares[s] * here[s]
        loss += np.log(present_share / mixture)
        for s in range(row.shape[0]):
            gradient[s] += here[s] / present_share - row[s] / mixture
    return loss
