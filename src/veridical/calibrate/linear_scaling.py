"""Vector and matrix scaling: affine maps of the log-probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from veridical._minimisation import minimise
from veridical._parallel import run_blocks
from veridical.backends.rows import floored_logs, product, row_sums, softmax
from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Combined, Floats, Labels
from veridical.combine.in_memory import row_blocks
from veridical.combine.state_checks import LARGEST, check_array
from veridical.errors import LongComputationWarning, warn_caller
from veridical.predictions.validation import check_real

_MOST_ITERATIONS = 500
#: Bounds of factors and of offsets.
_MOST_FACTOR, _MOST_OFFSET = 50.0, 100.0


def centred_logs(xp: Any, probs: Any) -> Any:
    """ln p less its mean over classes, which a common factor does not see and which keeps the fit well conditioned."""
    logs = floored_logs(xp, probs)
    return logs - row_sums(xp, logs) / probs.shape[1]


def _softmax_in_place(scores: Floats) -> Floats:
    """Rows to distributions; returns ln of each row's sum of exponentials before."""
    largest = scores.max(axis=1, keepdims=True)
    scores -= largest
    np.exp(scores, out=scores)
    sums = scores.sum(axis=1, keepdims=True)
    scores /= sums
    log_sums: Floats = (largest + np.log(sums))[:, 0]
    return log_sums


def _residuals(scores: Floats, labels: Labels) -> tuple[float, Floats]:
    """Total NLL of softmax(scores), and its gradient by the scores (which are overwritten)."""
    rows = np.arange(len(labels))
    at_label = scores[rows, labels]
    loss = float((_softmax_in_place(scores) - at_label).sum())
    scores[rows, labels] -= 1.0
    return loss, scores


class VectorScaling(Calibrator):
    r"""Vector scaling: a factor and an offset per class.  Labels may change.

    .. math:: q = \mathrm{softmax}(a \odot \ln p + b)

    by maximum likelihood with the penalty :math:`\frac{\lambda}{2} (\sum_l (a_l - \bar a)^2 + \sum_l b_l^2)`, which
    leaves the common factor (a temperature) free.  The problem is convex.

    Parameters
    ----------
    penalty : float
        Lambda, in units of one sample's log-likelihood.

    Other parameters are those of every calibrator.

    Attributes
    ----------
    factors_, offsets_ : (L,) arrays

    References
    ----------
    Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks.  ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> bool(vd.VectorScaling().fit(probs, np.zeros(10, dtype=int)).predict_proba(probs)[0, 0] > 0.7)
    True
    """

    name = "vector"
    summary = "Vector scaling: softmax(a ln p + b) with a factor and an offset per class."
    keeps_labels = False
    complexity = 3
    whole_vectors = True
    _state: ClassVar[tuple[str, ...]] = ("factors_", "offsets_")

    penalty: float = 10.0

    def _fit(self, combined: Combined, labels: Labels) -> None:
        penalty = float(self.penalty)
        logs = combined.over_samples(lambda rows: centred_logs(np, rows.probs))
        n_samples, n_classes = logs.shape

        def objective(at: Floats) -> tuple[float, Floats]:
            factors, offsets = at[:n_classes], at[n_classes:]
            loss, residuals = _residuals(logs * factors + offsets, labels)
            apart = factors - factors.mean()
            loss += 0.5 * penalty * float(apart @ apart + offsets @ offsets)
            by_factor = np.einsum("nl,nl->l", residuals, logs) + penalty * apart
            by_offset = residuals.sum(axis=0) + penalty * offsets
            return loss / n_samples, np.concatenate((by_factor, by_offset)) / n_samples

        best = _minimise(
            objective, np.concatenate((np.ones(n_classes), np.zeros(n_classes))), n_classes, "vector scaling"
        )
        self.factors_, self.offsets_ = best[:n_classes], best[n_classes:]

    def formula(self, xp: Any, combined: Any) -> Any:
        return softmax(xp, self._scores(xp, centred_logs(xp, combined.probs), combined.constant))

    def _scores(self, xp: Any, logs: Any, constant: Any) -> Any:
        return logs * constant(self.factors_) + constant(self.offsets_)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_real(self.penalty, "penalty", 1e-3, LARGEST)

    def _check_state(self) -> None:
        check_array(self.factors_, "factors_", (self.n_classes_,), -_MOST_FACTOR, _MOST_FACTOR)
        check_array(self.offsets_, "offsets_", (self.n_classes_,), -_MOST_OFFSET, _MOST_OFFSET)


