"""The consensus of dependent sources: reliability from all samples together, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from veridical._dispatch import also_out_of_memory
from veridical.backends.foreign import also_foreign, to_host
from veridical.backends.namespace import widest_float
from veridical.combine.across_samples.camps import Camp, warn_of_camps
from veridical.combine.across_samples.combiners import ConsensusMean, LabelKeepingConsensusMean
from veridical.combine.across_samples.passes import gather_sums
from veridical.combine.across_samples.weights import SourceWeights, counted_sources, weigh_sources
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.combine.sources import Sources
from veridical.combine.truth import Floats
from veridical.combine.truth_discovery import Missing
from veridical.predictions import as_predictions
from veridical.predictions.validation import Array, Kind, check_choice, check_flag


@dataclass(frozen=True, repr=False, eq=False)
class Consensus:
    """The consensus of the sources, and what it says of them.

    Attributes
    ----------
    probs : array of shape (N, L)
        Weighted mean of the sources, on the simplex.
    prediction : array of N integers
        The argmax of ``probs``; with ``accuracy_preserving=True`` the label of the plain mean.
    skill : array of shape (S,)
        Correlation of each source with what all of them see, from 0 to 0.98.
    weights : array of shape (S,)
        -ln(1 - skill^2).  The share of a source in a sample is proportional to its weight, divided by the sum of its
        dependence on the sources that are present.  All equal where the plain mean is returned.
    dependence : array of shape (S, S)
        What two sources share beyond the consensus, from 0 (independent errors) to 1 (copies).
    distinct_sources : array of shape (N,)
        How many distinct sources with weight each sample has.
    n_samples : array of S integers
        How many samples each source was present for.
    camps : tuple of Camp
        Empty, unless the sources split into camps and nothing says which is right; ``probs`` is then the mean.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> consensus = vd.consensus(predictions)
    >>> consensus.skill.shape, consensus.dependence.shape
    ((3,), (3, 3))
    """

    probs: Array
    prediction: npt.NDArray[np.int64]
    skill: Floats
    weights: Floats
    dependence: Floats
    distinct_sources: Floats
    n_samples: npt.NDArray[np.int64]
    camps: tuple[Camp, ...] = ()

    @property
    def shares(self) -> Floats:
        """(S,) share of each source in a sample for which all are present; they sum to one."""
        shares: Floats = self.source_weights / self.source_weights.sum()
        return shares

    @property
    def source_weights(self) -> Floats:
        """(S,) how many sources each source counts as: weights for :func:`veridical.discover`.

        The shares of a sample for which all sources are present, times its number of distinct sources.
        """
        return counted_sources(to_host(self.weights), to_host(self.dependence))

    def __repr__(self) -> str:
        n_samples, n_classes = self.probs.shape
        size = f"{self.skill.shape[0]} sources, {n_samples} samples, {n_classes} classes"
        if self.camps:
            return f"Consensus({size}; {len(self.camps)} camps, so this is the mean)"
        distinct = f", {to_host(self.distinct_sources).mean():.3g} distinct sources" if n_samples else ""
        return f"Consensus({size}{distinct})"


@also_foreign("veridical.combine.on_arrays")
@also_out_of_memory()
def consensus(
    predictions: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = False,
    missing: Missing = "skip",
    n_threads: int | None = None,
) -> Consensus:
    r"""Weigh the sources by what all samples together say of them, with copies counted once; no labels are used.

    Each source is centred over its samples, so that constant answers and class biases vanish, and :math:`R_{st}` is
    the correlation of two sources over the samples where both are present.  Were errors independent,
    :math:`R_{st} = \lambda_s \lambda_t`, with :math:`\lambda_s` the *skill*: the correlation of source s with what all
    of them see.  What two sources share beyond that is their *dependence* :math:`\rho_{st}`.  Both are found by
    alternating least squares, pairs that copy each other left out, and a sample's consensus is

    .. math:: z = \frac{\sum_s w_s a_s z_s}{\sum_s w_s a_s},\qquad w_s = -\ln(1 - \lambda_s^2),\qquad
              a_s = 1 / \sum_t \rho_{st},

    over the sources that are present, copies of :math:`t` counted once in the last sum.  It repairs weights, not
    confidence: calibrate afterwards.

    Parameters
    ----------
    predictions : array of shape (S, N, L), sequence of S arrays (N, L), or Predictions
        float16, float32 or float64.  float64 is computed in float64, everything else in float32.
    kind : {"probs", "logits", "log_probs"}, default "probs"
        What the numbers are.
    sources_axis : {0, 1}, default 0
        1 for an array of shape (N, S, L).
    accuracy_preserving : bool
        Keep the label of the plain mean as the strict maximum of each vector.
    missing : {"skip", "raise"}
        What to do about a source whose row is all NaN: leave it out for that sample, or refuse.
    n_threads : int, optional
        Default: all cores this process may use.  The result does not depend on it.

    Returns
    -------
    Consensus

    Warns
    -----
    CampsWarning
        Where the sources split into camps that agree only among themselves, with comparable evidence for each.
        Nothing in unlabelled predictions says which camp is right: the plain mean is returned, and ``camps`` holds
        each camp's own consensus.

    Notes
    -----
    With one or two sources the consensus is the mean.  The predictions are read once for the sums over samples (twice
    where sources are absent) and once for the result; nothing else depends on the number of samples.

    Found camps are those whose members share more with each other than with the consensus of all.  A majority that is
    wrong in the same way, with a minority too small or too divided to look like a camp, is not found by any means.

    References
    ----------
    The common factor: Parisi, Strino, Nadler, Kluger: Ranking and combining multiple predictors without labeled data,
    PNAS 2014; its dependent errors: Jaffe, Fetaya, Nadler, Jiang, Kluger, AISTATS 2016.  Both have binary votes.

    Examples
    --------
    Three sources see the truth, two of them through the same eyes, and a fourth guesses:

    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> truth = np.eye(3)[rng.integers(0, 3, 500)]
    >>> a, b, guess = rng.dirichlet([1, 1, 1], (3, 500))
    >>> consensus = vd.consensus([0.6 * truth + 0.4 * a, 0.6 * truth + 0.4 * a, 0.7 * truth + 0.3 * b, guess])
    >>> consensus.shares.round(2)
    array([0.21, 0.21, 0.58, 0.  ])
    >>> consensus.dependence.round(2)[0]
    array([1., 1., 0., 0.])
    """
    sources = as_predictions(predictions, kind, sources_axis)
    check_choice(missing, ("skip", "raise"), "missing")
    check_flag(accuracy_preserving, "accuracy_preserving")
    in_memory = SourcesInMemory(sources.flat(), AbsentSkipped(n_threads, missing))
    weights = weigh_sources(gather_sums(in_memory)[0], n_threads)
    # Two levels more than usual: the function is wrapped twice.
    warn_of_camps(sources.source_names, weights.camps, stacklevel=5)
    return consensus_with(weights, combine_with_weights(in_memory, weights, accuracy_preserving), sources.source_names)


class ConsensusVectors(NamedTuple):
    """What weights make of samples: one vector, label and number of distinct sources each, and a vector per camp."""

    probs: Array
    prediction: npt.NDArray[np.int64]
    distinct_sources: Floats
    probs_of_camps: tuple[Array, ...] = ()


def combine_with_weights(
    sources: SourcesInMemory | Sources, weights: SourceWeights, accuracy_preserving: bool
) -> ConsensusVectors:
    """The consensus of checked samples; the plain mean where nothing is known of the sources."""
    chosen = LabelKeepingConsensusMean if accuracy_preserving else ConsensusMean
    combiner = chosen.of(weights.weights, weights.dependence)
    of_camps = [ConsensusMean.of(camp.weights, camp.dependence) for camp in weights.camps]

    def work(sources: Sources) -> tuple[Any, ...]:
        probs, label = combiner.combine(sources)
        probs = sources.mean if weights.is_mean and not accuracy_preserving else probs
        distinct = sources.per_sample(combiner.shares(sources)[1])
        return probs, label, distinct, *(camp.formula(sources.xp, sources) for camp in of_camps)

    probs, prediction, distinct, *probs_of_camps = sources.in_blocks(work)
    if isinstance(sources, SourcesInMemory):
        dtype = sources.predictions.result_dtype
        probs, *probs_of_camps = (array.astype(dtype, copy=False) for array in (probs, *probs_of_camps))
    distinct = widest_float(sources.xp, distinct)
    return ConsensusVectors(probs, prediction, distinct, tuple(probs_of_camps))


def consensus_with(weights: SourceWeights, vectors: ConsensusVectors, source_names: Sequence[str] | None) -> Consensus:
    """Weights and what they made of the samples as one result."""
    camps = tuple(
        Camp(
            tuple(camp.members.tolist()),
            camp.names(source_names),
            camp.strength,
            camp.skill,
            camp.weights,
            probs,
        )
        for camp, probs in zip(weights.camps, vectors.probs_of_camps, strict=True)
    )
    return Consensus(
        vectors.probs,
        vectors.prediction,
        weights.skill,
        weights.weights,
        weights.dependence,
        vectors.distinct_sources,
        weights.n_samples,
        camps,
    )
