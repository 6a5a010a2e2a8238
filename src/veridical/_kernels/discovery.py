"""Truth discovery for a block of samples with many classes (paper, Algorithm 1, with the squared distance).

For one sample, z the truth vector and z_s the sources::

    d_s = |z - z_s|^2,  V = sum_s d_s,  w_s = ln(V / d_s),  z <- sum_s w_s z_s / sum_s w_s

alternating until z stands still.  HV = sum_s d_s w_s is the objective; it never rises.  A source of weight a_s counts
as a_s sources::

    V = sum_s a_s d_s,  w_s = a_s max(ln(V / d_s), 0)
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from veridical._kernels.bits import float_of
from veridical._kernels.elementary import log_into
from veridical._kernels.jit import exact_inner, inner, kernel
from veridical._kernels.loading import SOURCES_AT_ONCE, check_sample, load_group, padded_shape, renormalise_sample
from veridical._kernels.projection import project_onto_winner

#: Working memory of one sample, and of a group for ``weights``; ``z_bits`` is ``z`` seen as integers, ``influence``
#: holds the weights of the sources that are present.
Scratch = namedtuple("Scratch", "z z_bits z_next distance influence weights")


def allocate_scratch(size, n_sources, n_classes, dtype):
    """Working memory for groups of ``size`` samples."""
    sources, classes = padded_shape(n_sources, n_classes)
    z = np.zeros(classes, dtype)
    return Scratch(
        z=z,
        z_bits=z.view(np.int32 if z.itemsize == 4 else np.int64),
        z_next=np.zeros(classes, dtype),
        distance=np.zeros(sources, dtype),
        influence=np.zeros(sources, dtype),
        weights=np.zeros((size, sources), dtype),
    )


@inner
def _sum(values):
    total = values.dtype.type(0)
    for i in range(values.shape[0]):
        total += values[i]
    return total


@inner
def _weighted_mean(scores, weight, out):
    """``out = sum_s weight[s] z_s / sum_s weight[s]``."""
    scale = weight.dtype.type(1) / _sum(weight)
    for l in range(out.shape[0]):
        out[l] = 0
    for s in range(0, scores.shape[0], SOURCES_AT_ONCE):
        # Four sources at a time: a quarter of the traffic to and from ``out``.
        w0, w1, w2, w3 = weight[s] * scale, weight[s + 1] * scale, weight[s + 2] * scale, weight[s + 3] * scale
        for l in range(scores.shape[1]):
            out[l] += w0 * scores[s, l] + w1 * scores[s + 1, l] + w2 * scores[s + 2, l] + w3 * scores[s + 3, l]


@inner
def _squared_distances(scores, z, distance):
    """``distance[s] = |z - z_s|^2``."""
    for s in range(scores.shape[0]):
        squares = z.dtype.type(0)
        for l in range(scores.shape[1]):
            difference = z[l] - scores[s, l]
            squares += difference * difference
        distance[s] = squares


@exact_inner
def _exact_mean(scores, l, count):
    """The mean score of class l, summed in float64 in the order of the sources."""
    total = 0.0
    for s in range(scores.shape[0]):
        total += scores[s, l]
    return total / count


@inner
def _largest(bits):
    """The largest of non-negative numbers, given and returned as their bits: integers are compared in vectors."""
    top = bits[0]
    for i in range(bits.shape[0]):
        top = bits[i] if bits[i] > top else top
    return top


@inner
def winner_of_mean(scores, mean, mean_bits, count, options):
    """Label of the mean, the lowest on ties, or -1 where the scores in cache are too coarse to tell.

    ``mean`` was summed in whatever order and precision is fast, which may be wrong on near-ties: every class that
    comes close to the top is summed again, exactly as the definition says.
    """
    top = float_of(_largest(mean_bits))
    near = top - top * mean.dtype.type((4 * count + options.near) * options.eps)
    c, n_near = -1, 0
    for l in range(mean.shape[0]):
        if mean[l] >= near:
            c = l if n_near == 0 else c
            n_near += 1
    if n_near == 1:
        return c
    if not options.exact_scores:
        return -1
    best = -1.0
    for l in range(mean.shape[0]):
        if mean[l] >= near:
            score = _exact_mean(scores, l, count)
            if score > best:
                c, best = l, score
    return c


@inner
def _keep_present(distance, present, influence, tiny):
    """Set distances of absent sources, and those that are rounding, to 0; returns V."""
    total = zero = distance.dtype.type(0)
    for s in range(present.shape[0]):
        d = distance[s] * present[s]
        d = d if d >= tiny else zero
        distance[s] = d
        total += influence[s] * d
    return total


@inner
def _precise_log(distance, influence, total, s):
    """``max(ln(V / d_s), 0)``, precisely.

    Where a source is further away than all others together, V and d_s are nearly equal and the difference of their
    logarithms is mostly rounding; the sum of the other distances says how nearly.
    """
    zero, one = distance.dtype.type(0), distance.dtype.type(1)
    if influence[s] * distance[s] <= total * distance.dtype.type(0.5):
        difference = math.log(total) - math.log(distance[s])
        return difference if difference > zero else zero
    rest = zero
    for other in range(distance.shape[0]):
        rest += influence[other] * distance[other] if other != s else zero
    beyond = (influence[s] - one) + rest / distance[s]
    return math.log1p(beyond) if beyond > zero else zero


@inner
def _reliabilities(distance, total, influence, weight):
    """``weight[s] = a_s ln(V / d_s)``, as a difference of logarithms: the quotient can overflow.

    A source at distance 0 would weigh infinitely much: such sources share all the weight.  Returns the influence of
    present sources at distance 0.
    """
    zero = weight.dtype.type(0)
    half = total * weight.dtype.type(0.5)
    log_total = math.log(total) if total > zero else zero
    log_into(distance, weight)
    at_zero = beyond_half = zero
    for s in range(influence.shape[0]):
        w = (log_total - weight[s]) * influence[s]
        weight[s] = w if w > zero else zero
        at_zero += influence[s] if distance[s] == zero else zero
        excess = influence[s] * distance[s] - half
        beyond_half += excess if excess > zero else zero
    if at_zero > zero:
        for s in range(influence.shape[0]):
            weight[s] = influence[s] if distance[s] == zero else zero
    elif beyond_half > zero:
        for s in range(influence.shape[0]):
            if influence[s] * distance[s] > half:
                weight[s] = influence[s] * _precise_log(distance, influence, total, s)
    return at_zero


@inner
def _geometric_variance(distance, total, influence, weight, at_zero):
    """``HV = sum_s a_s d_s ln(V / d_s)``, with 0 ln(.) = 0."""
    hv = zero = distance.dtype.type(0)
    for s in range(distance.shape[0]):
        # Where some d_s are 0 the weights went to them, so the logarithm of the others is taken again.
        w = weight[s]
        if at_zero > zero and influence[s] * distance[s] > zero:
            w = influence[s] * _precise_log(distance, influence, total, s)
        hv += distance[s] * w
    return hv


@inner
def _set_influence(present, source_weights, weighted, influence):
    """``influence[s]``: the weight of a source that is present; if all of those weigh 0, they count as one each.

    Weights that sum to less than two are scaled to two, the fewest sources that can differ: ln(V / d_s) would otherwise
    be negative for all.
    """
    for s in range(present.shape[0]):
        influence[s] = present[s]
    if weighted:
        zero, two = influence.dtype.type(0), influence.dtype.type(2)
        total = zero
        for s in range(source_weights.shape[0]):
            total += present[s] * source_weights[s]
        if total > zero:
            scale = two / total if total < two else influence.dtype.type(1)
            for s in range(source_weights.shape[0]):
                influence[s] = scale * present[s] * source_weights[s]


@inner
def _move(z, z_next):
    """``z = z_next``, clipped at 0 against rounding; returns the squared step."""
    step = zero = z.dtype.type(0)
    for l in range(z.shape[0]):
        target = z_next[l] if z_next[l] > zero else zero
        difference = target - z[l]
        step += difference * difference
        z[l] = target
    return step


@inner
def discover_sample(scores, present, c, options, scratch, weight, n, outputs):
    """Truth discovery for one sample in cache, from the mean in ``scratch.z`` on.

    Leaves the truth in ``scratch.z`` and the reliabilities, not yet normalised, in ``weight``; HV, the number of
    updates and whether it converged go to row ``n`` of the outputs.
    """
    z, z_next, distance, influence = scratch.z, scratch.z_next, scratch.distance, scratch.influence
    n_iter = 0
    # Two equal sources pull equally from both sides: the mean stays.
    converged = _sum(present) <= 2 and not options.weighted
    while True:
        _squared_distances(scores, z, distance)
        total = _keep_present(distance, present, influence, options.tiny)
        at_zero = _reliabilities(distance, total, influence, weight)
        hv = _geometric_variance(distance, total, influence, weight, at_zero)
        for k in range(n_iter, outputs.trace.shape[0]):
            outputs.trace[k, n] = hv
        # A source that is the truth pulls infinitely: the truth stays.
        converged = converged or at_zero > 0
        if converged or n_iter == options.max_iter:
            break
        _weighted_mean(scores, weight, z_next)
        if options.keep_label:
            project_onto_winner(z_next, c, z.dtype.type(0))
        step = _move(z, z_next)
        n_iter += 1
        converged = step < options.tol or step == 0
    outputs.hv[n], outputs.n_iter[n], outputs.converged[n] = hv, n_iter, converged


@inner
def _write_distribution(z, c, options, probs):
    """``probs`` becomes ``z``, summing to one, with ``c`` as its strict maximum if labels are kept."""
    scale = z.dtype.type(1) / _sum(z)
    for l in range(probs.shape[0]):
        probs[l] = z[l] * scale
    if options.keep_label:
        project_onto_winner(probs, c, z.dtype.type(options.margin))


@inner
def _write_reliabilities(weights, size, reliability, first):
    """Normalised weights of a group of samples, source by source: in memory a source's samples lie together."""
    for i in range(size):
        scale = weights.dtype.type(1) / _sum(weights[i])
        for s in range(weights.shape[1]):
            weights[i, s] *= scale
    for s in range(reliability.shape[0]):
        for i in range(size):
            reliability[s, first + i] = weights[i, s]


