"""How many of a set of independent predictions come true."""

from __future__ import annotations

from veridical._kernels.jit import exact_kernel


@exact_kernel
def count_distribution(confidence, chances):
    """``chances[k]`` = the chance that k of the samples are right, each with probability ``confidence[i]``.

    The Poisson binomial distribution, one sample after the other: P(k) <- P(k) (1 - w) + P(k - 1) w.
    ``chances`` has one entry more than ``confidence``.
    """
    chances[:] = 0.0
    chances[0] = 1.0
    for i in range(confidence.shape[0]):
        w = confidence[i]
        for k in range(i + 1, 0, -1):
            chances[k] = chances[k] * (1.0 - w) + chances[k - 1] * w
        chances[0] *= 1.0 - w
