"""Votes of many sources on many items, sorted by item and source: sums over pairs of sources, and shares."""

from __future__ import annotations

import numpy as np

from veridical._kernels.jit import kernel


@kernel
def add_pairs(starts, sources, firsts, labels, values, means, counts, products, squares):
    """Add, over the items that two sources have voted on, what the consensus needs of their votes p.

    The votes on item n lie from ``starts[n]`` to ``starts[n + 1]``, the labels and values of vote i from
    ``firsts[i]`` to ``firsts[i + 1]``.  With m the means (S, L): ``products[s, t]`` for t <= s is the sum of
    p_s . p_t - p_s . m_t - m_s . p_t, ``squares[s, t]`` that of p_s . p_s - 2 p_s . m_s.
    """
    vote = np.zeros(means.shape[1])
    for n in range(starts.shape[0] - 1):
        for i in range(starts[n], starts[n + 1]):
            s = sources[i]
            square = 0.0
            for e in range(firsts[i], firsts[i + 1]):
                vote[labels[e]] = values[e]
                square += values[e] * (values[e] - 2.0 * means[s, labels[e]])
            for j in range(starts[n], starts[n + 1]):
                t = sources[j]
                counts[s, t] += 1.0
                squares[s, t] += square
                if t > s:
                    continue
                product = 0.0
                for e in range(firsts[j], firsts[j + 1]):
                    product += values[e] * (vote[labels[e]] - means[s, labels[e]])
                for e in range(firsts[i], firsts[i + 1]):
                    product -= values[e] * means[t, labels[e]]
                products[s, t] += product
            for e in range(firsts[i], firsts[i + 1]):
                vote[labels[e]] = 0.0


@kernel
def _count_distinct(sources, dependence, copies, single, distinctness):
    """a_s = c_s / sum_t c_t rho_st, with c_s = 1 / k for each of k exact copies among the ``sources``."""
    for i in range(sources.shape[0]):
        n_copies = 0.0
        for j in range(sources.shape[0]):
            n_copies += 1.0 if dependence[sources[i], sources[j]] > copies else 0.0
        single[i] = 1.0 / n_copies
    for i in range(sources.shape[0]):
        total = 0.0
        for j in range(sources.shape[0]):
            total += dependence[sources[i], sources[j]] * single[j]
        distinctness[i] = single[i] / total


@kernel
def share_votes(starts, sources, weights, dependence, copies, items, shares, distinct):
    """Shares of the votes on the items ``items[0]`` to ``items[1]``, and their number of distinct sources.

    The votes of item n lie from ``starts[n]`` to ``starts[n + 1]``, one per source.  The share of a vote is
    proportional to w_s a_s; if only sources without weight are present, to a_s.  A dependence above ``copies`` is that
    of exact copies.
    """
    most = 0
    for n in range(items[0], items[1]):
        most = max(most, starts[n + 1] - starts[n])
    single = np.empty(most)
    for n in range(items[0], items[1]):
        own, who = shares[starts[n] : starts[n + 1]], sources[starts[n] : starts[n + 1]]
        _count_distinct(who, dependence, copies, single, own)
        total = with_weight = present = 0.0
        for i in range(own.shape[0]):
            total += own[i] * weights[who[i]]
            present += own[i]
            with_weight += own[i] if weights[who[i]] > 0.0 else 0.0
        for i in range(own.shape[0]):
            own[i] *= weights[who[i]] / total if total > 0.0 else 1.0 / present
        distinct[n] = with_weight if total > 0.0 else present
