"""Calibration error by kernel density estimation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.fft

from veridical._kernels.density import absolute_integral, spread_onto_grid
from veridical.metrics.binned import checked_options
from veridical.metrics.sample import Booleans, Floats, Sample, check_sample

#: The triweight kernel with standard deviation 1 ends at 3.
HALF_WIDTH = 3.0
#: Below this the spread of the confidences is rounding, and the bandwidth counts as zero.
_NO_BANDWIDTH = 1e-12
#: Grid cells per kernel half-width, and the fewest and most cells of a grid.
_CELLS_PER_HALF_WIDTH = 256
_FEWEST_CELLS, _MOST_CELLS = 1 << 10, 1 << 20
#: Beyond 2^14 cells, at most so many per sample: a few samples close together and one far away would need more.
_CELLS_PER_SAMPLE = 64
#: A mirrored kernel this much wider than [0, 1] is uniform on it: its slowest wave is damped to
#: 105 / (256 pi)^4 < 1e-9.  A wider one would only take memory.
_WIDEST_HALF_WIDTH = 256.0


@dataclass(frozen=True)
class ReflectingGrid:
    """A grid on which smoothing is a product of cosine transforms.

    It covers the confidences and one kernel half-width to each side, but not more than [0, 1].  Mirroring the
    samples at its two ends, again and again, is what the even periodic extension behind the type-I cosine
    transform does.  Where an end is 0 or 1, this is the mirroring of the method; where it is not, the mirrored
    kernels do not reach back into the grid.
    """

    origin: float
    step: float
    n_cells: int
    half_width: float

    @classmethod
    def around(cls, confidence: Floats, bandwidth: float, weight: Floats | None = None) -> ReflectingGrid:
        """A grid for these confidences, with cells much smaller than the kernel."""
        half_width = min(HALF_WIDTH * bandwidth, _WIDEST_HALF_WIDTH)
        counted = confidence if weight is None else confidence[weight > 0]
        low = max(float(counted.min()) - half_width, 0.0)
        high = min(float(counted.max()) + half_width, 1.0)
        cells = _CELLS_PER_HALF_WIDTH * (high - low) / half_width
        most = min(max(_CELLS_PER_SAMPLE * len(counted), 1 << 14), _MOST_CELLS)
        n_cells = 1 << int(np.ceil(np.log2(np.clip(cells, _FEWEST_CELLS, most))))
        return cls(low, (high - low) / n_cells, n_cells, half_width)

    @property
    def nodes(self) -> Floats:
        """Positions of the n_cells + 1 nodes."""
        nodes: Floats = self.origin + self.step * np.arange(self.n_cells + 1, dtype=np.float64)
        return nodes

    def kernel_spectrum(self) -> Floats:
        """Cosine transform of the kernel (1 - u^2)^3, folded at the ends of the period and with sum one."""
        reach = int(self.half_width / self.step)
        u = np.arange(reach + 1) * (self.step / self.half_width)
        values = np.maximum(1 - u * u, 0.0) ** 3
        kernel = np.zeros(self.n_cells + 1)
        if reach <= self.n_cells:
            kernel[: reach + 1] = values
        else:  # wider than the grid: every image of the kernel counts
            period = 2 * self.n_cells
            offsets = np.concatenate((np.arange(-reach, 0), np.arange(reach + 1))) % period
            np.add.at(folded := np.zeros(period), offsets, np.concatenate((values[:0:-1], values)))
            kernel[:] = folded[: self.n_cells + 1]
        spectrum: Floats = scipy.fft.dct(kernel, type=1, overwrite_x=True)
        spectrum /= spectrum[0]
        return spectrum

    def smooth(self, masses: Floats, spectrum: Floats) -> Floats:
        """Convolve masses at the nodes (last axis) with the mirrored kernel."""
        extended = masses.copy()
        extended[..., 0] *= 2  # at the ends a node is its own mirror image
        extended[..., -1] *= 2
        product = scipy.fft.dct(extended, type=1, axis=-1, overwrite_x=True)
        product *= spectrum
        smoothed: Floats = scipy.fft.idct(product, type=1, axis=-1, overwrite_x=True)
        return smoothed

    def gaps(self, confidence: Floats, correct: Booleans, weight: Floats | None, spectrum: Floats) -> Floats:
        """x P(x) - A(x) at the nodes, as mass per cell: their sum (half of it at the ends) is the integral times N."""
        masses = np.zeros((2, self.n_cells + 1))
        spread_onto_grid(confidence, correct, weight, self.origin, 1 / self.step, masses)
        density, right_density = self.smooth(masses, spectrum)
        gaps: Floats = density * self.nodes - right_density
        return gaps


def default_bandwidth(confidence: Floats, correct: Booleans, weight: Floats | None = None) -> float:
    """The correct samples' standard deviation (of the population) times (2N)^(-1/5), with N all samples."""
    if weight is None:
        right = confidence[correct]
        spread = float(right.std()) if right.size else 0.0
        n_samples = float(len(confidence))
    else:
        shares = weight * correct
        n_samples, n_right = float(weight.sum()), float(shares.sum())
        if n_right == 0:
            return 0.0
        # Not with @: the threads of BLAS and ours would wait for each other.
        deviations = confidence - (confidence * shares).sum() / n_right
        spread = float(np.sqrt((deviations**2 * shares).sum() / n_right))
    return spread * float((2 * n_samples) ** -0.2)


