"""Truth discovery for a few samples: twin of :mod:`veridical._kernels.discovery`, all samples at once.

Arrays here are (samples, sources, classes): sums over sources and over classes are then taken in the same order
however many samples there are, so that a sample's result does not depend on the others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from veridical._kernels.arguments import Options, Outputs
from veridical._numpy_kernels.projection import project_rows_onto_winners

Array = npt.NDArray[Any]


class Loaded(NamedTuple):
    """Checked samples.

    Attributes
    ----------
    scores : (N, S, L) float64
        Distributions; 0 where a source is absent.
    present : (N, S) bool, or None
        None where no source is absent.
    mean : (N, L) float64
    label : (N,) integers
        The label of the mean, or -1 where the scores are too coarse to tell.
    """

    scores: Array
    present: Array | None
    mean: Array
    label: Array


def load(probs: Array, options: Options) -> Loaded | int:
    """Probabilities (S, N, L), checked as the kernel checks them; the first sample that is not valid otherwise."""
    with np.errstate(invalid="ignore", over="ignore"):  # sums of infinities or of huge numbers are not one
        sums = np.add.reduce(probs, 2)
    off = np.abs(sums - 1.0)
    present: Any = None
    # Written so that NaN, which maximum and minimum pass on, needs a closer look.
    if not (off.max() <= options.tolerance and probs.min() >= 0):
        present = ~np.isnan(probs).all(axis=2)
        probs = np.where(present[:, :, None], probs, 0.0)
        off = np.where(present, off, 0.0)
        valid = (off <= options.tolerance).all(axis=0) & (probs >= 0).all(axis=(0, 2))
        n_present = present.sum(axis=0)
        valid &= (n_present > 0) & (options.skip_missing | (n_present == len(probs)))
        if not valid.all():
            return int(valid.argmin())
        present = None if present.all() else np.ascontiguousarray(present.T)
    scores = probs.swapaxes(0, 1).astype(np.float64, order="C")
    mean = _mean(scores, present)
    label = _label_of_mean(mean, present, len(probs), options)
    if off.max() > options.rounding:
        inexact = np.flatnonzero((off > options.rounding).any(axis=0))
        sums = np.add.reduce(scores[inexact], 2, keepdims=True)
        scores[inexact] /= np.where(sums > 0, sums, 1.0)
        mean[inexact] = _mean(scores[inexact], None if present is None else present[inexact])
    return Loaded(scores, present, mean, label)


def _mean(scores: Array, present: Array | None) -> Array:
    """Summed in float64 in the order of the sources."""
    total: Array = np.add.reduce(scores, 1)
    total /= scores.shape[1] if present is None else present.sum(axis=1, keepdims=True)
    return total


def _label_of_mean(mean: Array, present: Array | None, n_sources: int, options: Options) -> Array:
    label: Array = mean.argmax(axis=1)
    if not options.exact_scores:
        top = mean.max(axis=1, keepdims=True)
        n_present = n_sources if present is None else present.sum(axis=1, keepdims=True)
        near = top - top * ((4 * n_present + options.near) * options.eps)
        label[(mean >= near).sum(axis=1) > 1] = -1
    return label


def written(z: Array, label: Array, options: Options) -> Array:
    """``z`` summing to one, with ``label`` as its strict maximum if labels are kept."""
    truth: Array = z / np.add.reduce(z, 1, keepdims=True)
    if options.keep_label:
        project_rows_onto_winners(truth, label, options.margin)
    return truth


def discover_rows(loaded: Loaded, options: Options, outputs: Outputs, source_weights: Array | None = None) -> None:
    """Truth discovery of loaded samples whose labels are decided; weights of the sources are one by default."""
    scores, present, z, label = loaded
    n_sources = scores.shape[1]
    rows: Array = np.arange(len(z))
    n_present = np.full(len(z), n_sources) if present is None else present.sum(axis=1)
    done = n_present <= 2  # two equal sources pull equally from both sides: the mean stays
    influence: Any = present if source_weights is None else _influence(source_weights, present, len(z))
    if source_weights is not None:
        z, done = _weighted_mean(influence, scores), np.zeros_like(done)
        if options.keep_label:
            project_rows_onto_winners(z, label, 0.0)
    n_iter = 0
    while True:
        difference = scores - z[:, None]
        difference *= difference
        weight, hv, at_zero = _reliabilities(np.add.reduce(difference, 2), present, influence, options.tiny)
        outputs.trace[n_iter:, rows] = hv
        # A source that is the truth pulls infinitely: the truth stays.
        done = done if at_zero is None else done | at_zero
        stop = done if n_iter < options.max_iter else np.ones_like(done)
        if stop.any():
            stopped = rows[stop]
            outputs.probs[stopped] = written(z[stop], label[stop], options)
            outputs.reliability[:, stopped] = (weight[stop] / np.add.reduce(weight[stop], 1, keepdims=True)).T
            outputs.hv[stopped], outputs.n_iter[stopped], outputs.converged[stopped] = hv[stop], n_iter, done[stop]
            if stop.all():
                return
            go = ~stop
            rows, scores, z, label, weight = rows[go], scores[go], z[go], label[go], weight[go]
            present = None if present is None else present[go]
            influence = None if influence is None else influence[go]
        z_next = _weighted_mean(weight, scores)
        if options.keep_label:
            project_rows_onto_winners(z_next, label, 0.0)
        step = z_next - z
        step *= step
        squared_step = np.add.reduce(step, 1)
        z = z_next
        n_iter += 1
        done = (squared_step < options.tol) | (squared_step == 0)


def _weighted_mean(weight: Array, scores: Array) -> Array:
    """``sum_s weight[s] z_s / sum_s weight[s]`` for each sample."""
    mean: Array = np.matmul(weight[:, None], scores)[:, 0]
    mean /= np.add.reduce(weight, 1, keepdims=True)
    return mean


def _influence(source_weights: Array, present: Array | None, n_samples: int) -> Array:
    """(N, S) weights of the present sources, scaled to two where they sum to less; ones where all of them weigh 0."""
    weights = np.broadcast_to(np.asarray(source_weights, np.float64), (n_samples, len(source_weights)))
    here = np.ones(weights.shape) if present is None else present.astype(np.float64)
    weights = weights * here
    total = np.add.reduce(weights, 1, keepdims=True)
    scale = np.where(total < 2.0, 2.0 / np.where(total > 0.0, total, 1.0), 1.0)
    return np.where(total > 0.0, scale * weights, here)


def _reliabilities(
    distance: Array, present: Array | None, influence: Array | None, tiny: float
) -> tuple[Array, Array, Array | None]:
    """Weights a_s ln(V / d_s) of squared distances (N, S), HV, and where some source is at distance 0 (None: nowhere).

    A source at distance 0 would weigh infinitely much: such sources share all the weight.
    """
    if influence is not None or distance.min() < tiny:
        return _reliabilities_in_general(distance, present, influence, tiny)
    total = np.add.reduce(distance, 1, keepdims=True)
    weight = np.log(total) - np.log(distance)
    _set_precise_logs(weight, distance, 1.0, total)
    return weight, np.add.reduce(distance * weight, 1), None


def _reliabilities_in_general(
    distance: Array, present: Array | None, influence: Array | None, tiny: float
) -> tuple[Array, Array, Array]:
    is_apart = distance >= tiny if present is None else (distance >= tiny) & present
    counts = np.ones(distance.shape) if influence is None else influence.astype(np.float64)
    distance = np.where(is_apart, distance, 0.0)
    total = np.add.reduce(counts * distance, 1, keepdims=True)
    logs = np.log(np.where(total > 0.0, total, 1.0)) - np.log(np.where(is_apart, distance, 1.0))
    logs = np.where(is_apart, np.maximum(logs, 0.0), 0.0)
    _set_precise_logs(logs, distance, counts, total)
    weight = counts * logs
    hv = np.add.reduce(distance * weight, 1)
    equal = np.where(is_apart, 0.0, counts)
    at_zero: Any = equal.any(axis=1)
    return np.where(at_zero[:, None], equal, weight), hv, at_zero


def _set_precise_logs(logs: Array, distance: Array, counts: Any, total: Array) -> None:
    """Where one source is further away than all others together, ln V - ln d is mostly rounding; this is not."""
    shares = counts * distance
    far = shares > 0.5 * total
    if far.any():
        i, s = np.nonzero(far)
        others = shares[i]
        own = others[np.arange(len(i)), s] / distance[i, s]
        others[np.arange(len(i)), s] = 0.0
        logs[i, s] = np.log1p(np.maximum((own - 1.0) + np.add.reduce(others, 1) / distance[i, s], 0.0))
