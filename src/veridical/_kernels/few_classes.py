"""Truth discovery where there are few classes: sixteen samples at a time, one in each lane.

The formulas are those of :mod:`veridical._kernels.discovery`.  With few classes a sample alone has too few numbers
for a vector register; across samples every loop is full.  Samples that came to rest keep their truth until all sixteen
have.
"""

from __future__ import annotations

import numpy as np

from veridical._kernels.arguments import LANES
from veridical._kernels.elementary import log
from veridical._kernels.few_classes_loading import check_lanes, read_samples, renormalise_lanes
from veridical._kernels.jit import exact_inner, inner, kernel
from veridical._kernels.lanes import all_lanes, any_lane, load, select, spread, store
from veridical._kernels.projection import project_lanes

#: Terms of the series of ln(1 + x), x <= 1, beyond which nothing is left of it in float32 and in float64.
_TERMS_32, _TERMS_64 = 7, 17


@inner
def _weighted_mean(memory, weight, out):
    """``out = sum_s weight[s] z_s / sum_s weight[s]``."""
    zero, one = memory.z.dtype.type(0), memory.z.dtype.type(1)
    total = spread(zero)
    for s in range(weight.shape[0]):
        total = total + load(weight, s)
    scale = one / total
    for l in range(out.shape[0]):
        mean = spread(zero)
        for s in range(weight.shape[0]):
            mean = mean + load(weight, s) * load(memory.scores[s], l)
        store(out, l, mean * scale)


@inner
def _labels(memory, count, options):
    """Labels of the mean in ``memory.z``, the lowest on ties, or -1 where the scores are too coarse to tell.

    The mean may be wrong on near-ties: every class that comes close to the top is summed again, in float64 in the order
    of the sources.
    """
    dtype = memory.z.dtype.type
    top, label, n_near = spread(dtype(-1)), spread(np.int32(0)), spread(np.int32(0))
    for l in range(memory.z.shape[0]):
        x = load(memory.z, l)
        label = select(x > top, spread(np.int32(l)), label)
        top = select(x > top, x, top)
    near = top - top * ((count * dtype(4) + dtype(options.near)) * dtype(options.eps))
    for l in range(memory.z.shape[0]):
        n_near = select(load(memory.z, l) >= near, n_near + np.int32(1), n_near)
    several = n_near > np.int32(1)
    if any_lane(several):
        store(memory.label, 0, select(several, spread(np.int32(-1)), label))
        if options.exact_scores:
            store(memory.number, 0, near)
            for i in range(LANES):
                if memory.label[0, i] < 0:
                    memory.label[0, i] = _exact_label(memory, i, memory.number[0, i])
        label = load(memory.label, 0)
    return label


@exact_inner  # in the order of the sources, and divided as the definition says, so that ties are ties
def _exact_label(memory, i, near):
    """The label of lane ``i`` among the classes whose mean is at least ``near``."""
    label, best, count = -1, -1.0, 0.0
    for s in range(memory.present.shape[0]):
        count += memory.present[s, i]
    for l in range(memory.z.shape[0]):
        if memory.z[l, i] >= near:
            score = 0.0
            for s in range(memory.scores.shape[0]):
                score += memory.scores[s, l, i]
            if score / count > best:
                label, best = l, score / count
    return label


@inner
def _distances(memory, tiny):
    """Squared distances of the sources from ``memory.z``, those that are rounding 0; returns V, and the influence of
    present sources at distance 0.
    """
    zero = memory.z.dtype.type(0)
    total = at_zero = spread(zero)
    for s in range(memory.scores.shape[0]):
        scores, distance = memory.scores[s], spread(zero)
        for l in range(scores.shape[0]):
            difference = load(memory.z, l) - load(scores, l)
            distance = distance + difference * difference
        distance = distance * load(memory.present, s)
        distance = select(distance >= tiny, distance, spread(zero))
        influence = load(memory.influence, s)
        total = total + influence * distance
        at_zero = at_zero + select(distance > zero, spread(zero), influence)
        store(memory.distance, s, distance)
    return total, at_zero


