"""Scores in every form that users have them in, brought into one: sources of shape (N, L).

Arrays (S, N, L), (N, L) for one source, dense ones such as (S, N, H, W, L); lists and dictionaries of one array per
source; data frames, whose columns are matched by name; and binary scores, the probability of the positive class alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from veridical.errors import (
    ConfidenceError,
    DtypeError,
    ParameterError,
    ShapeError,
    SuspectKindWarning,
    shown,
    warn_caller,
)
from veridical.predictions.arrays import Array, as_numbers, is_frame, is_whole_number
from veridical.predictions.classes import is_counting
from veridical.predictions.contents import Contents, frame_of, match_classes, match_samples
from veridical.predictions.sums import rounding_of
from veridical.predictions.validation import InputKind, check_flag, check_names, entries_of, renormalized, result_dtype

#: Dimensions that an array of one source may have: samples, or images of samples, and classes.
_PLAIN, _DENSE = 2, 4
#: Rows that show whether numbers are probabilities.
_ROWS_TO_CHECK = 100
_FORMS = "(sources, samples, classes), or (samples, classes) for one source"


def read_scores(
    values: Any,
    kind: InputKind,
    sources_axis: int,
    class_axis: int | None,
    class_names: Sequence[str] | None,
    renormalize: bool = False,
) -> Contents:
    """``values`` in the form that Predictions keep; views where possible."""
    scores = _read_scores(values, kind, sources_axis, class_axis, class_names)
    if kind == "logits" and look_like_probabilities(scores.values, least=2):
        warn_caller(
            'these look like probabilities (no row is negative and each sums to 1), and kind is "logits"; pass '
            'kind="probs" if they are.',
            SuspectKindWarning,
        )
    if check_flag(renormalize, "renormalize"):
        if kind != "probs":
            raise ParameterError(f"renormalize divides probabilities by their sums; kind={kind!r} has none.")
        divided = [renormalized(source, f"source {s}") for s, source in enumerate(scores.values)]
        return replace(scores, values=np.stack(divided) if isinstance(scores.values, np.ndarray) else tuple(divided))
    return scores


def look_like_probabilities(sources: Array | Sequence[Array], least: int = 1) -> bool:
    """Whether rows at the start of the first and the last source, at least so many, are distributions."""
    places = {0, len(sources) - 1}
    rows = np.concatenate([np.asarray(sources[s][:_ROWS_TO_CHECK], np.float64) for s in places])
    rows = rows[~np.isnan(rows).any(axis=1)]
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(rows.sum(axis=1) - 1)
    return len(rows) >= least and bool((rows >= 0).all() and (off < 1e-3).all())


def _read_scores(
    values: Any, kind: InputKind, sources_axis: int, class_axis: int | None, class_names: Sequence[str] | None
) -> Contents:
    _reject_what_is_not_numbers(values)
    if is_frame(values):
        return _read_sources([values], None, kind, class_axis, class_names)
    if isinstance(values, Mapping):
        return _read_sources(list(values.values()), list(values), kind, class_axis, class_names, sources_axis)
    least = 1 if kind == "binary" else 2
    is_list = isinstance(values, (list, tuple)) and len(values) > 0
    if is_list and (is_frame(values[0]) or getattr(values[0], "ndim", 0) >= least):
        return _read_sources(list(values), None, kind, class_axis, class_names, sources_axis)
    return _read_array(values, kind, sources_axis, class_axis)


def _read_sources(
    sources: list[Any],
    source_names: list[str] | None,
    kind: InputKind,
    class_axis: int | None,
    class_names: Sequence[str] | None,
    sources_axis: int = 0,
) -> Contents:
    """One array or data frame per source."""
    check_sources_axis(sources_axis)
    if sources_axis != 0:
        raise ParameterError("separate sources have no axis of sources; leave sources_axis out.")
    if not sources:
        raise ShapeError("there are no sources; at least one is needed.")
    frames = [is_frame(source) for source in sources]
    if any(frames) and not all(frames):
        raise DtypeError(
            f"source {frames.index(not frames[0])} is not a data frame and others are; give all sources the same type."
        )
    if all(frames):
        chosen = None if class_names is None else list(map(str, entries_of(class_names, "class names are")))
        tables = [frame_of(s, source, chosen) for s, source in enumerate(sources)]
        return _read_frames(tables, source_names, kind, class_names)
    contents = []
    for s, source in enumerate(sources):
        array = as_numbers(source, f"source {s}")
        array = _binary_columns(array, s) if kind == "binary" else _classes_last(array, class_axis, s)
        contents.append(Contents(array, where=f"source {s}"))
    match_samples(contents)
    flat = tuple(source.values.reshape(-1, source.values.shape[-1]) for source in contents)
    return Contents(flat, source_names=source_names, sample_shape=contents[0].values.shape[:-1])


def _read_frames(
    frames: list[Contents], source_names: list[str] | None, kind: InputKind, class_names: Sequence[str] | None
) -> Contents:
    """Data frames: classes are matched by the names of columns, samples by the index where it is more than a count."""
    if kind == "binary":
        for s, frame in enumerate(frames):
            if frame.values.shape[1] != 1:
                raise ShapeError(f"{frame.where} has {frame.values.shape[1]} columns; binary scores are one column.")
            frame.values = _binary_columns(frame.values[:, 0], s)
        columns, rounding = None, 0.0
    else:
        own = frames[0].class_names or []
        named = check_names(class_names, len(own), "class")
        # Columns without names are in the order of ``class_names``.
        columns = match_classes(frames, own if named is None or (is_counting(own) and {*named} != {*own}) else named)
        for frame in frames:
            _check_classes(frame.values, "a data frame")
        rounding = max(rounding_of(frame.values) for frame in frames) if kind == "probs" else 0.0
    ids = match_samples(frames)
    return Contents(
        tuple(frame.values for frame in frames),
        source_names=source_names,
        class_names=None if columns is None or is_counting(columns) else columns,
        sample_ids=ids,
        sample_shape=(len(frames[0].values),),
        rounding=rounding,
        order=frames[0].order,
        is_table=True,
    )


def _read_array(values: Any, kind: InputKind, sources_axis: int, class_axis: int | None) -> Contents:
    """One array of all sources, or of one."""
    array = as_numbers(values, "the array of predictions")
    check_sources_axis(sources_axis)
    if kind == "binary":
        return _read_binary(array, sources_axis, class_axis)
    if array.ndim == _PLAIN:
        if sources_axis != 0:
            raise ParameterError(f"an array of shape {array.shape} is one source; leave sources_axis out.")
        array = _classes_last(array, class_axis)
        return Contents(array[None], sample_shape=array.shape[:1])
    dimensions = array.ndim - 1
    if dimensions < _PLAIN or (dimensions not in (_PLAIN, _DENSE) and class_axis is None):
        raise ShapeError(_wrong_dimensions(array.shape, sources_axis))
    rest = [axis for axis in range(array.ndim) if axis != sources_axis]
    last = rest[-1] if class_axis is None else _normal_axis(class_axis, array.ndim)
    if last == sources_axis:
        raise ParameterError(f"class_axis and sources_axis are both {sources_axis}; they are different axes.")
    order = [sources_axis, *(axis for axis in rest if axis != last), last]
    array = array if order == sorted(order) else array.transpose(order)
    _check_classes(array, "the array of predictions")
    if array.shape[0] == 0:
        raise ShapeError(f"there are no sources (shape {np.shape(values)}); at least one is needed.")
    shape = array.shape[1:-1]
    array = array if len(shape) == 1 else array.reshape(len(array), -1, array.shape[-1])
    return Contents(array, sample_shape=shape)


def _wrong_dimensions(shape: tuple[int, ...], sources_axis: int) -> str:
    n_dims = len(shape)
    axes = _FORMS if sources_axis == 0 else "(samples, sources, classes)"
    dense = "; for sequences (sources, samples, steps, classes) pass class_axis=-1" if n_dims == 4 else ""
    count = f"{n_dims} dimension{'s' * (n_dims != 1)}"
    return f"the array of predictions has {count} (shape {shape}); give shape {axes}{dense}."


def _classes_last(array: Array, class_axis: int | None, s: int | None = None) -> Array:
    """The scores of one source with the classes on the last axis."""
    what = "the array of predictions" if s is None else f"source {s}"
    if array.ndim < _PLAIN or (array.ndim not in (_PLAIN, _DENSE) and class_axis is None):
        raise ShapeError(
            f"{what} has {array.ndim} dimension{'s' * (array.ndim != 1)} (shape {array.shape}); give shape (samples, "
            "classes)."
        )
    array = array if class_axis is None else np.moveaxis(array, _normal_axis(class_axis, array.ndim), -1)
    return _check_classes(array, what)


def _check_classes(array: Array, what: str) -> Array:
    n_classes = array.shape[-1]
    if n_classes < 2:
        raise ShapeError(
            f"{what} has {n_classes} class{'es' * (n_classes != 1)} (shape {array.shape}); at least two are needed: "
            'for a binary problem give both columns, 1 - p and p, or p alone with kind="binary".'
        )
    return array


def check_sources_axis(sources_axis: int) -> None:
    """Refuse what is not one of the three axes."""
    if not is_whole_number(sources_axis) or sources_axis not in (0, 1, 2):
        raise ParameterError(
            f"sources_axis is {shown(sources_axis)}; it is 0 for (S, N, L), 1 for (N, S, L) or 2 for (N, L, S)."
        )


def _normal_axis(class_axis: int, n_dims: int) -> int:
    if not is_whole_number(class_axis) or not -n_dims <= class_axis < n_dims:
        raise ParameterError(f"class_axis is {shown(class_axis)}; the array has axes 0 to {n_dims - 1}.")
    return int(class_axis) % n_dims


def _read_binary(array: Array, sources_axis: int, class_axis: int | None) -> Contents:
    """Probabilities of the positive class: (N,), (S, N), or dense (S, N, H, W)."""
    if class_axis is not None:
        raise ParameterError("binary scores have no axis of classes; leave class_axis out.")
    if array.ndim not in (1, 2, 4) or sources_axis >= max(array.ndim, 1):
        raise ShapeError(
            f"the binary scores have shape {array.shape}; give one probability per sample, shape (samples,), or per "
            "source and sample, shape (sources, samples)."
        )
    array = array[None] if array.ndim == 1 else np.moveaxis(array, sources_axis, 0)
    if array.shape[0] == 0:
        raise ShapeError(f"there are no sources (shape {array.shape}); at least one is needed.")
    shape = array.shape[1:]
    columns = np.stack([_binary_columns(source.reshape(-1), s) for s, source in enumerate(array)])
    return Contents(columns, sample_shape=shape)


def _binary_columns(scores: Array, s: int) -> Array:
    """(..., 2): the probabilities 1 - p and p; NaN where p is missing."""
    if scores.ndim not in (1, 3):
        raise ShapeError(f"source {s} has shape {scores.shape}; binary scores are one probability per sample.")
    probs = np.empty((*scores.shape, 2), result_dtype(scores.dtype))
    probs[..., 1] = scores
    outside = ~((probs[..., 1] >= 0) & (probs[..., 1] <= 1)) & ~np.isnan(probs[..., 1])
    if outside.any():
        n = int(np.flatnonzero(outside.ravel())[0])
        raise ConfidenceError(
            f"source {s}, sample {n}: the probability of the positive class is {float(scores.ravel()[n]):g}; binary "
            "scores are probabilities, from 0 to 1."
        )
    np.subtract(1, probs[..., 1], out=probs[..., 0])
    return probs


def check_has_sources(values: Any, kind: InputKind | None) -> Any:
    """``values``; an array of two dimensions is refused where sources are compared: it may be one sample (S, L)."""
    is_binary = isinstance(kind, str) and kind == "binary"  # a kind that is an array is refused later
    if not is_binary and getattr(values, "ndim", 0) == 2 and not is_frame(values):
        raise ShapeError(
            f"the array of predictions has 2 dimensions (shape {tuple(values.shape)}); give shape (sources, samples, "
            "classes): for one sample of several sources array[:, None], for one source array[None]."
        )
    return values


def _reject_what_is_not_numbers(values: Any) -> None:
    """Sentences for what people pass in place of predictions."""
    if isinstance(values, (str, os.PathLike)):
        raise DtypeError(f"the predictions are {shown(values)}; read a file with veridical.load.")
    entries = list(values.values()) if isinstance(values, Mapping) else values
    first = entries[0] if isinstance(entries, (list, tuple)) and entries else entries
    if any(hasattr(first, method) for method in ("predict_proba", "state_dict", "decision_function")):
        raise DtypeError(
            f"the predictions are estimators ({type(first).__name__}); pass their outputs, [model.predict_proba(X) "
            "for model in models], or see veridical.training.collect_predictions."
        )
    if isinstance(first, type):
        raise DtypeError(f"the predictions are a class ({first.__name__}); pass arrays of numbers.")
    if callable(getattr(values, "__next__", None)):
        raise DtypeError(f"the predictions are a {type(values).__name__}; pass a list of arrays.")
