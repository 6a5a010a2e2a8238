"""Functions that hand over predictions which are not in memory: blocked predictions and Dask arrays.

Packages that compute do not import :mod:`veridical.blocks`, which is built on them; its modules are named here and
imported when such predictions arrive.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Module of ``blocks`` -> the functions and methods of calibrators in it that take over.
_FUNCTIONS = {
    "samplewise": "apply_calibrator consensus discover predict predict_all predict_confidence predict_proba",
    "evaluating": "build_report evaluate fit_calibrator",
    "fitting": "fit",
}

#: Predictions in files and memory maps of more bytes than this are worked on in blocks, unless the caller says.
STREAM_ABOVE = 2 << 30


def is_dask_array(values: Any) -> bool:
    """Whether it is a Dask array; told by the names of its types, so that Dask is not imported."""
    return any(base.__module__ == "dask.array.core" and base.__name__ == "Array" for base in type(values).__mro__)


def is_large_map(values: Any) -> bool:
    """Whether these are predictions of more than 2 GB in a memory map, as an array or in a container."""
    array = values.values if getattr(values, "is_stacked", False) else values
    try:
        if getattr(array, "nbytes", 0) <= STREAM_ABOVE:
            return False
    except Exception:  # sparse tensors have no such number, and other objects may raise anything
        return False
    while array is not None and type(array).__name__ != "memmap":
        array = getattr(array, "base", None)
    return array is not None


def handler_of(name: str, values: Any, *, maps: bool = False) -> Callable[..., Any] | None:
    """The function of that name for these predictions, or None for predictions in memory.

    With ``maps`` large memory maps are worked on in blocks.
    """
    is_in_blocks = getattr(type(values), "is_in_blocks", False) or is_dask_array(values)
    if not is_in_blocks and not (maps and is_large_map(values)):
        return None
    module = next(module for module, names in _FUNCTIONS.items() if name in names.split())
    function: Callable[..., Any] = getattr(importlib.import_module(f"veridical.blocks.{module}"), name)
    return function


def also_out_of_memory(
    position: int = 0, name: str = "predictions", *, maps: bool = False
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Let a function take blocked predictions and Dask arrays as its argument ``name``, number ``position``.

    The function of the same name for blocks is called with the same arguments.  With ``maps``
    large memory maps are worked on in blocks, too, unless bootstrap intervals are asked for, which need all samples.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            values = args[position] if len(args) > position else kwargs.get(name)
            # Not the truth of it: what is not a flag is refused by the function, and may have none.
            without_intervals = kwargs.get("intervals", False) is False
            handler = handler_of(function.__name__, values, maps=maps and without_intervals)
            if handler is not None:
                result: _R = handler(*args, **kwargs)
                return result
            return function(*args, **kwargs)

        return call

    return decorate
