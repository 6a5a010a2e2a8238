"""Arrays from NumPy arrays, lists and PyTorch tensors; input that would lose something is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from veridical.backends.foreign import library_of, to_host
from veridical.errors import DtypeError, ShapeError, first_line

Array = npt.NDArray[Any]
#: Types whose only value stands for nothing, of Python, pandas (NA and NaT) and NumPy.
_NOTHING = frozenset(("NoneType", "NAType", "NaTType", "MaskedConstant"))
#: Characters that any text may have, and bytes that an array of longer ones may take.
_LONG_TEXT, _MOST_LONG_TEXTS = 256, 64 << 20
#: How much larger than its texts such an array may be.
_MOST_PADDING = 8
#: NumPy's limit.
MOST_AXES = 64


def as_array(values: Any, what: str, needed: str) -> Array:
    """``values`` as an array of any dtype, without a copy where it is one; ``needed`` says what to give instead."""
    if holds_masked(values, what):
        raise DtypeError(f"{what}: a masked array would lose its mask; {needed}, without a mask.")
    if is_tensor(values):
        return tensor_to_array(values, what)
    try:
        return np.asarray(values if library_of(values) is None else to_host(values))
    except ValueError as error:
        raise ShapeError(f"{what} cannot be made into one array ({first_line(error)}); {needed}.") from None
    except Exception as error:  # a foreign type may raise anything
        raise DtypeError(
            f"{what} of type {type(values).__name__} cannot be made into an array ({first_line(error)}); {needed}."
        ) from None


def as_numbers(values: Any, what: str) -> Array:
    """``values`` as an array of real numbers, without a copy where it is one already."""
    array = as_array(values, what, "give numbers in rows of equal length, with NaN where a source is absent")
    if array.dtype.kind not in "fiub":
        raise DtypeError(f"{what} has dtype {array.dtype}; give real numbers, for example array.astype(numpy.float32).")
    return array


def is_whole_number(value: object) -> TypeGuard[int]:
    """Whether it is an integer of Python's or NumPy's, of which truth values and time spans are no part."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def is_missing(entry: Any) -> bool:
    """Whether there is nothing: None, NaN, NaT, NA of pandas, or a masked entry."""
    if type(entry).__name__ in _NOTHING:
        return True
    return isinstance(entry, (float, np.floating, np.datetime64, np.timedelta64)) and bool(entry != entry)


def holds_masked(values: Any, what: str) -> bool:
    """Whether it is a masked array, or a list with one in it; NumPy would drop its mask.  Long texts are refused."""
    return any(issubclass(kind, np.ma.MaskedArray) for kind in check_texts(values, what))


def is_tensor(values: Any) -> bool:
    """Whether it is a PyTorch tensor; decided by the names of its types, without importing PyTorch."""
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in type(values).__mro__)


def holds_bfloat16(values: Any) -> bool:
    """Whether it is a PyTorch or JAX array of bfloat16, or a list or dictionary of sources with one in it."""
    if isinstance(values, dict):
        return holds_bfloat16(list(values.values()))
    if isinstance(values, (list, tuple)):
        return any(library_of(entry) is not None and holds_bfloat16(entry) for entry in values)
    return library_of(values) is not None and str(values.dtype).endswith("bfloat16")


def tensor_to_array(tensor: Any, what: str) -> Array:
    """The numbers of a PyTorch tensor; in the same memory, unless they are on another device or bfloat16."""
    if tensor.is_nested:
        raise DtypeError(f"{what} is a nested tensor; give a list of tensors, or torch.nested.to_padded_tensor of it.")
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
        raise DtypeError(f"{what} is a sparse or quantised tensor; give tensor.to_dense() or tensor.dequantize().")
    if tensor.is_meta:
        raise DtypeError(f"{what} is a meta tensor, which has a shape and no numbers; give an ordinary one.")
    array: Array = to_host(tensor)
    return array


def is_frame(values: Any) -> bool:
    """Whether it is a data frame: a table with named columns that converts itself to an array."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def index_of(values: Any) -> Any:
    """The index of a data frame or a series, unless it only counts from 0; lists have a method so called."""
    index = getattr(values, "index", None)
    if index is None or callable(index):
        return None
    return None if _counts(np.asarray(index)) else index


def _counts(ids: Array) -> bool:
    """Whether ids are 0, 1, 2, ...: places, and no ids."""
    return ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(len(ids)))


def as_text_array(texts: Sequence[str], what: str) -> Array:
    """Texts as one array; ``what`` begins the message."""
    check_texts(texts, what)
    return np.asarray(texts, dtype=np.str_)


def check_texts(values: Any, what: str) -> set[type]:
    """The types of what is in a list, or in lists of lists; of anything else, its own.

    A list with a long text is refused where an array, in which each entry takes as much memory, would be too large.
    """
    if not isinstance(values, (list, tuple)):
        return {type(values)}
    lists, types = _innermost(values)
    if not any(issubclass(kind, (str, bytes, np.ndarray)) for kind in types):
        return types
    entries = list(chain.from_iterable(lists))
    longest = max(map(len if types <= {str, bytes} else _length_of_text, entries))
    if longest <= _LONG_TEXT:
        return types
    n_texts = sum(entry.size if isinstance(entry, np.ndarray) else 1 for entry in entries)
    n_characters = sum(map(_length_of_text, {id(entry): entry for entry in entries}.values()))  # each text once
    if longest * n_texts > max(_MOST_LONG_TEXTS // 4, _MOST_PADDING * n_characters):
        raise ShapeError(
            f"{what}: one of {n_texts:,} texts has {longest:,} characters, and each would take as much memory; "
            f"shorten it to {_LONG_TEXT}."
        )
    return types


def _length_of_text(entry: Any) -> int:
    """The characters of a text, or of the longest that an array of texts can hold; 0 for anything else."""
    if isinstance(entry, np.ndarray):
        return entry.dtype.itemsize // (4 if entry.dtype.kind == "U" else 1) if entry.dtype.kind in "SU" else 0
    return len(entry) if isinstance(entry, (str, bytes)) else 0


def _innermost(values: Sequence[Any]) -> tuple[Sequence[Any], set[type]]:
    """The innermost lists of a list, which may be the only one, and the types of their entries.

    Lists are unpacked a level at a time, without a step of Python's for each entry, so that it takes no longer than
    NumPy needs to make an array of them.
    """
    lists: Sequence[Any] = [values]
    types: set[type] = set()
    for _ in range(MOST_AXES):
        types = set(map(type, chain.from_iterable(lists)))
        are_lists = {issubclass(kind, (list, tuple)) for kind in types}
        if True not in are_lists:
            break
        entries: Iterable[Any] = chain.from_iterable(lists)
        if False in are_lists:
            entries = (entry if isinstance(entry, (list, tuple)) else (entry,) for entry in entries)
        lists = list(entries)
    return lists, types
