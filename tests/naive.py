"""Plain-loop twins of the compiled kernels, written from the formulas and nothing else.

Slow and obvious on purpose: every kernel is compared with its twin.
"""

from __future__ import annotations

import itertools
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


def as_probabilities(row, kind):
    """What a source says of a sample, or None where a row of NaN says that it is absent."""
    if all(math.isnan(value) for value in row):
        return None
    if kind == "logits":
        return softmax(row)
    return [math.exp(value) for value in row] if kind == "log_probs" else list(row)


def first_fault(rows, tolerance, skip_missing):
    """("fine" | "no distribution" | "absent" | "nobody", source) of a sample; an absent row is None."""
    for s, row in enumerate(rows):
        if row is None:
            if not skip_missing:
                return "absent", s
        elif any(math.isnan(value) or value < 0 for value in row) or abs(sum(row) - 1) > tolerance:
            return "no distribution", s
    return ("nobody", 0) if all(row is None for row in rows) else ("fine", 0)


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


def _reliabilities(distances, influence):
    """a_s ln(V / d_s) with V = sum_s a_s d_s, and 0 where the logarithm is negative; None at distance 0."""
    total = sum(a * d for a, d in zip(influence, distances, strict=True))
    return [
        None if d == 0 else a * max(math.log(total) - math.log(d), 0.0) if a * total > 0 else 0.0
        for a, d in zip(influence, distances, strict=True)
    ]


def geometric_variance(distances, influence=None):
    """HV = sum_s a_s d_s ln(V / d_s), with 0 ln(.) = 0."""
    weights = _reliabilities(distances, influence or [1.0] * len(distances))
    return sum(d * w for d, w in zip(distances, weights, strict=True) if w is not None)


def _normalised_reliability(distances, influence):
    weights = _reliabilities(distances, influence)
    at_zero = [a if d == 0 else 0.0 for a, d in zip(influence, distances, strict=True)]
    if sum(at_zero) > 0:
        weights = at_zero
    weights = [w or 0.0 for w in weights]
    return [w / sum(weights) for w in weights]


def _influence(source_weights):
    """The weights, scaled to two where they sum to less."""
    return [a * max(2 / sum(source_weights), 1.0) for a in map(float, source_weights)]


def discover_sample(sources, keep_label=True, tol=DEFAULT_TOL, max_iter=20, margin=1e-6, source_weights=None):
    """Truth discovery for one sample: ``sources`` is a list of S distributions over L classes."""
    influence = [1.0] * len(sources) if source_weights is None else _influence(source_weights)
    rows = [[float(value) for value in source] for source in sources]
    label = mean_label(rows)
    sources = [[value / sum(source) for value in source] for source in rows]
    z = _weighted_mean(sources, influence)
    if keep_label and source_weights is not None:
        z = project(z, label)
    trace = [geometric_variance(_distances(z, sources), influence)]
    converged = len(sources) <= 2 and source_weights is None
    n_iter = 0

    def at_a_source(distances):
        return any(d == 0 and a > 0 for d, a in zip(distances, influence, strict=True))

    while not converged and n_iter < max_iter:
        distances = _distances(z, sources)
        if at_a_source(distances):
            break
        new = _weighted_mean(sources, [w or 0.0 for w in _reliabilities(distances, influence)])
        if keep_label:
            new = project(new, label)
        step = sum((a - b) ** 2 for a, b in zip(new, z, strict=True))
        z = new
        n_iter += 1
        trace.append(geometric_variance(_distances(z, sources), influence))
        converged = step < tol or step == 0
    distances = _distances(z, sources)
    return SampleTruth(
        z=project(z, label, margin) if keep_label else z,
        reliability=_normalised_reliability(distances, influence),
        hv=geometric_variance(distances, influence),
        label=label,
        n_iter=n_iter,
        converged=converged or at_a_source(distances),
        trace=trace + [trace[-1]] * (max_iter + 1 - len(trace)),
    )


def _weighted_mean(sources, weights):
    columns = zip(*sources, strict=True)
    return [sum(w * value for w, value in zip(weights, column, strict=True)) / sum(weights) for column in columns]


def project_by_sorting(z, c, margin=0.0):
    """:func:`project` with vector operations: cumulative averages of the sorted others."""
    start = z[c] - margin
    others = np.sort(np.delete(z, c))[::-1]
    levels = (start + np.concatenate([[0.0], np.cumsum(others)])) / np.arange(1, z.size + 1)
    k = np.flatnonzero(levels >= np.append(others, -np.inf))[0]
    if k == 0:
        return z
    result = np.minimum(z, levels[k])
    result[c] = levels[k] + margin
    return result


