"""Truth discovery with operations of the array API standard: any device, differentiable, traceable.

Twin of :mod:`veridical._kernels.discovery`.  Arrays are (sources, samples, classes).  Nothing is written in place, and
nothing is read back to the host but, outside of tracing, whether all samples have converged.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

#: By how much the kept label leads in what the user gets: far above float32's rounding, far below any meaning.
LABEL_MARGIN = 1e-6
#: A source as near to the truth as this is at distance 0, by the bits of a float.  Sources of votes often are their own
#: mean, where rounding would otherwise decide between no weight and nearly all of it.
AT_TRUTH = {32: 1e-6, 64: 1e-12}


class ArrayTruth(NamedTuple):
    """As :class:`veridical.Truth`, of any library's arrays."""

    probs: Any
    reliability: Any
    hv: Any
    prediction: Any
    n_iter: Any
    converged: Any
    trace: Any


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
    return xp.sum(xp.where(one_hot(xp, labels, probs.shape[1]), probs, xp.zeros_like(probs)), axis=1)


def widest_float(xp: Any, values: Any) -> Any:
    """``values`` in float64 where its device has it and JAX is allowed to use it, otherwise as they are."""
    if is_jax(xp):
        import jax

        if jax.dtypes.canonicalize_dtype("float64").itemsize < 8:
            return values
    try:
        wide = xp.astype(values, xp.float64, copy=False)
    except (TypeError, ValueError, RuntimeError):  # MPS has no float64
        return values
    return wide


def softmax(xp: Any, scores: Any) -> Any:
    """Over the last axis."""
    exponentials = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return exponentials / xp.sum(exponentials, axis=-1, keepdims=True)


def cumulative_sum(xp: Any, values: Any) -> Any:
    """Along the second axis, by the library's own name for it where there is one: ``torch.compile`` knows that."""
    return xp.cumsum(values, 1) if hasattr(xp, "cumsum") else xp.cumulative_sum(values, axis=1)


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
    counts = xp.astype(xp.arange(1, n_classes, device=device_of(rows)), rows.dtype)
    levels = (score[:, None] + cumulative_sum(xp, others)) / (counts + 1)[None, :]
    following = xp.concat([others[:, 1:], xp.full_like(others[:, :1], -xp.inf)], axis=1)
    first = xp.argmax(xp.astype(levels >= following, xp.int32), axis=1)
    level = at_label(xp, levels, first)[:, None]
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
    others = xp.ones((n_sources, n_sources), dtype=distance.dtype, device=device_of(distance)) - xp.eye(
        n_sources, dtype=distance.dtype, device=device_of(distance)
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
    source_weights: Any,
    *,
    keep_label: bool,
    tol: float,
    max_iter: int,
    trace: bool,
    traced: bool,
) -> ArrayTruth:
    """Truth discovery of checked probabilities (S, N, L), whose rows sum to one, and 0 where a source is absent."""
    tiny = AT_TRUTH[int(xp.finfo(probs.dtype).bits)] ** 2
    influence = _influence(xp, present, source_weights, probs)

    def weights_at(z: Any) -> tuple[Any, Any, Any]:
        difference = probs - z[None, :, :]
        return _weights(xp, xp.sum(difference * difference, axis=2), influence, tiny)

    def update(state: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any, Any], Any]:
        z, done, n_iter = state
        weight, hv, at_zero = weights_at(z)
        done = done | at_zero
        target = _weighted_mean(xp, probs, weight)
        target = project(xp, target, prediction, 0.0) if keep_label else target
        target = xp.where(done[:, None], z, xp.where(target > 0, target, xp.zeros_like(target)))
        moved = target - z
        squared = xp.sum(moved * moved, axis=1)
        n_iter = n_iter + xp.astype(~done, xp.int32)
        return (target, done | (squared < tol) | (squared == 0), n_iter), hv

    z = _weighted_mean(xp, probs, influence)
    if source_weights is not None and keep_label:
        z = project(xp, z, prediction, 0.0)
    n_present = xp.sum(xp.astype(present, xp.int32), axis=0)
    done = n_present <= 2 if source_weights is None else n_present < 0
    n_iter = xp.zeros(z.shape[:1], dtype=xp.int32, device=device_of(z))
    (z, done, n_iter), earlier = _repeat(xp, update, (z, done, n_iter), max_iter, keep=trace, traced=traced)
    weight, hv, at_zero = weights_at(z)
    truth = z / xp.sum(z, axis=1, keepdims=True)
    truth = project(xp, truth, prediction, LABEL_MARGIN) if keep_label else truth
    reliability = weight / xp.sum(weight, axis=0, keepdims=True)
    steps = None
    if trace:
        after = xp.broadcast_to(hv[None, :], (max_iter + 1 - earlier.shape[0], hv.shape[0]))
        steps = xp.concat([earlier, after], axis=0)
    return ArrayTruth(truth, reliability, hv, prediction, n_iter, done | at_zero, steps)


def _repeat(xp: Any, update: Any, state: Any, n_times: int, *, keep: bool, traced: bool) -> tuple[Any, Any]:
    """``state`` after updates, until all samples are done; with ``keep``, HV before each of them, (updates, N)."""
    done, n_samples = state[1], state[0].shape[0]
    results = [xp.zeros((0, n_samples), dtype=state[0].dtype, device=device_of(state[0]))]
    if is_jax(xp) and n_times > 0:
        import jax  # its loop is compiled once; written out, every update would be compiled

        state, rows = jax.lax.scan(lambda before, _: update(before), state, None, length=n_times)
        return state, rows
    for _ in range(n_times):
        if not traced and bool(xp.all(done)):
            break
        state, hv = update(state)
        done = state[1]
        if keep:
            results.append(hv[None, :])
    return state, xp.concat(results, axis=0) if keep else None


def _weighted_mean(xp: Any, probs: Any, weight: Any) -> Any:
    return xp.sum(weight[:, :, None] * probs, axis=0) / xp.sum(weight, axis=0)[:, None]
