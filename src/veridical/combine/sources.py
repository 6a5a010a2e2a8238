"""The sources as formulas see them: checked probabilities over an array namespace."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from veridical.backends.foreign import Foreign, NeedsHostError
from veridical.backends.namespace import (
    class_sums,
    compiled,
    device_of,
    is_jax,
    softmax,
    source_sums,
    weighted_sum,
    widest_float,
)
from veridical.backends.truth import discover_truth
from veridical.combine.truth import Truth
from veridical.errors import DtypeError, ParameterError
from veridical.predictions import Predictions
from veridical.predictions.inputs import check_sources_axis
from veridical.predictions.sums import tolerance_of
from veridical.predictions.validation import INPUT_KINDS, InputKind, check_choice

#: When truth discovery stops unless the user says: the squared step, and the number of updates.
STEP, UPDATES = math.exp(-8), 20
#: Lower bound of probabilities in the geometric mean of the sources.
FLOOR = 1e-6


class Sources:
    """Probabilities (S, N, L) of a library, checked, rows summing to one; 0 where a source is absent.

    Parameters
    ----------
    xp : namespace
        The functions of the library, under the names of the array API standard.
    probs : (S, N, L) array
    present : (S, N) array of booleans, or None
        None where every source is present for every sample.
    scores, kind
        What the labels of the mean are decided on: the scores as they came, those of a uniform
        distribution where a source is absent.
    traced : bool
        Whether the numbers are not known yet.
    bits : int, optional
        Those of the floats that ``probs`` came as: 32 or 64; by default those of ``probs``.
    sample_shape : tuple
        (N,), or (N, H, W) where samples are the pixels of images.
    """

    def __init__(
        self,
        xp: Any,
        probs: Any,
        present: Any,
        scores: Any,
        kind: str,
        *,
        traced: bool = False,
        bits: int | None = None,
        sample_shape: tuple[int, ...] | None = None,
    ) -> None:
        self.xp, self.probs, self.present, self.traced = xp, probs, present, traced
        self._scores, self._kind, self._bits = scores, kind, bits
        # Not cached properties: torch.compile does not take their lock.
        self._prediction: Any = None
        self._kept_truth: Truth | None = None
        self.n_sources, self.n_classes = probs.shape[0], probs.shape[2]
        self.sample_shape = sample_shape
        #: Whether it was seen that no row had to be scaled.
        self.is_even = False

    @property
    def prediction(self) -> Any:
        """(N,) labels of the mean."""
        if self._prediction is None:
            self._prediction = compiled(self.xp, label_of_mean, self._scores, self.present, kind=self._kind)
        return self._prediction

    @property
    def n_present(self) -> Any:
        """(N,) how many sources are present, or (1,) where all are."""
        return source_sums(self.xp, self.present_as_numbers)

    @property
    def present_as_numbers(self) -> Any:
        """(S, N) ones and zeros in the widest float, or (S, 1) ones where all are present."""
        ones = self.constant(np.ones((self.n_sources, 1)))
        return ones if self.present is None else self.xp.astype(self.present, ones.dtype)

    def of_present(self, weights: Any) -> Any:
        """(S, N) the S weights of the sources that are present, 0 for the others; (S, 1) where all are."""
        return self.constant(weights)[:, None] * self.present_as_numbers

    @property
    def mean(self) -> Any:
        """(N, L) mean of the sources that are present."""
        return self.xp.sum(self.probs, axis=0) / self.n_present[:, None]

    def weighted(self, weights: Any) -> Any:
        """(N, L) mean with weights (S, N) or (S, 1), 0 where a source is absent; equal ones where all of them are."""
        xp, present = self.xp, self.present_as_numbers
        total = source_sums(xp, weights)
        equal = present / source_sums(xp, present)
        shares = xp.where(total > 0, weights / xp.where(total > 0, total, xp.ones_like(total)), equal)
        return weighted_sum(xp, xp.astype(shares, self.probs.dtype, copy=False), self.probs)

    def log_pool(self, exponents: Any, floor: float, exponent_of_mean: float = 0.0) -> Any:
        """softmax(sum_s a_s ln p_s + b ln p) of the sources and their mean p, none below the floor.

        Exponents (S, N) or (S, 1) are 0 where a source is absent: what it would have added is left out.
        """
        xp = self.xp

        def logs(probs: Any) -> Any:
            wide = widest_float(xp, probs)
            return xp.log(xp.maximum(wide, xp.full_like(wide, floor)))

        pooled = weighted_sum(xp, exponents, logs(self.probs))
        return softmax(xp, pooled + exponent_of_mean * logs(self.mean) if exponent_of_mean else pooled)

    @property
    def geometric_mean(self) -> Any:
        """(N, L) normalised geometric mean of the sources that are present."""
        return self.log_pool(self.present_as_numbers / self.n_present, FLOOR)

    def truth(
        self,
        source_weights: Any = None,
        *,
        keep_label: bool = True,
        tol: float = STEP,
        max_iter: int = UPDATES,
        trace: bool = False,
    ) -> Truth:
        """Truth discovery; ``source_weights`` are S numbers."""
        is_kept = source_weights is None and keep_label and (tol, max_iter, trace) == (STEP, UPDATES, False)
        if is_kept and self._kept_truth is not None:
            return self._kept_truth
        bits = self._bits or int(self.xp.finfo(self.probs.dtype).bits)
        weights = None
        if source_weights is not None:
            weights = self.xp.astype(self.constant(source_weights), self.probs.dtype, copy=False)
        arrays = self.probs, self.present, self.prediction, weights
        stops = {"tol": tol, "max_iter": max_iter, "trace": trace, "traced": self.traced, "bits": bits}
        truth = Truth(*compiled(self.xp, discover_truth, *arrays, keep_label=keep_label, **stops))
        self._kept_truth = truth if is_kept else self._kept_truth
        return truth

    def in_blocks(self, work: Callable[[Sources], Any]) -> Any:
        """``work`` of these sources; see :class:`~veridical.combine.in_memory.SourcesInMemory`."""
        return work(self)

    def constant(self, values: Any) -> Any:
        """Numbers of a fitted method as an array beside the probabilities, in float64 where there is such a type."""
        array = np.asarray(values, dtype=np.float64)
        like = widest_float(self.xp, self.probs[:, :0, :])
        return self.xp.asarray(array, dtype=like.dtype, device=device_of(self.probs))

    def per_sample(self, values: Any) -> Any:
        """(N,) of (N,), or of the (1,) that all samples have in common."""
        return self.xp.broadcast_to(values, self.probs.shape[1:2])

    def in_sample_shape(self, results: Any) -> Any:
        """Results (N,) or (N, L) with pixels in the shape of their images."""
        if self.sample_shape is None or len(self.sample_shape) == 1:
            return results
        return self.xp.reshape(results, (*self.sample_shape, *results.shape[1:]))


def load_arrays(
    foreign: Foreign, kind: InputKind | None = None, sources_axis: int | None = None, missing: str = "raise"
) -> Sources:
    """Check predictions in arrays of another library, on their device."""
    kind = "probs" if kind is None else kind
    check_choice(kind, INPUT_KINDS, "kind")
    check_choice(missing, ("raise", "skip"), "missing")
    axis = 0 if sources_axis is None else sources_axis
    xp = foreign.namespace
    _check_form(xp, foreign, kind, axis)
    _ = None if foreign.traced else foreign.device  # sources on different devices are refused in words
    are_separate = len(foreign.parts) > 1 or foreign.values is not foreign.parts[0]
    values = xp.stack(foreign.parts) if are_separate else foreign.values
    if kind == "binary":
        values = values[None, ...] if values.ndim == 1 else xp.moveaxis(values, axis, 0)
        values = xp.astype(values, _float_of(xp, values.dtype), copy=False)
        values, kind = xp.stack([1 - values, values], axis=-1), "probs"
    elif values.ndim == 2:
        values = values[None, ...]
    else:
        values = values if axis == 0 else xp.moveaxis(values, axis, 0)
    shape = tuple(values.shape[1:-1])
    if len(shape) > 1:
        values = xp.reshape(values, (values.shape[0], -1, values.shape[-1]))
    return load(xp, values, kind, missing, traced=foreign.traced, sample_shape=shape)


def load(
    xp: Any, values: Any, kind: str, missing: str, *, traced: bool, sample_shape: tuple[int, ...] | None = None
) -> Sources:
    """The same for scores (S, N, L), given the library's functions; numbers are not checked while they are traced."""
    tolerance = _tolerance(values.dtype, values.shape[2])
    values = xp.astype(values, _float_of(xp, values.dtype), copy=False)
    sources, valid = check_scores(xp, values, kind, missing, tolerance, traced=traced)
    if not traced and valid is not None and not bool(xp.all(valid)):
        raise NeedsHostError
    sources.sample_shape = sample_shape
    return sources


