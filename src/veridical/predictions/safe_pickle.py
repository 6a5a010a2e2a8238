"""Reading pickles of plain values and NumPy arrays without running anything they ask for.

A pickle is a program: it may name any function of any module and have it called.  Published data sets (CIFAR) and
label files come as pickles all the same.  Here the program may name only the few constructors that arrays, byte
strings and containers need; each of them is replaced by one of ours that checks its arguments, and everything else
is refused before it runs.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from veridical.errors import CorruptFileError, UnsafePickleError

#: Array element types that hold numbers or text; never objects, whose elements would be pickles again.
_PLAIN_KINDS = "biufcSU"


class _Dtype:
    """An element type under construction.  NumPy's own would take flags from the pickle and believe them."""

    def __init__(self, code: Any, *_flags: Any) -> None:
        code = code.decode("latin-1") if isinstance(code, bytes) else code
        if not isinstance(code, str):
            raise UnsafePickleError("it describes an array of records or objects, and only numbers and text are read")
        self.value = _check_dtype(np.dtype(code))

    def __setstate__(self, state: Any) -> None:
        """(version, byte order, ...): of all that a pickle says about the type, the byte order is what we need."""
        order = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
        self.value = _check_dtype(self.value.newbyteorder(order))  # type: ignore[arg-type]  # any text: NumPy checks it


class _Array:
    """An array under construction: made by :meth:`__setstate__` from a block of plain numbers."""

    def __init__(self, *_class_shape_typecode: Any) -> None:
        self.value: np.ndarray[Any, Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, is_fortran, content = state
        self.value = _array_from_buffer(content, dtype, shape, "F" if is_fortran else "C")


def _check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in _PLAIN_KINDS or dtype.fields is not None or dtype.subdtype is not None:
        raise UnsafePickleError(f"it holds an array of dtype {dtype}, and only numbers and text are read")
    return dtype


def _array_from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    """Stands for numpy's ``_frombuffer``, which protocol 5 uses."""
    if not isinstance(dtype, _Dtype):
        raise UnsafePickleError("it holds an array without an element type")
    content = content.encode("latin-1") if isinstance(content, str) else content  # byte strings of Python 2
    if not isinstance(content, (bytes, bytearray)):
        raise UnsafePickleError("it holds an array of objects, and only numbers and text are read")
    numbers = np.frombuffer(bytes(content), dtype.value).reshape(shape, order="F" if order == "F" else "C")
    return numbers.copy(order="K")  # what lies on bytes cannot be written to


def _new_scalar(dtype: Any, content: Any) -> Any:
    """Stands for numpy's ``scalar``."""
    return _array_from_buffer(content, dtype, (1,), "C")[0]


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Stands for ``_codecs.encode``, with which Python 3 writes byte strings for Python 2."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        raise UnsafePickleError("it encodes something other than text")
    return text.encode(encoding)


def _new_bytes(content: Any = b"", encoding: Any = "latin1") -> bytes:
    """Stands for ``bytes`` and ``bytearray``, which would also make zeros of any length asked for."""
    return bytes(content) if isinstance(content, (bytes, bytearray)) else _encode(content, encoding)


class _StandIn:
    """What a pickle gets in place of a function or class: it can be called, and not be changed."""

    __slots__ = ("_call",)
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_call", call)

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise UnsafePickleError("it tries to change the reader")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise UnsafePickleError("it tries to change the reader")


def _names() -> dict[tuple[str, str], _StandIn]:
    """(module, name) in the pickle -> what is called in its place."""
    numpy_parts: dict[tuple[str, str], Callable[..., Any]] = {
        ("multiarray", "_reconstruct"): _Array,
        ("multiarray", "scalar"): _new_scalar,
        ("numeric", "_frombuffer"): _array_from_buffer,
    }
    calls: dict[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Dtype,
        ("_codecs", "encode"): _encode,
        ("collections", "OrderedDict"): dict,
    }
    for core in ("core", "_core"):  # NumPy 1 and 2
        calls |= {(f"numpy.{core}.{module}", name): call for (module, name), call in numpy_parts.items()}
    for builtins in ("builtins", "__builtin__"):  # Python 3 and 2
        calls |= {(builtins, kind.__name__): kind for kind in (list, tuple, dict, set, frozenset)}
        calls |= {(builtins, name): _new_bytes for name in ("bytes", "bytearray")}
    return {name: _StandIn(call) for name, call in calls.items()}


_ALLOWED = _names()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise UnsafePickleError(
                f"it asks for {module}.{name}, which is neither an array nor a plain value"
            ) from None

    def persistent_load(self, pid: Any) -> NoReturn:
        raise UnsafePickleError("it refers to objects outside itself")


def load_plain_pickle(path: str | os.PathLike[str], *, encoding: str = "bytes") -> Any:
    """Read a pickle that holds only numbers, text, containers and NumPy arrays of numbers.

    Parameters
    ----------
    path : path
        The file.
    encoding : str
        How byte strings of Python 2 are read: ``"bytes"`` keeps them, ``"latin1"`` makes them text.

    Returns
    -------
    object
        Plain values; arrays are ordinary ``numpy.ndarray``.

    Raises
    ------
    UnsafePickleError
        The pickle names a function or class that plain values do not need; it was not called.
    CorruptFileError
        The file is truncated, goes on after its end, or is no pickle at all.

    Examples
    --------
    >>> import pickle, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.pk"
    >>> _ = path.write_bytes(pickle.dumps([3, 8, 8]))
    >>> load_plain_pickle(path)
    [3, 8, 8]
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read ({error.strerror}).") from error
    stream = io.BytesIO(content)
    try:
        value = _finished(_PlainUnpickler(stream, encoding=encoding).load())
        if stream.tell() < len(content):
            raise EOFError(f"it stops after {stream.tell():,} of {len(content):,} bytes")
        return value
    except UnsafePickleError as error:
        raise UnsafePickleError(
            f"{path} is refused: {error.args[0]}; a pickle can run programs, so take the file from its publisher again."
        ) from None
    except Exception as error:  # a damaged pickle can fail in any of the constructors, with any exception
        raise CorruptFileError(
            f"{path} is no whole pickle ({type(error).__name__}: {error}); it may be truncated: fetch it again."
        ) from None


def _finished(value: Any) -> Any:
    """The same value with what was under construction replaced by what was made."""
    if isinstance(value, (_Array, _Dtype)):
        return value.value
    if isinstance(value, dict):
        return {key: _finished(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_finished(item) for item in value)
    return value
