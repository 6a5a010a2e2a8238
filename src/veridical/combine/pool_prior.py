"""What the fits of learned pools share: the prior of the weights, and how strong it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from veridical.combine.across_samples.passes import gather_sums
from veridical.combine.across_samples.weights import counted_sources, weigh_sources
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.combine.truth import Floats
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

#: Strengths of the pull towards the prior shares that are tried, in samples; the weakest is that of a normal prior with
#: standard deviation one on S times an exponent.
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
#: With fewer samples than this the weakest pull is not tried, and with a tenth of them not the next: a cross-validation
#: of so few says too little.
_ENOUGH_FOR_WEAK_PULL = 200
#: Folds of the cross-validation, and samples that suffice for it.
_FOLDS, _MOST_FOR_STRENGTH = 5, 2000
#: Part of the prior that is spread equally over the sources.
_EQUAL_PART = 0.1
#: Fits that are only compared need not be exact.
COARSE: dict[str, Any] = {"ftol": 1e-9, "gtol": 1e-5}
#: Weight of a sample without a source, as evidence that this source's weight is the prior's, against a
#: sample with it.  A source that is rarely present cannot move far from an equal weight.
_ABSENCE_WEIGHT = 0.1


def absence_counts(present: Floats) -> Floats:
    """(S,) pseudo-counts for the prior weight of each source; ``present`` is (S, N), 1 where a source is present."""
    counts: Floats = _ABSENCE_WEIGHT * (present.shape[1] - present.sum(axis=1))
    return counts


def prior_shares(predictions: Predictions, n_threads: int | None = None) -> Floats:
    """(S,) shares that learned weights are pulled towards: the consensus's, a tenth of them spread equally.

    They need no labels, so that samples without one count as well.  Where sources split into camps, or are fewer than
    three, they are equal.
    """
    sources = SourcesInMemory(predictions.with_unlabelled(), AbsentSkipped(n_threads))
    known = weigh_sources(gather_sums(sources)[0], n_threads)
    shares = counted_sources(known.weights, known.dependence)
    mixed: Floats = (1 - _EQUAL_PART) * shares / shares.sum() + _EQUAL_PART / len(shares)
    return mixed


def _folds(n_samples: int) -> list[tuple[Array, Array]]:
    """(fitted on, held out) of each fold of a cross-validation; samples of one fold lie far apart, as in any order."""
    samples = np.arange(0, n_samples, -(-n_samples // _MOST_FOR_STRENGTH))
    fold = np.arange(len(samples)) % _FOLDS
    return [(samples[fold != k], samples[fold == k]) for k in range(_FOLDS)]


def choose_strength(n_samples: int, losses: Callable[[float, Array, Array], Floats]) -> float:
    """The strength of the pull whose fits predict held-out samples best; the strongest of equal ones.

    ``losses(strength, fitted_on, held_out)`` are the losses of held-out samples.
    """
    if n_samples < 2 * _FOLDS:
        return STRENGTHS[-1]
    folds = _folds(n_samples)

    def mean_loss(strength: float) -> float:
        return float(np.concatenate([losses(strength, *fold) for fold in folds]).mean())

    tried = [strength for strength in STRENGTHS if strength * n_samples >= _ENOUGH_FOR_WEAK_PULL]
    return min(reversed(tried), key=mean_loss)