@inner
def _discover_loaded(group, i, n, layout, options, source_weights, scratch, outputs):
    """Truth discovery of sample ``i`` of a loaded group, written to row ``n``; returns whether the sample is valid."""
    scores, present, sums = group.scores[i], group.present[i], group.sums[i]
    valid, exact = check_sample(present, sums, group.below[i], layout.n_sources, options)
    if not valid:
        return False
    count = _sum(present)
    for l in range(scratch.z.shape[0]):
        scratch.z[l] = group.totals[i, l] / count
    c = outputs.prediction[n]
    if c < 0:
        c = winner_of_mean(scores, scratch.z, scratch.z_bits, count, options)
    outputs.prediction[n] = c
    if not exact:
        renormalise_sample(scores, present, sums)
        _weighted_mean(scores, present, scratch.z)
    if outputs.mean.shape[0] > 0 and c >= 0:
        _write_distribution(scratch.z, c, options, outputs.mean[n])
    _set_influence(present, source_weights, options.weighted, scratch.influence)
    if options.weighted:
        _weighted_mean(scores, scratch.influence, scratch.z)
        if options.keep_label and c >= 0:
            project_onto_winner(scratch.z, c, scratch.z.dtype.type(0))
    if c >= 0:
        discover_sample(scores, present, c, options, scratch, scratch.weights[i], n, outputs)
        _write_distribution(scratch.z, c, options, outputs.probs[n])
    return True


@kernel
def discover_block(flat, layout, options, source_weights, group, scratch, outputs, first):
    """Truth discovery for the samples that ``layout`` describes, written to ``outputs`` from row ``first`` on.

    Returns the first sample that is not valid, or -1.  A sample whose label the scores in cache cannot decide keeps
    the prediction -1 and has no result.
    """
    for start in range(0, layout.n_samples, options.group):
        size = layout.n_samples - start
        size = size if size < options.group else options.group
        load_group(flat, layout, start, size, group)
        for i in range(size):
            n = first + start + i
            if not _discover_loaded(group, i, n, layout, options, source_weights, scratch, outputs):
                return start + i
        _write_reliabilities(scratch.weights, size, outputs.reliability, first + start)
    return -1
