"""The mean and HV of a few samples, in two calls with few arguments: for servers that have loaded the kernels.

They compute what :mod:`veridical._kernels.discovery` computes, always in float64; arguments and results are those of
their NumPy twins in :mod:`veridical.combine.few_samples`.
"""

from __future__ import annotations

import numpy as np

from veridical._kernels.arguments import Options, Outputs
from veridical._kernels.discovery import Scratch, discover_sample
from veridical._kernels.jit import kernel
from veridical._kernels.loading import SOURCES_AT_ONCE


@kernel
def mean_of_few(scores, exact, margin, mean, label):
    """The mean (N, L) and the label (N,) of samples (S, N, L); returns whether all are valid and all labels clear.

    Valid are sources whose sums are one, all their squared differences together at most ``exact``, and clear are labels
    that lead by more than ``margin``.
    """
    n_sources, n_samples, n_classes = scores.shape
    off = 0.0
    for n in range(n_samples):
        mean[n] = 0.0
        for s in range(n_sources):
            total = 0.0
            for l in range(n_classes):
                score = scores[s, n, l]
                if not score >= 0.0:
                    return False
                total += score
                mean[n, l] += score
            off += (total - 1.0) ** 2
        total, top, second, c = 0.0, -1.0, -1.0, 0
        for l in range(n_classes):
            score = mean[n, l]
            total += score
            if score > top:
                second, top, c = top, score, l
            elif score > second:
                second = score
        if not top - second > margin * total:
            return False
        label[n] = c
        for l in range(n_classes):
            mean[n, l] /= total
    return off <= exact


@kernel
def hv_of_few(scores, mean, label, tol, max_iter, tiny):
    """(N,) HV of valid samples (S, N, L) with all sources present, around the truth that keeps ``label``."""
    n_sources, n_samples, n_classes = scores.shape
    padded = -(-n_sources // SOURCES_AT_ONCE) * SOURCES_AT_ONCE
    options = Options(0.0, 0.0, False, True, tol, max_iter, 0.0, 1, 0, True, False, 0.0, tiny)
    z, present = np.empty(n_classes), np.zeros(padded)
    present[:n_sources] = 1.0
    sample, weight = np.zeros((padded, n_classes)), np.zeros(padded)
    scratch = Scratch(z, z, np.zeros(n_classes), np.zeros(padded), present, weight)
    hv = np.empty(n_samples)
    unused, converged, no_trace = np.empty(n_samples), np.empty(n_samples, np.bool_), np.empty((0, n_samples))
    outputs = Outputs(mean, mean, hv, label, unused, converged, no_trace, no_trace)
    for n in range(n_samples):
        for s in range(n_sources):
            for l in range(n_classes):
                sample[s, l] = scores[s, n, l]
        for l in range(n_classes):
            z[l] = mean[n, l]
        discover_sample(sample, present, label[n], options, scratch, weight, n, outputs)
    return hv
