"""Small plain arrays combined without a container around them: the shortest way from a request to an answer.

Everything unusual is left to the ordinary way, which also says what is wrong with it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from veridical.backends.namespace import LABEL_MARGIN
from veridical.backends.truth import AT_TRUTH
from veridical.combine import few_samples
from veridical.combine.combined import Combined
from veridical.combine.in_memory import CombineOptions, SourcesInMemory, is_small
from veridical.combine.sources import STEP, UPDATES, probabilities_of
from veridical.combine.truth import Floats, Labels
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, Kind

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
#: Squares of the distance from one up to which sums need no renormalisation, as in truth discovery.
_EXACT = {dtype: float((16 * np.finfo(dtype).eps) ** 2) for dtype in _DTYPES}
#: Relative distance of scores that a softmax in double precision decides without a doubt.
_DECIDED = 1e-5


class FewSources(SourcesInMemory):
    """The sources of a small array; the container around them is made on first use."""

    def __init__(self, values: Array, kind: Kind, scores: Array, mean: Array, options: CombineOptions) -> None:
        self.options = options
        self.n_sources, _, self.n_classes = values.shape
        self.source_names = None
        self.are_even, self._whole = True, None
        self._values, self._kind, self._scores, self._mean = values, kind, scores, mean

    @cached_property
    def predictions(self) -> Predictions:
        """The array in a container."""
        return Predictions(self._values, kind=self._kind)

    def quick_hv(self, label: Labels) -> Floats | None:
        """(N,) HV, where no source is the truth up to rounding."""
        if self.n_sources <= 2:
            return None
        hv_of_few = _functions(self.options).hv_of_few
        hv: Floats | None = hv_of_few(self._scores, self._mean, label, STEP, UPDATES, AT_TRUTH[64] ** 2)
        return hv


def _functions(options: CombineOptions) -> Any:
    """The module with the functions of few samples: NumPy's, or the kernels where they are loaded."""
    if not options.small_inputs_compiled:
        return few_samples
    from veridical._kernels import few_samples as kernels

    return kernels


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
    scores = values
    if kind != "probs":
        if not few_samples.smallest(values.reshape(-1)) > -np.inf:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            scores = probabilities_of(np, values.astype(np.float64), kind)
    exact, margin = _EXACT[scores.dtype], LABEL_MARGIN if kind == "probs" else _DECIDED
    # A copy: kernels are compiled for arrays that may be written to.
    scores = np.array(scores, np.float64, order="C")
    mean, label = np.empty((n_samples, n_classes)), np.empty(n_samples, np.int64)
    if not _functions(options).mean_of_few(scores, exact, margin, mean, label):
        return None
    sources = FewSources(values, kind, scores, mean, options)
    return Combined(mean, label, sources, dtype=values.dtype, rounded=False)