def discover_by_numpy(probs, keep_label=True, tol=DEFAULT_TOL, max_iter=20, margin=1e-6):
    """:func:`discover_sample` with vector operations inside, sample after sample: what a researcher would write.

    The peer for speed; assumes that no source equals the truth.
    """
    truths, reliabilities, variances = [], [], []
    for n in range(probs.shape[1]):
        sources = probs[:, n].astype(np.float64)
        sources /= sources.sum(axis=1, keepdims=True)
        z = sources.mean(axis=0)
        label = z.argmax()
        for _ in range(max_iter):
            distances = ((sources - z) ** 2).sum(axis=1)
            weights = np.log(distances.sum()) - np.log(distances)
            new = (weights[:, None] * sources).sum(axis=0) / weights.sum()
            if keep_label:
                new = project_by_sorting(new, label)
            step = ((new - z) ** 2).sum()
            z = new
            if step < tol:
                break
        distances = ((sources - z) ** 2).sum(axis=1)
        weights = np.log(distances.sum()) - np.log(distances)
        truths.append(project_by_sorting(z, label, margin) if keep_label else z)
        reliabilities.append(weights / weights.sum())
        variances.append((distances * weights).sum())
    return np.asarray(truths), np.asarray(reliabilities).T, np.asarray(variances)


# --- metrics ---------------------------------------------------------------------------------------------------------


