"""A temperature from one streamed pass: the loss is summed at several temperatures, and interpolated between them."""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import CubicSpline

from veridical._kernels.scaling import temperature_loss
from veridical.calibrate.temperature import FLAT, Temperature, log_probabilities, search_temperature
from veridical.combine.combined import Combined, Floats, Labels

#: Temperatures are searched for between 1/50 and 50, in ln(1/T).
_LARGEST = math.log(50.0)
#: Nodes on both sides of the temperature of the first block, and the distance between them.  The derivative of the loss
#: by ln(1/T) is smooth; a cubic spline through its values is wrong by less than 1e-7 of the temperature.
_N_NODES, _STEP = 8, 0.06
_SPAN = _N_NODES * _STEP


class TemperatureSums:
    """Sums over samples of the loss of temperature scaling, and of its derivative, at several temperatures.

    Parameters
    ----------
    calibrator : Temperature
        Which loss.
    """

    def __init__(self, calibrator: Temperature) -> None:
        self._loss = calibrator.loss
        self._n_threads = calibrator.n_threads
        self.nodes: Floats | None = None
        #: (nodes, 2): loss and derivative by 1/T; the last node is T = 1.
        self.sums: Floats = np.zeros(0)
        self.n_samples = 0

    def like(self) -> TemperatureSums:
        """Sums over no samples at the same temperatures."""
        other = object.__new__(TemperatureSums)
        other._loss, other._n_threads, other.nodes = self._loss, self._n_threads, self.nodes
        other.sums, other.n_samples = np.zeros_like(self.sums), 0
        return other

    def set_nodes(self, combined: Combined, labels: Labels) -> None:
        """Choose the temperatures around the best one of these samples."""
        logs = log_probabilities(combined.probs, self._n_threads)
        temperature, _ = search_temperature(logs, labels, self._loss, self._n_threads, tolerance=1e-3)
        centre = min(max(-math.log(temperature), -_LARGEST + _SPAN), _LARGEST - _SPAN)
        self.cover(centre - _SPAN, centre + _SPAN)

    def cover(self, lowest: float, highest: float) -> None:
        """Temperatures from exp(-highest) to exp(-lowest), within the bounds."""
        lowest, highest = max(lowest, -_LARGEST), min(highest, _LARGEST)
        n_steps = math.ceil((highest - lowest) / _STEP - 1e-9)
        self.nodes = np.append(np.linspace(lowest, highest, n_steps + 1), 0.0)
        self.sums, self.n_samples = np.zeros((len(self.nodes), 2)), 0

    def update(self, combined: Combined, labels: Labels) -> None:
        """Add samples."""
        assert self.nodes is not None
        logs = log_probabilities(combined.probs, self._n_threads)
        squared = self._loss == "mse"
        for k, node in enumerate(self.nodes.tolist()):
            self.sums[k] += temperature_loss(logs, labels, math.exp(node), squared)
        self.n_samples += len(labels)

    def merge(self, other: TemperatureSums) -> TemperatureSums:
        """The sums over the samples of both."""
        merged = self.like()
        merged.sums, merged.n_samples = self.sums + other.sums, self.n_samples + other.n_samples
        return merged

    def wider(self, edge: float) -> tuple[float, float]:
        """The range to cover in another pass: this one, and beyond the edge where the loss still falls."""
        assert self.nodes is not None
        return min(float(self.nodes[0]), edge - 2 * _SPAN), max(float(self.nodes[-2]), edge + 2 * _SPAN)

    def solve(self) -> tuple[float | None, float]:
        """(temperature, the node to continue beyond): the temperature is None if the minimum is beyond the nodes."""
        assert self.nodes is not None
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
            if abs(edge) < _LARGEST - 1e-9:
                return None, edge
            value = values[-1] if slopes[-1] < 0 else values[0]
            return (math.exp(-edge) if value <= at_one else 1.0), edge
        roots = CubicSpline(nodes, slopes).roots(extrapolate=False)
        best = float(roots[np.argmin(np.abs(roots - nodes[rising[0]] - 0.5 * _STEP))])
        value = float(CubicSpline(nodes, values)(best))
        return (math.exp(-best) if value <= at_one else 1.0), best
