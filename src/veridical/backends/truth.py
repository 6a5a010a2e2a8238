"""Truth discovery over a namespace ``xp`` of the array API standard: any device, differentiable, traceable.

Twin of :mod:`veridical._kernels.discovery`.  Arrays are (sources, samples, classes).  Nothing is written in place, and
nothing is read back to the host but, outside of tracing, whether all samples have converged.
"""

from __future__ import annotations

from typing import Any

from veridical.backends.namespace import LABEL_MARGIN, class_sums, is_jax, project, source_sums, weighted_sum

#: A source as near to the truth as this is at distance 0, by the bits of a float.  Sources of votes often are their own
#: mean, where rounding would otherwise decide between no weight and nearly all of it.
AT_TRUTH = {32: 1e-6, 64: 1e-12}


def discover_truth(
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
    bits: int,
) -> tuple[Any, ...]:
    """The fields of a :class:`veridical.Truth` for checked probabilities (S, N, L), 0 where a source is absent.

    ``present`` (S, N) is None where all sources are, ``source_weights`` (S,) where all weigh one.  ``bits`` are those
    of the floats that the numbers were before they were taken to the precision they are in here.
    """
    tiny = AT_TRUTH[bits] ** 2
    influence = _influence(xp, present, source_weights, probs)

    def weights_at(z: Any) -> tuple[Any, Any, Any]:
        difference = probs - z[None, :, :]
        return _weights(xp, class_sums(xp, difference * difference), influence, tiny)

    def update(state: tuple[Any, Any, Any]) -> tuple[tuple[Any, Any, Any], Any]:
        z, done, n_iter = state
        weight, hv, at_zero = weights_at(z)
        done = done | at_zero
        target = weighted_sum(xp, weight, probs) / source_sums(xp, weight)[:, None]
        target = project(xp, target, prediction, 0.0) if keep_label else target
        target = xp.where(done[:, None], z, xp.where(target > 0, target, xp.zeros_like(target)))
        moved = target - z
        squared = class_sums(xp, moved * moved)
        n_iter = n_iter + xp.astype(~done, xp.int32)
        return (target, done | (squared < tol) | (squared == 0), n_iter), hv

    z = weighted_sum(xp, influence, probs) / source_sums(xp, influence)[:, None]
    if source_weights is not None and keep_label:
        z = project(xp, z, prediction, 0.0)
    n_iter = xp.zeros_like(z[:, 0], dtype=xp.int32)
    done = n_iter < 0
    if source_weights is None:  # two equal sources pull equally from both sides: the mean stays
        n_present = n_iter + probs.shape[0] if present is None else xp.sum(xp.astype(present, xp.int32), axis=0)
        done = n_present <= 2
    n_updates = 0 if present is None and source_weights is None and probs.shape[0] <= 2 else max_iter
    (z, done, n_iter), earlier = _repeat(xp, update, (z, done, n_iter), n_updates, keep=trace, traced=traced)
    weight, hv, at_zero = weights_at(z)
    truth = z / class_sums(xp, z)[:, None]
    truth = project(xp, truth, prediction, LABEL_MARGIN) if keep_label else truth
    reliability = weight / source_sums(xp, weight)[None, :]
    steps = None
    if trace:
        after = xp.broadcast_to(hv[None, :], (max_iter + 1 - earlier.shape[0], hv.shape[0]))
        steps = xp.concat([earlier, after], axis=0)
    return truth, reliability, hv, prediction, n_iter, done | at_zero, steps


def _influence(xp: Any, present: Any, source_weights: Any, like: Any) -> Any:
    """(S, N) weights of the sources that are present, as the kernel scales them; (S, 1) where all are."""
    ones = xp.ones_like(like[:, :1, 0]) if present is None else xp.astype(present, like.dtype)
    if source_weights is None:
        return ones
    weighted = ones * source_weights[:, None]
    total = source_sums(xp, weighted)
    scale = xp.where(total < 2, 2 / xp.where(total > 0, total, xp.ones_like(total)), xp.ones_like(total))
    return xp.where((total > 0)[None, :], weighted * scale[None, :], ones)


def _weights(xp: Any, distance: Any, influence: Any, tiny: float) -> tuple[Any, Any, Any]:
    """a_s ln(V / d_s), HV, and where some source is at distance 0; such sources share all the weight."""
    zero, one = xp.zeros_like(distance), xp.ones_like(distance)
    counts = influence > 0
    apart = counts & (distance >= tiny)
    # Two steps of "where": derivatives of what is not chosen must be finite, too.
    safe = xp.where(apart, distance, one)
    kept = xp.where(apart, distance, zero)
    pull = influence * kept
    total = source_sums(xp, pull)[None, :]
    # Where one source is further away than all others together, ln V - ln d is mostly rounding; log1p is not.
    far = apart & (pull > total / 2)
    rest = source_sums(xp, xp.where(far, zero, pull))[None, :]
    beyond = xp.where(far, (influence - 1) + rest / safe, zero)
    near = xp.log(xp.where(total > 0, total, xp.ones_like(total))) - xp.log(safe)
    logarithm = xp.where(far, xp.log1p(xp.where(beyond > 0, beyond, zero)), near)
    weight = influence * xp.where(apart & (logarithm > 0), logarithm, zero)
    hv = source_sums(xp, kept * weight)
    at_distance_zero = counts & ~apart
    some = xp.any(at_distance_zero, axis=0)
    shared = xp.where(at_distance_zero, influence, zero)
    return xp.where(some[None, :], shared, weight), hv, some


def _repeat(xp: Any, update: Any, state: Any, n_times: int, *, keep: bool, traced: bool) -> tuple[Any, Any]:
    """``state`` after updates, until all samples are done; with ``keep``, HV before each of them, (updates, N)."""
    if is_jax(xp) and n_times > 0:
        import jax  # its loop is compiled once; written out, every update would be compiled

        state, rows = jax.lax.scan(lambda before, _: update(before), state, None, length=n_times)
        return state, rows
    results = [state[0][None, :, 0][:0, :]] if keep else []
    for _ in range(n_times):
        if not traced and bool(xp.all(state[1])):
            break
        state, hv = update(state)
        if keep:
            results.append(hv[None, :])
    return state, xp.concat(results, axis=0) if keep else None
