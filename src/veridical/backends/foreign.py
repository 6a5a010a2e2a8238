"""Arrays of other libraries: told by their types, so that none of these libraries is imported."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np

from veridical._lazy import require
from veridical.errors import ParameterError

#: Root modules of array types, and what they are called here.
_LIBRARIES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "cupy": "cupy", "array_api_strict": "array_api_strict"}
_FORCED: ContextVar[bool] = ContextVar("veridical_array_path", default=False)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class NeedsHostError(Exception):
    """These numbers are not computed on their device: they are invalid, which the host puts into words, or too rare."""


@contextmanager
def array_path() -> Iterator[None]:
    """Inside, every array of another library takes the array path, also those in host memory: for tests."""
    token = _FORCED.set(True)
    try:
        yield
    finally:
        _FORCED.reset(token)


@dataclasses.dataclass(frozen=True)
class Foreign:
    """An array of another library, or a list or dictionary of such arrays, one per source.

    Attributes
    ----------
    values : array, list or dictionary
    library : {"torch", "jax", "cupy", "array_api_strict"}
    on_host : bool
        Whether its numbers are in host memory, where NumPy can read them.
    traced : bool
        Whether it stands for numbers that are not there yet (``jax.jit``, ``torch.compile``, ``torch.export``).
    differentiated : bool
        Whether derivatives with respect to it are recorded.
    """

    values: Any
    library: str
    on_host: bool
    traced: bool
    differentiated: bool

    @property
    def parts(self) -> list[Any]:
        """The arrays: one, or one per source."""
        return _parts_of(self.values)

    @property
    def takes_array_path(self) -> bool:
        """Whether it is computed where it is, instead of by the compiled kernels."""
        return not self.on_host or self.traced or self.differentiated or _FORCED.get()

    @property
    def namespace(self) -> Any:
        """Its library's functions under the names of the array API standard."""
        return require("array_api_compat", "arrays").array_namespace(*self.parts)

    @property
    def device(self) -> Any:
        """Where it is; arrays of one list are on one device."""
        places = [require("array_api_compat", "arrays").device(part) for part in self.parts]
        for s, place in enumerate(places):
            if place != places[0]:
                raise ParameterError(
                    f"source {s} is on {place} and source 0 is on {places[0]}; move all sources to one device."
                )
        return places[0]


def library_of(values: Any) -> str | None:
    """The name of the library whose array this is; None for NumPy's and for everything that is not an array."""
    for base in type(values).__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library is not None and _is_array(values):
            return library
    return None


def _is_array(values: Any) -> bool:
    try:
        return hasattr(values, "shape") and hasattr(values, "dtype")
    except Exception:  # nested tensors have no shape
        return False


def _parts_of(values: Any) -> list[Any]:
    if isinstance(values, Mapping):
        return list(values.values())
    return list(values) if isinstance(values, (list, tuple)) else [values]


def as_foreign(values: Any) -> Foreign | None:
    """``values`` if it is an array of another library, or a list or dictionary of such arrays; otherwise None."""
    if isinstance(values, np.ndarray):
        return None
    parts = _parts_of(values) if isinstance(values, (list, tuple, Mapping)) else [values]
    library = library_of(parts[0]) if parts else None
    if library is None or any(library_of(part) != library for part in parts[1:]):
        return None
    if library == "torch" and any(_has_no_numbers(part) for part in parts):
        return None
    return Foreign(
        values,
        library,
        all(_is_on_host(part, library) for part in parts),
        any(_is_traced(part, library) for part in parts),
        any(_has_grad(part, library) for part in parts),
    )


def _has_no_numbers(tensor: Any) -> bool:
    """Whether it is sparse, quantised or a meta tensor, which validation refuses in words."""
    return str(tensor.layout) != "torch.strided" or bool(tensor.is_quantized) or tensor.device.type == "meta"


def _is_on_host(values: Any, library: str) -> bool:
    if library == "torch":
        return bool(values.device.type == "cpu")
    if library == "jax":
        return not _is_traced(values, library) and {device.platform for device in values.devices()} == {"cpu"}
    return library == "array_api_strict" and "CPU_DEVICE" in str(values.device)


