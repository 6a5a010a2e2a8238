"""Truth discovery and the consensus of arrays of other libraries where they are.

Functions here have the names of those that they stand in for; see :func:`veridical.backends.also_foreign`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from veridical.backends.foreign import Foreign, to_host
from veridical.backends.namespace import widest_float
from veridical.combine.across_samples.camps import warn_of_camps
from veridical.combine.across_samples.consensus import Consensus, ConsensusVectors, combine_with_weights, consensus_with
from veridical.combine.across_samples.passes import FEW_NUMBERS
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.across_samples.weights import SourceWeights, weigh_sources
from veridical.combine.sources import STEP, UPDATES, Sources, load_arrays
from veridical.combine.truth import Truth, check_source_weights
from veridical.combine.truth_discovery import MOST_TRACED
from veridical.errors import ParameterError
from veridical.predictions import Predictions
from veridical.predictions.inputs import check_has_sources
from veridical.predictions.validation import LARGEST_COUNT, check_flag, check_integer, check_real


def discover(
    foreign: Foreign,
    *,
    kind: Any = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = True,
    tol: float = STEP,
    max_iter: int = UPDATES,
    missing: Any = "raise",
    source_weights: Any = None,
    trace: bool = False,
    n_threads: int | None = None,
) -> Truth:
    """Truth discovery as :func:`veridical.discover`, on the device of the arrays."""
    check_has_sources(foreign.values, kind)
    sources = load_arrays(foreign, kind, sources_axis, missing)
    weights = None
    if source_weights is not None:
        weights = check_source_weights(source_weights, Predictions(np.empty((sources.n_sources, 0, 2))))
    truth = sources.truth(
        weights,
        keep_label=check_flag(accuracy_preserving, "accuracy_preserving"),
        tol=check_real(tol, "tol", 0.0),
        max_iter=check_integer(max_iter, "max_iter", 0, MOST_TRACED if trace else LARGEST_COUNT),
        trace=check_flag(trace, "trace"),
    )
    shape = sources.sample_shape
    return truth if shape is None or len(shape) == 1 else truth.in_shape(shape, sources.xp.reshape)


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
    sources = load_arrays(foreign, kind, sources_axis, missing)
    check_flag(accuracy_preserving, "accuracy_preserving")
    weights = weigh_sources(_sums_of(sources), n_threads)
    names = [str(name) for name in foreign.values] if isinstance(foreign.values, Mapping) else None
    # One level more than usual: the function is wrapped.
    warn_of_camps(names, weights.camps, stacklevel=4)
    vectors = combine_with_weights(sources, weights, accuracy_preserving)
    return consensus_with(_on_device(sources, weights, vectors), vectors, names)


def _on_device(sources: Sources, weights: SourceWeights, vectors: ConsensusVectors) -> SourceWeights:
    """The weights as arrays beside the vectors."""
    xp, constant = sources.xp, sources.constant
    skill, of_sources, dependence = map(constant, (weights.skill, weights.weights, weights.dependence))
    n_samples = xp.astype(xp.asarray(weights.n_samples, device=sources.probs.device), vectors.prediction.dtype)
    camps = tuple(camp._replace(skill=constant(camp.skill), weights=constant(camp.weights)) for camp in weights.camps)
    return SourceWeights(skill, of_sources, dependence, n_samples, camps)


def _sums_of(sources: Sources) -> ConsensusSums:
    """Sums over samples about the means of the sources; their size does not depend on the number of samples."""
    xp, probs = sources.xp, sources.probs
    n_sources, n_samples, n_classes = probs.shape
    values = widest_float(xp, probs) if n_sources * n_samples * n_classes <= FEW_NUMBERS else probs
    here = xp.broadcast_to(xp.astype(sources.present_as_numbers, values.dtype), (n_sources, n_samples))
    counts = xp.sum(here, axis=1)
    means = xp.sum(values, axis=1) / xp.maximum(counts, xp.ones_like(counts))[:, None]
    centred = (values - means[:, None, :]) * here[:, :, None]
    flat = xp.reshape(centred, (n_sources, -1))
    squares = xp.sum(centred * centred, axis=2) @ here.T
    arrays = (means, xp.sum(centred, axis=1), here @ here.T, flat @ flat.T, squares)
    return ConsensusSums(*(np.array(to_host(array), np.float64) for array in arrays))
