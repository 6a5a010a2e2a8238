"""Where direct optimisation starts: the corrections per bin that the data support, and no more.

The histogram loss over bins of the score has a closed-form minimum: the correction that makes every bin's sum
of (w - correct) zero.  It is also as noisy as a bin's accuracy.  So each bin is pulled towards what temperature
scaling expects of it, which has few parameters and learns them from all classes, by as much as the noise explains:
the deviations are taken as a correlated Gaussian sequence over bins seen through binomial noise of known size, whose
strength and reach maximise the marginal likelihood (empirical Bayes).  Where temperature scaling is right nothing of
the noise is left; where it is not, the bins win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from veridical.backends.rows import softmax
from veridical.calibrate.temperature import best_on_simplex, log_probabilities, search_temperature
from veridical.combine.combined import Combined, Floats, Labels

#: Over how many bins deviations from what is expected may hang together.
_REACHES = (1.0, 2.0, 4.0)
#: Variances of the deviations that are tried, in units of the noise's.
_STRENGTHS = np.concatenate(([0.0], np.exp(np.linspace(-8.0, 8.0, 65))))
#: The temperature is fitted on at most so many probabilities, so that it costs less than the steps that follow.
_ENOUGH = 1 << 17
#: A temperature this close to the best, relatively, expects the same.
_CLOSE = 1e-3


@dataclass(frozen=True)
class BinnedGaps:
    """What the calibration data say about one correction per bin.

    Attributes
    ----------
    bins : (N,) integers
    gap : (B,) float64
        Sum over the bin of (v - correct).
    """

    bins: npt.NDArray[np.int64]
    gap: Floats

    @classmethod
    def measure(
        cls, score: Floats, correct: npt.NDArray[np.bool_], bins: npt.NDArray[np.int64], n_bins: int
    ) -> BinnedGaps:
        """Sums per bin."""
        return cls(bins, _per_bin(score - correct, bins, n_bins))

    def closed_form(self, reach: Floats) -> Floats:
        """psi_b = sum_b (v - correct) / sum_b (1 + h), the minimum of the histogram loss; 0 for an empty bin."""
        totals = _per_bin(reach, self.bins, len(self.gap))
        psi: Floats = np.where(totals > 0, self.gap / np.where(totals > 0, totals, 1.0), 0.0)
        return psi

    def shrunk(self, reach: Floats, score: Floats, accuracy: Floats) -> Floats:
        """The closed form, pulled by empirical Bayes towards the corrections that make w the expected ``accuracy``."""
        n_bins = len(self.gap)
        totals = _per_bin(reach, self.bins, n_bins)
        seen = totals > 0
        expected = _per_bin(score - accuracy, self.bins, n_bins)[seen]
        noise = _per_bin(accuracy * (1 - accuracy), self.bins, n_bins)[seen]
        psi = np.zeros(n_bins)
        psi[seen] = expected / totals[seen]
        psi[seen] += posterior_mean((self.gap[seen] - expected) / totals[seen], noise / totals[seen] ** 2)
        return psi


def _per_bin(values: Floats, bins: npt.NDArray[np.int64], n_bins: int) -> Floats:
    sums: Floats = np.bincount(bins, weights=values, minlength=n_bins).astype(np.float64)
    return sums


def tempered_accuracy(combined: Combined, labels: Labels, n_threads: int | None = None) -> Floats:
    """(N,) what a mixture of the scaled score, the score itself and 1/L expects of the predicted label.

    The temperature minimises the squared error over all classes, and then the mixture's weights, on the simplex, that
    of the predicted label.  Of large data the temperature sees some samples, and what it makes of the other scores is
    interpolated.
    """
    score, correct = combined.confidence, combined.correct(labels)
    n_samples, n_classes = combined.probs.shape
    every = -(-n_samples * n_classes // _ENOUGH)
    taken = np.arange(0, n_samples, every)
    logs = log_probabilities(combined.probs[taken], n_threads)
    temperature, _ = search_temperature(logs, labels[taken], "mse", n_threads, tolerance=_CLOSE)
    scaled = softmax(np, logs / temperature)[np.arange(len(taken)), combined.prediction[taken]]
    if every > 1:
        order = np.argsort(score[taken], kind="stable")
        scaled = np.interp(score, score[taken][order], scaled[order])
    parts = np.stack((scaled, score, np.full(n_samples, 1 / n_classes)))
    weights = best_on_simplex(parts @ parts.T / n_samples, parts @ correct / n_samples)
    rare = 1 / (n_samples + 2)  # what so many samples cannot exclude
    expected: Floats = np.clip(weights @ parts, rare, 1 - rare)
    return expected


def posterior_mean(deviation: Floats, noise: Floats) -> Floats:
    """E[d | deviation] for deviation = d + N(0, noise) and d a stationary sequence of unknown strength and reach.

    With the noise whitened, the covariance of d for each reach is diagonalised once; every strength t then has the
    marginal log-likelihood -1/2 sum_i [ln(1 + t l_i) + z_i^2 / (1 + t l_i)].
    """
    index = np.arange(len(deviation))
    scale = np.sqrt(noise)
    unit = np.exp(np.mean(np.log(noise)))
    best, result = np.inf, np.zeros(len(deviation))
    for reach in _REACHES:
        covariance = np.exp(-np.abs(index[:, None] - index) / reach) * unit / np.outer(scale, scale)
        values, vectors = np.linalg.eigh(covariance)
        projected = vectors.T @ (deviation / scale)
        inflation = 1.0 + _STRENGTHS[:, None] * np.maximum(values, 0.0)
        costs = (np.log(inflation) + projected**2 / inflation).sum(axis=1)
        chosen = int(costs.argmin())
        if costs[chosen] < best:
            best = float(costs[chosen])
            result = scale * (vectors @ (projected * (1.0 - 1.0 / inflation[chosen])))
    return result
