"""Truth discovery for a block of samples (paper, Algorithm 1, with the squared distance).

For one sample, z the truth vector and z_s the sources::

    d_s = |z - z_s|^2,  V = sum_s d_s,  w_s = ln(V / d_s),  z <- sum_s w_s z_s / sum_s w_s

alternating until z stands still.  HV = sum_s d_s w_s is the objective; it never rises.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from veridical._kernels.elementary import log_into
from veridical._kernels.jit import exact_kernel, kernel
from veridical._kernels.loading import (
    FINE,
    SOURCES_AT_ONCE,
    allocate_group,
    check_sample,
    load_group,
    renormalise_sample,
)
from veridical._kernels.projection import project_onto_winner

#: What the caller asks for.
Options = namedtuple("Options", "kind skip_missing keep_label tolerance tol max_iter margin by_class group")
#: Where it goes: arrays over all samples; ``trace`` has no rows unless HV after each iteration is wanted.
Outputs = namedtuple("Outputs", "probs reliability hv prediction n_iter converged trace")
#: Working memory of one sample, and of a group for ``weights``.
Scratch = namedtuple("Scratch", "z z_next distance weights")


@kernel
def _allocate_scratch(group, by_class):
    first = group.scores[0]
    n_classes, n_sources = first.shape if by_class else first.T.shape
    return Scratch(
        np.zeros(n_classes, first.dtype),
        np.zeros(n_classes, first.dtype),
        np.zeros(n_sources, first.dtype),
        np.zeros(group.present.shape, first.dtype),
    )


@kernel
def _sum(values):
    total = values.dtype.type(0)
    for i in range(values.shape[0]):
        total += values[i]
    return total


@exact_kernel
def _exact_mean(scores, by_class, l, count):
    """Mean score of class ``l``, summed in float64 in the order of the sources."""
    total = 0.0
    if by_class:
        for s in range(scores.shape[1]):
            total += scores[l, s]
    else:
        for s in range(scores.shape[0]):
            total += scores[s, l]
    return total / count


@kernel
def _largest(values):
    """The largest of non-negative numbers, compared by their bits: the compiler vectorises that only for integers."""
    if values.itemsize == 4:
        top32 = np.int32(0)
        for bits in values.view(np.int32):
            top32 = max(top32, bits)
        return values.dtype.type(np.int32(top32).view(np.float32))
    top64 = np.int64(0)
    for bits in values.view(np.int64):
        top64 = max(top64, bits)
    return values.dtype.type(np.int64(top64).view(np.float64))


@kernel
def winner_of_mean(scores, by_class, mean, count):
    """Label of the mean, the lowest on ties.

    ``mean`` was summed in whatever order and precision is fast, which may be wrong on near-ties: every class that
    comes close to the top is summed again, exactly as the definition says.
    """
    top = _largest(mean)
    near = top - top * mean.dtype.type(4 * (count + 1) * np.finfo(mean.dtype).eps)
    c, n_near = -1, 0
    for l in range(mean.shape[0]):
        if mean[l] >= near:
            c = l if n_near == 0 else c
            n_near += 1
    if n_near == 1:
        return c
    best = -1.0
    for l in range(mean.shape[0]):
        if mean[l] >= near:
            score = _exact_mean(scores, by_class, l, count)
            if score > best:
                c, best = l, score
    return c


@kernel
def _distances(scores, by_class, z, present, distance):
    """``distance[s] = |z - z_s|^2``, 0 for absent sources and where it is no normal number; returns their sum."""
    total = zero = z.dtype.type(0)
    if by_class:
        distance[:] = 0
        for l in range(scores.shape[0]):
            level = z[l]
            for s in range(scores.shape[1]):
                difference = level - scores[l, s]
                distance[s] += difference * difference
    else:
        for s in range(scores.shape[0]):
            squares = zero
            for l in range(scores.shape[1]):
                difference = z[l] - scores[s, l]
                squares += difference * difference
            distance[s] = squares
    smallest = np.finfo(z.dtype).tiny
    for s in range(present.shape[0]):
        d = distance[s] * present[s]
        d = d if d >= smallest else zero
        distance[s] = d
        total += d
    return total


@kernel
def _weighted_mean(scores, by_class, weight, out):
    """``out = sum_s weight[s] z_s / sum_s weight[s]``."""
    scale = weight.dtype.type(1) / _sum(weight)
    if by_class:
        for l in range(scores.shape[0]):
            score = weight.dtype.type(0)
            for s in range(scores.shape[1]):
                score += weight[s] * scores[l, s]
            out[l] = score * scale
    else:
        out[:] = 0
        for s in range(0, scores.shape[0], SOURCES_AT_ONCE):
            # Four sources at a time: a quarter of the traffic to and from ``out``.
            w0, w1, w2, w3 = weight[s] * scale, weight[s + 1] * scale, weight[s + 2] * scale, weight[s + 3] * scale
            for l in range(scores.shape[1]):
                out[l] += w0 * scores[s, l] + w1 * scores[s + 1, l] + w2 * scores[s + 2, l] + w3 * scores[s + 3, l]


@kernel
def _weight_anew(distance, total, s):
    """``ln(V / d_s)``, precisely.

    Where a source is further away than all others together, V and d_s are nearly equal and the difference of their
    logarithms is mostly rounding; the sum of the other distances says how nearly.
    """
    if distance[s] <= total * distance.dtype.type(0.5):
        return np.log(total) - np.log(distance[s])
    rest = distance.dtype.type(0)
    for other in range(distance.shape[0]):
        rest += distance[other] if other != s else distance.dtype.type(0)
    return np.log1p(rest / distance[s])


@kernel
def _reliabilities(distance, total, present, weight):
    """``weight[s] = ln(V / d_s)``, as a difference of logarithms: the quotient can overflow.

    A source at distance 0 would weigh infinitely much: such sources share all the weight.  Returns how many
    present sources are at distance 0.
    """
    zero = weight.dtype.type(0)
    half = total * weight.dtype.type(0.5)
    log_total = np.log(total) if total > zero else zero
    log_into(distance, weight)
    at_zero = beyond_half = zero
    for s in range(present.shape[0]):
        w = (log_total - weight[s]) * present[s]
        weight[s] = w if w > zero else zero
        at_zero += present[s] if distance[s] == zero else zero
        excess = distance[s] - half
        beyond_half += excess if excess > zero else zero
    if at_zero > zero:
        for s in range(present.shape[0]):
            weight[s] = present[s] if distance[s] == zero else zero
    elif beyond_half > zero:
        for s in range(present.shape[0]):
            if distance[s] > half:
                weight[s] = _weight_anew(distance, total, s)
    return at_zero


@kernel
def _settle(scores, by_class, z, present, distance, weight):
    """Distances and reliabilities at ``z``; returns ``HV = sum_s d_s ln(V / d_s)`` and how many d_s are 0."""
    total = _distances(scores, by_class, z, present, distance)
    n_zero = _reliabilities(distance, total, present, weight)
    hv = zero = z.dtype.type(0)
    for s in range(distance.shape[0]):
        # Where some d_s are 0 the weights went to them, so the logarithm is taken anew; 0 ln(.) = 0.
        w = weight[s]
        if n_zero > 0 and distance[s] > zero:
            w = _weight_anew(distance, total, s)
        hv += distance[s] * w
    return hv, n_zero


@kernel
def _move(z, z_next):
    """``z = z_next``, clipped at 0 against rounding; returns the squared step."""
    step = zero = z.dtype.type(0)
    for l in range(z.shape[0]):
        target = z_next[l] if z_next[l] > zero else zero
        difference = target - z[l]
        step += difference * difference
        z[l] = target
    return step


@kernel
def _discover_sample(scores, by_class, present, c, options, scratch, weight, trace):
    """Truth discovery for one sample in cache, from the mean in ``scratch.z`` on.

    Leaves the truth in ``scratch.z`` and the reliabilities, not yet normalised, in ``weight``; returns HV, the
    number of updates and whether it came to rest.
    """
    z, z_next, distance = scratch.z, scratch.z_next, scratch.distance
    n_iter = 0
    # Two sources pull equally from both sides: the mean stays.
    converged = _sum(present) <= 2
    while True:
        hv, n_zero = _settle(scores, by_class, z, present, distance, weight)
        if trace.shape[0] > 0:
            trace[n_iter:] = hv
        # A source that is the truth pulls infinitely: the truth stays.
        converged = converged or n_zero > 0
        if converged or n_iter == options.max_iter:
            return hv, n_iter, converged
        _weighted_mean(scores, by_class, weight, z_next)
        if options.keep_label:
            project_onto_winner(z_next, c, z.dtype.type(0))
        step = _move(z, z_next)
        n_iter += 1
        converged = step < options.tol or step == 0


@kernel
def _write_truth(z, c, keep_label, margin, probs):
    """``probs`` becomes ``z``, summing to one, with ``c`` as its strict maximum if labels are kept."""
    scale = z.dtype.type(1) / _sum(z)
    for l in range(probs.shape[0]):
        probs[l] = z[l] * scale
    if keep_label:
        project_onto_winner(probs, c, z.dtype.type(margin))


@kernel
def _write_reliabilities(weights, size, reliability, first):
    """Normalised weights of a group of samples, source by source: in memory a source's samples lie together."""
    for i in range(size):
        scale = weights.dtype.type(1) / _sum(weights[i])
        for s in range(weights.shape[1]):
            weights[i, s] *= scale
    for s in range(reliability.shape[0]):
        for i in range(size):
            reliability[s, first + i] = weights[i, s]