def check_scores(
    xp: Any,
    scores: Any,
    kind: str,
    missing: str,
    tolerance: float,
    *,
    traced: bool,
    bits: int | None = None,
    known_even: bool = False,
) -> tuple[Sources, Any]:
    """Scores (S, N, L) as sources, and which samples (N,) are valid; None where all are, and sum to one.

    ``known_even`` says that they are: then only absent sources are looked for.
    """
    bits = bits or int(xp.finfo(scores.dtype).bits)
    rounding = 16 * float(np.finfo(f"f{bits // 8}").eps)
    if not (traced or is_jax(xp)):
        probs = probabilities_of(xp, scores, kind)
        if known_even or _are_plain(xp, probs, scores, kind, rounding):
            sources = _with_gaps(xp, probs, scores, kind, bits) if known_even and missing == "skip" else None
            sources = sources or Sources(xp, probs, None, scores, kind, bits=bits)
            sources.is_even = True
            return sources, None
    probs, present, filled, valid, even = compiled(
        xp, _checked, scores, kind=kind, missing=missing, tolerance=tolerance, rounding=rounding
    )
    sources = Sources(xp, probs, present, filled, kind, traced=traced, bits=bits)
    sources.is_even = xp is np and bool(even)
    return sources, valid


def _are_plain(xp: Any, probs: Any, scores: Any, kind: str, rounding: float) -> bool:
    """Whether all sources are present with sums of one, as nearly always; written so that NaN is not."""
    if not probs.shape[1]:
        return True
    if xp is np:  # the fastest sums; they depend on the other rows, but by less than is left to the limit
        sums, rounding = probs @ np.ones(probs.shape[2], probs.dtype), 0.75 * rounding
    else:
        sums = xp.sum(probs, axis=2)
    plain = bool(xp.all(xp.abs(sums - 1) <= rounding)) and bool(xp.min(probs) >= 0)
    return plain and (kind != "logits" or bool(xp.min(scores) > -xp.inf))


