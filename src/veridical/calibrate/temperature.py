"""Temperature scaling, and the ensemble temperature scaling built on it."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from veridical._minimisation import zero_between
from veridical._parallel import run_blocks
from veridical.backends.rows import floored_logs, row_maxima, softmax
from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.in_memory import row_blocks
from veridical.combine.registry import COMBINERS
from veridical.combine.state_checks import check_array, check_number
from veridical.errors import NotConvergedWarning, warn_caller
from veridical.predictions.validation import Array, check_choice

if TYPE_CHECKING:
    from veridical.calibrate.fit_sums import FitSums

LOSSES = ("nll", "mse")
#: Temperatures are searched for between 1/50 and 50.
LARGEST = math.log(50.0)
#: A derivative of the mean loss by ln T below this promises nothing.
FLAT = 1e-6
#: Of more numbers than this, logarithms are kept in single precision: their rounding averages out.
_MOST_IN_DOUBLE = 1 << 24


def log_probabilities(probs: Array, n_threads: int | None = None) -> Array:
    """ln p, each row shifted so that its largest entry is 0; of many single-precision probabilities, in theirs."""
    logs = np.empty(probs.shape, np.float64 if probs.size <= _MOST_IN_DOUBLE else probs.dtype)

    def work(part: slice) -> None:
        rows = floored_logs(np, probs[part].astype(np.float64, copy=False))
        logs[part] = rows - row_maxima(np, rows)

    run_blocks(work, row_blocks(*probs.shape), n_threads)
    return logs


def fit_temperature(logs: Array, labels: Labels, loss: str, n_threads: int | None = None) -> float:
    """The temperature with the lowest loss, at least as good as 1; a warning where none within bounds is lowest."""
    temperature, is_inside = search_temperature(logs, labels, loss, n_threads)
    if not is_inside:
        warn_caller(
            f"no temperature between 1/50 and 50 minimises the {loss} on these {len(labels)} samples; the nearest "
            "one is used (are all predictions right, or all wrong?).",
            NotConvergedWarning,
        )
    return temperature


def search_temperature(
    logs: Array, labels: Labels, loss: str, n_threads: int | None = None, *, tolerance: float = 1e-9
) -> tuple[float, bool]:
    """The temperature with the lowest loss, at least as good as 1, and whether it lies inside the bounds.

    The search is in ln(1/T): from T = 1 downhill until the derivative changes sign, then Brent's method on the
    derivative in between.
    """
    data = logs, labels, loss == "mse", n_threads
    value_at_one, slope = _loss_and_slope(0.0, *data)
    if abs(slope) < FLAT:
        return 1.0, True
    near, step = 0.0, -math.copysign(0.25, slope)
    while True:
        far = float(np.clip(near + step, -LARGEST, LARGEST))
        far_value, far_slope = _loss_and_slope(far, *data)
        if far_slope * slope <= 0.0:
            break
        if abs(far) == LARGEST:
            return math.exp(-far) if far_value <= value_at_one else 1.0, False
        near, step = far, 2 * step
    best = zero_between(_slope, min(near, far), max(near, far), *data, tolerance=tolerance)
    return math.exp(-best) if _loss_and_slope(best, *data)[0] <= value_at_one else 1.0, True


def _loss_and_slope(
    log_inverse: float, logs: Array, labels: Labels, squared: bool, n_threads: int | None
) -> tuple[float, float]:
    """The mean loss at ln(1/T), and its derivative by ln(1/T)."""
    from veridical._kernels.scaling import temperature_loss  # loads the compiler

    inverse = math.exp(log_inverse)
    parts = run_blocks(
        lambda part: temperature_loss(logs[part].astype(np.float64, copy=False), labels[part], inverse, squared),
        row_blocks(*logs.shape),
        n_threads,
    )
    value, slope = np.sum(parts, axis=0) / len(labels)
    return float(value), float(slope) * inverse


def _slope(log_inverse: float, *data: Any) -> float:
    return _loss_and_slope(log_inverse, *data)[1]


class Temperature(Calibrator):
    r"""Temperature scaling: one number that sharpens or flattens every distribution.

    .. math:: q = \mathrm{softmax}(\ln p / T), \quad T > 0

    Parameters
    ----------
    loss : {"nll", "mse"}
        What T minimises: the negative log-likelihood, or the squared error over all classes.

    Other parameters are those of every calibrator: ``combine``, ``kind``, ``sources_axis``, ``missing``,
    ``n_threads`` (see :class:`veridical.calibrate.Calibrator`).

    Attributes
    ----------
    temperature_ : float
        Never worse than 1 on the calibration data.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks.  ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> calibrator = vd.Temperature().fit(probs, np.zeros(10, dtype=int))
    >>> calibrator.predict_confidence(probs).round(3)[:2]
    array([0.9, 0.9])
    """

    name = "temperature"
    title = "TS"
    summary = "Temperature scaling: softmax(ln p / T)."
    monotone = False
    whole_vectors = True
    _state: ClassVar[tuple[str, ...]] = ("temperature_",)

    loss: str = "nll"

    def _fit(self, combined: Combined, labels: Labels) -> None:
        logs = log_probabilities(combined.probs, self.n_threads)
        self.temperature_ = fit_temperature(logs, labels, self.loss, self.n_threads)

    def formula(self, xp: Any, combined: Any) -> Any:
        return softmax(xp, floored_logs(xp, combined.probs) / self.temperature_)

    def new_sums(self) -> FitSums | None:
        """The loss at several temperatures, where that is all that is fitted."""
        from veridical.calibrate.temperature_sums import TemperatureSums

        is_all = type(self)._fit is Temperature._fit and not COMBINERS[self.combine].has_weights
        return TemperatureSums(self.loss, self.n_threads) if is_all else None

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.loss, LOSSES, "loss")

    def _check_state(self) -> None:
        furthest = math.exp(LARGEST) * (1 + 1e-9)
        check_number(self.temperature_, "temperature_", 1 / furthest, furthest)


class EnsembleTemperature(Temperature):
    r"""Ensemble temperature scaling: a mixture of the scaled, the unscaled and the uniform distribution.

    .. math:: q = w_1 \,\mathrm{softmax}(\ln p / T) + w_2\, p + w_3 / L

    with w on the simplex.  T minimises ``loss`` on its own; then w minimises the squared error, exactly.

    Parameters
    ----------
    loss : {"mse", "nll"}
        What T minimises.

    Other parameters are those of every calibrator.

    Attributes
    ----------
    temperature_ : float
    weights_ : (3,) array

    References
    ----------
    Zhang, Kailkhura, Han: Mix-n-Match: Ensemble and Compositional Methods for Uncertainty Calibration in Deep
    Learning.  ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> vd.EnsembleTemperature().fit(probs, np.zeros(10, dtype=int)).weights_.sum().round(6)
    np.float64(1.0)
    """

    name = "ets"
    title = "ETS"
    summary = "Ensemble temperature scaling: a mixture of scaled, unscaled and uniform."
    complexity = 2
    _state: ClassVar[tuple[str, ...]] = ("temperature_", "weights_")

    loss: str = "mse"

    def _fit(self, combined: Combined, labels: Labels) -> None:
        super()._fit(combined, labels)
        n_samples, n_classes = combined.probs.shape

        def products(part: slice) -> Floats:
            plain = combined.probs[part].astype(np.float64, copy=False)
            components = softmax(np, floored_logs(np, plain) / self.temperature_), plain
            at_labels = [component[np.arange(len(plain)), labels[part]].sum() for component in components]
            gram = [np.einsum("nl,nl->", *pair) for pair in itertools.product(components, repeat=2)]
            return np.array([*at_labels, *gram])

        sums = np.sum(run_blocks(products, row_blocks(n_samples, n_classes), self.n_threads), axis=0) / n_samples
        gram = np.full((3, 3), 1 / n_classes)  # a distribution times the uniform one is 1/L
        gram[:2, :2] = sums[2:].reshape(2, 2)
        self.weights_ = best_on_simplex(gram, np.array([*sums[:2], 1 / n_classes]))

    def formula(self, xp: Any, combined: Any) -> Any:
        scaled, plain, uniform = self.weights_.tolist()
        return scaled * super().formula(xp, combined) + plain * combined.probs + uniform / combined.n_classes

    def _check_state(self) -> None:
        super()._check_state()
        check_array(self.weights_, "weights_", (3,), 0.0, 1.0)
        if abs(self.weights_.sum() - 1) > 1e-6:
            raise ValueError(f"the mixture's weights are {self.weights_}")


def best_on_simplex(gram: Floats, target: Floats) -> Floats:
    """The w on the simplex that minimises w'Gw - 2 t'w, by solving on each of its faces."""
    best: Floats = np.eye(len(target))[0]
    best_value = np.inf
    # Larger faces last and only if strictly better: among equals the mixture with fewer parts is kept.
    for size in range(1, len(target) + 1):
        for face in map(list, itertools.combinations(range(len(target)), size)):
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = gram[np.ix_(face, face)]
            system[size, :size] = system[:size, size] = 1.0
            solution = np.linalg.lstsq(system, np.append(target[face], 1.0), rcond=None)[0][:size]
            weights = np.zeros(len(target))
            weights[face] = solution
            value = float(weights @ gram @ weights - 2 * target @ weights)
            if (solution >= 0).all() and value < best_value - 1e-15:
                best, best_value = weights / weights.sum(), value
    return best