@inner
def _precise_log(memory, half):
    """ln(V / d) of the source that is further away than all others together, 0 where there is none.

    V and d are then nearly equal, and the difference of their logarithms would be mostly rounding; the sum of the other
    distances says how nearly.
    """
    dtype = memory.z.dtype.type
    zero, one = dtype(0), dtype(1)
    far = influence_of_far = rest = spread(zero)
    for s in range(memory.distance.shape[0]):
        distance, influence = load(memory.distance, s), load(memory.influence, s)
        is_far = influence * distance > half
        far = select(is_far, distance, far)
        influence_of_far = select(is_far, influence, influence_of_far)
        rest = rest + select(is_far, spread(zero), influence * distance)
    beyond = influence_of_far - one + rest / select(far > zero, far, spread(one))
    beyond = select(beyond > zero, beyond, spread(zero))
    # ln(1 + x) = 2 artanh(x / (2 + x)), by its series where x < 1.
    t = beyond / (beyond + dtype(2))
    q = t * t
    n_terms = _TERMS_32 if memory.z.itemsize == 4 else _TERMS_64
    series = spread(one / dtype(2 * n_terms + 1))
    for k in range(n_terms - 1, -1, -1):
        series = q * series + one / dtype(2 * k + 1)
    return select(beyond < one, t * dtype(2) * series, log(beyond + one))


@inner
def _reliabilities(memory, total, at_zero):
    """``weight[s] = a_s ln(V / d_s)``, and HV.

    A source at distance 0 would weigh infinitely much: such sources share all the weight.
    """
    dtype = memory.z.dtype.type
    zero, one = dtype(0), dtype(1)
    log_total, half = log(select(total > zero, total, spread(one))), total * dtype(0.5)
    some_far = spread(zero) > zero
    for s in range(memory.distance.shape[0]):
        distance, influence = load(memory.distance, s), load(memory.influence, s)
        weight = log_total - log(select(distance > zero, distance, spread(one)))
        weight = select((distance > zero) & (weight > zero), weight, spread(zero))
        some_far = some_far | (influence * distance > half)
        store(memory.weight, s, influence * weight)
    if any_lane(some_far):
        precise = _precise_log(memory, half)
        for s in range(memory.distance.shape[0]):
            distance, influence = load(memory.distance, s), load(memory.influence, s)
            is_far = influence * distance > half
            store(memory.weight, s, select(is_far, influence * precise, load(memory.weight, s)))
    hv = spread(zero)
    for s in range(memory.distance.shape[0]):
        hv = hv + load(memory.distance, s) * load(memory.weight, s)
    if any_lane(at_zero > zero):
        for s in range(memory.distance.shape[0]):
            share = select(load(memory.distance, s) > zero, spread(zero), load(memory.influence, s))
            store(memory.weight, s, select(at_zero > zero, share, load(memory.weight, s)))
    return hv


@inner
def _move(memory, going):
    """``z = target``, clipped at 0 against rounding, in the lanes that are going; returns the squared steps."""
    zero = memory.z.dtype.type(0)
    step = spread(zero)
    for l in range(memory.z.shape[0]):
        z, target = load(memory.z, l), load(memory.target, l)
        target = select(target > zero, target, spread(zero))
        step = step + (target - z) * (target - z)
        store(memory.z, l, select(going, target, z))
    return step


@inner
def _discover(memory, count, label, options, n, size, outputs):
    """Truth discovery from the mean in ``memory.z`` on, which becomes the truth; the rest goes to the outputs."""
    dtype = memory.z.dtype.type
    zero = dtype(0)
    n_iter, resting = spread(np.int32(0)), spread(zero) > zero
    if not options.weighted:
        resting = count <= dtype(2)  # two equal sources pull equally from both sides: the mean stays
    update = 0
    while True:
        total, at_zero = _distances(memory, dtype(options.tiny))
        hv = _reliabilities(memory, total, at_zero)
        store(memory.number, 0, hv)
        for k in range(update, outputs.trace.shape[0]):
            for i in range(size):
                outputs.trace[k, n + i] = memory.number[0, i]
        # A source that is the truth pulls infinitely: the truth stays.
        resting = resting | (at_zero > zero)
        if update == options.max_iter or all_lanes(resting):
            break
        _weighted_mean(memory, memory.weight, memory.target)
        if options.keep_label:
            project_lanes(memory.target, label, zero)
        going = select(resting, spread(zero), spread(dtype(1))) > zero
        step = _move(memory, going)
        n_iter = select(going, n_iter + np.int32(1), n_iter)
        resting = resting | (step < dtype(options.tol)) | (step == zero)
        update += 1
    for i in range(size):
        outputs.hv[n + i] = memory.number[0, i]
    store(memory.label, 0, n_iter)
    for i in range(size):
        outputs.n_iter[n + i] = memory.label[0, i]
    store(memory.label, 0, select(resting, spread(np.int32(1)), spread(np.int32(0))))
    for i in range(size):
        outputs.converged[n + i] = memory.label[0, i] > 0


