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
from veridical._kernels.loading import FINE, allocate_group, check_sample, load_group, renormalise_sample
from veridical._kernels.projection import project_onto_winner

#: What the caller asks for.
Options = namedtuple("Options", "kind skip_missing keep_label tolerance tol max_iter margin by_class group")
#: Where it goes: arrays over all samples; ``trace`` has no rows unless HV after each iteration is wanted.
Outputs = namedtuple("Outputs", "probs reliability hv prediction n_iter converged trace")
#: One sample's working memory.
Scratch = namedtuple("Scratch", "z z_next distance weight")


@kernel
def _allocate_scratch(group, by_class):
    first = group.scores[0]
    n_classes, n_sources = first.shape if by_class else first.T.shape
    return Scratch(
        np.zeros(n_classes, first.dtype),
        np.zeros(n_classes, first.dtype),
        np.zeros(n_sources, first.dtype),
        np.zeros(n_sources, first.dtype),
    )


@exact_kernel
def _winner(totals, count):
    """Label of the mean, the lowest on ties; the mean is rounded before comparing, as a division does."""
    c = 0
    best = totals[0] / count
    for l in range(1, totals.shape[0]):
        score = totals[l] / count
        if score > best:
            best = score
            c = l
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
def _weighted_mean(block, by_class, weight, out):
    """``out = sum_s weight[s] z_s / sum_s weight[s]``."""
    total = weight.dtype.type(0)
    for s in range(weight.shape[0]):
        total += weight[s]
    if by_class:
        for l in range(block.shape[0]):
            score = weight.dtype.type(0)
            for s in range(block.shape[1]):
                score += weight[s] * block[l, s]
            out[l] = score / total
    else:
        out[:] = 0
        for s in range(block.shape[0]):
            share = weight[s] / total
            for l in range(block.shape[1]):
                out[l] += share * block[s, l]


@kernel
def _reliabilities(distance, total, present, weight):
    """``weight[s] = ln(V / d_s)``, as a difference of logarithms (the quotient can overflow), never below 0.

    A source at distance 0 would weigh infinitely much: such sources share all the weight.  Returns how many
    present sources are at distance 0.
    """
    zero = weight.dtype.type(0)
    log_total = np.log(total) if total > zero else zero
    log_into(distance, weight)
    at_zero = zero
    for s in range(present.shape[0]):
        w = (log_total - weight[s]) * present[s]
        weight[s] = w if w > zero else zero
        at_zero += present[s] if distance[s] == zero else zero
    if at_zero > zero:
        for s in range(present.shape[0]):
            weight[s] = present[s] if distance[s] == zero else zero
    return at_zero


@kernel
def _geometric_variance(distance, weight, n_zero, total):
    """``HV = sum_s d_s ln(V / d_s)`` with 0 ln(.) = 0."""
    hv = zero = distance.dtype.type(0)
    if n_zero == 0:
        for s in range(distance.shape[0]):
            hv += distance[s] * weight[s]
    elif total > 0:
        for s in range(distance.shape[0]):
            if distance[s] > 0:
                w = np.log(total) - np.log(distance[s])
                hv += distance[s] * (w if w > zero else zero)
    return hv


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
def _sweep_by_source(scores, z, present, distance, z_next):
    """Distances at ``z`` and the weighted mean they lead to, reading every source once.

    With b_s = ln(r / d_s) for any reference r, the weights are w_s = ln(V / r) + b_s; V is known only after the
    last source, but sum_s b_s z_s and sum_s z_s can be added up on the way.  Taking r from the first source
    keeps ln(V / r) small, so nothing is lost to cancellation.
    """


@kernel
def _discover_sample(scores, by_class, present, totals, c, options, scratch, trace):
    """Truth discovery for one sample in cache.

    Leaves the truth in ``scratch.z``, distances and unnormalised reliabilities beside it; returns HV, the
    number of updates and whether it came to rest.
    """
    z, z_next, distance, weight = scratch
    n_classes = totals.shape[0]
    count = 0
    for s in range(present.shape[0]):
        count += 1 if present[s] != 0 else 0
    for l in range(n_classes):
        z[l] = totals[l] / count
    n_iter = 0
    converged = False
    while True:
        total = _distances(scores, by_class, z, present, distance)
        n_zero = _reliabilities(distance, total, present, weight)
        if trace.shape[0] > 0:
            trace[n_iter:] = _geometric_variance(distance, weight, n_zero, total)
        # Two sources pull equally from both sides; a source that is the truth pulls infinitely.
        converged = converged or n_zero > 0 or count <= 2
        if converged or n_iter == options.max_iter:
            break
        _weighted_mean(scores, by_class, weight, z_next)
        if options.keep_label:
            project_onto_winner(z_next[:n_classes], c, z.dtype.type(0))
        step = _move(z, z_next)
        n_iter += 1
        converged = step < options.tol or step == 0
    return _geometric_variance(distance, weight, n_zero, total), n_iter, converged


@kernel
def _write_sample(outputs, n, scratch, c, keep_label, margin):
    n_sources, n_classes = outputs.reliability.shape[0], outputs.probs.shape[1]
    z, weight = scratch.z[:n_classes], scratch.weight[:n_sources]
    z /= z.sum()
    if keep_label:
        project_onto_winner(z, c, z.dtype.type(margin))
    total = weight.sum()
    for s in range(n_sources):
        outputs.reliability[s, n] = weight[s] / total
    for l in range(n_classes):
        outputs.probs[n, l] = z[l]
    outputs.prediction[n] = c


@kernel
def discover_block(flat, layout, options, outputs, first):
    """Truth discovery for the samples that ``layout`` describes, written to ``outputs`` from row ``first`` on.

    Returns (status, source, sample): ``FINE``, or what is wrong with the first bad sample.
    """
    size = min(options.group, layout.n_samples)
    by_class, n_sources = options.by_class, layout.n_sources
    group = allocate_group(size, n_sources, layout.n_classes, by_class, outputs.probs)
    scratch = _allocate_scratch(group, by_class)
    rows = np.empty((size, layout.n_classes), outputs.probs.dtype)
    for start in range(0, layout.n_samples, size):
        size = min(size, layout.n_samples - start)
        load_group(flat, layout, start, options.kind, by_class, group, rows[:size])
        for i in range(size):
            scores, totals, present, sums, below = (
                group.scores[i], group.totals[i], group.present[i], group.sums[i], group.below[i],
            )
            status, s = check_sample(
                present[:n_sources], sums, below, options.tolerance, options.skip_missing
            )
            if status != FINE:
                return status, s, start + i
            c = _winner(totals, present.sum())
            renormalise_sample(scores, by_class, present, sums, totals)
            n = first + start + i
            hv, n_iter, converged = _discover_sample(
                scores, by_class, present, totals, c, options, scratch, outputs.trace[:, n]
            )
            _write_sample(outputs, n, scratch, c, options.keep_label, options.margin)
            outputs.hv[n] = hv
            outputs.n_iter[n] = n_iter
            outputs.converged[n] = converged
    return FINE, 0, 0
