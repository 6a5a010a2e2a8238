"""Functions of the rows of arrays, one per sample, from which the formulas of calibrators are written.

``xp`` is NumPy, the functions of another library under the names of the array API standard, or those that write a
graph.  A request of one sample spends its time in calls and not in numbers: with NumPy, ufuncs are reduced and single
entries read and written without the functions around them.  Every row is summed by itself, so that the numbers of a
sample are the same alone and among others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical._parallel import single_threaded_blas
from veridical.backends.namespace import LABEL_MARGIN, one_hot, project, row_starts

#: Scores closer to 0 or 1 than this have the logit of this.
CLOSEST = 1e-6
#: Probabilities below this have no logarithm worth trusting.
SMALLEST_PROBABILITY = 1e-20
#: Added to the probabilities of the classes that share what a confidence leaves: those of them that are all 0, or so
#: small that they are 0 in single precision, share it equally.
_LEAST_SHARE = 1e-30
#: How far the knots of columns are moved apart; scores are between 0 and 1.
_APART = 2.0
#: So few products that limiting the threads of BLAS takes longer.
_FEW_PRODUCTS = 1 << 16


def cast(xp: Any, values: Any, dtype: Any) -> Any:
    """``values`` in this dtype, themselves where they are."""
    return values.astype(dtype, copy=False) if xp is np else xp.astype(values, dtype, copy=False)


def row_sums(xp: Any, rows: Any) -> Any:
    """(N, 1) sums of (N, L)."""
    return np.add.reduce(rows, 1, keepdims=True) if xp is np else xp.sum(rows, axis=1, keepdims=True)


def row_maxima(xp: Any, rows: Any) -> Any:
    """(N, 1) largest entries of (N, L)."""
    return np.maximum.reduce(rows, 1, keepdims=True) if xp is np else xp.max(rows, axis=1, keepdims=True)


def at_least(xp: Any, values: Any, lowest: float) -> Any:
    """The larger of the values and a number; not all libraries' ``maximum`` takes a number where it is traced."""
    return np.maximum(values, lowest) if xp is np else xp.clip(values, lowest, None)


def at_most(xp: Any, values: Any, highest: float) -> Any:
    """The smaller of the values and a number."""
    return np.minimum(values, highest) if xp is np else xp.clip(values, None, highest)


def bounded(xp: Any, values: Any, lowest: float, highest: float) -> Any:
    """``values`` within these bounds."""
    return at_most(xp, at_least(xp, values, lowest), highest)


def softmax(xp: Any, scores: Any) -> Any:
    """Rows of (N, L) as distributions."""
    shifted = scores - row_maxima(xp, scores)
    exponentials = np.exp(shifted, out=shifted) if xp is np else xp.exp(shifted)
    return times_rows(xp, exponentials, 1.0 / row_sums(xp, exponentials))


def times_rows(xp: Any, rows: Any, factors: Any) -> Any:
    """(N, L) times (N, 1); with NumPy, ``rows`` themselves are changed: new memory takes longer than the product."""
    return np.multiply(rows, factors, out=rows) if xp is np else rows * factors


def floored_logs(xp: Any, probs: Any) -> Any:
    """ln p of probabilities that are not below ``SMALLEST_PROBABILITY``."""
    raised = at_least(xp, probs, SMALLEST_PROBABILITY)
    return np.log(raised, out=raised) if xp is np else xp.log(raised)


def product(xp: Any, rows: Any, matrix: Any) -> Any:
    """(N, K) products of (N, L) with a matrix (K, L); NumPy's sums do not depend on the number of threads."""
    if xp is not np:
        return rows @ matrix.T
    if rows.size * len(matrix) <= _FEW_PRODUCTS:
        return np.einsum("nl,kl->nk", rows, matrix)
    with single_threaded_blas():
        return rows @ matrix.T


def logit(xp: Any, scores: Any) -> Any:
    """ln(p / (1 - p)) of scores kept ``CLOSEST`` away from 0 and 1."""
    inside = bounded(xp, scores, CLOSEST, 1 - CLOSEST)
    return xp.log(inside) - xp.log1p(-inside)


def sigmoid(xp: Any, scores: Any) -> Any:
    """1 / (1 + exp(-x)), precise at both ends."""
    return xp.exp(at_most(xp, scores, 0.0)) / (1.0 + xp.exp(-xp.abs(scores)))