def _with_gaps(xp: Any, probs: Any, scores: Any, kind: str, bits: int) -> Sources | None:
    """Valid probabilities of which some are absent; None if none is."""
    present = ~xp.isnan(scores[:, :, 0])
    if bool(xp.all(present)):
        return None
    return Sources(xp, xp.where(present[:, :, None], probs, xp.zeros_like(probs)), present, scores, kind, bits=bits)


def _checked(
    xp: Any, scores: Any, *, kind: str, missing: str, tolerance: float, rounding: float
) -> tuple[Any, Any, Any, Any, Any]:
    """Probabilities, the sources present, scores without absent ones, valid samples, and whether no row was scaled."""
    present = None
    if missing == "skip":
        present = ~_are_absent(xp, scores)
        uniform = {"probs": 1 / scores.shape[2], "logits": 0.0, "log_probs": -math.log(scores.shape[2])}
        scores = xp.where(present[:, :, None], scores, xp.full_like(scores, uniform[kind]))
    probs = probabilities_of(xp, scores, kind)
    sums = class_sums(xp, probs)
    off = xp.abs(sums - 1)
    # Written so that NaN is not valid.
    valid = off <= tolerance
    if xp is not np or not (probs.size and probs.min() >= 0):
        valid = valid & xp.all(probs >= 0, axis=2)
    if kind == "logits":
        valid = valid & xp.all(xp.isfinite(scores), axis=2)
    valid = xp.all(valid, axis=0)
    uneven = off > rounding
    if xp is not np or uneven.any():
        probs = xp.where(uneven[:, :, None], probs / sums[:, :, None], probs)
    if present is not None:
        probs = xp.where(present[:, :, None], probs, xp.zeros_like(probs))
        valid = valid & xp.any(present, axis=0)
    return probs, present, scores, valid, ~xp.any(uneven)


