"""Direct optimisation of the calibration error: opt and pTDE (paper, Section 4)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from veridical.backends.rows import at_most, bounded, value_of_bin
from veridical.calibrate.base import Calibrator
from veridical.calibrate.binning import bins_of, check_edges, inner_edges
from veridical.calibrate.starting_point import BinnedGaps, tempered_accuracy
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.state_checks import LARGEST, check_array, check_number
from veridical.metrics.binned import MOST_BINS
from veridical.metrics.sample import Booleans
from veridical.predictions.validation import (
    RandomState,
    check_choice,
    check_integer,
    check_random_state,
    check_real,
)

STARTS = ("shrunk", "closed-form", "zero")
HV_SCALES = ("quantile", "fitted", "raw")
LOSS_BINS = ("scores", "fixed", "moving")
STEP_RULES = ("normalised", "plain")
#: Parameters of the paper's own setting; the paper gives no learning rate, and larger ones diverge for large S.
PAPER_SETTING: dict[str, Any] = {
    "start": "zero",
    "hist_steps": 70,
    "batch_size": 1000,
    "loss_bins": "fixed",
    "step_rule": "plain",
    "hist_rate": 0.1,
    "kde_rate": 0.1,
    "significance": 0.0,
}
#: How strongly HV may enter, in units of its 99% quantile.
_GAINS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


class OptHist(Calibrator):
    r"""Opt with the histogram loss: one correction per bin of the confidence, chosen to minimise the ECE.

    .. math:: w = \mathrm{clip}(v - \psi_{bin(v)})

    Parameters
    ----------
    n_bins : int
        Bins of equal mass over the confidences of the calibration samples; then fixed.
    start : {"shrunk", "closed-form", "zero"}
        Where psi starts: the closed-form minimum of the histogram loss pulled towards temperature scaling as far as
        noise explains the difference, that minimum itself, or 0.
    hist_steps : int
        Gradient steps on the histogram loss.  None are needed after a start that minimises it.
    kde_steps : int, optional
        Gradient steps on the KDE loss after that; by default 0 for the ``-hist`` and 5 for the ``-kde`` variants.
    step_rule : {"normalised", "plain"}
        ``"normalised"`` divides a bin's gradient by its curvature, mean of (1 + h)^2, and on full batches takes only
        steps that lower the loss, halving the rate where one does not.  ``"plain"`` is stochastic gradient descent.
    hist_rate, kde_rate : float
        Learning rates; with normalised steps the second is in units of the kernel's bandwidth.
    batch_size : int, optional
        Samples drawn for each step; all by default.
    loss_bins : {"scores", "fixed", "moving"}
        Whose bins the histogram loss sums over: those of v, fixed bins (at v's edges) that w falls into, as in the
        paper, or bins of equal mass of w.
    significance : float
        KDE steps follow the calibration gap only where it exceeds so many standard errors; 0 follows it everywhere.
    random_state : int, Generator or None
        Decides the batches.

    Other parameters are those of every calibrator.

    Attributes
    ----------
    edges_ : (B - 1,) array
    psi_ : (B,) array
        What is taken off the score in each bin.

    References
    ----------
    Ma, Huang, Xian, Gao, Xu: Improving Uncertainty Calibration of Deep Neural Networks via Truth Discovery and
    Geometric Optimization.  UAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> top = rng.uniform(0.5, 0.9, 1000)
    >>> probs, y = np.column_stack((top, 1 - top)), (rng.random(1000) > top + 0.1).astype(int)
    >>> bool(abs(vd.OptHist().fit(probs, y).predict_confidence([[0.7, 0.3]])[0] - 0.8) < 0.05)
    True
    """

    name = "opt-hist"
    summary = "A correction per bin of the confidence that minimises the histogram ECE."
    complexity = 4
    _default_kde_steps: ClassVar[int] = 0
    _state: ClassVar[tuple[str, ...]] = ("edges_", "psi_")

    n_bins: int = 15
    start: str = "shrunk"
    hist_steps: int = 0
    kde_steps: int | None = None
    step_rule: str = "normalised"
    hist_rate: float = 0.05
    kde_rate: float = 0.5
    batch_size: int | None = None
    loss_bins: str = "scores"
    significance: float = 2.0
    random_state: RandomState = None

    def _fit(self, combined: Combined, labels: Labels) -> None:
        from veridical.calibrate.descent import Descent  # loads the compiler and metrics

        score, correct = combined.confidence, combined.correct(labels)
        self.edges_ = inner_edges(score, self.n_bins, single=combined.dtype != np.float64)
        bins = bins_of(score, self.edges_)
        gaps = BinnedGaps.measure(score, correct, bins, len(self.edges_) + 1)
        reach = self._fit_reach(combined, gaps, correct)
        psi = self._starting_psi(combined, labels, gaps, reach)
        descent = Descent(score, correct, bins, reach, self.edges_, self)
        psi = descent.run(psi, self.hist_steps, float(self.hist_rate), descent.histogram)
        steps = self._default_kde_steps if self.kde_steps is None else self.kde_steps
        psi = descent.run(psi, steps, float(self.kde_rate), descent.kde)
        # Scores lie from 0 to 1 and no reach is below one: a correction of more than one changes nothing any more.
        self.psi_ = np.clip(psi, -1.0, 1.0)

    def formula(self, xp: Any, combined: Any) -> Any:
        edges, psi = combined.constant(self.edges_), combined.constant(self.psi_)
        correction = value_of_bin(xp, combined.confidence, edges, psi) * self._reach(xp, combined)
        return bounded(xp, combined.confidence - correction, 0.0, 1.0)

    def _reach(self, xp: Any, combined: Any) -> Any:
        """1 + h: by how much a sample's correction is that of its bin."""
        return 1.0

    def _fit_reach(self, combined: Combined, gaps: BinnedGaps, correct: Booleans) -> Floats:
        """(N,) the calibration samples' reach, with what it needs fitted."""
        return np.ones(len(correct))

    def _starting_psi(self, combined: Combined, labels: Labels, gaps: BinnedGaps, reach: Floats) -> Floats:
        if self.start == "zero":
            return np.zeros(len(gaps.gap))
        if self.start == "closed-form":
            return gaps.closed_form(reach)
        return gaps.shrunk(reach, combined.confidence, tempered_accuracy(combined, labels, self.n_threads))

    def check_parameters(self) -> None:
        super().check_parameters()
        check_integer(self.n_bins, "n_bins", 1, MOST_BINS)
        check_random_state(self.random_state)
        check_choice(self.start, STARTS, "start")
        check_choice(self.loss_bins, LOSS_BINS, "loss_bins")
        check_choice(self.step_rule, STEP_RULES, "step_rule")
        check_integer(self.hist_steps, "hist_steps", 0)
        if self.kde_steps is not None:
            check_integer(self.kde_steps, "kde_steps", 0)
        if self.batch_size is not None:
            check_integer(self.batch_size, "batch_size", 1)
        for what in ("hist_rate", "kde_rate", "significance"):
            check_real(getattr(self, what), what, 0.0, LARGEST)

    def _check_state(self) -> None:
        check_array(self.psi_, "psi_", (-1,), -1.0, 1.0)
        check_edges(self.edges_, self.psi_)


class OptKDE(OptHist):
    """Opt with the KDE loss: :class:`OptHist`, then a few steps down the KDE calibration error.

    Parameters and attributes are those of :class:`OptHist`.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> top = rng.uniform(0.5, 0.9, 1000)
    >>> probs, y = np.column_stack((top, 1 - top)), (rng.random(1000) > top + 0.1).astype(int)
    >>> bool(abs(vd.OptKDE().fit(probs, y).predict_confidence([[0.7, 0.3]])[0] - 0.8) < 0.05)
    True
    """

    name = "opt-kde"
    summary = "opt-hist, then steps down the KDE calibration error."
    complexity = 5
    _default_kde_steps = 5


class PTDEHist(OptHist):
    r"""pTDE with the histogram loss: corrections per bin, larger where the sources disagree.

    .. math:: w = \mathrm{clip}(v - \psi_{bin(v)} (1 + h)), \quad h = g \min(HV / q_{99}, 1)

    HV is the sources' entropy-based geometric variance around their truth, q₉₉ its 99% quantile on the calibration
    data.  Where psi is below zero (an under-confident bin), disagreement raises w more, not less; that is the
    paper's formula.

    Parameters
    ----------
    hv_scale : {"quantile", "fitted", "raw"}
        ``"quantile"``: as above, with g = ``hv_gain``.  ``"fitted"``: g is the one among 0, 1/4, 1/2, 1, 2, 4 with
        which the closed form has the lowest Brier score on the calibration data.  ``"raw"``: h = HV, as in the paper.
    hv_gain : float
        How much larger the correction is where the sources disagree most.

    Other parameters are those of :class:`OptHist`.  For the paper's own setting see
    ``veridical.calibrate.PAPER_SETTING``, with ``hv_scale="raw"``.

    Attributes
    ----------
    edges_ : (B - 1,) array
    psi_ : (B,) array
    hv_unit_ : float
        The quantile q₉₉; 0 where the sources never disagree.
    hv_gain_ : float

    References
    ----------
    Ma, Huang, Xian, Gao, Xu: Improving Uncertainty Calibration of Deep Neural Networks via Truth Discovery and
    Geometric Optimization.  UAI 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([3, 2, 1], size=(5, 1000))
    >>> y = rng.integers(0, 3, 1000)
    >>> confidence = vd.PTDEHist().fit(probs, y).predict_confidence(probs)
    >>> bool(abs(confidence.mean() - (probs.mean(axis=0).argmax(axis=1) == y).mean()) < 0.02)
    True
    """

    name = "ptde-hist"
    title = "pTDE-hist"
    summary = "opt-hist with corrections that grow with the sources' disagreement."
    needs_sources = True
    fixed_number_of_sources = True
    complexity = 5
    _state: ClassVar[tuple[str, ...]] = ("edges_", "psi_", "hv_unit_", "hv_gain_")

    hv_scale: str = "quantile"
    hv_gain: float = 0.25

    def _reach(self, xp: Any, combined: Any) -> Any:
        if self.hv_scale == "raw":
            return 1.0 + combined.hv
        if self.hv_unit_ == 0.0 or self.hv_gain_ == 0.0:
            return 1.0
        return 1.0 + self.hv_gain_ * at_most(xp, combined.hv / self.hv_unit_, 1.0)

    def _fit_reach(self, combined: Combined, gaps: BinnedGaps, correct: Booleans) -> Floats:
        self.hv_unit_, self.hv_gain_ = float(np.quantile(combined.hv, 0.99)), float(self.hv_gain)
        if self.hv_scale == "fitted" and self.hv_unit_ > 0:
            self.hv_gain_ = self._best_gain(combined, gaps, correct)
        return np.broadcast_to(self._reach(np, combined), correct.shape)

    def _best_gain(self, combined: Combined, gaps: BinnedGaps, correct: Booleans) -> float:
        """The gain with the lowest Brier score of the closed form; the smaller on ties."""
        relative = np.minimum(combined.hv / self.hv_unit_, 1.0)

        def brier(gain: float) -> float:
            reach = 1.0 + gain * relative
            confidence = np.clip(combined.confidence - gaps.closed_form(reach)[gaps.bins] * reach, 0.0, 1.0)
            return float(np.square(confidence - correct).mean())

        return min(_GAINS, key=brier)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_choice(self.hv_scale, HV_SCALES, "hv_scale")
        check_real(self.hv_gain, "hv_gain", 0.0, LARGEST)

    def _check_state(self) -> None:
        super()._check_state()
        check_number(self.hv_unit_, "hv_unit_", 0.0)
        check_number(self.hv_gain_, "hv_gain_", 0.0)


class PTDE(PTDEHist):
    """pTDE with the KDE loss ("ptde-kde"): :class:`PTDEHist`, then a few steps down the KDE calibration error.

    Parameters and attributes are those of :class:`PTDEHist`.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> rng = np.random.default_rng(0)
    >>> probs = rng.dirichlet([3, 2, 1], size=(5, 1000))
    >>> y = rng.integers(0, 3, 1000)
    >>> calibrator = vd.PTDE(random_state=0).fit(probs, y)
    >>> bool((calibrator.predict(probs) == probs.mean(axis=0).argmax(axis=1)).all())
    True
    """

    name = "ptde-kde"
    title = "pTDE"
    summary = "ptde-hist, then steps down the KDE calibration error (the paper's pTDE)."
    complexity = 6
    _default_kde_steps = 5
