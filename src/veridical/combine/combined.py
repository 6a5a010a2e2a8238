"""The result of combining sources: one vector per sample, with what was computed on the way."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from veridical.combine.small_inputs import truth_of
from veridical.combine.truth import Truth
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


class CombineOptions(Protocol):
    """The parameters of a calibrator that matter for combining."""

    @property
    def missing(self) -> Any:
        """Whether a source may be absent: "skip" or "raise"."""

    @property
    def small_inputs_compiled(self) -> bool:
        """Whether small inputs are left to the kernels as well."""

    @property
    def n_threads(self) -> int | None:
        """Threads to use; all cores where it is None."""


class Combined:
    """One vector per sample, and the sources that it was made of.

    Parameters
    ----------
    probs : (N, L) float32 or float64
    prediction : (N,) integers
        The strict argmax of ``probs`` for combiners that keep the mean's labels; the argmax otherwise.
    predictions : Predictions
        The sources.
    options : CombineOptions
    find_truth : callable, optional
        Returns the aTDE truth of the same samples where the caller has it already; discovered on first use otherwise.
    source_weights : (S,) float64, optional
        With which weights the truth is discovered; ``find_truth`` is then not asked.

    Attributes
    ----------
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
        probs: Array,
        prediction: Labels,
        predictions: Predictions,
        options: CombineOptions,
        *,
        find_truth: Callable[[], Truth] | None = None,
        samples: npt.NDArray[np.intp] | None = None,
        source_weights: Floats | None = None,
    ) -> None:
        self.probs = probs
        self.prediction = prediction
        self.options = options
        self._whole = predictions
        self._samples = samples
        self._find_truth = find_truth if source_weights is None else None
        self._source_weights = source_weights
        self._derived: dict[Callable[[Combined], Floats], Floats] = {}
        self._origin: tuple[Combined, npt.NDArray[np.intp]] | None = None
        self.n_sources = predictions.n_sources
        self.n_classes = predictions.n_classes
        self.source_names = predictions.source_names

    @cached_property
    def predictions(self) -> Predictions:
        """The sources' predictions for these samples; a part of a larger set is copied on first use."""
        return self._whole if self._samples is None else self._whole.select(samples=self._samples)

    @cached_property
    def confidence(self) -> Floats:
        """(N,) combined probability of the predicted label."""
        confidence: Floats = self.probs[np.arange(len(self.probs)), self.prediction].astype(np.float64)
        return np.minimum(confidence, 1.0)

    @cached_property
    def truth(self) -> Truth:
        """Truth discovery with the mean's label kept."""
        if self._find_truth is not None:
            return self._find_truth()
        return truth_of(
            self.predictions, self.options.missing, self.options.n_threads, source_weights=self._source_weights
        )

    @cached_property
    def hv(self) -> Floats:
        """(N,) HV, scaled up by S / (sources present) where some are absent."""
        if self._origin is not None:
            whole, samples = self._origin
            return whole.hv[samples]
        hv: Floats = self.truth.hv.astype(np.float64)
        if self.options.missing == "skip":
            hv *= self.n_sources / self._n_present
        return hv

    @cached_property
    def _n_present(self) -> npt.NDArray[np.int64]:
        """(N,) number of sources that are present."""
        n_present: npt.NDArray[np.int64] = self._whole.present().sum(axis=0)
        return n_present if self._samples is None else n_present[self._samples]

    def correct(self, labels: Labels) -> npt.NDArray[np.bool_]:
        """(N,) whether the predicted label is right."""
        right: npt.NDArray[np.bool_] = self.prediction == labels
        return right

    def derived(self, compute: Callable[[Combined], Floats]) -> Floats:
        """``compute(self)``, where each sample's row depends on that sample alone.

        Computed once: parts that were taken read the rows of the whole.
        """
        if compute not in self._derived:
            if self._origin is None:
                self._derived[compute] = compute(self)
            else:
                whole, samples = self._origin
                self._derived[compute] = whole.derived(compute)[samples]
        return self._derived[compute]

    def take(self, samples: npt.NDArray[np.intp]) -> Combined:
        """Some of the samples; nothing is combined again."""
        part = Combined(
            self.probs[samples],
            self.prediction[samples],
            self._whole,
            self.options,
            find_truth=lambda: self.truth.take(samples),
            samples=samples if self._samples is None else self._samples[samples],
        )
        part._origin = self, samples
        return part
