"""The log pool: a weighted geometric mean of the sources and their mean, fitted on labels."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from veridical._minimisation import minimise
from veridical._parallel import run_blocks
from veridical.combine import pool_prior
from veridical.combine.base import Combiner
from veridical.combine.in_memory import AbsentSkipped, CombineOptions, SourcesInMemory, probabilities, sample_blocks
from veridical.combine.sources import Sources
from veridical.combine.state_checks import check_array, check_number
from veridical.combine.truth import Floats, Labels
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

#: Lower bounds of probabilities; which one is used is fitted.
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2)
#: The exponents stay within this.
MOST_EXPONENT = 20.0
#: Inverse variance of the normal prior on the sum of the exponents, around 1: twenty labels that happen to be predicted
#: well would otherwise make the pool far too sure.
_TOTAL_PRECISION = 4.0
#: The floor is chosen on a subset where there are more numbers than this.
_ENOUGH_FOR_FLOOR = 1 << 23
_MOST_DOUBLES = 1 << 26


class LogPool(Combiner):
    """A weighted geometric mean of the sources and their mean: what an absent source would have added is left out.

    Attributes
    ----------
    weights : (S,) float64
        Exponents of the sources.
    mean_weight : float
        Exponent of their mean.
    floor : float
        Probabilities below it are taken to be it.
    """

    name = "log-pool"
    summary = "Weighted geometric mean of the sources and their mean, exponents learnt from the labels."
    needs_labels = True
    has_weights = True
    complexity = 2
    _state = ("weights", "floor", "mean_weight")

    weights: Floats
    floor: float
    mean_weight: float

    def fit(self, predictions: Predictions, labels: Labels, options: CombineOptions) -> None:
        self.weights, self.mean_weight, self.floor = fit_exponents(predictions, labels, options.n_threads)

    def formula(self, xp: Any, sources: Sources) -> Any:
        return sources.log_pool(sources.of_present(self.weights), self.floor, self.mean_weight)

    def for_sources(self, known: list[int], n_new: int) -> Self:
        """A new source has the mean of the fitted exponents, to which the fit pulls one that is never present."""
        return self.with_state(weights=np.append(self.weights[known], np.full(n_new, self.weights.mean())))

    def check_state(self, n_sources: int) -> None:
        check_array(self.weights, "the weights of the log-pool", (n_sources,), -MOST_EXPONENT, MOST_EXPONENT)
        check_number(self.floor, "the log pool's floor", 1e-300, 0.5)
        check_number(self.mean_weight, "the log pool's exponent of the mean", -MOST_EXPONENT, MOST_EXPONENT)


def fit_exponents(predictions: Predictions, labels: Labels, n_threads: int | None) -> tuple[Floats, float, float]:
    """Exponents of the sources and of their mean, and the floor, with the lowest penalised NLL.

    The problem is convex in the exponents for a given floor and strength of the pull.  The floor is the one with the
    lowest loss under the weakest pull; the strength is then found by cross-validation.
    """
    n_samples, n_sources = predictions.n_samples, predictions.n_sources
    size = n_samples * n_sources * predictions.n_classes
    stride = -(-size // _ENOUGH_FOR_FLOOR)
    some = predictions if stride == 1 else predictions.select(samples=slice(0, None, stride))
    chosen = labels[::stride]
    prior = pool_prior.prior_shares(predictions, n_threads)
    logs, present = _logs_of(some, FLOORS[0], n_threads), _present(some)
    fits = [
        (*_search_exponents(_raised(logs, floor), present, chosen, prior, pool_prior.STRENGTHS[0], n_threads), floor)
        for floor in FLOORS
    ]
    _, weights, floor = min(fits, key=lambda fit: fit[0])
    strength = _strength_of_log_pool(some, chosen, prior, floor, n_threads)
    logs = _raised(logs, floor) if stride == 1 else _logs_of(predictions, floor, n_threads)
    present = present if stride == 1 else _present(predictions)
    # The sources' mean resembles them, so that the loss is nearly flat between its exponent and theirs.
    _, weights = _search_exponents(logs, present, labels, prior, strength, n_threads, weights, ftol=1e-12, gtol=1e-7)
    return weights[:-1], float(weights[-1]), floor


def _strength_of_log_pool(
    predictions: Predictions, labels: Labels, prior: Floats, floor: float, n_threads: int | None
) -> float:
    def losses(strength: float, fitted_on: Array, held_out: Array) -> Floats:
        part = predictions.select(samples=fitted_on)
        logs, present = _logs_of(part, floor, n_threads), _present(part)
        weights = _search_exponents(logs, present, labels[fitted_on], prior, strength, n_threads, **pool_prior.COARSE)[
            1
        ]
        combiner = LogPool().with_state(weights=weights[:-1], mean_weight=float(weights[-1]), floor=floor)
        sources = SourcesInMemory(predictions.select(samples=held_out), AbsentSkipped())
        pooled = combiner.formula(np, sources.block(slice(0, len(held_out)), np.dtype(np.float64)))
        chosen = pooled[np.arange(len(held_out)), labels[held_out]]
        of_held_out: Floats = -np.log(np.maximum(chosen, 1e-12))
        return of_held_out

    return pool_prior.choose_strength(len(labels), losses)


def _logs_of(predictions: Predictions, floor: float, n_threads: int | None) -> list[Array]:
    """Logarithms (S + 1, n, L) of the sources and their mean, block after block of samples."""
    # Above half a gigabyte the logarithms, not the sums over them, are held in single precision.
    size = predictions.n_classes * predictions.n_sources * predictions.n_samples
    dtype = np.float64 if size <= _MOST_DOUBLES else np.float32
    return run_blocks(
        lambda part: _floored_logs(probabilities(predictions, part), floor).astype(dtype),
        sample_blocks(predictions),
        n_threads,
    )


def _raised(logs: list[Array], floor: float) -> list[Array]:
    """The same logarithms under a higher floor."""
    return [np.maximum(block, math.log(floor)) for block in logs]


def _present(predictions: Predictions) -> Floats:
    """(S + 1, N): 1 where a source is present; the mean always is."""
    return np.vstack((predictions.present().astype(np.float64), np.ones((1, predictions.n_samples))))


def _search_exponents(
    logs: list[Array],
    present: Floats,
    labels: Labels,
    prior: Floats,
    strength: float,
    n_threads: int | None,
    start: Floats | None = None,
    **options: Any,
) -> tuple[float, Floats]:
    """(a, b) that minimise the mean NLL of softmax(sum_s a_s ln p_s + b ln p), with p the mean of the sources.

    S a_s is pulled towards the prior share of the sum of all a, the more the more samples lack the source, b towards 0,
    and the sum of all exponents towards 1.
    """
    from veridical._kernels.pooling import log_pool_loss  # loads the compiler

    n_samples, n_sources = len(labels), len(present) - 1
    pulls = strength + pool_prior.absence_counts(present[:-1])
    ends = np.cumsum([block.shape[1] for block in logs])
    blocks = [slice(end - block.shape[1], end) for block, end in zip(logs, ends.tolist(), strict=True)]

    def objective(weights: Floats) -> tuple[float, Floats]:
        def work(b: int) -> tuple[float, Floats]:
            gradient = np.zeros(n_sources + 1)
            # An absent source adds nothing, here as in a prediction.
            loss = log_pool_loss(logs[b], weights[:, None] * present[:, blocks[b]], labels[blocks[b]], gradient)
            return float(loss), gradient

        results = run_blocks(work, range(len(blocks)), n_threads)
        apart = n_sources * (weights[:-1] - prior * weights[:-1].sum())
        beyond_one = float(weights.sum()) - 1.0
        penalty = float(pulls @ apart**2) + float(weights[-1]) ** 2 + _TOTAL_PRECISION * beyond_one**2
        loss = sum(part for part, _ in results) + 0.5 * penalty
        gradient = np.sum([part for _, part in results], axis=0)
        pull = pulls * apart
        gradient += np.append(n_sources * (pull - prior @ pull), weights[-1]) + _TOTAL_PRECISION * beyond_one
        return loss / n_samples, gradient / n_samples

    first = np.append(prior, 0.0) if start is None else start
    # A pool of sources that are all right at every sample would grow for ever.
    bounds = [(-MOST_EXPONENT, MOST_EXPONENT)] * (n_sources + 1)
    return minimise(objective, first, bounds, "the log pool", **options)


def _floored_logs(block: Floats, floor: float) -> Floats:
    """(S + 1, n, L) logarithms of probabilities (S, n, L), NaN where absent, and of their mean."""
    present = ~np.isnan(block[:, :, :1])
    mean = np.where(present, block, 0.0).sum(axis=0) / present.sum(axis=0)
    logs: Floats = np.log(np.maximum(np.nan_to_num(np.concatenate((block, mean[None])), nan=1.0), floor))
    return logs
