"""An order of sources in which those that repeat each other are neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np


def order_by_dependence(dependence: Any) -> list[int]:
    """The sources in the order of the leaves of an average-linkage clustering by 1 - dependence.

    Examples
    --------
    Sources 0 and 2 stand together:

    >>> order_by_dependence([[1, 0, 0.9], [0, 1, 0.1], [0.9, 0.1, 1]])
    [1, 2, 0]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    matrix = np.asarray(dependence, dtype=np.float64)
    if len(matrix) < 3:
        return list(range(len(matrix)))
    distance = np.clip(1.0 - np.maximum(matrix, matrix.T), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return [int(s) for s in leaves_list(tree)]
