"""The consensus of arrays of other libraries, on their device: only sums for each pair of sources reach the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veridical.backends.foreign import Foreign, to_host
from veridical.backends.truth import project, widest_float
from veridical.combine.across_samples.consensus import Consensus, ConsensusVectors, consensus_with, warn_of_camps
from veridical.combine.across_samples.factor import COPIES
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.across_samples.weights import SourceWeights, weigh_sources
from veridical.combine.array_inputs import LoadedArrays, load_arrays
from veridical.combine.combined import Floats
from veridical.combine.projection import LABEL_MARGIN
from veridical.errors import ParameterError
from veridical.predictions.validation import check_flag

#: Up to so many numbers, products are summed in double precision: rounding averages out only over many samples.
_FEW_NUMBERS = 1 << 20


def consensus(
    foreign: Foreign,
    *,
    kind: Any = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = False,
    missing: Any = "skip",
    n_threads: int | None = None,
) -> Consensus:
    """As :func:`veridical.consensus`; derivatives take the weights of the sources as constants."""
    if foreign.traced:
        raise ParameterError(
            "consensus weighs the sources by all samples and cannot be traced; call it outside of the traced function, "
            "and combine there with its shares."
        )
    loaded = load_arrays(foreign, kind, sources_axis, missing)
    check_flag(accuracy_preserving, "accuracy_preserving")
    weights, names = weigh_sources(sums_of(loaded), n_threads), _names(foreign, loaded.probs.shape[0])
    # One level more than usual: the function is wrapped.
    warn_of_camps(names, weights.camps, stacklevel=4)
    vectors = _combine(loaded, weights, accuracy_preserving)
    return consensus_with(_on_device(loaded, weights, vectors), vectors, names)


def _combine(loaded: LoadedArrays, weights: SourceWeights, accuracy_preserving: bool) -> ConsensusVectors:
    """The consensus of the samples; the plain mean where nothing is known of the sources."""
    xp = loaded.xp
    probs, distinct = weighted_mean(loaded, weights.weights, weights.dependence)
    if weights.is_mean:
        probs = loaded.truth(keep_label=False, tol=0.0, max_iter=0).probs
    if accuracy_preserving:
        probs = project(xp, probs, loaded.prediction, LABEL_MARGIN)
    keeps = weights.is_mean or accuracy_preserving
    prediction = loaded.prediction if keeps else xp.argmax(probs, axis=1)
    camps = tuple(weighted_mean(loaded, camp.weights, camp.dependence)[0] for camp in weights.camps)
    return ConsensusVectors(probs, prediction, widest_float(xp, distinct), camps)


def _on_device(loaded: LoadedArrays, weights: SourceWeights, vectors: ConsensusVectors) -> SourceWeights:
    """The weights as arrays beside the vectors."""
    xp, like = loaded.xp, vectors.distinct_sources
    skill, of_sources, dependence = (
        loaded.constant(values, like) for values in (weights.skill, weights.weights, weights.dependence)
    )
    n_samples = xp.sum(xp.astype(loaded.present, vectors.prediction.dtype), axis=1)
    camps = tuple(
        camp._replace(skill=loaded.constant(camp.skill, like), weights=loaded.constant(camp.weights, like))
        for camp in weights.camps
    )
    return SourceWeights(skill, of_sources, dependence, n_samples, camps)


def sums_of(loaded: LoadedArrays) -> ConsensusSums:
    """Sums over samples about the means of the sources; their size does not depend on the number of samples."""
    xp, probs = loaded.xp, loaded.probs
    few = probs.shape[0] * probs.shape[1] * probs.shape[2] <= _FEW_NUMBERS
    values = widest_float(xp, probs) if few else probs
    here = xp.astype(loaded.present, values.dtype)
    n_samples = xp.sum(here, axis=1)
    means = xp.sum(values, axis=1) / xp.maximum(n_samples, xp.ones_like(n_samples))[:, None]
    centred = (values - means[:, None, :]) * here[:, :, None]
    flat = xp.reshape(centred, (centred.shape[0], -1))
    squares = xp.sum(centred * centred, axis=2) @ here.T
    arrays = (means, xp.sum(centred, axis=1), here @ here.T, flat @ flat.T, squares)
    return ConsensusSums(*(np.array(to_host(array), np.float64) for array in arrays))


def sample_shares(loaded: LoadedArrays, weights: Floats, dependence: Floats) -> tuple[Any, Any]:
    """Shares (S, N) of the sources that are present, and (N,) how many distinct sources they amount to.

    Twin of :func:`veridical.combine.across_samples.passes.sample_weights`.
    """
    xp = loaded.xp
    here = xp.astype(loaded.present, loaded.probs.dtype)
    copies = loaded.constant(dependence > COPIES) @ here
    single = here / xp.maximum(copies, xp.ones_like(copies))
    depends = loaded.constant(dependence) @ single
    distinctness = single / xp.where(single > 0, depends, xp.ones_like(depends))
    weight = loaded.constant(weights)[:, None]
    shares = weight * distinctness
    none = (xp.sum(shares, axis=0) <= 0)[None, :]
    shares = xp.where(none, distinctness, shares)
    counted = xp.where(none | (weight > 0), distinctness, xp.zeros_like(distinctness))
    return shares / xp.sum(shares, axis=0)[None, :], xp.sum(counted, axis=0)


def weighted_mean(loaded: LoadedArrays, weights: Floats, dependence: Floats) -> tuple[Any, Any]:
    """(N, L) mean of the sources with their weights, and (N,) the number of distinct sources."""
    shares, distinct = sample_shares(loaded, weights, dependence)
    return loaded.xp.sum(shares[:, :, None] * loaded.probs, axis=0), distinct


def _names(foreign: Foreign, n_sources: int) -> list[str]:
    return [str(name) for name in (foreign.values if isinstance(foreign.values, Mapping) else range(n_sources))]
