"""Gradient steps on a calibration error, through one correction per bin of the confidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from veridical._kernels.density import absolute_integral, gather_slopes, spread_onto_grid
from veridical.combine.combined import Floats, Labels
from veridical.metrics.binned import bin_edges
from veridical.metrics.gradients import histogram_loss
from veridical.metrics.kde import ReflectingGrid, resolve_bandwidth
from veridical.predictions.validation import RandomState, check_random_state

Booleans = npt.NDArray[np.bool_]
#: Loss and its gradient by the confidences, and the natural length of a step.
LossAndGradient = tuple[float, Floats, float]
#: Samples that a step looks at: all of them, or some by number.
Batch = npt.NDArray[np.intp] | slice
EVERYTHING = slice(None)
#: A loss that changes by less, and a bin whose gap is a smaller part of the samples, has not changed or has none.
_ROUNDING = 1e-12
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

    def run(self, psi: Floats, n_steps: int, rate: float, loss: Callable[[Floats, Batch], LossAndGradient]) -> Floats:
        """``n_steps`` steps down ``loss``.

        On the whole data a normalised step that does not lower the loss is not taken, and the next one is half as
        long; on a batch this cannot be told.
        """
        here = None
        for _ in range(n_steps):
            batch = self._batch()
            here = here or self._direction(psi, batch, loss)
            moved = psi - rate * self._step(here, batch)
            there = self._direction(moved, batch, loss) if self._checks(batch) else None
            if there is None or there[0] < here[0] - _ROUNDING:
                psi, here = moved, there
            else:
                rate /= 2
        return psi

    def _batch(self) -> Batch:
        size = self.settings.batch_size
        if size is None or size >= len(self.score):
            return EVERYTHING
        return np.sort(self.generator.choice(len(self.score), size, replace=False))

    def _checks(self, batch: Batch) -> bool:
        return self.settings.step_rule == "normalised" and isinstance(batch, slice)

    def _step(self, here: LossAndGradient, batch: Batch) -> Floats:
        """The gradient by psi or, normalised, over the curvature of w in psi and in units of the natural length."""
        _, direction, length = here
        if self.settings.step_rule == "plain":
            return direction
        bins = self.bins[batch]
        curvature = np.bincount(bins, self.reach[batch] ** 2, self.n_bins) / len(bins)
        step: Floats = length * np.where(curvature > 0, direction / np.where(curvature > 0, curvature, 1.0), 0.0)
        return step

    def histogram(self, confidence: Floats, batch: Batch) -> LossAndGradient:
        """The histogram loss, with a step of natural length one."""
        chosen = self.settings.loss_bins
        if chosen == "scores":
            bins = self.bins[batch]
            gaps = np.bincount(bins, confidence - self.correct[batch], self.n_bins)
            signs = np.where(np.abs(gaps) > _ROUNDING * len(bins), np.sign(gaps), 0.0)
            return float(np.abs(gaps).sum()) / len(bins), signs[bins] / len(bins), 1.0
        edges = self.edges if chosen == "fixed" else bin_edges(confidence, self.n_bins)
        return (*histogram_loss(confidence, self.correct[batch], edges), 1.0)

    def kde(self, confidence: Floats, batch: Batch) -> LossAndGradient:
        """The KDE loss, with a step as long as the bandwidth."""
        return significant_kde_loss(confidence, self.correct[batch], float(self.settings.significance))

    def _direction(
        self, psi: Floats, batch: Batch, loss: Callable[..., LossAndGradient]
    ) -> tuple[float, Floats, float]:
        """Loss on the batch, its gradient by psi (zero through clipped samples), and the natural step length."""
        bins, reach = self.bins[batch], self.reach[batch]
        raw = self.score[batch] - psi[bins] * reach
        confidence = np.clip(raw, 0.0, 1.0)
        value, gradient, length = loss(confidence, batch)
        gradient = gradient * reach
        gradient *= raw == confidence
        by_psi: Floats = -np.bincount(bins, gradient, self.n_bins).astype(np.float64)
        return value, by_psi, length
