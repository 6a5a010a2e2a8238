"""Learned pools: weighted means and weighted geometric means of the sources, fitted on labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from veridical._minimisation import minimise
from veridical._numpy_kernels import is_small, kernel_for
from veridical._parallel import run_blocks
from veridical.combine.across_samples.weights import counted_sources, gather_sums, weigh_sources
from veridical.combine.combined import Floats, Labels
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

#: Lower bounds of probabilities in the log pool; which one is used is fitted.
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2)
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
_COARSE: dict[str, Any] = {"ftol": 1e-9, "gtol": 1e-5}
#: Weight of a sample without a source, as evidence that this source's weight is the prior's, against a
#: sample with it.  A source that is rarely present cannot move far from an equal weight.
_ABSENCE_WEIGHT = 0.1
#: The log pool's exponents stay within this.
MOST_EXPONENT = 20.0
#: Inverse variance of the normal prior on the sum of the log pool's exponents, around 1: twenty labels that happen to
#: be predicted well would otherwise make it far too sure.
_TOTAL_PRECISION = 4.0
#: The floor is chosen on a subset where there are more numbers than this.
_ENOUGH_FOR_FLOOR = 1 << 23
_MOST_DOUBLES = 1 << 26
_BLOCK_SIZE = 1 << 18
_MOST_LOG_SHARE = 40.0


def probabilities(predictions: Predictions, part: slice) -> Floats:
    """Samples of all sources as float64 probabilities (S, n, L), rows summing to one; absent sources stay NaN."""
    values = predictions.samples(part.start, part.stop).astype(np.float64)
    if predictions.kind != "probs":
        values -= values.max(axis=-1, keepdims=True)
        np.exp(values, out=values)
    values /= values.sum(axis=-1, keepdims=True)
    return values


def geometric_mean(block: Floats) -> Floats:
    """(n, L): the normalised geometric mean of probabilities (S, n, L), over the sources that are present."""
    present = ~np.isnan(block[:, :, 0])
    return _log_pool_rows(_floored_logs(block, FLOORS[1]), present / present.sum(axis=0))


def log_pool(block: Floats, weights: Floats, mean_weight: float, floor: float) -> Floats:
    """softmax(sum_s a_s ln p_s + b ln p) of probabilities (S, n, L) and their mean p, none below the floor.

    Where a source is absent the other exponents stay as they are: what it would have added is left out, in the fit as
    here.
    """
    block = with_mean(block)
    exponents = np.append(weights, mean_weight)
    return _log_pool_rows(_floored_logs(block, floor), exponents[:, None] * ~np.isnan(block[:, :, 0]))


def _log_pool_rows(logs: Floats, shares: Floats) -> Floats:
    """(n, L): softmax of the sums of logarithms (S, n, L) times shares (S, n)."""
    pooled = np.empty(logs.shape[1:])
    kernel_for(logs.swapaxes(0, 1), "pooling", "log_pool_rows")(logs, shares, pooled)
    return pooled


def with_mean(block: Floats) -> Floats:
    """Probabilities (S, n, L) with the mean of the present sources as one more source."""
    present = ~np.isnan(block[:, :, :1])
    mean = np.where(present, block, 0.0).sum(axis=0) / present.sum(axis=0)
    return np.concatenate((block, mean[None]))


def linear_pool(block: Floats, weights: Floats) -> Floats:
    """sum_s a_s p_s with the shares of the present sources scaled to sum one."""
    present = ~np.isnan(block[:, :, 0])
    shares = weights[:, None] * present
    sums = shares.sum(axis=0)
    # If only zero-weight sources are present, weight them equally.
    shares = np.where(sums > 0, shares / np.where(sums > 0, sums, 1.0), present / present.sum(axis=0))
    mixture: Floats = np.einsum("sn,snl->nl", shares, np.nan_to_num(block))
    return mixture


def _floored_logs(block: Floats, floor: float) -> Floats:
    logs: Floats = np.log(np.maximum(np.nan_to_num(block, nan=1.0), floor))
    return logs


def row_blocks(n_rows: int, numbers_per_row: int) -> list[slice]:
    """Slices that cover the rows, of a size that depends on the data alone."""
    step = max(_BLOCK_SIZE // max(numbers_per_row, 1), 1)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def over_rows(work: Callable[[slice], None], rows: Array, n_threads: int | None) -> None:
    """Call ``work`` with slices that cover the rows; once, without looking for threads, where they are few."""
    if is_small(len(rows), rows.size):
        work(slice(0, len(rows)))
    else:
        run_blocks(work, row_blocks(*rows.shape), n_threads)


def sample_blocks(predictions: Predictions) -> list[slice]:
    """Slices that cover the samples, of a size that depends on the numbers per sample."""
    return row_blocks(predictions.n_samples, predictions.n_sources * predictions.n_classes)


def absence_counts(present: Floats) -> Floats:
    """(S,) pseudo-counts for the prior weight of each source; ``present`` is (S, N), 1 where a source is present."""
    counts: Floats = _ABSENCE_WEIGHT * (present.shape[1] - present.sum(axis=1))
    return counts


def prior_shares(predictions: Predictions, n_threads: int | None = None) -> Floats:
    """(S,) shares that learned weights are pulled towards: the consensus's, a tenth of them spread equally.

    They need no labels, so that samples without one count as well.  Where sources split into camps, or are fewer than
    three, they are equal.
    """
    sums, _ = gather_sums(predictions.with_unlabelled(), "skip", n_threads)
    known = weigh_sources(sums, n_threads)
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


def fit_linear_pool(predictions: Predictions, labels: Labels, n_threads: int | None = None) -> Floats:
    r"""Shares a on the simplex that maximise the posterior of the labels.

    .. math:: \sum_n \ln \frac{\sum_{s \in P_n} a_s p_s[y_n]}{\sum_{s \in P_n} a_s} + \kappa \sum_s \pi_s \ln a_s
              + \sum_s k_s \Big[\frac1S \ln a_s + \big(1 - \frac1S\big) \ln (1 - a_s)\Big]

    with P_n the sources that are present: as in a prediction, an absent source's share goes to the others.  The prior
    shares :math:`\pi` are those of :func:`prior_shares`, and the pull towards them is worth :math:`\kappa` samples,
    found by cross-validation.  The last term is a beta prior around the equal share for each source, with k_s a tenth
    of the samples that lack it: a source present in n of N samples has a share of at most (n + k/S) / (n + k).  The
    search is over ln a, up to a constant, by L-BFGS.  Where no source is ever absent the problem is concave in a.
    """
    scores = np.concatenate(
        [
            np.take_along_axis(probabilities(predictions, part), labels[None, part, None], axis=2)[:, :, 0]
            for part in sample_blocks(predictions)
        ],
        axis=1,
    )
    present = np.ascontiguousarray(~np.isnan(scores).T, dtype=np.float64)
    scores = np.ascontiguousarray(np.maximum(np.nan_to_num(scores), 1e-12).T) * present
    prior = prior_shares(predictions, n_threads)

    def losses(strength: float, fitted_on: Array, held_out: Array) -> Floats:
        shares = _fit_shares(scores[fitted_on], present[fitted_on], prior, strength, **_COARSE)
        logs: Floats = np.log(present[held_out] @ shares) - np.log(np.maximum(scores[held_out] @ shares, 1e-12))
        return logs

    strength = choose_strength(len(labels), losses)
    # A poor source's share moves the mean loss by little; these tolerances still find it.
    return _fit_shares(scores, present, prior, strength, ftol=1e-14, gtol=1e-9)


def _fit_shares(scores: Floats, present: Floats, prior: Floats, strength: float, **options: Any) -> Floats:
    """The linear pool's shares for scores (N, S) of the labels, with a pull of so many samples towards the prior."""
    from scipy.special import softmax

    from veridical._kernels.pooling import mixture_loss  # loads the compiler

    n_sources, n_counts = len(prior), len(scores) + strength
    counts, equal = absence_counts(present.T), 1 / n_sources

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


