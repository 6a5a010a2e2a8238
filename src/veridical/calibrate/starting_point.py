"""Where direct optimisation starts: the corrections per bin that the data support, and no more.

The histogram loss over bins of the score has a closed-form minimum: the correction that makes every bin's sum
of (w - correct) zero.  It is also as noisy as a bin's accuracy.  So each bin is pulled towards what a smooth
three-parameter curve says, by as much as the noise explains: the deviations from the curve are taken as a
correlated Gaussian sequence over bins seen through binomial noise of known size, whose strength and reach
maximise the marginal likelihood (empirical Bayes).  Where the curve is right nothing of the noise is left;
where it is not, the bins win.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from veridical.calibrate.logistic import CLOSEST, fit_logistic, smoothed_targets
from veridical.calibrate.pooling import Floats

#: Over how many bins deviations from the curve may hang together.
_REACHES = (1.0, 2.0, 4.0)
#: Variances of the deviations that are tried, in units of the noise's.
_STRENGTHS = np.concatenate(([0.0], np.exp(np.linspace(-8.0, 8.0, 65))))
#: With more samples than twice this, the curve is fitted to means over so many groups of neighbours.
_GROUPS = 1024


@dataclass(frozen=True)
class BinnedGaps:
    """What the calibration data say about one correction per bin.

    Attributes
    ----------
    bins : (N,) integers
    gap : (B,) float64
        Sum over the bin of (v - correct).
    expected : (B,) float64
        Sum over the bin of (v - the smooth curve).
    noise : (B,) float64
        Variance of ``gap`` if the curve were true.
    """

    bins: npt.NDArray[np.int64]
    gap: Floats
    expected: Floats
    noise: Floats

    @classmethod
    def measure(
        cls, score: Floats, correct: npt.NDArray[np.bool_], bins: npt.NDArray[np.int64], n_bins: int
    ) -> BinnedGaps:
        """Sums per bin."""
        curve = smooth_accuracy(score, correct)

        def total(values: Floats) -> Floats:
            sums: Floats = np.bincount(bins, weights=values, minlength=n_bins).astype(np.float64)
            return sums

        return cls(bins, total(score - correct), total(score - curve), total(curve * (1 - curve)))

    def closed_form(self, reach: Floats) -> Floats:
        """psi_b = sum_b (v - correct) / sum_b (1 + h), the minimum of the histogram loss; 0 for an empty bin."""
        return self._per_unit(self.gap, reach)

    def shrunk(self, reach: Floats) -> Floats:
        """The closed form, pulled towards the smooth curve by empirical Bayes."""
        totals = np.bincount(self.bins, weights=reach, minlength=len(self.gap))
        prior = self._per_unit(self.expected, reach)
        seen = totals > 0
        deviation = (self.gap - self.expected)[seen] / totals[seen]
        noise = np.maximum(self.noise[seen], 1e-12) / totals[seen] ** 2
        prior[seen] += posterior_mean(deviation, noise)
        return prior

    def _per_unit(self, sums: Floats, reach: Floats) -> Floats:
        totals = np.bincount(self.bins, weights=reach, minlength=len(sums))
        psi: Floats = np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), 0.0)
        return psi


def smooth_accuracy(score: Floats, correct: npt.NDArray[np.bool_]) -> Floats:
    """Accuracy as a smooth function of the score: sigma(a ln v - b ln(1 - v) + c), fitted with a slight ridge."""

    inside = np.clip(score, CLOSEST, 1 - CLOSEST)
    features = np.column_stack((np.log(inside), -np.log1p(-inside)))
    targets = smoothed_targets(correct)
    if len(score) <= 2 * _GROUPS:
        coefficients = fit_logistic(features, targets, 1.0)
    else:
        # Neighbours in logit are all but the same to the curve, so their means stand for them.
        logits = features.sum(axis=1)
        groups = ((logits - logits.min()) * ((_GROUPS - 1) / max(np.ptp(logits), 1e-9))).astype(np.int64)
        counts = np.bincount(groups, minlength=_GROUPS).astype(np.float64)
        sums = [np.bincount(groups, column, _GROUPS) for column in (features[:, 0], features[:, 1], targets)]
        first, second, rights = (total[counts > 0] / counts[counts > 0] for total in sums)
        coefficients = fit_logistic(np.column_stack((first, second)), rights, 1.0, counts[counts > 0])
    curve: Floats = expit(coefficients[0] + features @ coefficients[1:])
    return curve


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