def equal_mass_edges(confidence, n_bins):
    """0, the sorted confidences that close all bins but the last, 1."""
    ordered = sorted(confidence)
    n = len(ordered)
    if n >= 2 * n_bins:
        inner = [ordered[min((i + 1) * (n // n_bins), n - 1)] for i in range(n_bins - 1)]
    else:
        n_bins = min(n_bins, n)
        inner = [ordered[round((i + 1) * n / n_bins) - 1] for i in range(n_bins - 1)]
    return [0.0, *inner, 1.0]


def bin_of(w, edges):
    """First bin whose upper edge is not below w; the last for what lies beyond."""
    for b in range(len(edges) - 1):
        if w <= edges[b + 1]:
            return b
    return len(edges) - 2


def bin_sums(confidence, correct, weight, edges):
    """Sums of weight, weighted confidence and weighted correct per bin."""
    sums = np.zeros((3, len(edges) - 1))
    for w, c, a in zip(confidence, correct, weight, strict=True):
        b = bin_of(w, edges)
        sums[0, b] += a
        sums[1, b] += a * w
        sums[2, b] += a * c
    return sums


def ece(confidence, correct, edges, norm=1):
    """Mean, root mean square or maximum over bins of |mean confidence - accuracy|."""
    weight, total, right = bin_sums(confidence, correct, np.ones(len(confidence)), edges)
    gaps = [(n, abs(w / n - c / n)) for n, w, c in zip(weight, total, right, strict=True) if n > 0]
    if norm == "max":
        return max(gap for _, gap in gaps)
    return (sum(n * gap**norm for n, gap in gaps) / len(confidence)) ** (1 / norm)


def debiased_ece(confidence, correct, edges):
    """Squared gaps less the variance of each bin's accuracy."""
    total = 0.0
    for n, w, c in bin_sums(confidence, correct, np.ones(len(confidence)), edges).T:
        if n >= 2:
            accuracy = c / n
            total += n * ((w / n - accuracy) ** 2 - accuracy * (1 - accuracy) / (n - 1))
    return math.sqrt(max(total / len(confidence), 0.0))


def ks_error(confidence, correct):
    """Largest |sum of w - c over all samples with confidence up to x|, over x."""
    largest = 0.0
    for x in set(confidence):
        gap = sum(w - c for w, c in zip(confidence, correct, strict=True) if w <= x)
        largest = max(largest, abs(gap))
    return largest / len(confidence)


def triweight(x, w, half_width):
    """35/32 (1 - u^2)^3 with u = (x - w) / half_width, and all mirror images of w at 0 and 1 that reach x."""
    total = 0.0
    reach = math.ceil(half_width / 2) + 1
    for m in range(-reach, reach + 1):
        for image in (2 * m + w, 2 * m - w):
            u = (x - image) / half_width
            if abs(u) < 1:
                total += 35 / 32 * (1 - u * u) ** 3 / half_width
    return total


def ece_kde(confidence, correct, bandwidth, n_cells):
    """Trapezoid rule for the integral of |x P(x) - A(x)|."""
    total = 0.0
    for j in range(n_cells + 1):
        x = j / n_cells
        gap = sum((x - c) * triweight(x, w, 3 * bandwidth) for w, c in zip(confidence, correct, strict=True))
        total += abs(gap) / len(confidence) * (0.5 if j in (0, n_cells) else 1.0)
    return total / n_cells


def kde_bandwidth(confidence, correct):
    """Population standard deviation of the right samples' confidences, times (2N)^(-1/5)."""
    right = [w for w, c in zip(confidence, correct, strict=True) if c]
    mean = sum(right) / len(right)
    return math.sqrt(sum((w - mean) ** 2 for w in right) / len(right)) * (2 * len(confidence)) ** -0.2


def smooth_ece_at(confidence, correct, sigma, n_cells):
    """Trapezoid rule for the integral of |mean of (w - c) times the mirrored Gaussian|."""
    total = 0.0
    for j in range(n_cells + 1):
        x = j / n_cells
        gap = 0.0
        for w, c in zip(confidence, correct, strict=True):
            for m in range(-6, 7):
                for image in (2 * m + w, 2 * m - w):
                    gap += (w - c) * math.exp(-0.5 * ((x - image) / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
        total += abs(gap) / len(confidence) * (0.5 if j in (0, n_cells) else 1.0)
    return total / n_cells


def spread_onto_grid(confidence, correct, weight, origin, per_step, n_nodes):
    """Each sample's weight shared between its two neighbours."""
    masses = np.zeros((2, n_nodes))
    for w, c, a in zip(confidence, correct, weight, strict=True):
        position = (w - origin) * per_step
        j = min(math.floor(position), n_nodes - 2)
        for row in (0, 1) if c else (0,):
            masses[row, j] += a * (1 - (position - j))
            masses[row, j + 1] += a * (position - j)
    return masses


def cell_sums(confidence, correct, n_cells, bits):
    """Samples, right ones, and sums of confidences as multiples of 2^-bits above the cell's lower edge."""
    edges = np.linspace(0, 1, n_cells + 1)
    sums = [[0] * n_cells for _ in range(4)]
    for w, c in zip(confidence, correct, strict=True):
        j = bin_of(w, edges)
        offset = round(float(w) * 2**bits) - round(float(edges[j]) * 2**bits)
        for row, amount in enumerate((1, int(c), offset, offset * int(c))):
            sums[row][j] += amount
    return sums


def absolute_integral(values, n_steps=2000):
    """Midpoint rule for the integral of |f|, f linear between the values."""
    total = 0.0
    for p, q in itertools.pairwise(values):
        for k in range(n_steps):
            share = (k + 0.5) / n_steps
            total += abs(p + share * (q - p)) / n_steps
    return total


def count_distribution(confidence):
    """Chance of k right predictions, over all 2^n ways that things can turn out."""
    chances = [0.0] * (len(confidence) + 1)
    for outcome in range(2 ** len(confidence)):
        chance, right = 1.0, 0
        for i, w in enumerate(confidence):
            happened = outcome >> i & 1
            chance *= w if happened else 1 - w
            right += happened
        chances[right] += chance
    return chances


def error_auroc(correct, doubt):
    """Share of (wrong, right) pairs in which the wrong one has the larger doubt; ties count half."""
    total = pairs = 0.0
    for i, wrong in enumerate(doubt):
        for j, right in enumerate(doubt):
            if not correct[i] and correct[j]:
                pairs += 1
                total += 1.0 if wrong > right else 0.5 if wrong == right else 0.0
    return total / pairs


def aurc(correct, doubt):
    """Mean over k of the error rate of the k least doubtful; ties share their group's errors evenly."""
    samples = sorted(zip(doubt, correct, strict=True), key=lambda pair: pair[0])
    rates = {x: [1 - c for s, c in samples if s == x] for x, _ in samples}
    wrong = total = 0.0
    for k, (x, _) in enumerate(samples, start=1):
        wrong += sum(rates[x]) / len(rates[x])
        total += wrong / k
    return total / len(samples)


# --- calibrators -----------------------------------------------------------------------------------------------------


def full_vector(row, c, w, margin):
    """The winner's score replaced by w, the others scaled to what is left, the winner made strict again."""
    others = sum(value for l, value in enumerate(row) if l != c)
    result = [value / others * (1 - w) if others > 0 else (1 - w) / (len(row) - 1) for value in row]
    result[c] = w
    total = sum(result)
    return project([value / total for value in result], c, margin)


def isotonic(scores, targets):
    """Least-squares non-decreasing fit at each distinct score, by the max-min formula.

    The value at x is max over a <= x of min over b >= x of the mean target of scores in [a, b].
    """
    levels = sorted(set(scores))

    def mean(a, b):
        chosen = [t for s, t in zip(scores, targets, strict=True) if a <= s <= b]
        return sum(chosen) / len(chosen)

    return {x: max(min(mean(a, b) for b in levels if b >= x) for a in levels if a <= x) for x in levels}


def temperature_loss(logs, label, inverse, squared):
    """Loss of one sample under softmax(inverse * logs)."""
    q = softmax([inverse * x for x in logs])
    if squared:
        return sum((value - (l == label)) ** 2 for l, value in enumerate(q))
    return -math.log(q[label])


def log_pool(sources, weights):
    """softmax(sum_s a_s ln p_s) of one sample."""
    return softmax(
        [sum(a * math.log(p[l]) for a, p in zip(weights, sources, strict=True)) for l in range(len(sources[0]))]
    )


def mixture_gains(scores, shares):
    """mean_n p_s / sum_t a_t p_t for each source s."""
    gains = [0.0] * len(shares)
    for row in scores:
        mixture = sum(a * p for a, p in zip(shares, row, strict=True))
        for s, p in enumerate(row):
            gains[s] += p / mixture / len(scores)
    return gains
