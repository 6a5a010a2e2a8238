"""From many sources to one vector per sample: the mean, truth discovery, or a pool fitted on labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from veridical._kernels.pooling import log_pool_loss, log_pool_rows, mixture_loss
from veridical._parallel import run_blocks
from veridical.calibrate.minimisation import minimise
from veridical.predictions import Predictions
from veridical.predictions.validation import Array
from veridical.truth import Truth, discover

#: Ways to combine that leave the mean's labels as they are.
LABEL_KEEPING = ("mean", "atde")
COMBINATIONS = ("mean", "tde", "atde", "linear-pool", "log-pool")
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

#: Smallest probabilities that the log pool may believe; which one serves best is fitted.
FLOORS = (1e-12, 1e-6, 1e-4, 1e-3, 1e-2)
#: Strength of the pull towards equal weights: that of a normal prior with standard deviation one on S times a weight,
#: and on the mean's.
_SHRINKAGE = 1.0
#: The log pool's exponents stay within this.
MOST_EXPONENT = 20.0
#: The floor is chosen on a subset where there are more numbers than this.
_ENOUGH_FOR_FLOOR = 1 << 23
_MOST_DOUBLES = 1 << 26
_BLOCK_SIZE = 1 << 18
_MOST_LOG_SHARE = 40.0


class Options(Protocol):
    """What pooling reads of a calibrator."""

    missing: Any
    n_threads: int | None


@dataclass(frozen=True)
class Pooled:
    """One vector per sample, and what it was made of.

    Attributes
    ----------
    probs : (N, L) float32 or float64
    prediction : (N,) integers
        The strict argmax of ``probs`` for the mean, aTDE; the argmax otherwise.
    """

    probs: Array
    prediction: Labels
    predictions: Predictions
    options: Options = field(repr=False)

    @cached_property
    def score(self) -> Floats:
        """(N,) pooled score of the predicted label."""
        score: Floats = self.probs[np.arange(len(self.probs)), self.prediction].astype(np.float64)
        return np.minimum(score, 1.0)

    @cached_property
    def truth(self) -> Truth:
        """Truth discovery with the mean's label kept."""
        return _discover(self.predictions, self.options)

    @cached_property
    def hv(self) -> Floats:
        """(N,) HV, scaled up by S / (sources present) where some are absent."""
        hv: Floats = self.truth.hv.astype(np.float64)
        if self.options.missing == "skip":
            hv *= self.predictions.n_sources / self.predictions.present().sum(axis=0)
        return hv

    def correct(self, labels: Labels) -> npt.NDArray[np.bool_]:
        """(N,) whether the predicted label is right."""
        right: npt.NDArray[np.bool_] = self.prediction == labels
        return right


@dataclass(frozen=True)
class Pooling:
    """A way to combine sources, with its fitted weights where it has any.

    Attributes
    ----------
    name : one of ``COMBINATIONS``
    weights : (S,) float64, or None
        The linear pool's shares (they sum to one), or the log pool's exponents.
    floor : float, or None
        The log pool's smallest probability.
    mean_weight : float, or None
        The log pool's exponent of the mean of the sources.
    """

    name: str
    weights: Floats | None = None
    floor: float | None = None
    mean_weight: float | None = None

    @property
    def needs_same_sources(self) -> bool:
        """Whether weights belong to sources one by one."""
        return self.weights is not None

    def apply(self, predictions: Predictions, options: Options) -> Pooled:
        """Pool the predictions."""
        if self.name in ("tde", "atde"):
            truth = _discover(predictions, options, accuracy_preserving=self.name == "atde")
            label = truth.prediction if self.name == "atde" else truth.probs.argmax(axis=1)
            return Pooled(truth.probs, label, predictions, options)
        mean = _discover(predictions, options, max_iter=0)  # this is also what checks the numbers
        if self.name == "mean":
            return Pooled(mean.probs, mean.prediction, predictions, options)
        probs = self._weighted(predictions, mean.probs.dtype, options.n_threads)
        return Pooled(probs, probs.argmax(axis=1), predictions, options)

    def _weighted(self, predictions: Predictions, dtype: np.dtype[Any], n_threads: int | None) -> Array:
        pooled = np.empty((predictions.n_samples, predictions.n_classes), dtype)

        def work(part: slice) -> None:
            block = probabilities(predictions, part)
            if self.name == "linear-pool":
                pooled[part] = _linear_mixture(block, self.weights)
            else:
                pooled[part] = _log_pool(block, self)

        run_blocks(work, sample_blocks(predictions), n_threads)
        return pooled


