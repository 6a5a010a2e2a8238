"""The linear pool: a weighted mean of the sources, fitted on labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from veridical._minimisation import minimise
from veridical.combine import pool_prior
from veridical.combine.base import Combiner
from veridical.combine.in_memory import CombineOptions, probabilities, sample_blocks
from veridical.combine.sources import Sources
from veridical.combine.state_checks import check_array
from veridical.combine.truth import Floats, Labels
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

_MOST_LOG_SHARE = 40.0


class LinearPool(Combiner):
    """A weighted mean of the sources; the share of one that is absent goes to the others.

    Attributes
    ----------
    weights : (S,) float64
        They sum to one.
    """

    name = "linear-pool"
    summary = "Weighted mean of the sources, weights learnt from the labels."
    needs_labels = True
    has_weights = True
    complexity = 2
    _state = ("weights",)

    weights: Floats

    def fit(self, predictions: Predictions, labels: Labels, options: CombineOptions) -> None:
        self.weights = fit_shares(predictions, labels, options.n_threads)

    def formula(self, xp: Any, sources: Sources) -> Any:
        return sources.weighted(sources.of_present(self.weights))

    def for_sources(self, known: list[int], n_new: int) -> Self:
        """A new source has the mean of the fitted weights, to which the fit pulls one that is never present."""
        weights = np.append(self.weights[known], np.full(n_new, self.weights.mean()))
        total = weights.sum()
        return self.with_state(weights=weights / total if total > 0 else np.full(len(weights), 1 / len(weights)))

    def check_state(self, n_sources: int) -> None:
        check_array(self.weights, "the weights of the linear-pool", (n_sources,), 0.0, 1.0)
        if abs(self.weights.sum() - 1) > 1e-6:
            raise ValueError("the linear pool's weights do not sum to one")


def fit_shares(predictions: Predictions, labels: Labels, n_threads: int | None = None) -> Floats:
    r"""Shares a on the simplex that maximise the posterior of the labels.

    .. math:: \sum_n \ln \frac{\sum_{s \in P_n} a_s p_s[y_n]}{\sum_{s \in P_n} a_s} + \kappa \sum_s \pi_s \ln a_s
              + \sum_s k_s \Big[\frac1S \ln a_s + \big(1 - \frac1S\big) \ln (1 - a_s)\Big]

    with P_n the sources that are present: as in a prediction, an absent source's share goes to the others.  The prior
    shares :math:`\pi` are those of :func:`prior_shares`, and the pull towards them is worth :math:`\kappa` samples,
    found by cross-validation.  The last term is a beta prior around the equal share for each source, with k_s a tenth
    of the samples that lack it: a source present in n of N samples has a share of at most (n + k/S) / (n + k).  The
    search is over ln a, up to a constant, by L-BFGS.  Where no source is ever absent the problem is concave in a.
    """
    prior = pool_prior.prior_shares(predictions, n_threads)  # this checks the numbers
    scores = np.concatenate(
        [
            np.take_along_axis(probabilities(predictions, part), labels[None, part, None], axis=2)[:, :, 0]
            for part in sample_blocks(predictions)
        ],
        axis=1,
    )
    present = np.ascontiguousarray(~np.isnan(scores).T, dtype=np.float64)
    scores = np.ascontiguousarray(np.maximum(np.nan_to_num(scores), 1e-12).T) * present

    def losses(strength: float, fitted_on: Array, held_out: Array) -> Floats:
        shares = _search_shares(scores[fitted_on], present[fitted_on], prior, strength, **pool_prior.COARSE)
        logs: Floats = np.log(present[held_out] @ shares) - np.log(np.maximum(scores[held_out] @ shares, 1e-12))
        return logs

    strength = pool_prior.choose_strength(len(labels), losses)
    # A poor source's share moves the mean loss by little; these tolerances still find it.
    return _search_shares(scores, present, prior, strength, ftol=1e-14, gtol=1e-9)


def _search_shares(scores: Floats, present: Floats, prior: Floats, strength: float, **options: Any) -> Floats:
    """The linear pool's shares for scores (N, S) of the labels, with a pull of so many samples towards the prior."""
    from scipy.special import softmax

    from veridical._kernels.pooling import mixture_loss  # loads the compiler

    n_sources, n_counts = len(prior), len(scores) + strength
    counts, equal = pool_prior.absence_counts(present.T), 1 / n_sources

    def objective(log_shares: Floats) -> tuple[float, Floats]:
        shares = softmax(log_shares)
        gradient = np.zeros(n_sources)
        loss = mixture_loss(scores, present, shares, gradient) - strength * float(prior @ np.log(shares))
        if n_sources > 1:
            rest = np.maximum(1.0 - shares, np.exp(-_MOST_LOG_SHARE))
            loss -= float(counts @ (equal * np.log(shares) + (1 - equal) * np.log(rest)))
            gradient += counts * ((1 - equal) / rest - equal / shares)
        gradient = gradient * shares
        gradient -= shares * gradient.sum() + strength * (prior - shares)
        return float(loss) / n_counts, gradient / n_counts

    bounds = [(-_MOST_LOG_SHARE, _MOST_LOG_SHARE)] * n_sources
    best = minimise(objective, np.log(prior), bounds, "the linear pool", **options)[1]
    shares: Floats = softmax(best)
    return shares
