"""The result of combining sources: one vector per sample, with what follows from the sources on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks
from veridical.backends.namespace import at_label, class_sums, widest_float
from veridical.backends.rows import at_most
from veridical.combine.in_memory import is_small, row_blocks
from veridical.combine.truth import Floats as Floats
from veridical.combine.truth import Labels as Labels
from veridical.combine.truth import Truth
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

_Value = TypeVar("_Value")
_ALL, _NONE = slice(None), slice(0, 0)


class Combined:
    """One vector per sample, and the sources that it was made of.

    Arrays are those of ``xp``: NumPy's, or those of another library on their device.

    Parameters
    ----------
    probs : (N, L) array of floats
    prediction : (N,) array of integers
        The label of each sample, the strict argmax of ``probs``.
    sources : SourcesInMemory or Sources
    source_weights : (S,) float64, optional
        With which weights the truth is discovered.
    dtype : dtype, optional
        That of results, by default that of ``probs``.
    rounded : bool
        Whether ``probs`` were rounded to that precision.

    Attributes
    ----------
    xp : namespace
        The functions of the arrays' library.
    n_sources, n_classes : int
    source_names : tuple of str, or None

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> combined = vd.combine.apply_label_free("mean", predictions, vd.Identity())
    >>> combined.probs.shape, combined.confidence.shape
    ((400, 10), (400,))
    """

    def __init__(
        self,
        probs: Any,
        prediction: Any,
        sources: Any,
        source_weights: Floats | None = None,
        *,
        dtype: Any = None,
        rounded: bool = True,
    ) -> None:
        self.xp = sources.xp
        self.dtype = probs.dtype if dtype is None else dtype
        self._is_rounded = rounded and self.dtype != self.xp.float64
        self.probs: Array = probs
        self.prediction: Labels = prediction
        self.sources = sources
        self._source_weights = source_weights
        # Not cached properties: torch.compile does not take their lock.
        self._known: dict[Any, Any] = {}
        self._origin: tuple[Combined, Any] | None = None
        self.n_sources, self.n_classes = sources.n_sources, sources.n_classes
        self.source_names: tuple[str, ...] | None = getattr(sources, "source_names", None)

    def _once(self, key: Any, compute: Callable[[], _Value]) -> _Value:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]  # type: ignore[no-any-return]

    @property
    def predictions(self) -> Predictions:
        """The sources' predictions for these samples, in host memory; a part of a larger set is copied on first use."""
        return self.sources.predictions  # type: ignore[no-any-return]

    @property
    def options(self) -> Any:
        """``missing``, ``n_threads`` and ``small_inputs_compiled``, for predictions in host memory."""
        return self.sources.options

    def constant(self, values: Any) -> Any:
        """Numbers of a fitted method as an array on the device, in float64 where it has it."""
        return self.sources.constant(values)

    @property
    def confidence(self) -> Floats:
        """(N,) combined probability of the predicted label; what rounding to single precision added is divided out."""
        return self._once("confidence", self._confidence)

    def _confidence(self) -> Any:
        xp = self.xp
        top = widest_float(xp, at_label(xp, self.probs, self.prediction))
        if self._is_rounded:
            top = top / class_sums(xp, widest_float(xp, self.probs))
        return at_most(xp, top, 1.0)

    @property
    def truth(self) -> Truth:
        """Truth discovery with the mean's label kept."""
        return self._once("truth", self._truth)

    def _truth(self) -> Truth:
        if self._origin is None:
            truth: Truth = self.sources.truth(self._source_weights)
            return truth
        whole, samples = self._origin
        return whole.truth.take(samples)

    @property
    def hv(self) -> Floats:
        """(N,) HV, scaled up by S / (sources present) where some are absent."""
        return self._once("hv", self._hv)

    def _hv(self) -> Any:
        if self._origin is not None:
            whole, samples = self._origin
            return whole.hv[samples]
        xp, quick = self.xp, getattr(self.sources, "quick_hv", None)
        hv = None if quick is None else quick(self.prediction)
        if hv is not None:
            return hv
        hv = widest_float(xp, self.truth.hv)
        return hv * (self.n_sources / xp.astype(self.sources.n_present, hv.dtype))

    @property
    def geometric_mean(self) -> Any:
        """(N, L) normalised geometric mean of the sources that are present."""
        return self.sources.geometric_mean

    @property
    def discovered_hv(self) -> Any:
        """HV as it was discovered, where that was done already; None otherwise."""
        return self._known["truth"].hv if "truth" in self._known else None

    def correct(self, labels: Labels) -> npt.NDArray[np.bool_]:
        """(N,) whether the predicted label is right."""
        right: npt.NDArray[np.bool_] = self.prediction == labels
        return right

    def derived(self, compute: Callable[[Any, Combined], Any]) -> Any:
        """``compute(xp, samples)`` of all samples, where each sample's row depends on that sample alone.

        Computed once: parts that were taken read the rows of the whole.
        """
        if self._origin is None:
            return self._once(compute, lambda: self.over_samples(lambda samples: compute(self.xp, samples)))
        whole, part = self._origin
        return self._once(compute, lambda: whole.derived(compute)[part])

    def take(self, samples: Any) -> Combined:
        """Some of the samples, by index or slice; nothing is combined again."""
        part = Combined(self.probs[samples], self.prediction[samples], self.sources.take(samples), self._source_weights)
        part._origin = self, samples
        return part

    def _rows(self, part: slice) -> Combined:
        """Some samples as formulas read them: probabilities are in float64."""
        if part == _ALL and self.probs.dtype == np.float64:
            return self
        rows = self.take(part)
        rows.probs = widest_float(self.xp, rows.probs)
        rows.dtype, rows._is_rounded = self.dtype, self._is_rounded
        return rows

    def over_samples(self, work: Callable[[Combined], Any]) -> Any:
        """``work(samples)``, an array or a tuple of arrays, of all samples: at once, or of many in memory in blocks."""
        if self.xp is not np:
            return work(self)
        shape = self.probs.shape
        if is_small(shape[0], self.probs.size):
            return work(self._rows(_ALL))
        # What is computed for all samples together is there before threads ask for it.
        first = work(self._rows(_NONE))
        parts = first if isinstance(first, tuple) else (first,)
        results = tuple(np.empty((shape[0], *part.shape[1:]), part.dtype) for part in parts)

        def block(part: slice) -> None:
            values = work(self._rows(part))
            for result, value in zip(results, values if isinstance(values, tuple) else (values,), strict=True):
                result[part] = value

        run_blocks(block, row_blocks(*shape), self.options.n_threads)
        return results if isinstance(first, tuple) else results[0]