def fit_pooling(name: str, predictions: Predictions, labels: Labels, options: Options) -> tuple[Pooling, Pooled]:
    """The pooling of that name, fitted where it has weights, and the pooled calibration data."""
    pooling = Pooling(name)
    if name == "linear-pool":
        _discover(predictions, options, max_iter=0)
        pooling = Pooling(name, _fit_linear_pool(predictions, labels))
    elif name == "log-pool":
        _discover(predictions, options, max_iter=0)
        pooling = _fit_log_pool(predictions, labels, options.n_threads)
    return pooling, pooling.apply(predictions, options)


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
    pooled = np.empty(block.shape[1:])
    log_pool_rows(_floored_logs(block, FLOORS[1]), present / present.sum(axis=0), pooled)
    return pooled


def _log_pool(block: Floats, pooling: Pooling) -> Floats:
    """softmax(sum_s a_s ln p_s + b ln p) of probabilities (S, n, L) and their mean p, none below the floor.

    Where a source is absent the other exponents stay as they are: what it would have added is left out, in the fit as
    here.
    """
    assert pooling.weights is not None
    assert pooling.floor is not None
    assert pooling.mean_weight is not None
    block = with_mean(block)
    weights = np.append(pooling.weights, pooling.mean_weight)
    pooled = np.empty(block.shape[1:])
    log_pool_rows(_floored_logs(block, pooling.floor), weights[:, None] * ~np.isnan(block[:, :, 0]), pooled)
    return pooled


def with_mean(block: Floats) -> Floats:
    """Probabilities (S, n, L) with the mean of the present sources as one more source."""
    present = ~np.isnan(block[:, :, :1])
    mean = np.where(present, block, 0.0).sum(axis=0) / present.sum(axis=0)
    return np.concatenate((block, mean[None]))


def _linear_mixture(block: Floats, weights: Floats | None) -> Floats:
    """sum_s a_s p_s with the shares of the present sources scaled to sum one."""
    assert weights is not None
    present = ~np.isnan(block[:, :, 0])
    shares = weights[:, None] * present
    sums = shares.sum(axis=0)
    # Sources with a share of zero are heard, equally, where nobody else is there.
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


def sample_blocks(predictions: Predictions) -> list[slice]:
    """Slices that cover the samples, by how much all sources say of one."""
    return row_blocks(predictions.n_samples, predictions.n_sources * predictions.n_classes)


def _discover(predictions: Predictions, options: Options, **how: Any) -> Truth:
    return discover(predictions, missing=options.missing, n_threads=options.n_threads, **how)


