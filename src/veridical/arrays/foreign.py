"""Arrays of other libraries: told by their types, so that none of these libraries is imported."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from veridical._extras import require

#: Root modules of array types, and what they are called here.
_LIBRARIES = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "cupy": "cupy", "array_api_strict": "array_api_strict"}
_FORCED: ContextVar[bool] = ContextVar("veridical_array_path", default=False)
_Result = TypeVar("_Result")


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
    """An array of another library.

    Attributes
    ----------
    values : array
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
    def takes_array_path(self) -> bool:
        """Whether it is computed where it is, instead of by the compiled kernels."""
        return not self.on_host or self.traced or self.differentiated or _FORCED.get()

    @property
    def namespace(self) -> Any:
        """Its library's functions under the names of the array API standard."""
        return require("array_api_compat", "arrays").array_namespace(self.values)

    @property
    def device(self) -> Any:
        """Where it is."""
        return require("array_api_compat", "arrays").device(self.values)


def library_of(values: Any) -> str | None:
    """The name of the library whose array this is; None for NumPy's and for everything that is not an array."""
    for base in type(values).__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library is not None and hasattr(values, "shape") and hasattr(values, "dtype"):
            return library
    return None


def as_foreign(values: Any) -> Foreign | None:
    """``values`` if it is an array of another library, or a list of such arrays, which are stacked; otherwise None."""
    if isinstance(values, (list, tuple)) and values and getattr(values[0], "ndim", 0) == 2:
        if any(library_of(part) is None for part in values) or len({library_of(part) for part in values}) > 1:
            return None
        if len({tuple(part.shape) for part in values}) > 1:
            return None  # validation says which differ
        first = as_foreign(values[0])
        assert first is not None
        return as_foreign(first.namespace.stack(list(values)))
    library = library_of(values)
    if library is None:
        return None
    return Foreign(
        values, library, _is_on_host(values, library), _is_traced(values, library), _has_grad(values, library)
    )


def _is_on_host(values: Any, library: str) -> bool:
    if library == "torch":
        return bool(values.device.type == "cpu")
    if library == "jax":
        return not _is_traced(values, library) and {device.platform for device in values.devices()} == {"cpu"}
    return library == "array_api_strict" and str(values.device) == "CPU_DEVICE"


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
    """A NumPy array of the numbers: the same memory where they are on the host, a copy from elsewhere."""
    library = library_of(values)
    if library == "torch":
        values = values.detach().cpu()
        if str(values.dtype).startswith(("torch.bfloat16", "torch.float8")):  # NumPy has no such numbers
            values = values.float()
        return values.resolve_conj().resolve_neg().numpy()
    if library == "jax":
        import jax

        return np.asarray(jax.device_get(values))  # a view of host memory, which is read-only
    if library == "cupy":
        return values.get()
    if library is None:
        return np.asarray(values)
    return np.asarray(values if _is_on_host(values, library) else values.to_device(type(values.device)("CPU_DEVICE")))


def from_host(array: Any, like: Foreign) -> Any:
    """A NumPy array as one of the same library on the same device; host memory is shared where possible."""
    if like.library == "torch":
        import torch

        if array.size and not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(np.ascontiguousarray(array)).to(like.values.device)
    if like.library == "jax":
        import jax

        return jax.device_put(array, next(iter(like.values.devices())))
    return like.namespace.asarray(array, device=like.device)


def results_from_host(result: _Result, like: Foreign) -> _Result:
    """The same with every array of a result: an array, a tuple of arrays, or a frozen dataclass with arrays in it."""
    if isinstance(result, np.ndarray):
        return from_host(result, like)  # type: ignore[no-any-return]
    if isinstance(result, tuple) and not hasattr(result, "_fields"):
        return tuple(results_from_host(part, like) for part in result)  # type: ignore[return-value]
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = [field.name for field in dataclasses.fields(result) if field.init]
        arrays = {name: getattr(result, name) for name in names if isinstance(getattr(result, name), np.ndarray)}
        return dataclasses.replace(result, **{name: from_host(value, like) for name, value in arrays.items()})
    return result
