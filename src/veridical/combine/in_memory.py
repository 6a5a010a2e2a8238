"""The sources of predictions in host memory: the compiled kernels, or formulas on NumPy's arrays, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks, single_threaded_blas
from veridical.combine.sources import Sources, check_scores
from veridical.combine.truth import Floats, Labels, Truth
from veridical.combine.truth_discovery import discover, discover_with_mean, reject_sample
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

#: An input of at most so many samples and numbers is left to NumPy: a server that answers one sample at a time needs
#: neither Numba nor a cache of compiled kernels.
MOST_SAMPLES, MOST_NUMBERS = 64, 1 << 16
_NUMBERS_IN_BLOCK = 1 << 18


def is_small(n_samples: int, n_numbers: int) -> bool:
    """Whether an input of ``n_samples``, and ``n_numbers`` in all, is left to NumPy."""
    return n_samples <= MOST_SAMPLES and n_numbers <= MOST_NUMBERS


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


@dataclass(frozen=True)
class AbsentSkipped:
    """Options of callers that are no calibrators: absent sources are left out."""

    n_threads: int | None = None
    missing: str = "skip"
    small_inputs_compiled: bool = False


class SourcesInMemory:
    """What :class:`~veridical.combine.sources.Sources` are, of predictions of any size.

    Few samples are computed by NumPy in double precision, before a compiler would be loaded; of many the mean and
    truth discovery by the kernels, everything else block by block.  ``samples`` are the part of ``whole`` that these
    are, which takes what it can from there.
    """

    xp: Any = np

    def __init__(
        self,
        predictions: Predictions,
        options: CombineOptions,
        whole: SourcesInMemory | None = None,
        samples: Any = None,
    ) -> None:
        self.options = options
        self._predictions, self._whole, self._samples = predictions, whole, samples
        self.n_sources, self.n_classes = predictions.n_sources, predictions.n_classes
        self.source_names = predictions.source_names
        #: Whether the truth will be asked for: then the mean is taken from the same pass.
        self.expects_truth = False
        #: Whether a pass has seen that all numbers are valid, and no row has to be scaled.
        self.are_even = False

    def take(self, samples: Any) -> SourcesInMemory:
        """Some of the samples, by index or slice."""
        if isinstance(samples, slice) and samples == slice(None):
            return self
        if self._whole is None:
            return SourcesInMemory(self._predictions, self.options, self, samples)
        return self._whole.take(np.arange(self._whole.n_samples)[self._samples][samples])

    @cached_property
    def predictions(self) -> Predictions:
        """The predictions for these samples; a part of a larger set is copied on first use."""
        return self._predictions if self._whole is None else self._predictions.select(samples=self._samples)

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return self.predictions.n_samples

    @property
    def are_many(self) -> bool:
        """Whether there are so many samples that the kernels are worth a compiler."""
        n_samples = self.predictions.n_samples
        return not is_small(n_samples, n_samples * self.n_sources * self.n_classes)

    @cached_property
    def n_present(self) -> npt.NDArray[np.int64]:
        """(N,) number of sources that are present, or (1,) where all are."""
        if self._whole is not None:
            of_whole = self._whole.n_present
            return of_whole if len(of_whole) == 1 else of_whole[self._samples]
        if self.options.missing == "raise":
            return np.array([self.n_sources])
        n_present: npt.NDArray[np.int64] = self.predictions.present().sum(axis=0)
        return n_present

    @cached_property
    def _precision(self) -> tuple[np.dtype[Any], float]:
        """The dtype of results, and how far from one a sum may be."""
        return self.predictions.result_dtype, self.predictions.sum_tolerance

    @cached_property
    def few(self) -> Sources:
        """All samples in double precision."""
        return self.block(slice(0, self.n_samples), np.dtype(np.float64))

    def block(self, part: slice, dtype: np.dtype[Any] | None = None) -> Sources:
        """Some samples, checked; in the precision of results unless another is asked for."""
        predictions, (own_dtype, tolerance), missing = self.predictions, self._precision, self.options.missing
        scores = predictions.samples(part.start, part.stop).astype(own_dtype, copy=False)
        if dtype is not None:
            scores = scores.astype(dtype, order="C", copy=False)
        elif scores.strides[2] > min(scores.strides[:2]):
            scores = np.ascontiguousarray(scores)  # the scores of a sample together: sums and results in one order
        with np.errstate(invalid="ignore", over="ignore"):
            sources, valid = check_scores(
                np, scores, predictions.kind, missing, tolerance, traced=False, bits=8 * own_dtype.itemsize,
                known_even=self.are_even,
            )  # fmt: skip
        if valid is not None and not valid.all():
            reject_sample(predictions, part.start + int(valid.argmin()), skip_missing=missing == "skip")
        return sources

    def in_blocks(self, work: Callable[[Sources], tuple[Any, ...]]) -> tuple[Any, ...]:
        """The arrays, a row for each sample, that ``work`` makes of samples."""
        if not self.are_many:
            return work(self.few)
        blocks = row_blocks(self.n_samples, self.n_sources * self.n_classes * self._precision[0].itemsize // 8)
        with single_threaded_blas():
            results = run_blocks(lambda part: work(self.block(part)), blocks, self.options.n_threads)
        return tuple(np.concatenate(column) for column in zip(*results, strict=True))

    @cached_property
    def mean(self) -> tuple[Array, Labels]:
        """The mean of many samples, its label leading strictly, and its labels."""
        if self._whole is not None and "mean" in vars(self._whole):
            probs, prediction = self._whole.mean
            return probs[self._samples], prediction[self._samples]
        if self.expects_truth:
            truth, mean = discover_with_mean(self.predictions, self.options.missing, self.options.n_threads)
            vars(self)["kept_truth"] = truth
            return mean, truth.prediction
        truth = self._discover(max_iter=0)
        return truth.probs, truth.prediction

    @cached_property
    def kept_truth(self) -> Truth:
        """The truth with the mean's label kept."""
        if self._whole is not None:
            return self._whole.kept_truth.take(self._samples)
        return self._discover() if self.are_many else self.few.truth().astype(self.predictions.result_dtype)

    def truth(self, source_weights: Any = None, *, keep_label: bool = True) -> Truth:
        """Truth discovery; ``source_weights`` are S numbers."""
        if source_weights is None and keep_label:
            return self.kept_truth
        if self.are_many:
            return self._discover(source_weights=source_weights, accuracy_preserving=keep_label)
        return self.few.truth(source_weights, keep_label=keep_label).astype(self.predictions.result_dtype)

    def _discover(self, **options: Any) -> Truth:
        return discover(self.predictions, missing=self.options.missing, n_threads=self.options.n_threads, **options)

    @property
    def geometric_mean(self) -> Floats:
        """(N, L) normalised geometric mean of the sources that are present."""
        sources = self.few if not self.are_many else self.block(slice(0, self.n_samples))
        mean: Floats = sources.geometric_mean
        return mean

    def constant(self, values: Any) -> Floats:
        """Numbers of a fitted method."""
        return np.asarray(values, np.float64)


def row_blocks(n_rows: int, numbers_per_row: int) -> list[slice]:
    """Slices that cover the rows, of a size that depends on the data alone."""
    step = max(_NUMBERS_IN_BLOCK // max(numbers_per_row, 1), 1)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def sample_blocks(predictions: Predictions) -> list[slice]:
    """Slices that cover the samples, of a size that depends on the numbers per sample."""
    return row_blocks(predictions.n_samples, predictions.n_sources * predictions.n_classes)


def probabilities(predictions: Predictions, part: slice) -> Floats:
    """Samples of all sources as float64 probabilities (S, n, L), rows summing to one; absent sources stay NaN."""
    values = predictions.samples(part.start, part.stop).astype(np.float64)
    if predictions.kind != "probs":
        values -= values.max(axis=-1, keepdims=True)
        np.exp(values, out=values)
    values /= values.sum(axis=-1, keepdims=True)
    return values
