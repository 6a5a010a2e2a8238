"""Truth discovery for one sample, with as few calls as possible: a server's latency is the number of NumPy's calls.

The formulas are those of :mod:`veridical._numpy_kernels.discovery`; results agree up to rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._kernels.arguments import Options
from veridical._numpy_kernels.projection import project_onto_winner

Array = npt.NDArray[Any]


def discover_one(scores: Array, mean: Array, label: int, options: Options) -> tuple[Array, float] | None:
    """The truth (L,), not yet normalised, and HV of one sample (S, L) with three sources or more.

    None where a source is the truth up to rounding, which needs a closer look.
    """
    log, log1p = math.log, math.log1p
    classes, sources = np.ones(scores.shape[1]), np.ones(len(scores))
    z, resting, tol = mean, False, options.tol
    for update in range(options.max_iter + 1):
        difference = scores - z
        difference *= difference
        distance = difference.dot(classes)
        distances = distance.tolist()
        total = sum(distances)
        if not min(distances) >= options.tiny:
            return None
        weight = np.log(distance)
        np.subtract(log(total), weight, out=weight)
        largest = max(distances)
        if 2.0 * largest > total:
            farthest = distances.index(largest)
            distances[farthest] = 0.0
            weight[farthest] = log1p(sum(distances) / largest)
        if resting or update == options.max_iter:
            break
        target = weight.dot(scores)
        target /= weight.dot(sources)
        if options.keep_label and target.argmax() != label:
            project_onto_winner(target, label, 0.0)
        step = target - z
        squared_step = step.dot(step)
        z, resting = target, squared_step < tol or squared_step == 0.0
    return z, float(weight.dot(distance))
