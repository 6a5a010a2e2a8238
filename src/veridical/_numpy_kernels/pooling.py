"""The log pool of a few samples: twin of :mod:`veridical._kernels.pooling`, without its losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def log_pool_rows(logs: Array, shares: Array, pooled: Array) -> None:
    """``pooled[n] = softmax(sum_s shares[s, n] logs[s, n])``."""
    np.add.reduce(logs * shares[:, :, None], 0, out=pooled)
    pooled -= np.maximum.reduce(pooled, 1, keepdims=True)
    np.exp(pooled, out=pooled)
    pooled /= np.add.reduce(pooled, 1, keepdims=True)
