"""Predictions in arrays of other libraries, checked and brought into one form on their device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from veridical.backends.foreign import Foreign, NeedsHostError
from veridical.backends.truth import (
    ArrayTruth,
    compiled,
    device_of,
    discover_arrays,
    label_of_mean,
    softmax,
    widest_float,
)
from veridical.errors import DtypeError, ParameterError
from veridical.predictions import Predictions
from veridical.predictions.inputs import check_sources_axis
from veridical.predictions.sums import tolerance_of
from veridical.predictions.validation import INPUT_KINDS, InputKind, check_choice


@dataclass(frozen=True)
class LoadedArrays:
    """Probabilities (S, N, L) of another library, checked, rows summing to one; 0 where a source is absent.

    ``sample_shape`` is (N,), or (N, H, W) where samples are the pixels of images.
    """

    xp: Any
    probs: Any
    present: Any
    prediction: Any
    traced: bool
    sample_shape: tuple[int, ...]

    def truth(
        self, *, source_weights: Any = None, keep_label: bool = True, tol: float, max_iter: int, trace: bool = False
    ) -> ArrayTruth:
        """Truth discovery."""
        arrays = (self.probs, self.present, self.prediction, source_weights)
        truth: ArrayTruth = compiled(
            self.xp, discover_arrays, *arrays, keep_label=keep_label, tol=tol, max_iter=max_iter, trace=trace,
            traced=self.traced,
        )  # fmt: skip
        return truth

    def constant(self, values: Any, like: Any = None) -> Any:
        """Numbers of a fitted method as an array beside the probabilities, of the dtype of ``like`` where given."""
        array = np.asarray(values, dtype=np.float64)
        dtype = self.probs.dtype if like is None else like.dtype
        return self.xp.asarray(array, dtype=dtype, device=device_of(self.probs))

    def in_sample_shape(self, results: Any) -> Any:
        """Results (N,) or (N, L) with pixels in the shape of their images."""
        if len(self.sample_shape) == 1:
            return results
        return self.xp.reshape(results, (*self.sample_shape, *results.shape[1:]))


def load_arrays(
    foreign: Foreign, kind: InputKind | None = None, sources_axis: int | None = None, missing: str = "raise"
) -> LoadedArrays:
    """Check predictions and find the labels of their mean, all on their device."""
    kind = "probs" if kind is None else kind
    check_choice(kind, INPUT_KINDS, "kind")
    check_choice(missing, ("raise", "skip"), "missing")
    axis = 0 if sources_axis is None else sources_axis
    xp = foreign.namespace
    _check_form(xp, foreign, kind, axis)
    _ = None if foreign.traced else foreign.device  # sources on different devices are refused in words
    values = (
        xp.stack(foreign.parts) if len(foreign.parts) > 1 or foreign.values is not foreign.parts[0] else foreign.values
    )
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
) -> LoadedArrays:
    """The same for scores (S, N, L), given the library's functions; numbers are not checked while they are traced."""
    tolerance = _tolerance(values.dtype, values.shape[2])
    probs, present, prediction, all_valid = compiled(
        xp, _checked, values, kind=kind, skip_missing=missing == "skip", tolerance=tolerance
    )
    if not traced and not bool(all_valid):
        raise NeedsHostError
    return LoadedArrays(xp, probs, present, prediction, traced, sample_shape or (values.shape[1],))


def _checked(xp: Any, values: Any, *, kind: str, skip_missing: bool, tolerance: float) -> tuple[Any, Any, Any, Any]:
    """Probabilities, which sources are present, labels of the mean, and whether all numbers are valid."""
    values = xp.astype(values, _float_of(xp, values.dtype), copy=False)
    absent = xp.all(xp.isnan(values), axis=2)
    present = ~absent
    blank = xp.zeros_like(values) if kind != "probs" else xp.full_like(values, 1 / values.shape[2])
    filled = xp.where(absent[:, :, None], blank, values)
    probs = _probabilities(xp, filled, kind)
    sums = xp.sum(probs, axis=2)
    off = xp.abs(sums - 1)
    valid = xp.all((probs >= 0) & xp.isfinite(probs), axis=2) & (off <= tolerance)
    if kind == "logits":
        valid = valid & xp.all(xp.isfinite(filled), axis=2)
    enough = xp.any(present, axis=0) if skip_missing else xp.all(present, axis=0)
    uneven = off > 16 * float(xp.finfo(probs.dtype).eps)
    probs = xp.where(uneven[:, :, None], probs / sums[:, :, None], probs)
    prediction = label_of_mean(xp, _exact_probabilities(xp, filled, kind), present)
    probs = xp.where(absent[:, :, None], xp.zeros_like(probs), probs)
    return probs, present, prediction, xp.all(valid) & xp.all(enough)


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


def _probabilities(xp: Any, scores: Any, kind: str) -> Any:
    if kind == "probs":
        return scores
    if kind == "log_probs":
        return xp.exp(scores)
    return softmax(xp, scores)


def _exact_probabilities(xp: Any, scores: Any, kind: str) -> Any:
    """What labels are decided on: in float64; sums of exponentials do not depend on the order of the classes."""
    if kind == "probs":
        return scores
    wide = widest_float(xp, scores)
    if kind == "log_probs":
        return xp.exp(wide)
    exponentials = xp.exp(wide - xp.max(wide, axis=-1, keepdims=True))
    return exponentials / xp.sum(xp.sort(exponentials, axis=-1), axis=-1, keepdims=True)
