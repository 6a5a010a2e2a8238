"""Calibration by splines."""

from __future__ import annotations

import numpy as np

from veridical.calibrate.base import Calibrator
from veridical.calibrate.state_checks import check_array, check_rising
from veridical.combine.combined import Combined, Floats, Labels
from veridical.predictions.validation import check_integer

#: The fit holds a matrix of knots by knots.
_MOST_KNOTS = 1_000


class Spline(Calibrator):
    r"""Spline calibration: the derivative of a smooth fit to the cumulative calibration gap.

    With the calibration scores sorted, a natural cubic spline with equally spaced knots is fitted by least squares
    to :math:`h_i = \frac1n \sum_{j \le i} (c_j - v_j)` at the percentiles i/(n-1).  The recalibrated score is v plus
    the spline's derivative there, clipped to [0, 1]; new scores are interpolated linearly.

    Parameters
    ----------
    n_knots : int

    Other parameters are those of every calibrator.

    Attributes
    ----------
    scores_, recalibrated_ : (K,) arrays
        The distinct calibration scores, and what becomes of them before clipping.

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

    def _fit(self, combined: Combined, labels: Labels) -> None:
        from scipy.interpolate import CubicSpline

        n_knots = self.n_knots
        order = np.argsort(combined.confidence, kind="stable")
        scores = combined.confidence[order]
        gaps = combined.correct(labels)[order] - scores
        if len(scores) < 2:
            # One sample has no percentiles to run a spline through, and says next to nothing: scores stay.
            self.scores_ = self.recalibrated_ = scores
            return
        percentiles = np.arange(len(scores)) / (len(scores) - 1)
        basis = CubicSpline(np.linspace(0, 1, n_knots), np.eye(n_knots), bc_type="natural")
        heights = np.linalg.lstsq(basis(percentiles), np.cumsum(gaps) / len(scores), rcond=None)[0]
        recalibrated = scores + basis(percentiles, 1) @ heights
        self.scores_, which, counts = np.unique(scores, return_inverse=True, return_counts=True)
        self.recalibrated_ = np.bincount(which, weights=recalibrated) / counts  # ties share one value

    def _confidence(self, combined: Combined) -> Floats:
        corrected = np.interp(combined.confidence, self.scores_, self.recalibrated_)
        return np.minimum(np.maximum(corrected, 0.0), 1.0)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_integer(self.n_knots, "n_knots", 3, _MOST_KNOTS)

    def _check_state(self) -> None:
        check_array(self.scores_, "scores_", (-1,), 0.0, 1.0)
        check_array(self.recalibrated_, "recalibrated_", self.scores_.shape)
        check_rising(self.scores_, "scores_")
        if not len(self.scores_):
            raise ValueError("there are no calibration scores")
