"""A temperature from one streamed pass: the loss is summed at several temperatures, and interpolated between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from veridical.calibrate.temperature import FLAT, LARGEST, Temperature, log_probabilities, search_temperature
from veridical.combine.combined import Combined, Floats, Labels

if TYPE_CHECKING:
    from veridical.calibrate.base import Calibrator

#: Nodes on both sides of the temperature of the first samples, and the distance between them.  The derivative of the
#: loss by ln(1/T) is smooth; a cubic spline through its values is wrong by less than 1e-7 of the temperature.
_N_NODES, _STEP = 8, 0.06
_SPAN = _N_NODES * _STEP


class TemperatureSums:
    """Sums over samples of the loss of temperature scaling, and of its derivative, at several temperatures.

    Parameters
    ----------
    loss : {"nll", "mse"}
    n_threads : int or None
    nodes : array
        The temperatures, as ln(1/T); the last node is T = 1.
    sums : (nodes, 2) array, optional
        Loss and derivative by 1/T.
    n_samples : int
    """

    def __init__(
        self,
        loss: str,
        n_threads: int | None,
        nodes: Floats | None = None,
        sums: Floats | None = None,
        n_samples: int = 0,
    ) -> None:
        self._loss, self._n_threads = loss, n_threads
        self.nodes: Floats = np.zeros(1) if nodes is None else nodes
        self.sums: Floats = np.zeros((len(self.nodes), 2)) if sums is None else sums
        self.n_samples = n_samples

    def prepared(self, combined: Combined, labels: Labels) -> TemperatureSums:
        """Nodes around the best temperature of these samples."""
        logs = log_probabilities(combined.probs, self._n_threads)
        temperature, _ = search_temperature(logs, labels, self._loss, self._n_threads, tolerance=1e-3)
        centre = min(max(-math.log(temperature), -LARGEST + _SPAN), LARGEST - _SPAN)
        return self._over(centre - _SPAN, centre + _SPAN)

    def _over(self, lowest: float, highest: float) -> TemperatureSums:
        """Nodes from ``lowest`` to ``highest``, within the bounds."""
        lowest, highest = max(lowest, -LARGEST), min(highest, LARGEST)
        n_steps = math.ceil((highest - lowest) / _STEP - 1e-9)
        nodes = np.append(np.linspace(lowest, highest, n_steps + 1), 0.0)
        return TemperatureSums(self._loss, self._n_threads, nodes)

    def of(self, combined: Combined, labels: Labels) -> TemperatureSums:
        """The sums over some samples."""
        from veridical._kernels.scaling import temperature_loss  # loads the compiler

        sums = np.zeros_like(self.sums)
        if len(labels):
            logs = log_probabilities(combined.probs, self._n_threads)
            for k, node in enumerate(self.nodes.tolist()):
                sums[k] = temperature_loss(logs, labels, math.exp(node), self._loss == "mse")
        return TemperatureSums(self._loss, self._n_threads, self.nodes, sums, len(labels))

    def merge(self, other: TemperatureSums) -> TemperatureSums:
        """The sums over the samples of both."""
        sums, n_samples = self.sums + other.sums, self.n_samples + other.n_samples
        return TemperatureSums(self._loss, self._n_threads, self.nodes, sums, n_samples)

    def covering(self, sums: TemperatureSums) -> TemperatureSums:
        """Nodes beyond the edge where the loss of ``sums`` still falls, if it does."""
        temperature, edge = sums.solve()
        if temperature is not None:
            return self
        return self._over(min(self.nodes[0], edge - 2 * _SPAN), max(self.nodes[-2], edge + 2 * _SPAN))

    def fit(self, calibrator: Calibrator) -> None:
        """Set the temperature."""
        assert isinstance(calibrator, Temperature)
        temperature, _ = self.solve()
        assert temperature is not None
        calibrator.temperature_ = temperature

    def solve(self) -> tuple[float | None, float]:
        """(temperature, the node to continue beyond): the temperature is None if the minimum is beyond the nodes."""
        from scipy.interpolate import CubicSpline

        if not self.n_samples:
            return 1.0, 0.0
        nodes = self.nodes[:-1]
        inverse = np.exp(self.nodes)
        values, slopes = self.sums[:, 0] / self.n_samples, self.sums[:, 1] * inverse / self.n_samples
        if abs(slopes[-1]) < FLAT:
            return 1.0, 0.0
        at_one = values[-1]
        values, slopes = values[:-1], slopes[:-1]
        rising = np.flatnonzero((slopes[:-1] <= 0) & (slopes[1:] >= 0))
        if not rising.size:
            edge = float(nodes[-1] if slopes[-1] < 0 else nodes[0])
            if abs(edge) < LARGEST - 1e-9:
                return None, edge
            value = values[-1] if slopes[-1] < 0 else values[0]
            return (math.exp(-edge) if value <= at_one else 1.0), edge
        roots = CubicSpline(nodes, slopes).roots(extrapolate=False)
        best = float(roots[np.argmin(np.abs(roots - nodes[rising[0]] - 0.5 * _STEP))])
        value = float(CubicSpline(nodes, values)(best))
        return (math.exp(-best) if value <= at_one else 1.0), best
