"""A plain-loop twin of the consensus, written from the formulas and nothing else; NaN rows mark absent sources."""

from __future__ import annotations

import math

import numpy as np

FEW = 10.0


def correlations(probs):
    """(R, n): correlation of each pair of sources about their own means, and how many samples they share."""
    n_sources, n_samples, n_classes = probs.shape
    present = [[not math.isnan(probs[s, n, 0]) for n in range(n_samples)] for s in range(n_sources)]
    means = [
        [math.fsum(probs[s, n, l] for n in range(n_samples) if present[s][n]) / max(sum(present[s]), 1)
         for l in range(n_classes)]
        for s in range(n_sources)
    ]  # fmt: skip

    def product(s, t, n):
        return math.fsum((probs[s, n, l] - means[s][l]) * (probs[t, n, l] - means[t][l]) for l in range(n_classes))

    correlation, counts = np.zeros((n_sources, n_sources)), np.zeros((n_sources, n_sources))
    for s in range(n_sources):
        for t in range(n_sources):
            shared = [n for n in range(n_samples) if present[s][n] and present[t][n]]
            counts[s, t] = len(shared)
            sizes = math.fsum(product(s, s, n) for n in shared), math.fsum(product(t, t, n) for n in shared)
            if min(sizes) > 1e-9 * len(shared):
                correlation[s, t] = math.fsum(product(s, t, n) for n in shared) / math.sqrt(sizes[0] * sizes[1])
    return correlation, counts


def distinctness_of(dependence):
    """a_s = c_s / sum_t c_t rho_st, with c_s = 1 / k for each of k exact copies."""
    single = [1 / sum(value > 1 - 1e-9 for value in row) for row in dependence]
    return [c / sum(other * value for other, value in zip(single, row, strict=True))
            for c, row in zip(single, dependence, strict=True)]  # fmt: skip


def loadings_step(correlation, counts, dependence, removed, loadings):
    """l_s <- sqrt(l_s sum_t om_st (R_st - g_s g_t) l_t / sum_t om_st l_t^2)."""
    n_sources, updated, independence = len(loadings), [], distinctness_of(dependence)
    for s in range(n_sources):
        explained = size = 0.0
        for t in range(n_sources):
            evidence = (1 - dependence[s][t]) * independence[t] * counts[s][t] / (counts[s][t] + FEW)
            explained += evidence * (correlation[s][t] - removed[s] * removed[t]) * loadings[t]
            size += evidence * loadings[t] ** 2
        updated.append(math.sqrt(explained / size * max(loadings[s], 1e-3)) if explained > 0 and size > 0 else 0.0)
    return updated


def dependence_of(correlation, seen, skill):
    """clip((R_st - l_s l_t) / sqrt((1 - l_s^2)(1 - l_t^2)), 0, 1)^4, times how surely it is seen."""
    n_sources = len(skill)
    dependence = np.eye(n_sources)
    for s in range(n_sources):
        for t in range(n_sources):
            if s != t:
                shared = (correlation[s][t] - skill[s] * skill[t]) / math.sqrt(
                    (1 - skill[s] ** 2) * (1 - skill[t] ** 2)
                )
                dependence[s, t] = min(max(shared, 0.0), 1.0) ** 4 * seen[s][t]
    return dependence


def factor(correlation, counts, n_rounds=300):
    """(skill, dependence) after many rounds of both steps."""
    n_sources = len(correlation)
    seen = [[1 - math.exp(-counts[s][t] / FEW) for t in range(n_sources)] for s in range(n_sources)]
    dependence = np.array(
        [[1.0 if s == t else max(correlation[s][t], 0.0) ** 8 * seen[s][t] for t in range(n_sources)]
         for s in range(n_sources)]
    )  # fmt: skip
    skill = [0.5] * n_sources
    for _ in range(n_rounds):
        for _ in range(5):
            skill = [min(l, 0.98) for l in loadings_step(correlation, counts, dependence, [0.0] * n_sources, skill)]
        dependence = (dependence + dependence_of(correlation, seen, skill)) / 2
    return np.array(skill), dependence


def weighted_mean(rows, weights, dependence):
    """(z, effective sources) of one sample; a row is None where its source is absent."""
    present = [s for s, row in enumerate(rows) if row is not None]
    here = [[dependence[s][t] for t in present] for s in present]
    independence = dict(zip(present, distinctness_of(here), strict=True))
    shares = {s: weights[s] * independence[s] for s in present}
    if sum(shares.values()) <= 0:
        shares, counted = independence, present
    else:
        counted = [s for s in present if weights[s] > 0]
    total = sum(shares.values())
    z = [sum(shares[s] * rows[s][l] for s in present) / total for l in range(len(rows[present[0]]))]
    return z, sum(independence[s] for s in counted)
