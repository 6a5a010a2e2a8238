"""Ids of samples: text or whole numbers, each once; tables are joined by them.  Also their shape and groups."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from veridical.errors import InvalidInputError, ParameterError, ShapeError, shown
from veridical.predictions.arrays import (
    MOST_AXES,
    Array,
    as_array,
    as_text_array,
    check_texts,
    is_missing,
    is_whole_number,
)


def check_sample_ids(ids: Any, n_samples: int, what: str = "sample_ids") -> Array:
    """(N,) ids as int64 or text, each once."""
    listed = as_array(ids, what, "give one text or whole number per sample") if not isinstance(ids, list) else ids
    if isinstance(listed, np.ndarray) and listed.ndim != 1:
        raise ShapeError(f"{what} have shape {listed.shape}; give one id for each of {n_samples} samples.")
    result = _as_ids(listed, what)
    if result.shape != (n_samples,):
        raise ShapeError(f"{what}: there are {len(result)} ids for {n_samples} samples; give one id per sample.")
    different, counts = np.unique(result, return_counts=True)
    if len(different) < n_samples:
        repeated = different[counts > 1]
        raise ParameterError(
            f"{what}: {len(repeated):,} id{'s occur' if len(repeated) > 1 else ' occurs'} more than once, the first is "
            f"{shown(repeated[0].item())}; give each sample its own id."
        )
    return result


def _as_ids(ids: Array | Sequence[Any], what: str) -> Array:
    """Whole numbers as int64; everything else as text."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu" and ids.dtype != np.uint64:
        return ids.astype(np.int64)
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "M":
        ids = _texts_of_dates(ids)
    listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    check_texts(listed, what)  # before each is copied
    for n, entry in enumerate(listed):
        if _is_absent(entry):
            raise ParameterError(f"{what}: the id of sample {n} is {shown(entry)}; give a text or a whole number.")
    if listed and all(is_whole_number(entry) for entry in listed):
        numbers = np.asarray([int(entry) for entry in listed])  # int64 where all fit
        if numbers.dtype == np.int64:
            return numbers
    return as_text_array([text_of_id(entry, f"{what}: the id of sample {n}") for n, entry in enumerate(listed)], what)


def _texts_of_dates(dates: Array) -> Array:
    """Dates as ISO texts without a time that is midnight everywhere; NaT as None."""
    missing = np.isnat(dates)
    for unit in ("D", "s"):
        coarser = dates.astype(f"datetime64[{unit}]")
        if np.array_equal(coarser.astype(dates.dtype)[~missing], dates[~missing]):
            dates = coarser
            break
    texts = np.datetime_as_string(dates).astype(object)
    texts[missing] = None
    return texts


def _is_absent(entry: Any) -> bool:
    """Whether it is nothing, a container, or not equal to itself, as NaN is."""
    try:
        return is_missing(entry) or isinstance(entry, (list, dict, set, np.ndarray)) or bool(entry != entry)
    except Exception:  # an object may raise anything
        return True


def text_of_id(entry: Any, what: str) -> str:
    """An id or a name as text."""
    try:
        return entry.decode(errors="backslashreplace") if isinstance(entry, bytes) else str(entry)
    except Exception:  # an object may raise anything
        raise ParameterError(f"{what} is {shown(entry)}; give a text or a whole number.") from None


def as_id(value: Any) -> str:
    """An id or a label as text: without spaces around it, whole numbers without a point; empty where there is none.

    Examples
    --------
    >>> as_id(7.0), as_id(" q1 "), as_id(None)
    ('7', 'q1', '')
    """
    if is_missing(value):
        return ""
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return text_of_id(value, "an id or a label").strip()


def places_of(
    ids: Array, others: Array, what: str, what_others: str, error: type[InvalidInputError] = ShapeError
) -> Array:
    """For each of ``ids`` its place among ``others``, which must be the same ids in any order.

    Ids that are numbers on one side and text on the other are compared as text.
    """
    keys: list[Any] = ids.tolist()
    other_keys: list[Any] = others.tolist()
    if (ids.dtype.kind == "U") != (others.dtype.kind == "U"):
        keys, other_keys = list(map(str, keys)), list(map(str, other_keys))
    place_of = {entry: place for place, entry in enumerate(other_keys)}
    missing = [entry for entry in keys if entry not in place_of]
    known = set(keys)
    extra = [entry for entry in other_keys if entry not in known]
    if missing or extra:
        problems = [
            f"{problem} {len(entries):,} ({shown(entries[0])}{', ...' * (len(entries) > 1)})"
            for problem, entries in (("lacks", missing), ("has in addition", extra))
            if entries
        ]
        raise error(
            f"{what_others} has samples that differ from those in {what}: of {len(ids):,} it {' and '.join(problems)}; "
            "all sources must predict the same samples."
        )
    return np.asarray([place_of[entry] for entry in keys], np.intp)


def check_sample_shape(shape: Any, n_samples: int) -> tuple[int, ...]:
    """(N,) or (N, H, W), whose product is the number of samples."""
    try:
        sizes = tuple(operator.index(size) for size in islice(shape, MOST_AXES))
    except Exception:  # an object may raise anything
        raise ParameterError(f"sample_shape is {shown(shape)}; give whole numbers, as in (N, H, W).") from None
    if not sizes or int(np.prod(sizes, dtype=object)) != n_samples or min(sizes) < 0:
        raise ShapeError(f"sample_shape is {sizes}, and there are {n_samples} samples; give a shape of so many.")
    return sizes


def image_of_samples(sample_shape: tuple[int, ...]) -> Array | None:
    """(N,) the image that a pixel belongs to, if the samples are pixels."""
    if len(sample_shape) == 1:
        return None
    return np.repeat(np.arange(sample_shape[0]), int(np.prod(sample_shape[1:])))


def check_groups(groups: Any, sample_shape: tuple[int, ...]) -> Array | None:
    """(N,) a group per sample; of dense predictions, the image, unless groups of images or pixels are passed."""
    n_samples = int(np.prod(sample_shape))
    if groups is None:
        return image_of_samples(sample_shape)
    array = as_array(groups, "groups", "give one text or whole number per sample")
    if len(sample_shape) > 1:
        if array.shape == sample_shape[:1]:
            array = np.repeat(array, n_samples // max(sample_shape[0], 1))
        elif array.shape == sample_shape:
            array = array.reshape(-1)
    if array.shape != (n_samples,):
        raise ShapeError(f"groups have shape {array.shape}; give one group per sample, shape ({n_samples},).")
    return _as_ids(array, "groups")
