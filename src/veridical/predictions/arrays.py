"""Arrays from NumPy arrays, lists and PyTorch tensors; input that would lose something is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from veridical.arrays.foreign import library_of, to_host
from veridical.errors import DtypeError, ShapeError, first_line

Array = npt.NDArray[Any]
#: Types whose only value stands for nothing, of Python, pandas (NA and NaT) and NumPy.
_NOTHING = frozenset(("NoneType", "NAType", "NaTType", "MaskedConstant"))
#: Characters that any text may have, and bytes that an array of longer ones may take.
_LONG_TEXT, _MOST_LONG_TEXTS = 256, 64 << 20


def as_array(values: Any, what: str, needed: str) -> Array:
    """``values`` as an array of any dtype, without a copy where it is one; ``needed`` says what to give instead."""
    if holds_masked(values):
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


def holds_masked(values: Any, depth: int = 2) -> bool:
    """Whether it is a masked array, or a list of sources or of their rows with one in it; NumPy would drop its mask."""
    if depth and isinstance(values, (list, tuple)):
        return any(holds_masked(entry, depth - 1) for entry in values)
    return isinstance(values, np.ma.MaskedArray)


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


def as_text_array(texts: Sequence[str], what: str) -> Array:
    """Texts as one array, in which each takes as much memory as the longest; ``what`` begins the message."""
    longest = max(map(len, texts), default=0)
    if longest > _LONG_TEXT and 4 * longest * len(texts) > _MOST_LONG_TEXTS:
        raise ShapeError(
            f"{what}: one of {len(texts):,} texts has {longest:,} characters, and each would take as much memory; "
            f"shorten it to {_LONG_TEXT}."
        )
    return np.asarray(texts, dtype=np.str_)
