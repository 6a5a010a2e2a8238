"""Per-sample uncertainty of an ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, softmax

from veridical._parallel import run_blocks
from veridical.backends.foreign import also_foreign
from veridical.combine import discover
from veridical.combine.truth_discovery import Missing
from veridical.metrics.sample import Floats
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import Kind

#: How many numbers a thread works on at a time: few enough for the processor's cache.
_BLOCK_NUMBERS = 1 << 17


@dataclass(frozen=True, eq=False)
class PredictiveUncertainty:
    """Uncertainty of an ensemble about each sample, and its parts.

    Attributes
    ----------
    total_entropy : (N,) array
        Entropy of the mean distribution, in nats.
    member_entropy : (N,) array
        Mean entropy of the sources' distributions: the part on which they agree.
    mutual_information : (N,) array
        Their difference: the part that is disagreement.
    hv : (N,) array
        Entropy-based geometric variance around the discovered truth.

    Examples
    --------
    >>> from veridical import metrics
    >>> uncertainty = metrics.predictive_uncertainty([[[0.9, 0.1]], [[0.5, 0.5]]])
    >>> uncertainty.hv.shape
    (1,)
    """

    total_entropy: Floats
    member_entropy: Floats
    mutual_information: Floats
    hv: Floats


def _block_entropies(predictions: Predictions, start: int, stop: int) -> tuple[Floats, Floats]:
    """(entropy of the mean, mean entropy) of some samples; absent sources, rows of NaN, do not count."""
    probs = predictions.samples(start, stop).astype(np.float64)
    present = np.logical_not(np.isnan(probs).all(axis=2))
    probs[~present] = 0.0
    if predictions.kind == "logits":
        probs = softmax(probs, axis=2)
    elif predictions.kind == "log_probs":
        probs = np.exp(probs)
    probs /= probs.sum(axis=2, keepdims=True) + ~present[:, :, None]
    probs[~present] = 0.0
    n_present = present.sum(axis=0)
    total = entr(probs.sum(axis=0) / n_present[:, None]).sum(axis=1)
    return total, entr(probs).sum(axis=(0, 2)) / n_present


@also_foreign("veridical.metrics.on_arrays")
def predictive_uncertainty(
    probs: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    missing: Missing = "raise",
    n_threads: int | None = None,
) -> PredictiveUncertainty:
    r"""Total entropy, mean entropy of the sources, mutual information and HV of each sample.

    .. math:: H\Big[\tfrac1S \sum_s z_s\Big] = \tfrac1S \sum_s H[z_s] + I

    Any of them can be the ``doubt`` of :func:`veridical.metrics.error_auroc` and :func:`veridical.metrics.aurc`.

    Parameters
    ----------
    probs : array of shape (S, N, L), sequence of S arrays (N, L), or Predictions
    kind : {"probs", "logits", "log_probs"}, default "probs"
    sources_axis : {0, 1}, default 0
        1 for an array of shape (N, S, L).
    missing : {"raise", "skip"}
        If a row of a source is all NaN, raise an error or leave the source out for that sample.
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
    Two sources that are sure of different classes: all of the uncertainty is disagreement.

    >>> import numpy as np
    >>> from veridical import metrics
    >>> uncertainty = metrics.predictive_uncertainty(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))
    >>> uncertainty.mutual_information.round(6), uncertainty.member_entropy
    (array([0.693147]), array([0.]))
    """
    predictions = as_predictions(probs, kind, sources_axis)
    truth = discover(predictions, missing=missing, n_threads=n_threads)  # also checks the values
    step = max(1, _BLOCK_NUMBERS // (predictions.n_sources * predictions.n_classes))
    blocks = [(start, min(start + step, predictions.n_samples)) for start in range(0, predictions.n_samples, step)]
    parts = run_blocks(lambda block: _block_entropies(predictions, *block), blocks, n_threads)
    total, member = (np.concatenate([np.empty(0), *(part[j] for part in parts)]) for j in range(2))
    return PredictiveUncertainty(total, member, np.maximum(total - member, 0.0), truth.hv.astype(np.float64))