def _minimise(objective: Callable[[Floats], tuple[float, Floats]], start: Floats, n_factors: int, what: str) -> Floats:
    """The minimum within bounds that only data without any error reach."""
    bounds = [(-_MOST_FACTOR, _MOST_FACTOR)] * n_factors + [(-_MOST_OFFSET, _MOST_OFFSET)] * (len(start) - n_factors)
    return minimise(objective, start, bounds, what, maxiter=_MOST_ITERATIONS, ftol=1e-8)[1]


class MatrixScaling(VectorScaling):
    r"""Matrix scaling: an affine map of the log-probabilities, its off-diagonal part held small.  Labels may change.

    .. math:: q = \mathrm{softmax}((\mathrm{diag}(a) + M) \ln p + b), \quad M_{ll} = 0

    by maximum likelihood with vector scaling's penalty and :math:`\frac{\mu L}{2} \sum M_{kl}^2`: the more classes
    there are to lean on, the less on each.

    Parameters
    ----------
    penalty : float
        Strength of vector scaling's penalty.
    off_diagonal : float
        Mu.

    Other parameters are those of every calibrator.

    Attributes
    ----------
    factors_, offsets_ : (L,) arrays
    matrix_ : (L, L) array
        M, with zeros on its diagonal.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach: Beyond Temperature Scaling.  NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> vd.MatrixScaling().fit(probs, np.zeros(10, dtype=int)).matrix_.shape
    (2, 2)
    """

    name = "matrix"
    summary = "Matrix scaling: an affine map of ln p, its off-diagonal part held small."
    complexity = 6
    _state: ClassVar[tuple[str, ...]] = ("factors_", "offsets_", "matrix_")

    off_diagonal: float = 10.0

    def _fit(self, combined: Combined, labels: Labels) -> None:
        if combined.n_classes > 2000:
            cost = f"matrix scaling fits {combined.n_classes**2:,} numbers, which takes minutes to hours"
            warn_caller(f"{cost}; vector scaling fits two for each class.", LongComputationWarning)
        super()._fit(combined, labels)  # the start: vector scaling's optimum
        logs = combined.over_samples(lambda rows: centred_logs(np, rows.probs))
        n_samples, n_classes = logs.shape
        penalty, off_diagonal = float(self.penalty), float(self.off_diagonal) * n_classes
        diagonal = np.arange(n_classes)

        def objective(at: Floats) -> tuple[float, Floats]:
            matrix, offsets = at[: n_classes**2].reshape(n_classes, n_classes), at[n_classes**2 :]
            factors = matrix[diagonal, diagonal]
            loss, by_matrix, by_offset = self._likelihood(logs, labels, matrix, offsets)
            apart = factors - factors.mean()
            others = matrix.copy()
            others[diagonal, diagonal] = 0.0
            loss += 0.5 * penalty * float(apart @ apart + offsets @ offsets)
            loss += 0.5 * off_diagonal * float(np.square(others).sum())
            by_matrix += off_diagonal * others
            by_matrix[diagonal, diagonal] += penalty * apart
            by_offset += penalty * offsets
            return loss / n_samples, np.concatenate((by_matrix.ravel(), by_offset)) / n_samples

        start = np.concatenate((np.diag(self.factors_).ravel(), self.offsets_))
        best = _minimise(objective, start, n_classes**2, "matrix scaling")
        self.matrix_ = best[: n_classes**2].reshape(n_classes, n_classes).copy()
        self.factors_, self.offsets_ = self.matrix_[diagonal, diagonal].copy(), best[n_classes**2 :]
        self.matrix_[diagonal, diagonal] = 0.0

    def _likelihood(
        self, logs: Floats, labels: Labels, matrix: Floats, offsets: Floats
    ) -> tuple[float, Floats, Floats]:
        """Total NLL and its gradients; our threads over fixed blocks, so that sums do not depend on their number."""

        def work(part: slice) -> tuple[float, Floats, Floats]:
            loss, residuals = _residuals(logs[part] @ matrix.T + offsets, labels[part])
            return loss, residuals.T @ logs[part], residuals.sum(axis=0)

        losses, by_matrix, by_offset = zip(*run_blocks(work, row_blocks(*logs.shape), self.n_threads), strict=True)
        return sum(losses), np.sum(by_matrix, axis=0), np.sum(by_offset, axis=0)

    def _scores(self, xp: Any, logs: Any, constant: Any) -> Any:
        return super()._scores(xp, logs, constant) + product(xp, logs, constant(self.matrix_))

    def check_parameters(self) -> None:
        super().check_parameters()
        check_real(self.off_diagonal, "off_diagonal", 1e-3, LARGEST)

    def _check_state(self) -> None:
        super()._check_state()
        check_array(self.matrix_, "matrix_", (self.n_classes_, self.n_classes_), -_MOST_FACTOR, _MOST_FACTOR)
