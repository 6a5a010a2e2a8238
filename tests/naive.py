"""Plain-loop twins of the compiled kernels, written from the formulas and nothing else.

Slow and obvious on purpose: every kernel is compared with its twin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

DEFAULT_TOL = math.exp(-8)

# --- truth discovery -------------------------------------------------------------------------------------------------


def softmax(scores):
    """exp(x_l) / sum_m exp(x_m)."""
    highest = max(scores)
    exponentials = [math.exp(score - highest) for score in scores]
    return [value / sum(exponentials) for value in exponentials]


def mean_label(sources):
    """Lowest class with the largest mean, sources added in order."""
    best, label = -1.0, -1
    for l in range(len(sources[0])):
        total = 0.0
        for source in sources:
            total += float(source[l])
        if total / len(sources) > best:
            best, label = total / len(sources), l
    return label


def project(z, c, margin=0.0):
    """Nearest point of the simplex with z_c at least ``margin`` above the others: sort them, average the top k."""
    start = z[c] - margin
    others = sorted((z[l] for l in range(len(z)) if l != c), reverse=True)
    level, k = start, 0
    while k < len(others) and others[k] > level:
        k += 1
        level = (start + sum(others[:k])) / (k + 1)
    if k == 0:
        return list(z)
    result = [min(value, level) for value in z]
    result[c] = level + margin
    return result


@dataclass
class SampleTruth:
    """Truth discovery's answer for one sample."""

    z: list[float]
    reliability: list[float]
    hv: float
    label: int
    n_iter: int
    converged: bool
    trace: list[float]


def _distances(z, sources):
    return [sum((a - b) ** 2 for a, b in zip(z, source, strict=True)) for source in sources]


def geometric_variance(distances):
    """HV = sum_s d_s ln(V / d_s), with 0 ln(.) = 0."""
    total = sum(distances)
    return sum(d * (math.log(total) - math.log(d)) for d in distances if d > 0)


def _normalised_reliability(distances):
    total = sum(distances)
    zeros = distances.count(0.0)
    if zeros:
        return [1 / zeros if d == 0 else 0.0 for d in distances]
    weights = [math.log(total) - math.log(d) for d in distances]
    return [w / sum(weights) for w in weights]


def discover_sample(sources, keep_label=True, tol=DEFAULT_TOL, max_iter=20, margin=1e-6):
    """Truth discovery for one sample: ``sources`` is a list of S distributions over L classes."""
    given = [[float(value) for value in source] for source in sources]
    label = mean_label(given)
    sources = [[value / sum(source) for value in source] for source in given]
    z = [sum(column) / len(sources) for column in zip(*sources, strict=True)]
    trace = [geometric_variance(_distances(z, sources))]
    converged = len(sources) <= 2
    n_iter = 0
    while not converged and n_iter < max_iter:
        distances = _distances(z, sources)
        if 0.0 in distances:
            break
        weights = [math.log(sum(distances)) - math.log(d) for d in distances]
        new = [
            sum(w * value for w, value in zip(weights, column, strict=True)) for column in zip(*sources, strict=True)
        ]
        new = [value / sum(weights) for value in new]
        if keep_label:
            new = project(new, label)
        step = sum((a - b) ** 2 for a, b in zip(new, z, strict=True))
        z = new
        n_iter += 1
        trace.append(geometric_variance(_distances(z, sources)))
        converged = step < tol or step == 0
    distances = _distances(z, sources)
    return SampleTruth(
        z=project(z, label, margin) if keep_label else z,
        reliability=_normalised_reliability(distances),
        hv=geometric_variance(distances),
        label=label,
        n_iter=n_iter,
        converged=converged or 0.0 in distances,
        trace=trace + [trace[-1]] * (max_iter + 1 - len(trace)),
    )


def discover_by_numpy(probs, keep_label=True, tol=DEFAULT_TOL, max_iter=20):
    """The loop over samples that a researcher would write, with vector operations inside: the peer for speed."""
    truths, variances = [], []
    for n in range(probs.shape[1]):
        sources = probs[:, n]
        z = sources.mean(axis=0)
        label = z.argmax()
        for _ in range(max_iter):
            distances = ((sources - z) ** 2).sum(axis=1)
            weights = np.log(distances.sum() / distances)
            new = weights @ sources / weights.sum()
            if keep_label and new.argmax() != label:
                new = np.asarray(project(new.tolist(), int(label)))
            step = ((new - z) ** 2).sum()
            z = new
            if step < tol:
                break
        distances = ((sources - z) ** 2).sum(axis=1)
        truths.append(z)
        variances.append((distances * np.log(distances.sum() / distances)).sum())
    return np.asarray(truths), np.asarray(variances)
