"""What depends on how a sample lies in cache, in the order that lets inner loops run over many neighbouring numbers.

- by source, for many classes: row s holds source s's vector, padded with classes of score zero;
- by class, for few classes: row l holds all sources' scores of class l, padded with absent sources.

The functions come in pairs.  Their second argument, ``by_class``, is True or None, and only the function that it asks
for is compiled.
"""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import inner_by_layout

#: Laid out by source, sources are padded to a multiple of this, and taken so many at a time.
SOURCES_AT_ONCE = 4


def _store_by_source(group, by_class, s, flat, start, stride, size, n_classes):
    scores, totals = group.scores, group.totals
    zero = scores.dtype.type(0)
    for i in range(size):
        if group.present[i, s] != 0:
            at = np.uintp(start + i * stride)
            total = negative = zero
            for l in range(n_classes):
                x = flat[at + np.uintp(l)]
                scores[i, s, l] = x
                totals[i, l] += x
                total += x
                negative += x if x < zero else zero
            group.sums[i, s] = total
            group.below[i, s] = negative


def _store_by_class(group, by_class, s, flat, start, stride, size, n_classes):
    scores = group.scores
    for i in range(size):
        at = np.uintp(start + i * stride)
        for l in range(n_classes):
            scores[i, l, s] = flat[at + np.uintp(l)]


def _clear_by_source(scores, by_class, s):
    for l in range(scores.shape[1]):
        scores[s, l] = 0


def _clear_by_class(scores, by_class, s):
    for l in range(scores.shape[0]):
        scores[l, s] = 0


def _sum_by_source(scores, by_class, totals, sums, below):
    pass  # added up while they are stored


def _sum_by_class(scores, by_class, totals, sums, below):
    zero = scores.dtype.type(0)
    for s in range(scores.shape[1]):
        sums[s] = zero
        below[s] = zero
    for l in range(scores.shape[0]):
        total = zero
        for s in range(scores.shape[1]):
            x = scores[l, s]
            total += x
            sums[s] += x
            below[s] += x if x < zero else zero
        totals[l] = total


def _mean_by_source(scores, by_class, l, count):
    total = 0.0
    for s in range(scores.shape[0]):
        total += scores[s, l]
    return total / count


def _mean_by_class(scores, by_class, l, count):
    total = 0.0
    for s in range(scores.shape[1]):
        total += scores[l, s]
    return total / count


def _scale_by_source(scores, by_class, s, factor):
    for l in range(scores.shape[1]):
        scores[s, l] *= factor


def _scale_by_class(scores, by_class, s, factor):
    for l in range(scores.shape[0]):
        scores[l, s] *= factor


def _distances_by_source(scores, by_class, z, distance):
    for s in range(scores.shape[0]):
        squares = z.dtype.type(0)
        for l in range(scores.shape[1]):
            difference = z[l] - scores[s, l]
            squares += difference * difference
        distance[s] = squares


def _distances_by_class(scores, by_class, z, distance):
    for s in range(scores.shape[1]):
        distance[s] = 0
    for l in range(scores.shape[0]):
        level = z[l]
        for s in range(scores.shape[1]):
            difference = level - scores[l, s]
            distance[s] += difference * difference


def _weighted_sum_by_source(scores, by_class, weight, scale, out):
    for l in range(out.shape[0]):
        out[l] = 0
    for s in range(0, scores.shape[0], SOURCES_AT_ONCE):
        # Four sources at a time: a quarter of the traffic to and from ``out``.
        w0, w1, w2, w3 = weight[s] * scale, weight[s + 1] * scale, weight[s + 2] * scale, weight[s + 3] * scale
        for l in range(scores.shape[1]):
            out[l] += w0 * scores[s, l] + w1 * scores[s + 1, l] + w2 * scores[s + 2, l] + w3 * scores[s + 3, l]


def _weighted_sum_by_class(scores, by_class, weight, scale, out):
    for l in range(scores.shape[0]):
        score = weight.dtype.type(0)
        for s in range(scores.shape[1]):
            score += weight[s] * scores[l, s]
        out[l] = score * scale


#: ``store_source(group, by_class, s, flat, start, stride, size, n_classes)``: read source s's vectors for ``size``
#: samples, the first of which begins at ``flat[start]``.  By source, those that are absent are left out, and the others
#: also added to the totals, and their scores and negative scores summed.
#: Indices into ``flat`` are unsigned: signed ones could be negative for all the compiler knows, and would be checked.
store_source = inner_by_layout(_store_by_source, _store_by_class)
#: ``clear_source(scores, by_class, s)``: set source s's vector to 0.
clear_source = inner_by_layout(_clear_by_source, _clear_by_class)
#: ``sum_sample(scores, by_class, totals, sums, below)``: by class, what ``store_source`` adds up by source.
sum_sample = inner_by_layout(_sum_by_source, _sum_by_class)
#: ``exact_mean(scores, by_class, l, count)``: mean score of class l, summed in float64 in the order of the sources.
exact_mean = inner_by_layout(_mean_by_source, _mean_by_class, exact=True)
#: ``scale_source(scores, by_class, s, factor)``: multiply source s's vector.
scale_source = inner_by_layout(_scale_by_source, _scale_by_class)
#: ``squared_distances(scores, by_class, z, distance)``: ``distance[s] = |z - z_s|^2``.
squared_distances = inner_by_layout(_distances_by_source, _distances_by_class)
#: ``weighted_sum(scores, by_class, weight, scale, out)``: ``out = scale * sum_s weight[s] z_s``.
weighted_sum = inner_by_layout(_weighted_sum_by_source, _weighted_sum_by_class)
