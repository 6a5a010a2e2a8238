"""The result of truth discovery, and weights of sources that a caller passes to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.backends.foreign import to_host
from veridical.errors import ParameterError, ShapeError
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, as_numbers

#: A source counts as at most so many; what counts as less than one in so many counts as none.  Sums, products with
#: distances and quotients of such numbers are far from the ends of float32.
LARGEST_WEIGHT = 1e30

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False, eq=False)
class Truth:
    """What truth discovery finds for each sample.

    Attributes
    ----------
    probs : array of shape (N, L)
        Truth vectors, on the simplex.
    reliability : array of shape (S, N)
        How far each source was trusted for each sample; columns sum to one, absent sources have 0.
    hv : array of shape (N,)
        Entropy-based geometric variance: how much the sources disagree.  A sum over sources, so it grows with S.
    prediction : array of N integers
        The label of the ensemble's mean.  With ``accuracy_preserving=True`` it is the strict maximum of ``probs``.
    n_iter : array of N integers
        Updates used.
    converged : array of N booleans
        Whether the truth came to rest within ``max_iter`` updates.
    trace : array of shape (max_iter + 1, N), or None
        HV at the mean and after each update, repeated once a sample has come to rest; only if asked for.

    Examples
    --------
    Two sources agree and a third does not: the truth is nearer to the two, who are trusted more.

    >>> import veridical as vd
    >>> truth = vd.discover([[[0.8, 0.2]], [[0.7, 0.3]], [[0.1, 0.9]]])
    >>> truth
    Truth(3 sources, 1 samples, 2 classes, mean HV 0.0621, 100.0% converged in 3.0 updates)
    >>> truth.probs.round(2), truth.reliability[:, 0].round(2)
    (array([[0.74, 0.26]]), array([0.46, 0.53, 0.  ]))
    """

    probs: Array
    reliability: Array
    hv: Array
    prediction: npt.NDArray[np.int64]
    n_iter: npt.NDArray[np.int32]
    converged: npt.NDArray[np.bool_]
    trace: Array | None = None

    def take(self, samples: Any) -> Truth:
        """The truth of some of the samples, by index."""
        return Truth(
            self.probs[samples],
            self.reliability[:, samples],
            self.hv[samples],
            self.prediction[samples],
            self.n_iter[samples],
            self.converged[samples],
            None if self.trace is None else self.trace[:, samples],
        )

    def astype(self, dtype: Any) -> Truth:
        """The same with NumPy's numbers in another precision."""
        floats = ("probs", "reliability", "hv") if self.trace is None else ("probs", "reliability", "hv", "trace")
        return replace(self, **{name: getattr(self, name).astype(dtype, copy=False) for name in floats})

    def __repr__(self) -> str:
        n_sources, n_samples = self.reliability.shape[0], math.prod(self.hv.shape)
        if n_samples == 0:
            return f"Truth({n_sources} sources, no samples)"
        hv, converged, n_iter = (to_host(values).mean() for values in (self.hv, self.converged, self.n_iter))
        shape = f"{n_sources} sources, {n_samples} samples, {self.probs.shape[-1]} classes"
        return f"Truth({shape}, mean HV {hv:.4g}, {converged:.1%} converged in {n_iter:.1f} updates)"

    def in_shape(self, shape: tuple[int, ...], reshape: Callable[[Any, tuple[int, ...]], Any] = np.reshape) -> Truth:
        """The same with pixels in the shape of their images; ``reshape`` is that of the arrays' library."""
        n_sources, n_classes = self.reliability.shape[0], self.probs.shape[-1]
        return Truth(
            reshape(self.probs, (*shape, n_classes)),
            reshape(self.reliability, (n_sources, *shape)),
            reshape(self.hv, shape),
            reshape(self.prediction, shape),
            reshape(self.n_iter, shape),
            reshape(self.converged, shape),
            None if self.trace is None else reshape(self.trace, (self.trace.shape[0], *shape)),
        )


def check_source_weights(source_weights: Any, predictions: Predictions) -> Array:
    """(S,) numbers from 0 to 1e30 in the precision of results; one each where there are none."""
    if source_weights is None:
        return np.ones(predictions.n_sources, predictions.result_dtype)
    weights = as_numbers(source_weights, "source_weights")
    if weights.shape != (predictions.n_sources,):
        raise ShapeError(
            f"source_weights has shape {weights.shape}; give one weight per source, shape ({predictions.n_sources},)."
        )
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if wrong.size:
        raise ParameterError(
            f"the weight of {predictions.source_name(int(wrong[0]))} is {weights[wrong[0]]:g}; a weight is how many "
            f"sources it counts as, from 0 to {LARGEST_WEIGHT:g}."
        )
    counts = weights >= 1 / LARGEST_WEIGHT
    if not counts.any():
        raise ParameterError(f"all source weights are 0 or less than {1 / LARGEST_WEIGHT:g}; at least one must count.")
    return np.ascontiguousarray(np.where(counts, weights, 0), predictions.result_dtype)
