"""Temperature scaling of a few samples: twin of :mod:`veridical._kernels.scaling`, without its losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._numpy_kernels.sums import row_starts, row_sums

Array = npt.NDArray[Any]


def relative_logs(probs: Array, floor: float, out: Array) -> None:
    """``out[i, l] = ln max(probs[i, l], floor) - max_l of the same``."""
    np.log(np.maximum(probs, floor, dtype=np.float64), out=out)
    if len(out) == 1:
        out -= out.item(out.argmax())
    else:
        out -= out.reshape(-1)[row_starts(*out.shape) + out.argmax(axis=1)][:, None]


def temperature_rows(logs: Array, inverse: float, out: Array) -> None:
    """``out[i] = softmax(inverse * logs[i])``; the largest log of each row is 0."""
    np.multiply(logs, inverse, out=out)
    np.exp(out, out=out)
    out /= row_sums(out)[:, None]
