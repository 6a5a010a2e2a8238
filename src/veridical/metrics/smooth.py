"""Smooth calibration error: the bandwidth of the kernel is the error itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft

from veridical._kernels.density import absolute_integral, spread_onto_grid
from veridical._minimisation import zero_between
from veridical.metrics.sample import Floats, Sample, check_sample

#: Grids on [0, 1], tried in turn; a grid is fine enough if the bandwidth spans at least this many of its cells.
_GRIDS = (1 << 12, 1 << 16, 1 << 20)
_CELLS_PER_BANDWIDTH = 16


class _SmoothedResiduals:
    """Residuals w - c on a grid over [0, 1], for smoothing by a Gaussian that is mirrored at both ends.

    In the cosine transform on [0, 1] that is a factor exp(-(pi k sigma)^2 / 2) for wave number k, all mirror images
    included, so one transform serves every bandwidth.
    """

    def __init__(self, sample: Sample, n_cells: int) -> None:
        residuals = sample.confidence - sample.correct
        if sample.weight is not None:
            residuals *= sample.weight
        # The kernel spreads weights; here the residuals are the weights, and the row of correct samples is not needed.
        masses = np.zeros((2, n_cells + 1))
        spread_onto_grid(sample.confidence, np.zeros(len(sample), dtype=bool), residuals, 0.0, float(n_cells), masses)
        masses[0, 0] *= 2  # at the ends a node is its own mirror image
        masses[0, -1] *= 2
        self._spectrum: Floats = scipy.fft.dct(masses[0], type=1)
        self._wave_numbers_squared = np.arange(n_cells + 1, dtype=np.float64) ** 2
        self._total = sample.total_weight

    def error(self, sigma: float) -> float:
        """The integral of |smoothed residual density| at bandwidth ``sigma``."""
        damping = np.exp(-0.5 * (np.pi * sigma) ** 2 * self._wave_numbers_squared)
        smoothed = scipy.fft.idct(self._spectrum * damping, type=1, overwrite_x=True)
        return float(absolute_integral(smoothed, np.empty(len(smoothed)))) / self._total


def smooth_ece_of(sample: Sample) -> float:
    """:func:`smooth_ece` of a checked sample."""
    sigma = 0.0
    for n_cells in _GRIDS:
        residuals = _SmoothedResiduals(sample, n_cells)
        if residuals.error(0.0) == 0.0:
            return 0.0
        sigma = zero_between(_excess, 0.0, 1.0 + 1e-9, residuals, tolerance=1e-9)
        if sigma * n_cells >= _CELLS_PER_BANDWIDTH:
            break
    return min(sigma, 1.0)


def _excess(sigma: float, residuals: _SmoothedResiduals) -> float:
    return residuals.error(sigma) - sigma


def smooth_ece(y_true: Any, probs: Any, *, sample_weight: Any = None) -> float:
    r"""Smooth calibration error of Błasiok and Nakkiran.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big| \frac1N \sum_i (w_i - c_i) K_\sigma(x, w_i) \Big| \, dx,
              \qquad \mathrm{smECE} = \sigma^* \text{ with } \mathrm{smECE}_{\sigma^*} = \sigma^*

    with K the Gaussian mirrored at 0 and 1.  The error falls as the bandwidth grows, so the bandwidth that equals its
    own error is unique, and there is no parameter to choose.  Unlike a binned error, it is continuous in the
    confidences.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.

    Returns
    -------
    float
        From 0 to 1.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing", ICLR 2024.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.smooth_ece([True, False], [0.5, 0.5]), 12)
    0.0
    """
    return smooth_ece_of(check_sample(y_true, probs, sample_weight))