def _are_absent(xp: Any, scores: Any) -> Any:
    """(S, N) where all scores are NaN."""
    if xp is not np:
        return xp.all(xp.isnan(scores), axis=2)
    absent = np.isnan(scores[:, :, 0])
    absent[absent] = np.isnan(scores[absent]).all(axis=1)
    return absent


def label_of_mean(xp: Any, scores: Any, present: Any, *, kind: str) -> Any:
    """(N,) argmax of the mean, summed in float64 in the order of the sources; the lowest index on ties."""
    total = None
    for s in range(scores.shape[0]):
        part = _exact_probabilities(xp, scores[s, ...], kind)
        part = part if present is None else xp.where(present[s, :, None], part, xp.zeros_like(part))
        total = part if total is None else total + part
    count = scores.shape[0] if present is None else source_sums(xp, xp.astype(present, total.dtype))[:, None]  # type: ignore[union-attr]
    return xp.argmax(total / count, axis=1)


def _check_form(xp: Any, foreign: Foreign, kind: InputKind, axis: Any) -> None:
    """Refuse shapes and dtypes that the host refuses, in the same words."""
    check_sources_axis(axis)
    parts = foreign.parts
    for part in parts:
        if not xp.isdtype(part.dtype, ("real floating", "integral", "bool")):
            raise DtypeError(f"the array of predictions has dtype {part.dtype}; give real numbers.")
    separate = foreign.values is not parts[0]
    shape, n_axes = tuple(parts[0].shape), parts[0].ndim + separate
    if kind == "binary":
        fits = (
            n_axes in (1, 2, 4) and axis in range(max(n_axes, 1)) and (n_axes == 1 or len(parts) > 1 or shape[axis] > 0)
        )
    else:
        fits = (
            n_axes in (2, 3, 5) and axis in (range(3) if n_axes > 2 else (0,)) and _has_classes(shape, axis, separate)
        )
    same = all(tuple(part.shape) == shape for part in parts)
    if not (fits and same) or (separate and axis != 0):
        # Without memory: every entry is the same zero.
        empty = [np.broadcast_to(np.float32(0), tuple(part.shape)) for part in parts]
        Predictions(empty if separate else empty[0], kind=kind, sources_axis=axis)
        raise ParameterError(f"arrays of shape {shape} cannot be computed on their device; copy them to the host.")


def _has_classes(shape: tuple[int, ...], axis: int, separate: bool) -> bool:
    """Whether there are sources and at least two classes."""
    if separate or len(shape) == 2:
        return len(shape) in (2, 4) and shape[-1] >= 2
    without_sources = [size for place, size in enumerate(shape) if place != axis]
    return without_sources[-1] >= 2 and shape[axis] > 0


def _float_of(xp: Any, dtype: Any) -> Any:
    """The precision of results: float64 stays float64; everything else is computed in float32."""
    return xp.float64 if dtype == xp.float64 else xp.float32


def _tolerance(dtype: Any, n_classes: int) -> float:
    name = str(dtype).rpartition(".")[2]
    coarse = name if "float" in name else None
    return tolerance_of(np.dtype(np.float64), n_classes, coarse)


def probabilities_of(xp: Any, scores: Any, kind: str) -> Any:
    if kind == "probs":
        return scores
    if kind == "log_probs":
        return xp.exp(scores)
    return softmax(xp, scores)


def _exact_probabilities(xp: Any, scores: Any, kind: str) -> Any:
    """What labels are decided on: in float64; sums of exponentials do not depend on the order of the classes."""
    wide = widest_float(xp, scores)
    if kind == "probs":
        return wide
    if kind == "log_probs":
        return xp.exp(wide)
    exponentials = xp.exp(wide - xp.max(wide, axis=-1, keepdims=True))
    return exponentials / xp.sum(xp.sort(exponentials, axis=-1), axis=-1, keepdims=True)
