"""Functions over a namespace ``xp`` of the array API standard: NumPy, PyTorch, JAX, CuPy, or one that writes a graph.

Nothing is written in place, and no result depends on what is in an array in Python, unless the array is NumPy's.  Sums
are taken row by row or source by source, so that the numbers of a sample are the same alone and among others.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

#: By how much the kept label leads in what the user gets: far above float32's rounding, far below any meaning.
LABEL_MARGIN = 1e-6
#: Of so many numbers, a kernel that does not sort projects faster.
_MANY_BEHIND = 1 << 12


def device_of(values: Any) -> Any:
    """Where an array is; None, the default device, for what JAX traces."""
    return getattr(values, "device", None)


def is_jax(xp: Any) -> bool:
    """Whether these are the functions of JAX."""
    return str(xp.__name__) == "jax.numpy"


def compiled(xp: Any, function: Callable[..., Any], *arrays: Any, **options: Any) -> Any:
    """``function(xp, *arrays, **options)``; by JAX compiled as a whole, which operation by operation takes long."""
    if is_jax(xp):
        return _compiled_by_jax(function, tuple(sorted(options.items())))(*arrays)
    return function(xp, *arrays, **options)


@lru_cache(maxsize=256)
def _compiled_by_jax(function: Callable[..., Any], options: tuple[tuple[str, Any], ...]) -> Any:
    import jax

    return jax.jit(lambda *arrays: function(jax.numpy, *arrays, **dict(options)))


def one_hot(xp: Any, labels: Any, n_classes: int) -> Any:
    """(N, L) booleans."""
    return labels[:, None] == xp.arange(n_classes, dtype=labels.dtype, device=device_of(labels))[None, :]


def at_label(xp: Any, probs: Any, labels: Any) -> Any:
    """(N,) entries of the labels' columns; as a sum, because ``torch.export`` fixes the size of what is gathered."""
    if xp is np:
        return probs.reshape(-1)[row_starts(*probs.shape) + labels]
    return xp.sum(xp.where(one_hot(xp, labels, probs.shape[1]), probs, xp.zeros_like(probs)), axis=1)


@lru_cache(maxsize=64)
def row_starts(n_rows: int, n_columns: int) -> Any:
    """Where each row starts in the memory of an array of that shape."""
    return np.arange(0, n_rows * n_columns, n_columns)


def widest_float(xp: Any, values: Any) -> Any:
    """``values`` in float64 where its device has it and JAX is allowed to use it, otherwise as they are."""
    if xp is np:
        return values.astype(np.float64, copy=False)
    if is_jax(xp):
        import jax

        if jax.dtypes.canonicalize_dtype("float64").itemsize < 8:
            return values
    try:
        wide = xp.astype(values, xp.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):  # MPS has no float64
        return values
    return wide


def class_sums(xp: Any, values: Any) -> Any:
    """Sums over the last axis."""
    return np.einsum("...l->...", values) if xp is np else xp.sum(values, axis=-1)


def source_sums(xp: Any, values: Any) -> Any:
    """(N,) sums over the first axis of (S, N), in the order of the sources."""
    if xp is np and values.shape[1] == 1:  # NumPy adds up a single column in another order than several
        return np.add.accumulate(values)[-1]
    return xp.sum(values, axis=0)


def softmax(xp: Any, scores: Any) -> Any:
    """Over the last axis."""
    exponentials = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return exponentials / class_sums(xp, exponentials)[..., None]


def cumulative_sum(xp: Any, values: Any) -> Any:
    """Along the second axis, by the library's own name for it where there is one: ``torch.compile`` knows that."""
    return xp.cumsum(values, 1) if hasattr(xp, "cumsum") else xp.cumulative_sum(values, axis=1)


def weighted_sum(xp: Any, weights: Any, values: Any) -> Any:
    """(N, L) sums over the first axis of values (S, N, L) times weights (S, N), or (S, 1) where they are the same."""
    if xp is np:
        same = weights.shape[1] != values.shape[1]
        return np.einsum("s,snl->nl", weights[:, 0], values) if same else np.einsum("sn,snl->nl", weights, values)
    return xp.sum(weights[:, :, None] * values, axis=0)


def project(xp: Any, rows: Any, labels: Any, margin: float) -> Any:
    """The nearest points of the simplex at which ``labels`` lead every other class by ``margin``.

    Rows that are there already stay as they are; with NumPy, ``rows`` itself is returned if all are.
    """
    is_label = one_hot(xp, labels, rows.shape[1])
    others = xp.where(is_label, xp.full_like(rows, -1.0), rows)
    own = at_label(xp, rows, labels) - margin
    leads = own >= xp.max(others, axis=1)
    if xp is not np:
        return xp.where(leads[:, None], rows, _projected(xp, others, is_label, own, margin))
    behind = np.flatnonzero(~leads)
    if not len(behind):
        return rows
    projected = rows.copy()
    if len(behind) * rows.shape[1] > _MANY_BEHIND:
        importlib.import_module("veridical._kernels.projection").project_rows_onto_winners(projected, labels, margin)
    else:
        projected[behind] = _projected(np, others[behind], is_label[behind], own[behind], margin)
    return projected


def _projected(xp: Any, others: Any, is_label: Any, own: Any, margin: float) -> Any:
    """The others cut at a level: the largest of the means of the label's score and the first k in falling order.

    The label's score is ``own``, less the margin; among ``others`` it is negative.
    """
    counts = xp.astype(xp.arange(2, others.shape[1] + 2, device=device_of(others)), others.dtype)
    means = (own[:, None] + cumulative_sum(xp, -xp.sort(-others, axis=1))) / counts
    level = xp.max(means, axis=1, keepdims=True)
    return xp.where(is_label, level + margin, xp.minimum(others, level))
