"""Per-sample measures of an ensemble's uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, softmax

from veridical._parallel import run_blocks
from veridical.combine import discover
from veridical.combine.truth_discovery import Missing
from veridical.metrics.sample import Floats
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Kind

#: How many numbers a thread works on at a time: few enough for the processor's cache.
_BLOCK_NUMBERS = 1 << 17


@dataclass(frozen=True, eq=False)
class PredictiveUncertainty:
    """How uncertain an ensemble is about each sample, and why.

    Attributes
    ----------
    total_entropy : (N,) array
        Entropy of the mean distribution, in nats.
    member_entropy : (N,) array
        Mean entropy of the members' distributions: the part on which they agree.
    mutual_information : (N,) array
        Their difference: the part that is disagreement.
    hv : (N,) array
        Entropy-based geometric variance around the discovered truth.
    """

    total_entropy: Floats
    member_entropy: Floats
    mutual_information: Floats
    hv: Floats


def _block_entropies(given: Predictions, start: int, stop: int) -> tuple[Floats, Floats]:
    """(entropy of the mean, mean entropy) of some samples; absent members, rows of NaN, do not count."""
    scores = given.samples(start, stop).astype(np.float64)
    present = np.logical_not(np.isnan(scores).all(axis=2))
    scores[~present] = 0.0
    if given.kind == "logits":
        scores = softmax(scores, axis=2)
    elif given.kind == "log_probs":
        scores = np.exp(scores)
    scores /= scores.sum(axis=2, keepdims=True) + ~present[:, :, None]
    scores[~present] = 0.0
    n_present = present.sum(axis=0)
    total = entr(scores.sum(axis=0) / n_present[:, None]).sum(axis=1)
    return total, entr(scores).sum(axis=(0, 2)) / n_present


def predictive_uncertainty(
    probs: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    missing: Missing = "raise",
    n_threads: int | None = None,
) -> PredictiveUncertainty:
    r"""Total entropy, mean member entropy, mutual information and HV of each sample.

    .. math:: H\Big[\tfrac1S \sum_s z_s\Big] = \tfrac1S \sum_s H[z_s] + I

    Any of them can be the ``score`` of :func:`veridical.metrics.error_auroc` and :func:`veridical.metrics.aurc`.

    Parameters
    ----------
    probs : array of shape (S, N, L), sequence of S arrays (N, L), or Predictions
    kind : {"probs", "logits", "log_probs"}, default "probs"
    sources_axis : {0, 1}, default 0
        1 for an array of shape (N, S, L).
    missing : {"raise", "skip"}
        What to do about a member whose row is all NaN: refuse, or leave it out for that sample.
    n_threads : int, optional

    Returns
    -------
    PredictiveUncertainty

    References
    ----------
    Depeweg et al., "Decomposition of uncertainty in Bayesian deep learning for efficient and risk-sensitive
    learning", ICML 2018; for HV, Ma et al., UAI 2021.

    Examples
    --------
    Two members that are sure of different classes: all of the uncertainty is disagreement.

    >>> import numpy as np
    >>> from veridical import metrics
    >>> found = metrics.predictive_uncertainty(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    >>> found.mutual_information.round(6), found.member_entropy
    (array([0.693147]), array([0.]))
    """
    given = as_predictions(probs, kind, sources_axis)
    truth = discover(given, missing=missing, n_threads=n_threads)  # checks the numbers, too
    step = max(1, _BLOCK_NUMBERS // (given.n_sources * given.n_classes))
    blocks = [(start, min(start + step, given.n_samples)) for start in range(0, given.n_samples, step)]
    parts = run_blocks(lambda block: _block_entropies(given, *block), blocks, n_threads)
    total, member = (np.concatenate([np.empty(0), *(part[j] for part in parts)]) for j in range(2))
    return PredictiveUncertainty(total, member, np.maximum(total - member, 0.0), truth.hv.astype(np.float64))
