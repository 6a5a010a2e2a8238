"""Calibration by splines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.backends.rows import bounded, interpolate
from veridical.calibrate.base import Calibrator
from veridical.calibrate.binning import last_of_cells
from veridical.combine.combined import Floats
from veridical.combine.state_checks import check_array, check_rising
from veridical.predictions.validation import check_integer

#: The fit holds a matrix of knots by knots.
_MOST_KNOTS = 1_000


class Spline(Calibrator):
    r"""Spline calibration: the derivative of a smooth fit to the cumulative calibration gap.

    With the n confidences v of the calibration samples sorted, a natural cubic spline with equally spaced knots is
    fitted by least squares to :math:`h_i = \frac1n \sum_{j \le i} (c_j - v_j)` at the percentiles i/(n-1).  The
    calibrated confidence is v plus the spline's derivative there, clipped to [0, 1]; new confidences are interpolated
    linearly.

    Parameters
    ----------
    n_knots : int

    Other parameters are those of every calibrator.

    Attributes
    ----------
    scores_, recalibrated_ : (K,) arrays
        The distinct confidences of the calibration samples, and what becomes of them before clipping.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley: Calibration of Neural Networks using Splines.  ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> top = rng.uniform(0.5, 0.9, 1000)
    >>> probs, y = np.column_stack((top, 1 - top)), (rng.random(1000) > top + 0.1).astype(int)
    >>> bool(abs(vd.Spline().fit(probs, y).predict_confidence([[0.7, 0.3]])[0] - 0.8) < 0.05)
    True
    """

    name = "spline"
    title = "Spline"
    summary = "The derivative of a natural cubic spline through the cumulative calibration gap."
    complexity = 3
    _state = ("scores_", "recalibrated_")

    n_knots: int = 6

    def _fit_pairs(
        self, confidence: Floats, correct: npt.NDArray[np.bool_], weight: Floats | None = None, *, single: bool = False
    ) -> None:
        order = np.argsort(confidence, kind="stable")
        scores = last_of_cells(confidence[order], single)
        gaps = correct[order] - scores
        n_samples = len(scores) if weight is None else int(weight.sum())
        if n_samples < 2:
            # One sample has no percentiles to run a spline through, and says next to nothing: scores stay.
            self.scores_ = self.recalibrated_ = scores
            return
        if weight is None:
            # Scores that tie have their mean gap each, so that their order does not matter.
            _, which = np.unique(scores, return_inverse=True)
            gaps = (np.bincount(which, weights=gaps) / np.bincount(which))[which]
            self._fit_curve(scores, np.arange(n_samples) / (n_samples - 1), np.cumsum(gaps) / n_samples, None)
            return
        # A score that stands for k equal ones is fitted at the middle of their percentiles.
        counts = weight[order]
        percentiles = (np.cumsum(counts) - 0.5 * (counts + 1)) / (n_samples - 1)
        heights = (np.cumsum(gaps * counts) - 0.5 * gaps * (counts - 1)) / n_samples
        self._fit_curve(scores, percentiles, heights, counts)

    def _fit_curve(self, scores: Floats, percentiles: Floats, heights: Floats, counts: Floats | None) -> None:
        from scipy.interpolate import CubicSpline

        basis = CubicSpline(np.linspace(0, 1, self.n_knots), np.eye(self.n_knots), bc_type="natural")
        design = basis(percentiles)
        if counts is not None:
            design, heights = design * np.sqrt(counts)[:, None], heights * np.sqrt(counts)
        coefficients = np.linalg.lstsq(design, heights, rcond=None)[0]
        recalibrated = scores + basis(percentiles, 1) @ coefficients
        self.scores_, which = np.unique(scores, return_inverse=True)
        times = np.ones(len(scores)) if counts is None else counts
        # ties share one value
        self.recalibrated_ = np.bincount(which, weights=recalibrated * times) / np.bincount(which, weights=times)

    def formula(self, xp: Any, combined: Any) -> Any:
        knots, values = combined.constant(self.scores_), combined.constant(self.recalibrated_)
        return bounded(xp, interpolate(xp, combined.confidence, knots, values), 0.0, 1.0)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_integer(self.n_knots, "n_knots", 3, _MOST_KNOTS)

    def _check_state(self) -> None:
        check_array(self.scores_, "scores_", (-1,), 0.0, 1.0)
        check_array(self.recalibrated_, "recalibrated_", self.scores_.shape)
        check_rising(self.scores_, "scores_")
        if not len(self.scores_):
            raise ValueError("there are no confidences to fit")
