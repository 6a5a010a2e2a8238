"""Truth discovery with operations of the array API standard: any device, differentiable, traceable.

Twin of :mod:`veridical._kernels.discovery`.  Arrays are (sources, samples, classes).  Nothing is written in place, and
nothing is read back to the host but, outside of tracing, whether all samples have converged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: By how much the kept label leads in what the user gets; the same as in :mod:`veridical.combine.projection`.
LABEL_MARGIN = 1e-6


@dataclass(frozen=True)
class ArrayTruth:
    """As :class:`veridical.Truth`, of any library's arrays."""

    probs: Any
    reliability: Any
    hv: Any
    prediction: Any
    n_iter: Any
    converged: Any
    trace: Any


def one_hot(xp: Any, labels: Any, n_classes: int) -> Any:
    """(N, L) booleans."""
    return labels[:, None] == xp.arange(n_classes, dtype=labels.dtype, device=labels.device)[None, :]


def at_label(xp: Any, probs: Any, labels: Any) -> Any:
    """(N,) entries of the labels' columns."""
    return xp.take_along_axis(probs, labels[:, None], axis=1)[:, 0]


def widest_float(xp: Any, values: Any) -> Any:
    """``values`` in float64 where its device has it, otherwise as they are."""
    try:
        wide = xp.astype(values, xp.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):  # MPS has no float64
        return values
    return wide


def label_of_mean(xp: Any, probs: Any, present: Any) -> Any:
    """(N,) argmax of the mean, summed in float64 in the order of the sources; the lowest index on ties."""
    total = None
    for s in range(probs.shape[0]):
        part = widest_float(xp, probs[s, ...])
        part = xp.where(present[s, :, None], part, xp.zeros_like(part))
        total = part if total is None else total + part
    count = xp.sum(xp.astype(present, total.dtype), axis=0)  # type: ignore[union-attr]
    return xp.argmax(total / count[:, None], axis=1)


def project(xp: Any, rows: Any, labels: Any, margin: float) -> Any:
    """The nearest points of the simplex at which ``labels`` lead every other class by ``margin``.

    With the other classes in falling order, the common level is the mean of the label's score and the first k of them,
    for the smallest k at which the next does not exceed it.
    """
    n_classes = rows.shape[1]
    is_label = one_hot(xp, labels, n_classes)
    below = xp.full_like(rows, -xp.inf)
    others = xp.sort(xp.where(is_label, below, rows), axis=1, descending=True)[:, : n_classes - 1]
    score = xp.sum(xp.where(is_label, rows, xp.zeros_like(rows)), axis=1) - margin
    counts = xp.astype(xp.arange(1, n_classes, device=rows.device), rows.dtype)
    levels = (score[:, None] + xp.cumulative_sum(others, axis=1)) / (counts + 1)[None, :]
    following = xp.concat([others[:, 1:], xp.full_like(others[:, :1], -xp.inf)], axis=1)
    first = xp.argmax(xp.astype(levels >= following, xp.int32), axis=1)
    level = xp.take_along_axis(levels, first[:, None], axis=1)
    projected = xp.where(is_label, level + margin, xp.minimum(rows, level))
    leads = score >= others[:, 0]
    return xp.where(leads[:, None], rows, projected)


def _weights(xp: Any, distance: Any, influence: Any, tiny: float) -> tuple[Any, Any, Any]:
    """a_s ln(V / d_s), HV, and where some source is at distance 0; such sources share all the weight."""
    zero, one = xp.zeros_like(distance), xp.ones_like(distance)
    counts = influence > 0
    apart = counts & (distance >= tiny)
    # Two steps of "where": derivatives of what is not chosen must be finite, too.
    safe = xp.where(apart, distance, one)
    kept = xp.where(apart, distance, zero)
    pull = influence * kept
    n_sources = distance.shape[0]
    others = xp.ones((n_sources, n_sources), dtype=distance.dtype, device=distance.device) - xp.eye(
        n_sources, dtype=distance.dtype, device=distance.device
    )
    total = xp.sum(pull, axis=0)[None, :]
    # Where one source is further away than all others together, ln V - ln d is mostly rounding; log1p is not.
    far = apart & (pull > total / 2)
    beyond = xp.where(far, (influence - 1) + (others @ pull) / safe, zero)
    near = xp.log(xp.where(total > 0, total, xp.ones_like(total))) - xp.log(safe)
    logarithm = xp.where(far, xp.log1p(xp.where(beyond > 0, beyond, zero)), near)
    weight = influence * xp.where(apart & (logarithm > 0), logarithm, zero)
    hv = xp.sum(kept * weight, axis=0)
    at_distance_zero = counts & ~apart
    some = xp.any(at_distance_zero, axis=0)
    shared = xp.where(at_distance_zero, influence, zero)
    return xp.where(some[None, :], shared, weight), hv, some


def _influence(xp: Any, present: Any, source_weights: Any, like: Any) -> Any:
    """(S, N) weights of the sources that are present, as the kernel scales them."""
    ones = xp.astype(present, like.dtype)
    if source_weights is None:
        return ones
    weighted = ones * source_weights[:, None]
    total = xp.sum(weighted, axis=0)
    scale = xp.where(total < 2, 2 / xp.where(total > 0, total, xp.ones_like(total)), xp.ones_like(total))
    return xp.where((total > 0)[None, :], weighted * scale[None, :], ones)


def discover_arrays(
    xp: Any,
    probs: Any,
    present: Any,
    prediction: Any,
    *,
    source_weights: Any,
    keep_label: bool,
    tol: float,
    max_iter: int,
    trace: bool,
    traced: bool,
) -> ArrayTruth:
    """Truth discovery of checked probabilities (S, N, L), whose rows sum to one, and 0 where a source is absent."""
    tiny = float(xp.finfo(probs.dtype).smallest_normal)
    influence = _influence(xp, present, source_weights, probs)
    z = _weighted_mean(xp, probs, influence)
    if source_weights is not None and keep_label:
        z = project(xp, z, prediction, 0.0)
    n_present = xp.sum(xp.astype(present, xp.int32), axis=0)
    done = n_present <= 2 if source_weights is None else n_present < 0
    n_iter = xp.zeros(z.shape[:1], dtype=xp.int32, device=z.device)
    steps = []
    for step in range(max_iter + 1):
        difference = probs - z[None, :, :]
        weight, hv, at_zero = _weights(xp, xp.sum(difference * difference, axis=2), influence, tiny)
        steps.append(hv)
        done = done | at_zero
        if step == max_iter or (not traced and bool(xp.all(done))):
            break
        target = _weighted_mean(xp, probs, weight)
        target = project(xp, target, prediction, 0.0) if keep_label else target
        target = xp.where(done[:, None], z, xp.where(target > 0, target, xp.zeros_like(target)))
        moved = target - z
        squared = xp.sum(moved * moved, axis=1)
        n_iter = n_iter + xp.astype(~done, xp.int32)
        done = done | (squared < tol) | (squared == 0)
        z = target
    steps += steps[-1:] * (max_iter + 1 - len(steps))
    truth = z / xp.sum(z, axis=1, keepdims=True)
    truth = project(xp, truth, prediction, LABEL_MARGIN) if keep_label else truth
    reliability = weight / xp.sum(weight, axis=0, keepdims=True)
    return ArrayTruth(truth, reliability, hv, prediction, n_iter, done, xp.stack(steps) if trace else None)


def _weighted_mean(xp: Any, probs: Any, weight: Any) -> Any:
    return xp.sum(weight[:, :, None] * probs, axis=0) / xp.sum(weight, axis=0)[:, None]
