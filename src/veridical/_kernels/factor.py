"""One common factor behind the correlations of sources, and what pairs of sources share beyond it."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import kernel

#: A loading that fell to zero may rise again from here.
_LEAST_LOADING = 1e-3


@kernel
def update_loadings(correlation, visible, dependence, distinctness, removed, loadings, rows, updated):
    """Half of a least-squares step, in logarithms, for the loadings of the sources ``rows[0]`` to ``rows[1]``.

    The step is l_s = sum_t om_st (R_st - g_s g_t) l_t / sum_t om_st l_t^2 with om_st = a_t v_st (1 - rho_st), where g
    are the loadings of a factor removed before.  All sources move at once, so their order does not matter; half steps,
    because a whole one would turn a scale that is too large into one that is too small by as much.
    """
    for s in range(rows[0], rows[1]):
        explained = size = 0.0
        for t in range(loadings.shape[0]):
            evidence = distinctness[t] * visible[s, t] * (1.0 - dependence[s, t]) * loadings[t]
            explained += evidence * (correlation[s, t] - removed[s] * removed[t])
            size += evidence * loadings[t]
        loading = max(loadings[s], _LEAST_LOADING)
        updated[s] = np.sqrt(explained / size * loading) if explained > 0.0 and size > 0.0 else 0.0


@kernel
def update_dependence(correlation, seen, skill, step, rows, dependence):
    """Move rho_st towards clip((R_st - l_s l_t) / sqrt((1 - l_s^2)(1 - l_t^2)), 0, 1)^4, times how surely it is seen.

    Returns the largest distance that was left to go.
    """
    largest = 0.0
    scale = 1.0 / np.sqrt(1.0 - skill * skill)
    for s in range(rows[0], rows[1]):
        for t in range(skill.shape[0]):
            shared = (correlation[s, t] - skill[s] * skill[t]) * scale[s] * scale[t]
            shared = min(max(shared, 0.0), 1.0)
            shared *= shared
            target = shared * shared * seen[s, t]
            change = target - dependence[s, t]
            largest = max(largest, abs(change))
            dependence[s, t] += step * change
        dependence[s, s] = 1.0
    return largest