def value_of_bin(xp: Any, scores: Any, edges: Any, values: Any) -> Any:
    """The value of the bin (lo, hi] that each score falls in; (N,) scores, (B - 1,) edges and (B,) values."""
    if edges.shape[0] == 0:
        return xp.zeros_like(scores) + values
    if xp is np:
        return values[edges.searchsorted(scores)]
    return xp.take(values, xp.searchsorted(edges, scores, side="left"), axis=0)


def interpolate(xp: Any, scores: Any, knots: Any, values: Any) -> Any:
    """``numpy.interp`` of scores of any shape: linear between rising knots (K,), constant beyond them."""
    return np.interp(scores, knots, values) if xp is np else _interpolate(xp, scores, scores, knots, knots, values)


def interpolate_columns(xp: Any, scores: Any, starts: Any, knots: Any, values: Any, constant: Any) -> Any:
    """:func:`interpolate` of each column of scores (N, L) between the knots from ``starts[l]`` to ``starts[l + 1]``.

    ``starts``, ``knots`` and ``values`` are NumPy's, of which ``constant`` makes arrays like the scores.  All columns
    are searched at once: scores are kept within their columns' knots, which are moved apart for the search alone.
    """
    lowest, highest = constant(knots[starts[:-1]]), constant(knots[starts[1:] - 1])
    within = xp.minimum(xp.maximum(scores, lowest), highest)
    apart = _APART * np.arange(len(starts) - 1)
    moved = constant(knots + np.repeat(apart, np.diff(starts)))
    return _interpolate(xp, within, within + constant(apart), constant(knots), moved, constant(values))


def _interpolate(xp: Any, scores: Any, searched: Any, knots: Any, moved: Any, values: Any) -> Any:
    """Linear between the knots that ``searched`` are between in ``moved``."""
    if knots.shape[0] == 1:
        return xp.zeros_like(scores) + values
    # A column of a matrix becomes contiguous, which PyTorch's search wants.
    flat, searched = xp.reshape(scores, (-1,)), xp.reshape(searched, (-1,)) + 0.0
    upper = bounded(xp, xp.searchsorted(moved, searched, side="right"), 1, knots.shape[0] - 1)
    low, high = xp.take(knots, upper - 1, axis=0), xp.take(knots, upper, axis=0)
    low_value, high_value = xp.take(values, upper - 1, axis=0), xp.take(values, upper, axis=0)
    # Between the knots of two columns there is no score but the ends, where the search may have rounded.
    width = xp.where(high > low, high - low, xp.ones_like(high))
    share = bounded(xp, (flat - low) / width, 0.0, 1.0)
    return xp.reshape(low_value + share * (high_value - low_value), scores.shape)


def put_at_label(xp: Any, rows: Any, labels: Any, values: Any) -> Any:
    """(N, L) with ``values``, a number or (N,), in the labels' columns; with NumPy, ``rows`` themselves are changed."""
    if xp is np:
        rows = np.ascontiguousarray(rows)  # of others, numbers in one row would be a copy
        rows.reshape(-1)[row_starts(*rows.shape) + labels] = values
        return rows
    values = values[:, None] if getattr(values, "ndim", 0) else xp.full_like(rows, values)
    return xp.where(one_hot(xp, labels, rows.shape[1]), values, rows)


def with_confidence(xp: Any, probs: Any, labels: Any, confidence: Any) -> Any:
    """Distributions in which the labels have ``confidence`` and the other classes share the rest as they did.

    Where the other classes are all 0, they share it equally.
    """
    # A confidence of exactly one would leave nothing for the other classes, and an infinite loss where one is right.
    confidence = at_most(xp, confidence, 1.0 - LABEL_MARGIN)
    others = put_at_label(xp, probs + _LEAST_SHARE, labels, 0.0)
    shares = times_rows(xp, others, (1.0 - confidence)[:, None] / row_sums(xp, others))
    return put_at_label(xp, shares, labels, confidence)


def with_leading_labels(xp: Any, rows: Any, labels: Any) -> Any:
    """Distributions in which the labels lead by ``LABEL_MARGIN``: the nearest ones, where they do not.

    With NumPy, ``rows`` themselves are changed.
    """
    if xp is not np:
        return project(xp, rows, labels, LABEL_MARGIN)
    rows = np.ascontiguousarray(rows)
    numbers, index = rows.reshape(-1), row_starts(*rows.shape) + labels
    scores = numbers[index]
    numbers[index] = -1.0
    ahead = scores - numbers[row_starts(*rows.shape) + rows.argmax(axis=1)]
    numbers[index] = scores
    if len(rows) and not ahead.item(ahead.argmin()) >= LABEL_MARGIN:
        return project(np, rows, labels, LABEL_MARGIN)
    return rows