@inner
def _write_distributions(memory, label, options, n, size, probs):
    """Rows of ``probs`` become ``memory.z``, summing to one, with the labels as strict maxima if labels are kept."""
    zero, one, target = memory.z.dtype.type(0), memory.z.dtype.type(1), memory.target
    total = spread(zero)
    for l in range(target.shape[0]):
        total = total + load(memory.z, l)
    for l in range(target.shape[0]):
        store(target, l, load(memory.z, l) * (one / total))
    if options.keep_label:
        project_lanes(target, label, memory.z.dtype.type(options.margin))
    for i in range(size):
        for l in range(target.shape[0]):
            probs[n + i, l] = target[l, i]


@inner
def _write_reliabilities(memory, n, size, reliability):
    zero, one = memory.z.dtype.type(0), memory.z.dtype.type(1)
    total = spread(zero)
    for s in range(memory.weight.shape[0]):
        total = total + load(memory.weight, s)
    for s in range(memory.weight.shape[0]):
        store(memory.weight, s, load(memory.weight, s) * (one / total))
        for i in range(size):
            reliability[s, n + i] = memory.weight[s, i]


@inner
def _set_influence(memory, source_weights, options):
    """As in :mod:`veridical._kernels.discovery`: the weights of sources that are present, scaled to two at least."""
    dtype = memory.z.dtype.type
    zero, one, two = dtype(0), dtype(1), dtype(2)
    total = spread(zero)
    if options.weighted:
        for s in range(memory.present.shape[0]):
            total = total + load(memory.present, s) * source_weights[s]
    some = total > zero
    scale = select(some & (total < two), two / select(some, total, spread(one)), spread(one))
    for s in range(memory.present.shape[0]):
        present = load(memory.present, s)
        if options.weighted:
            present = select(some, scale * present * source_weights[s], present)
        store(memory.influence, s, present)


@inner
def _decided_labels(memory, count, options, n, size, outputs):
    """Labels that the caller decided, or those of the mean; -1 where neither is known."""
    label = _labels(memory, count, options)
    store(memory.label, 0, label)
    for i in range(size):
        if outputs.prediction[n + i] >= 0:
            memory.label[0, i] = outputs.prediction[n + i]
        outputs.prediction[n + i] = memory.label[0, i]
    label = load(memory.label, 0)
    return select(label < np.int32(0), spread(np.int32(0)), label)


@kernel
def discover_few_classes(flat, layout, options, source_weights, memory, outputs, first):
    """As :func:`veridical._kernels.discovery.discover_block`."""
    for start in range(0, layout.n_samples, LANES):
        size = layout.n_samples - start
        size = size if size < LANES else LANES
        n = first + start
        none_negative = read_samples(flat, layout, start, size, memory)
        valid, inexact, count = check_lanes(memory, layout, options)
        valid = valid & none_negative
        if not all_lanes(valid):
            store(memory.label, 0, select(valid, spread(np.int32(1)), spread(np.int32(0))))
            for i in range(size):
                if memory.label[0, i] == 0:
                    return start + i
        _weighted_mean(memory, memory.present, memory.z)
        label = _decided_labels(memory, count, options, n, size, outputs)
        if any_lane(inexact):
            renormalise_lanes(memory, inexact)
            _weighted_mean(memory, memory.present, memory.z)
        if outputs.mean.shape[0] > 0:
            _write_distributions(memory, label, options, n, size, outputs.mean)
        _set_influence(memory, source_weights, options)
        if options.weighted:
            _weighted_mean(memory, memory.influence, memory.z)
            if options.keep_label:
                project_lanes(memory.z, label, memory.z.dtype.type(0))
        _discover(memory, count, label, options, n, size, outputs)
        _write_distributions(memory, label, options, n, size, outputs.probs)
        _write_reliabilities(memory, n, size, outputs.reliability)
    return -1