def resolve_bandwidth(
    bandwidth: float | None, confidence: Floats, correct: Booleans, weight: Floats | None = None
) -> float:
    """``bandwidth``, by default from the sample; 0 if it is too small to smooth with."""
    if bandwidth is None:
        bandwidth = default_bandwidth(confidence, correct, weight)
    return 0.0 if bandwidth < _NO_BANDWIDTH else float(bandwidth)


def ece_kde_of(sample: Sample, *, bandwidth: float | None = None) -> float:
    """:func:`ece_kde` of a checked sample."""
    confidence, correct, weight = sample.confidence, sample.correct, sample.weight
    width = resolve_bandwidth(bandwidth, confidence, correct, weight)
    if width == 0.0:
        return abs(sample.mean(confidence) - sample.mean(correct))
    grid = ReflectingGrid.around(confidence, width, weight)
    gaps = grid.gaps(confidence, correct, weight, grid.kernel_spectrum())
    return min(float(absolute_integral(gaps, np.empty(len(gaps)))) / sample.total_weight, 1.0)


def ece_kde_limit(sample: Sample, *, bandwidth: float | None = None) -> float:
    """The error without smoothing either, for a sample of known chances; its rows are right and wrong parts in turn."""
    assert sample.weight is not None
    right, wrong = sample.weight[::2], sample.weight[1::2]
    return float(np.abs(sample.confidence[::2] * (right + wrong) - right).sum()) / sample.total_weight


def ece_kde(y_true: Any, probs: Any, *, bandwidth: float | None = None, sample_weight: Any = None) -> float:
    r"""Calibration error with densities in place of bins.

    .. math:: \mathrm{ECE^{KDE}} = \int_0^1 |x - \mathrm{acc}(x)| \, P(x) \, dx = \int_0^1 |x P(x) - A(x)| \, dx

    where P is the density of all confidences, A that of the right ones (divided by N), both estimated with the
    triweight kernel and mirrored at 0 and 1.  Samples are spread linearly onto a grid of at least 256 cells per
    kernel half-width (up to 64 cells per sample, the cap itself from 2^14 to 2^20), so that the density is a product
    of cosine transforms.

    Parameters
    ----------
    y_true, probs, sample_weight
        As in :func:`veridical.metrics.ece`.  Weights count samples: their sum stands for N in the bandwidth.
    bandwidth : float, optional
        Standard deviation of the kernel, which ends at three times it.  By default that of the right samples'
        confidences times :math:`(2N)^{-1/5}`.  With bandwidth zero (all equal, at most one right) the result is
        ``|mean confidence - accuracy|``.

    Returns
    -------
    float
        From 0 to 1.

    References
    ----------
    Zhang, Kailkhura and Han, "Mix-n-Match: ensemble and compositional methods for uncertainty calibration in deep
    learning", ICML 2020.

    Examples
    --------
    >>> from veridical import metrics
    >>> metrics.ece_kde([True, True, True, False], [0.75, 0.75, 0.75, 0.75])
    0.0
    """
    return ece_kde_of(check_sample(y_true, probs, sample_weight), **checked_options({"bandwidth": bandwidth}))