def fit_log_pool(predictions: Predictions, labels: Labels, n_threads: int | None) -> tuple[Floats, float, float]:
    """Exponents of the sources and of their mean, and the floor, with the lowest penalised NLL.

    The problem is convex in the exponents for a given floor and strength of the pull.  The floor is the one with the
    lowest loss under the weakest pull; the strength is then found by cross-validation.
    """
    n_samples, n_sources = predictions.n_samples, predictions.n_sources
    size = n_samples * n_sources * predictions.n_classes
    stride = -(-size // _ENOUGH_FOR_FLOOR)
    some = predictions if stride == 1 else predictions.select(samples=slice(0, None, stride))
    chosen = labels[::stride]
    prior = prior_shares(predictions, n_threads)
    logs, present = _logs_of(some, FLOORS[0], n_threads), _present(some)
    fits = [
        (*_fit_exponents(_raised(logs, floor), present, chosen, prior, STRENGTHS[0], n_threads), floor)
        for floor in FLOORS
    ]
    _, weights, floor = min(fits, key=lambda fit: fit[0])
    strength = _strength_of_log_pool(some, chosen, prior, floor, n_threads)
    logs = _raised(logs, floor) if stride == 1 else _logs_of(predictions, floor, n_threads)
    present = present if stride == 1 else _present(predictions)
    # The sources' mean resembles them, so that the loss is nearly flat between its exponent and theirs.
    _, weights = _fit_exponents(logs, present, labels, prior, strength, n_threads, weights, ftol=1e-12, gtol=1e-7)
    return weights[:-1], float(weights[-1]), floor


def _strength_of_log_pool(
    predictions: Predictions, labels: Labels, prior: Floats, floor: float, n_threads: int | None
) -> float:
    def losses(strength: float, fitted_on: Array, held_out: Array) -> Floats:
        part = predictions.select(samples=fitted_on)
        logs, present = _logs_of(part, floor, n_threads), _present(part)
        weights = _fit_exponents(logs, present, labels[fitted_on], prior, strength, n_threads, **_COARSE)[1]
        block = probabilities(predictions.select(samples=held_out), slice(0, len(held_out)))
        pooled = log_pool(block, weights[:-1], float(weights[-1]), floor)
        chosen = pooled[np.arange(len(held_out)), labels[held_out]]
        return -np.log(np.maximum(chosen, 1e-12))

    return choose_strength(len(labels), losses)


def _logs_of(predictions: Predictions, floor: float, n_threads: int | None) -> list[Array]:
    """Logarithms (S + 1, n, L) of the sources and their mean, block after block of samples."""
    # Above half a gigabyte the logarithms, not the sums over them, are held in single precision.
    size = predictions.n_classes * predictions.n_sources * predictions.n_samples
    dtype = np.float64 if size <= _MOST_DOUBLES else np.float32
    return run_blocks(
        lambda part: _floored_logs(with_mean(probabilities(predictions, part)), floor).astype(dtype),
        sample_blocks(predictions),
        n_threads,
    )


def _raised(logs: list[Array], floor: float) -> list[Array]:
    """The same logarithms under a higher floor."""
    return [np.maximum(block, math.log(floor)) for block in logs]


def _present(predictions: Predictions) -> Floats:
    """(S + 1, N): 1 where a source is present; the mean always is."""
    return np.vstack((predictions.present().astype(np.float64), np.ones((1, predictions.n_samples))))


def _fit_exponents(
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
    pulls = strength + absence_counts(present[:-1])
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