def _fit_linear_pool(predictions: Predictions, labels: Labels) -> Floats:
    r"""Shares a on the simplex that maximise the likelihood of the labels, with one pseudo-count spread equally.

    .. math:: \sum_n \ln \frac{\sum_{s \in P_n} a_s p_s[y_n]}{\sum_{s \in P_n} a_s} + \frac1S \sum_s \ln a_s

    with P_n the sources that are present: as in a prediction, an absent source's share goes to the others.  The
    search is over ln a, up to a constant, by L-BFGS.  Where no source is ever absent the problem is concave in a, and
    the pseudo-count keeps its maximum inside the simplex.
    """
    n_sources, n_counts = predictions.n_sources, len(labels) + 1
    scores = np.concatenate(
        [
            np.take_along_axis(probabilities(predictions, part), labels[None, part, None], axis=2)[:, :, 0]
            for part in sample_blocks(predictions)
        ],
        axis=1,
    )
    present = np.ascontiguousarray(~np.isnan(scores).T, dtype=np.float64)
    scores = np.ascontiguousarray(np.maximum(np.nan_to_num(scores), 1e-12).T) * present

    def objective(log_shares: Floats) -> tuple[float, Floats]:
        shares = softmax(log_shares)
        gradient = np.zeros(n_sources)
        loss = mixture_loss(scores, present, shares, gradient) - np.log(shares).mean()
        gradient = gradient * shares
        gradient -= shares * gradient.sum() + (1 / n_sources - shares)
        return float(loss) / n_counts, gradient / n_counts

    bounds = [(-_MOST_LOG_SHARE, _MOST_LOG_SHARE)] * n_sources
    # A poor source's share moves the mean loss by little; these tolerances still find it.
    best = minimise(objective, np.zeros(n_sources), bounds, "the linear pool", ftol=1e-14, gtol=1e-9)[1]
    shares: Floats = softmax(best)
    return shares


def _fit_log_pool(predictions: Predictions, labels: Labels, n_threads: int | None) -> Pooling:
    """Exponents and floor with the lowest penalised NLL; convex in the exponents for a given floor."""
    n_samples, n_sources = predictions.n_samples, predictions.n_sources
    size = n_samples * n_sources * predictions.n_classes
    stride = -(-size // _ENOUGH_FOR_FLOOR)
    some = predictions if stride == 1 else predictions.select(samples=slice(0, None, stride))
    logs, present = _logs_of(some, FLOORS[0], n_threads), _present(some)
    fits = [(*_fit_exponents(_raised(logs, floor), present, labels[::stride], n_threads), floor) for floor in FLOORS]
    _, weights, floor = min(fits, key=lambda fit: fit[0])
    if stride > 1:
        logs = _logs_of(predictions, floor, n_threads)
        _, weights = _fit_exponents(logs, _present(predictions), labels, n_threads, weights)
    return Pooling("log-pool", weights[:-1], floor, float(weights[-1]))


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
    """(S + 1, N): 1 where a source speaks; the mean always does."""
    return np.vstack((predictions.present().astype(np.float64), np.ones((1, predictions.n_samples))))


def _fit_exponents(
    logs: list[Array], present: Floats, labels: Labels, n_threads: int | None, start: Floats | None = None
) -> tuple[float, Floats]:
    """(a, b) that minimise the mean NLL of softmax(sum_s a_s ln p_s + b ln p), with p the mean of the sources.

    S a_s is pulled towards its mean over the sources, and b towards 0.
    """
    n_samples, n_sources = len(labels), len(present) - 1
    ends = np.cumsum([block.shape[1] for block in logs])
    blocks = [slice(end - block.shape[1], end) for block, end in zip(logs, ends.tolist(), strict=True)]

    def objective(weights: Floats) -> tuple[float, Floats]:
        def work(b: int) -> tuple[float, Floats]:
            gradient = np.zeros(n_sources + 1)
            # An absent source adds nothing, here as in a prediction.
            loss = log_pool_loss(logs[b], weights[:, None] * present[:, blocks[b]], labels[blocks[b]], gradient)
            return float(loss), gradient

        results = run_blocks(work, range(len(blocks)), n_threads)
        apart = n_sources * (weights[:-1] - weights[:-1].mean())
        loss = sum(part for part, _ in results) + 0.5 * _SHRINKAGE * float(apart @ apart + weights[-1] ** 2)
        gradient = np.sum([part for _, part in results], axis=0)
        gradient += _SHRINKAGE * np.append(n_sources * apart, weights[-1])
        return loss / n_samples, gradient / n_samples

    first = np.append(np.full(n_sources, 1 / n_sources), 0.0) if start is None else start
    # A pool of sources that are all right at every sample would grow for ever.
    bounds = [(-MOST_EXPONENT, MOST_EXPONENT)] * (n_sources + 1)
    return minimise(objective, first, bounds, "the log pool")
