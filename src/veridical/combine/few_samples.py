"""The mean and HV of a few samples, with as few calls as possible: a server's latency is the number of NumPy's calls.

The formulas are those of :mod:`veridical.backends.truth`, on NumPy's arrays alone and for sources that are all present;
results agree up to rounding.  NumPy's ``dot`` and ``argmax`` take a fraction of the microseconds that its reductions
need before they read a number.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.backends.namespace import at_label
from veridical.backends.rows import put_at_label

Array = npt.NDArray[Any]

#: Up to so many classes a list of Python's numbers is faster than a call of NumPy.
_FEW_CLASSES = 48
#: Logarithms ln(V / d) below this are mostly rounding when they are computed as a difference.
_SMALL_LOG = 1e-3


def mean_of_few(scores: Array, exact: float, margin: float, mean: Array, label: Array) -> bool:
    """The mean (N, L) and the label (N,) of samples (S, N, L); returns whether all are valid and all labels clear.

    Valid are sources whose sums are one, all their squared differences together at most ``exact``, and clear are labels
    that lead by more than ``margin``.
    """
    n_sources, _, n_classes = scores.shape
    with np.errstate(over="ignore", invalid="ignore"):  # huge and infinite numbers are not valid
        off = scores.reshape(-1, n_classes).dot(ones(n_classes))
        off -= 1.0
        # Written so that NaN is not valid.
        if not (off.dot(off) <= exact and smallest(scores) >= 0.0):
            return False
    ones(n_sources).dot(scores.reshape(n_sources, -1), out=mean.reshape(-1))
    mean /= mean.dot(ones(n_classes))[:, None]
    mean.argmax(axis=1, out=label)
    return _least_lead(mean, label) > margin


def hv_of_few(scores: Array, mean: Array, label: Array, tol: float, max_iter: int, tiny: float) -> Array | None:
    """(N,) HV of samples (S, N, L) with three sources or more, all present, around the truth that keeps ``label``.

    None where a source is the truth up to rounding, which needs a closer look.
    """
    n_sources, n_samples, n_classes = scores.shape
    over_sources, over_classes = ones(n_sources), ones(n_classes)
    labels, hv = label.tolist(), [0.0] * n_samples
    # Samples that came to rest are carried along: to take them out costs more than it saves.
    going, z = list(range(n_samples)), mean
    resting: list[int] = []
    for update in range(max_iter + 1):
        difference = scores - z
        difference *= difference
        distances = difference.reshape(-1, n_classes).dot(over_classes)
        if not smallest(distances) >= tiny:
            return None
        distance = distances.reshape(n_sources, n_samples)
        weight = np.log(distance)
        np.subtract(np.log(over_sources.dot(distance)), weight, out=weight)
        if smallest(weight) < _SMALL_LOG:
            _set_precise_logs(weight, distance)
        if update == max_iter:
            resting = going
        if resting:
            now = over_sources.dot(weight * distance).tolist()
            for n in resting:
                hv[n] = now[n]
            going = [n for n in going if n not in resting]
            if not going:
                break
        target = over_sources.dot((scores * weight[:, :, None]).reshape(n_sources, -1)).reshape(mean.shape)
        target /= over_sources.dot(weight)[:, None]
        leading = target.argmax(1).tolist()
        if leading != labels:
            for n in range(n_samples):
                if leading[n] != labels[n]:
                    _project(target[n], labels[n])
        step = target - z
        step *= step
        squared = step.dot(over_classes).tolist()
        resting = [n for n in going if squared[n] < tol or squared[n] == 0.0]
        z = target
    return np.array(hv)


def _set_precise_logs(weight: Array, distance: Array) -> None:
    """Where one source is much further away than all others together, ln(1 + others / d)."""
    for s, n in np.argwhere(weight < _SMALL_LOG).tolist():
        others = distance[:, n].tolist()
        own = others.pop(s)
        weight[s, n] = math.log1p(sum(others) / own)


def _project(row: Array, c: int) -> None:
    """Move a row to the nearest point of the simplex where no class is above class c."""
    others = row.tolist()
    level = total = others.pop(c)
    for k, score in enumerate(sorted(others, reverse=True), 2):
        if score <= level:  # from here on the means fall
            break
        total += score
        level = total / k
    np.minimum(row, level, out=row)
    row[c] = level


def _least_lead(rows: Array, labels: Array) -> float:
    """How far the labels are above the largest other class in the row where that is least."""
    if len(rows) == 1 and rows.size <= _FEW_CLASSES:
        others = rows[0].tolist()
        return float(others.pop(int(labels[0])) - max(others))
    scores = at_label(np, rows, labels)
    put_at_label(np, rows, labels, -1.0)
    ahead = scores - at_label(np, rows, rows.argmax(axis=1))
    put_at_label(np, rows, labels, scores)
    return smallest(ahead)


@functools.lru_cache(maxsize=256)
def ones(n: int) -> Array:
    """A vector of ones that nobody writes to."""
    vector = np.ones(n)
    vector.flags.writeable = False
    return vector


def smallest(values: Array) -> float:
    """The smallest number, or NaN where there is one; infinity of no numbers."""
    return float(values.item(values.argmin())) if values.size else np.inf
