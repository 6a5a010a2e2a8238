"""Gradient steps on a calibration error, through one correction per bin of the winning score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from veridical._kernels.density import absolute_integral, gather_slopes, spread_onto_grid
from veridical.calibrate.pooling import Floats, Labels
from veridical.metrics.binned import bin_edges
from veridical.metrics.gradients import histogram_loss
from veridical.metrics.kde import ReflectingGrid, resolve_bandwidth
from veridical.predictions.validation import RandomState, check_random_state

Booleans = npt.NDArray[np.bool_]
#: Loss and its gradient by the confidences, and the natural length of a step.
LossAndGradient = tuple[float, Floats, float]
#: Integral of the squared triweight kernel with half-width one.
_ROUGHNESS = 350 / 429


class Settings(Protocol):
    """What the descent reads of a calibrator."""

    step_rule: str
    batch_size: int | None
    loss_bins: str
    significance: float
    random_state: RandomState


def significant_kde_loss(confidence: Floats, correct: Booleans, significance: float) -> LossAndGradient:
    r"""ECE-KDE, and its gradient from where the gap between confidence and accuracy stands out from the noise.

    If confidences were calibrated, x P(x) - A(x) would scatter around zero with a variance of about
    :math:`\frac1n \int K_h^2 \; x (1 - x) P(x)`.  Where it is within ``significance`` standard deviations, its sign
    says nothing about other samples and is left out of the gradient.
    """
    n_samples = len(confidence)
    width = resolve_bandwidth(None, confidence, correct)
    if width == 0.0:
        return (*histogram_loss(confidence, correct, np.array([0.0, 1.0])), 0.0)
    grid = ReflectingGrid.around(confidence, width)
    spectrum, nodes = grid.kernel_spectrum(), grid.nodes
    masses = np.zeros((2, grid.n_cells + 1))
    spread_onto_grid(confidence, correct, None, grid.origin, 1 / grid.step, masses)
    everyone, right = grid.smooth(masses, spectrum)
    gaps = nodes * everyone - right
    slopes = np.empty(len(gaps))
    value = float(absolute_integral(gaps, slopes)) / n_samples
    variance = _ROUGHNESS * grid.step / grid.half_width * nodes * (1 - nodes) * everyone
    slopes[gaps**2 <= significance**2 * variance] = 0.0
    potentials = grid.smooth(np.stack((slopes * nodes, slopes)), spectrum) / n_samples
    gradient = np.empty(n_samples)
    gather_slopes(confidence, correct, None, grid.origin, 1 / grid.step, potentials, gradient)
    return value, gradient, width


class Descent:
    """Gradient steps on psi, through w = clip(v - psi[bin] * reach)."""

    def __init__(
        self, score: Floats, correct: Booleans, bins: Labels, reach: Floats, edges: Floats, settings: Settings
    ) -> None:
        self.score, self.correct, self.bins, self.reach = score, correct, bins, reach
        self.edges = np.concatenate(([0.0], edges, [1.0]))
        self.settings = settings
        self.n_bins = len(edges) + 1
        self.generator = check_random_state(settings.random_state)

    def run(
        self, psi: Floats, n_steps: int, rate: float, loss: Callable[[Floats, npt.NDArray[np.intp]], LossAndGradient]
    ) -> Floats:
        """``n_steps`` steps down ``loss``."""
        everything = np.arange(len(self.score))
        normalised, batch_size = self.settings.step_rule == "normalised", self.settings.batch_size
        for _ in range(n_steps):
            batch = everything
            if batch_size is not None and batch_size < len(everything):
                batch = np.sort(self.generator.choice(len(everything), batch_size, replace=False))
            value, direction, length = self._direction(psi, batch, loss)
            if not normalised:
                psi = psi - rate * direction
                continue
            curvature = np.bincount(self.bins[batch], self.reach[batch] ** 2, self.n_bins) / len(batch)
            step = rate * length * np.where(curvature > 0, direction / np.where(curvature > 0, curvature, 1.0), 0.0)
            # On the whole data a step that does not lower the loss is not taken; on a batch this cannot be told.
            if batch is not everything or loss(self._confidence(psi - step), everything)[0] < value:
                psi = psi - step
            else:
                rate /= 2
        return psi

    def histogram(self, confidence: Floats, batch: npt.NDArray[np.intp]) -> LossAndGradient:
        """The histogram loss, with a step of natural length one."""
        chosen = self.settings.loss_bins
        if chosen == "scores":
            gaps = np.bincount(self.bins[batch], confidence - self.correct[batch], self.n_bins)
            signs = np.sign(gaps).astype(np.float64)
            return float(np.abs(gaps).sum()) / len(batch), signs[self.bins[batch]] / len(batch), 1.0
        edges = self.edges if chosen == "fixed" else bin_edges(confidence, self.n_bins)
        return (*histogram_loss(confidence, self.correct[batch], edges), 1.0)

    def kde(self, confidence: Floats, batch: npt.NDArray[np.intp]) -> LossAndGradient:
        """The KDE loss, with a step as long as the bandwidth."""
        return significant_kde_loss(confidence, self.correct[batch], float(self.settings.significance))

    def _confidence(self, psi: Floats) -> Floats:
        return np.clip(self.score - psi[self.bins] * self.reach, 0.0, 1.0)

    def _direction(
        self, psi: Floats, batch: npt.NDArray[np.intp], loss: Callable[..., LossAndGradient]
    ) -> tuple[float, Floats, float]:
        """Loss on the batch, its gradient by psi (zero through clipped samples), and the natural step length."""
        raw = self.score[batch] - psi[self.bins[batch]] * self.reach[batch]
        value, gradient, length = loss(np.clip(raw, 0.0, 1.0), batch)
        gradient = np.where((raw >= 0.0) & (raw <= 1.0), -gradient * self.reach[batch], 0.0)
        by_psi: Floats = np.bincount(self.bins[batch], gradient, self.n_bins).astype(np.float64)
        return value, by_psi, length
