"""Small plain arrays combined without a container around them: the shortest way from a request to an answer.

Everything unusual is left to the ordinary way, which also says what is wrong with it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from veridical._numpy_kernels import imported, is_small
from veridical._numpy_kernels.softmax import probabilities_of
from veridical._numpy_kernels.sums import row_starts
from veridical.combine.combined import Combined, CombineOptions, Floats, Labels
from veridical.combine.projection import LABEL_MARGIN
from veridical.combine.small_inputs import truth_of
from veridical.combine.truth import Truth
from veridical.combine.truth_discovery import make_options
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, Kind

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
#: Squares of the distance from one up to which sums need no renormalisation, as in truth discovery.
_EXACT = {dtype: float((16 * np.finfo(dtype).eps) ** 2) for dtype in _DTYPES}
#: Relative distance of scores that a softmax in double precision decides without a doubt.
_DECIDED = 1e-5


class _Shape:
    """What is known of an array's sources without a container."""

    __slots__ = ("n_classes", "n_sources", "source_names")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.n_sources, _, self.n_classes = shape
        self.source_names = None


class CombinedArray(Combined):
    """The mean of a small array; what is known of its sources is found on first use."""

    def __init__(self, values: Array, kind: Kind, scores: Array, mean: Array, label: Labels, options: Any) -> None:
        shape: Any = _Shape(values.shape)
        super().__init__(mean.astype(values.dtype, copy=False), label, shape, options)
        del self._whole  # made on first use
        self._values, self._kind, self._scores, self._mean = values, kind, scores, mean

    @cached_property
    def _whole(self) -> Predictions:  # type: ignore[override]
        return Predictions(self._values, kind=self._kind)

    @cached_property
    def confidence(self) -> Floats:
        """(N,) combined probability of the predicted label."""
        numbers = self.probs.reshape(-1)[row_starts(*self.probs.shape) + self.prediction]
        return np.minimum(numbers, 1.0, dtype=np.float64)

    @cached_property
    def truth(self) -> Truth:
        """Truth discovery with the mean's label kept."""
        return truth_of(self._whole, self.options.missing, self.options.n_threads)

    @cached_property
    def hv(self) -> Floats:
        """(N,) HV."""
        if self.n_sources > 2:
            package = "_kernels" if self.options.small_inputs_compiled else "_numpy_kernels"
            hv_of_few = imported(package, "few_samples", "hv_of_few")
            quick: Floats | None = hv_of_few(self._scores, self._mean, self.prediction, *_STOPPING)
            if quick is not None:
                return quick
        hv: Floats = self.truth.hv.astype(np.float64)
        return hv


_DEFAULTS = make_options(Predictions(np.full((1, 1, 2), 0.5)), skip_missing=False)
#: When truth discovery in double precision stops: step, number of updates, and the smallest distance.
_STOPPING = _DEFAULTS.tol, _DEFAULTS.max_iter, _DEFAULTS.tiny


def plain_array(values: Any, sources_axis: int) -> Array | None:
    """An array as it is, or a few small ones of equal shape and dtype, one per source, stacked; None for all else."""
    if type(values) is np.ndarray:
        return values
    if type(values) is not list or sources_axis != 0 or not all(type(source) is np.ndarray for source in values):
        return None
    same = len({(source.shape, source.dtype) for source in values}) == 1 and values[0].ndim == 2
    return np.stack(values) if same and is_small(len(values[0]), len(values) * values[0].size) else None


def combine_array(values: Array, kind: Kind, sources_axis: int, options: CombineOptions) -> Combined | None:
    """The mean of a small array of valid scores whose labels are clear; None for everything else."""
    if values.ndim != 3 or values.dtype not in _EXACT:
        return None
    if sources_axis:
        values = np.moveaxis(values, sources_axis, 0)
    _, n_samples, n_classes = values.shape
    if not values.size or not is_small(n_samples, values.size):
        return None
    scores = values if kind == "probs" else probabilities_of(values, kind == "logits")
    exact, margin = _EXACT[scores.dtype], LABEL_MARGIN if kind == "probs" else _DECIDED
    # A copy: kernels are compiled for arrays that may be written to.
    scores = np.array(scores, np.float64, order="C")
    mean, label = np.empty((n_samples, n_classes)), np.empty(n_samples, np.int64)
    package = "_kernels" if options.small_inputs_compiled else "_numpy_kernels"
    if not imported(package, "few_samples", "mean_of_few")(scores, exact, margin, mean, label):
        return None
    return CombinedArray(values, kind, scores, mean, label, options)
