"""The mean and HV of a few samples, with as few calls as possible: a server's latency is the number of NumPy's calls.

The formulas are those of :mod:`veridical._numpy_kernels.discovery`; results agree up to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._numpy_kernels.projection import lead, leads, project_onto_winner
from veridical._numpy_kernels.sums import ones, row_sums, smallest

Array = npt.NDArray[Any]

#: Logarithms ln(V / d) below this are mostly rounding when they are computed as a difference.
_SMALL_LOG = 1e-3


def mean_of_few(scores: Array, exact: float, margin: float, mean: Array, label: Array) -> bool:
    """The mean (N, L) and the label (N,) of samples (S, N, L); returns whether all are valid and all labels clear.

    Valid are sources whose sums are one, all their squared differences together at most ``exact``, and clear are labels
    that lead by more than ``margin``.
    """
    n_sources, n_samples, n_classes = scores.shape
    with np.errstate(over="ignore", invalid="ignore"):  # huge and infinite numbers are not valid
        off = scores.reshape(-1, n_classes).dot(ones(n_classes))
        off -= 1.0
        # Written so that NaN is not valid.
        if not (off.dot(off) <= exact and smallest(scores) >= 0.0):
            return False
    ones(n_sources).dot(scores.reshape(n_sources, -1), out=mean.reshape(-1))
    mean /= row_sums(mean)[:, None]
    mean.argmax(axis=1, out=label)
    return (lead(mean[0], int(label[0])) if n_samples == 1 else smallest(leads(mean, label))) > margin


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
                    project_onto_winner(target[n], labels[n], 0.0)
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