def _is_traced(values: Any, library: str) -> bool:
    names = {base.__name__ for base in type(values).__mro__}
    if library == "jax":
        return "Tracer" in names
    return library == "torch" and ("FakeTensor" in names or "FunctionalTensor" in names or _torch_compiles())


def _torch_compiles() -> bool:
    import torch

    return bool(torch.compiler.is_compiling())


def _has_grad(values: Any, library: str) -> bool:
    if library != "torch" or not values.requires_grad:
        return False
    import torch

    return bool(torch.is_grad_enabled())


def to_host(values: Any) -> Any:
    """A NumPy array of the numbers: the same memory (DLPack) where they are on the host, a copy from elsewhere.

    Of a list or dictionary of arrays, a list or dictionary.
    """
    if isinstance(values, Mapping):
        return {name: to_host(part) for name, part in values.items()}
    if isinstance(values, (list, tuple)):
        return [to_host(part) for part in values]
    library = library_of(values)
    if library is None:
        return np.asarray(values)
    if any(coarse in str(values.dtype) for coarse in ("bfloat16", "float8")):  # NumPy has no such numbers
        values = values.float() if library == "torch" else values.astype("float32")
    if library == "torch":
        values = values.detach().cpu().resolve_conj().resolve_neg()
    elif library == "jax" and not _is_on_host(values, library):
        return np.asarray(values)
    elif library == "cupy":
        return values.get()
    elif not _is_on_host(values, library):
        values = values.to_device(type(values.device)("CPU_DEVICE"))
    return np.from_dlpack(values)


def to_tensor(array: Any) -> Any:
    """A NumPy array of numbers as a tensor, which shares its memory where PyTorch can: writable, native, contiguous."""
    import torch

    native = np.float64 if array.dtype == np.longdouble else array.dtype.newbyteorder("=")
    array = np.asarray(array, native, order="C")
    return torch.from_numpy(array if array.flags.writeable or not array.size else array.copy())


def from_host(array: Any, like: Foreign) -> Any:
    """A NumPy array as one of the same library on the same device; host memory is shared where possible."""
    if like.library == "torch":
        return to_tensor(array).to(like.parts[0].device)
    if like.library == "jax":
        import jax

        return jax.device_put(array, next(iter(like.parts[0].devices())))
    return like.namespace.asarray(array, device=like.device)


def results_from_host(result: _Result, like: Foreign) -> _Result:
    """The same with every array of a result: an array, a tuple of arrays, or a frozen dataclass with arrays in it."""
    if isinstance(result, np.ndarray):
        return from_host(result, like)  # type: ignore[no-any-return]
    if isinstance(result, tuple) and not hasattr(result, "_fields"):
        return tuple(results_from_host(part, like) for part in result)  # type: ignore[return-value]
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = [field.name for field in dataclasses.fields(result) if field.init]
        return dataclasses.replace(result, **{name: results_from_host(getattr(result, name), like) for name in names})
    return result


def also_foreign(
    home: str | None = None, position: int = 0
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Let a function take arrays of other libraries as its argument number ``position``; its results are then such.

    Arrays in host memory go to the function itself.  For all others, the function of the same name in the module
    ``home`` is called with a :class:`Foreign` in their place; without a ``home`` their numbers are copied to the host.
    """

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        name = list(inspect.signature(function).parameters)[position]

        @functools.wraps(function)
        def wrapper(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            foreign = as_foreign(args[position] if len(args) > position else kwargs.get(name))
            if foreign is None:
                return function(*args, **kwargs)
            if home is not None and foreign.takes_array_path:
                on_device = getattr(importlib.import_module(home), function.__name__)
                others = {key: value for key, value in kwargs.items() if key != name}
                try:
                    result: _Result = on_device(*args[:position], foreign, *args[position + 1 :], **others)
                    return result
                except NeedsHostError:
                    pass
            return results_from_host(function(*args, **kwargs), foreign)

        return wrapper

    return decorate