@kernel
def _discover_loaded(group, i, n, layout, options, scratch, outputs):
    """Truth discovery of sample ``i`` of a loaded group, written to row ``n``; returns (status, source)."""
    scores, present, sums, by_class = group.scores[i], group.present[i], group.sums[i], options.by_class
    status, s, exact = check_sample(
        present, sums, group.below[i], layout.n_sources, options.tolerance, options.skip_missing
    )
    if status != FINE:
        return status, s
    count = _sum(present)
    for l in range(scratch.z.shape[0]):
        scratch.z[l] = group.totals[i, l] / count
    c = winner_of_mean(scores, by_class, scratch.z[: layout.n_classes], count)
    if not exact:
        renormalise_sample(scores, by_class, present, sums)
        _weighted_mean(scores, by_class, present, scratch.z)
    outputs.hv[n], outputs.n_iter[n], outputs.converged[n] = _discover_sample(
        scores, by_class, present, c, options, scratch, scratch.weights[i], outputs.trace[:, n]
    )
    outputs.prediction[n] = c
    _write_truth(scratch.z, c, options.keep_label, options.margin, outputs.probs[n])
    return FINE, 0


@kernel
def discover_block(flat, layout, options, outputs, first):
    """Truth discovery for the samples that ``layout`` describes, written to ``outputs`` from row ``first`` on.

    Returns (status, source, sample): ``FINE``, or what is wrong with the first bad sample.
    """
    size = min(options.group, layout.n_samples)
    group = allocate_group(size, layout.n_sources, layout.n_classes, options.by_class, outputs.probs)
    scratch = _allocate_scratch(group, options.by_class)
    rows = np.empty((size, layout.n_classes), outputs.probs.dtype)
    for start in range(0, layout.n_samples, size):
        size = min(size, layout.n_samples - start)
        load_group(flat, layout, start, options.kind, options.by_class, group, rows[:size])
        for i in range(size):
            status, s = _discover_loaded(group, i, first + start + i, layout, options, scratch, outputs)
            if status != FINE:
                return status, s, start + i
        _write_reliabilities(scratch.weights, size, outputs.reliability, first + start)
    return FINE, 0, 0
