"""Calibration errors as losses: values and gradients with respect to the confidences.

Optimisers call these thousands of times with checked arrays, so nothing is checked here.
"""

from __future__ import annotations

import numpy as np

from veridical._kernels.binning import bin_sums, histogram_gradient
from veridical._kernels.density import absolute_integral, gather_slopes
from veridical.metrics.kde import ReflectingGrid, resolve_bandwidth
from veridical.metrics.sample import Booleans, Floats


def histogram_loss(
    confidence: Floats, correct: Booleans, edges: Floats, weight: Floats | None = None
) -> tuple[float, Floats]:
    r"""The binned calibration error over fixed bins, and its gradient.

    .. math:: E = \frac1n \sum_b \Big| \sum_{i \in b} (w_i - c_i) \Big|, \qquad
              \frac{\partial E}{\partial w_i} = \frac1n \operatorname{sign} \sum_{j \in b(i)} (w_j - c_j)

    Parameters
    ----------
    confidence : (n,) float64
    correct : (n,) bool
    edges : (B + 1,) float64, non-decreasing
        Bins are (lo, hi]; confidences beyond the ends belong to the end bins.
    weight : (n,) float64, optional

    Returns
    -------
    (float, (n,) float64)
        A subgradient where a bin's sum is zero: 0 there.

    Examples
    --------
    >>> import numpy as np
    >>> histogram_loss(np.array([0.9, 0.7]), np.array([True, False]), np.array([0.0, 1.0]))
    (0.3..., array([0.5, 0.5]))
    """
    (counts, confidences, rights), _ = bin_sums(confidence, correct, weight, edges, False)
    total, gaps = counts.sum(), confidences - rights
    gradient = np.empty(len(confidence))
    histogram_gradient(confidence, edges, np.sign(gaps) / total, gradient)
    if weight is not None:
        gradient *= weight
    return float(np.abs(gaps).sum() / total), gradient


def kde_loss(
    confidence: Floats, correct: Booleans, bandwidth: float | None = None, weight: Floats | None = None
) -> tuple[float, Floats]:
    r"""The calibration error by kernel density, and its gradient at fixed bandwidth.

    .. math:: \frac{\partial E}{\partial w_i} = \frac1n \int_0^1 \operatorname{sign}(x P - A) \, (x - c_i) \,
              \frac{\partial K(x, w_i)}{\partial w_i} \, dx

    with K the mirrored triweight kernel.  The integrals over x are convolutions on the same grid as the value,
    so that all n derivatives cost two more pairs of cosine transforms: O(n + G log G).

    Parameters
    ----------
    confidence : (n,) float64, from 0 to 1
    correct : (n,) bool
    bandwidth : float, optional
        Standard deviation of the kernel; by default as in :func:`veridical.metrics.ece_kde`.  Its own dependence on the
        confidences is left out of the gradient.
    weight : (n,) float64, optional

    Returns
    -------
    (float, (n,) float64)
        With bandwidth zero, ``|mean confidence - accuracy|`` and its gradient.

    Examples
    --------
    >>> import numpy as np
    >>> value, gradient = kde_loss(np.array([0.9, 0.9]), np.array([True, True]), bandwidth=0.01)
    >>> bool(value > 0), gradient.shape
    (True, (2,))
    """
    width = resolve_bandwidth(bandwidth, confidence, correct, weight)
    if width == 0.0:
        return histogram_loss(confidence, correct, np.array([0.0, 1.0]), weight)
    total = float(len(confidence)) if weight is None else float(weight.sum())
    grid = ReflectingGrid.around(confidence, width, weight)
    spectrum = grid.kernel_spectrum()
    slopes = np.empty(grid.n_cells + 1)
    value = absolute_integral(grid.gaps(confidence, correct, weight, spectrum), slopes)
    potentials = grid.smooth(np.stack((slopes * grid.nodes, slopes)), spectrum)
    potentials /= total
    gradient = np.empty(len(confidence))
    gather_slopes(confidence, correct, weight, grid.origin, 1 / grid.step, potentials, gradient)
    return float(value) / total, gradient
