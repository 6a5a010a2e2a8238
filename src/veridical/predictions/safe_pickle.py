"""Reading pickles of plain values and NumPy arrays without running anything in them.

A pickle is a program: it may name any function of any module and have it called.  Published data sets (CIFAR) and
label files come as pickles all the same.  Here the program may name only the few constructors that arrays, byte
strings and containers need; each of them is replaced by one of ours that checks its arguments, and everything else
is refused before it runs.

A short program may also ask for much memory and time: by an entry far up in its table of values, by values that are
made again and again, by lists that contain the same list many times.  All of that is limited by the length of the file:
every call costs as much as its arguments are long, arrays are opaque until the program has ended, and what a number, a
key or an element type costs has a limit of its own.
"""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np

from veridical.errors import CorruptFileError, UnsafePickleError

#: Array element types that hold numbers or text; never objects, whose elements would be pickles again.
_PLAIN_KINDS = "biufcSU"
_CONTAINERS = (list, tuple, dict, set, frozenset)
#: Bytes of values, and values in containers, that may be made of one byte of a file, and of any file.
_BYTES_PER_BYTE, _VALUES_PER_BYTE, _ALWAYS_ALLOWED = 64, 2, 1 << 16
#: What a call costs by the length of its arguments: as much as text in any encoding, or a dictionary, takes.
_BYTES_PER_CHARACTER, _BYTES_PER_ENTRY = 4, 64
#: Bits of an integer, and of one that is a key; characters of a key, and of an element type's code.
_MOST_BITS, _MOST_KEY_BITS, _LONGEST_KEY, _LONGEST_CODE = 1024, 64, 4096, 16


class _Allowance:
    """How many bytes of values a pickle may still have made."""

    def __init__(self, length: int) -> None:
        self.left = _BYTES_PER_BYTE * length + _ALWAYS_ALLOWED

    def spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left < 0:
            raise UnsafePickleError("it makes more of its values than a file of its length holds")


class _Dtype:
    """An element type under construction.  NumPy's own would take its flags from the pickle."""

    __slots__ = ("value",)

    def __init__(self, code: Any, *_flags: Any) -> None:
        self.value = _check_dtype(np.dtype(_short_code(code)))

    def __setstate__(self, state: Any) -> None:
        """(version, byte order, ...): only the byte order is used."""
        order: Any = _short_code(state[1])  # any text: NumPy checks it
        self.value = _check_dtype(self.value.newbyteorder(order))


class _Array:
    """An array under construction: it has no entries, and is made when the whole pickle is read."""

    __slots__ = ("_axes", "_content", "_dtype", "_order", "_shape")

    def __init__(self, content: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> None:
        """Stands for numpy's ``_frombuffer``, which protocol 5 uses; ``axes`` are those of a transposed array."""
        self._content, self._dtype, self._shape, self._order, self._axes = content, dtype, shape, order, axes

    @classmethod
    def without_content(cls, *_class_shape_typecode: Any) -> _Array:
        """Stands for numpy's ``_reconstruct``; :meth:`__setstate__` follows."""
        return cls(None, None, None, None)

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, is_fortran, content = state
        self._content, self._dtype, self._shape, self._order = content, dtype, shape, "F" if is_fortran else "C"

    @property
    def has_content(self) -> bool:
        return self._content is not None

    def view(self) -> np.ndarray[Any, Any]:
        """The array, as a view of its content."""
        content = self._content.encode("latin-1") if isinstance(self._content, str) else self._content  # of Python 2
        if not isinstance(self._dtype, _Dtype):
            raise UnsafePickleError("it holds an array without an element type")
        if not isinstance(content, bytes):
            raise UnsafePickleError("it holds an array of objects, and only numbers and text are read")
        flat = np.frombuffer(content, self._dtype.value)
        if self._order == "K" and self._axes is not None:
            return flat.reshape(self._shape).transpose(self._axes)
        return flat.reshape(self._shape, order="F" if self._order == "F" else "C")


def _short_code(code: Any) -> str:
    """The code of an element type or byte order, which NumPy reads again whenever it is used."""
    code = code.decode("latin-1") if isinstance(code, bytes) else code
    if not isinstance(code, str) or len(code) > _LONGEST_CODE:
        raise UnsafePickleError("it describes an array of records or objects, and only numbers and text are read")
    return code


def _check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in _PLAIN_KINDS or dtype.fields is not None or dtype.subdtype is not None:
        raise UnsafePickleError(f"it holds an array of dtype {dtype}, and only numbers and text are read")
    return dtype


def _new_scalar(dtype: Any, content: Any) -> Any:
    """Stands for numpy's ``scalar``."""
    return _Array(content, dtype, (1,), "C").view()[0]


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    """Stands for ``_codecs.encode``, with which Python 3 writes byte strings for Python 2."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8"):
        raise UnsafePickleError("it encodes something other than text")
    return text.encode(encoding)


def _new_bytes(content: Any = b"", encoding: Any = "latin1") -> bytes:
    """Stands for ``bytes`` and ``bytearray``, which would also make any number of zeros."""
    return bytes(content) if isinstance(content, bytes) else _encode(content, encoding)


def _new_container(kind: type, content: Any = ()) -> Any:
    """Stands for ``list``, ``tuple``, ``dict``, ``set`` and ``frozenset``, which copy what they are given."""
    if not isinstance(content, _CONTAINERS):
        raise UnsafePickleError(f"it makes a {kind.__name__} of something that is not a container")
    if kind in (set, frozenset):
        _check_keys(content)
    if kind is dict:
        _check_keys(content if isinstance(content, dict) else [key for key, _ in content])
    return kind(content)


class _StandIn:
    """What a pickle gets in place of a function or class: it can be called, but not changed.

    No constructor takes more memory or time than its arguments are long, so a call costs these.
    """

    __slots__ = ("_allowance", "_call")
    _allowance: _Allowance
    _call: Callable[..., Any]

    def __init__(self, call: Callable[..., Any], allowance: _Allowance) -> None:
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_allowance", allowance)

    def __call__(self, *arguments: Any) -> Any:
        for argument in (arguments, *arguments):
            if isinstance(argument, (str, bytes)):
                self._allowance.spend(_BYTES_PER_CHARACTER * len(argument))
            elif isinstance(argument, _CONTAINERS):
                self._allowance.spend(_BYTES_PER_ENTRY * len(argument))
        return self._call(*arguments)

    def __setstate__(self, state: Any) -> NoReturn:
        raise UnsafePickleError("it tries to change the reader")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise UnsafePickleError("it tries to change the reader")


def _constructors() -> dict[tuple[str, str], Callable[..., Any]]:
    """(module, name) in the pickle -> what is called in its place."""
    numpy_parts: dict[tuple[str, str], Callable[..., Any]] = {
        ("multiarray", "_reconstruct"): _Array.without_content,
        ("multiarray", "scalar"): _new_scalar,
        ("numeric", "_frombuffer"): _Array,
    }
    calls: dict[tuple[str, str], Callable[..., Any]] = {
        ("numpy", "ndarray"): _Array.without_content,
        ("numpy", "dtype"): _Dtype,
        ("_codecs", "encode"): _encode,
        ("collections", "OrderedDict"): partial(_new_container, dict),
    }
    for core in ("core", "_core"):  # NumPy 1 and 2
        calls |= {(f"numpy.{core}.{module}", name): call for (module, name), call in numpy_parts.items()}
    for builtins in ("builtins", "__builtin__"):  # Python 3 and 2
        for kind in _CONTAINERS:
            calls[builtins, kind.__name__] = partial(_new_container, kind)
        calls |= {(builtins, name): _new_bytes for name in ("bytes", "bytearray")}
    return calls


_ALLOWED = _constructors()


#: The reader in Python, whose steps can be overridden.
_Unpickler: Any = pickle._Unpickler


class _PlainUnpickler(_Unpickler):  # type: ignore[misc]
    dispatch: ClassVar[dict[int, Any]] = dict(_Unpickler.dispatch)

    def __init__(self, file: io.BytesIO, allowance: _Allowance, *, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._allowance = allowance

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _StandIn(_ALLOWED[module, name], self._allowance)
        except KeyError:
            raise UnsafePickleError(f"it names {module}.{name}, which is neither an array nor a plain value") from None

    def persistent_load(self, pid: Any) -> NoReturn:
        raise UnsafePickleError("it refers to objects outside itself")

    def _set_one(self) -> None:
        _check_keys(self.stack[-2:-1])
        super().load_setitem()

    def _set_several(self) -> None:
        _check_keys(self.stack[::2])  # everything since the mark
        super().load_setitems()

    def _make_dict(self) -> None:
        _check_keys(self.stack[::2])
        super().load_dict()

    def _add_members(self) -> None:
        _check_keys(self.stack)
        super().load_additems()

    def _make_frozenset(self) -> None:
        _check_keys(self.stack)
        super().load_frozenset()

    dispatch |= {
        pickle.SETITEM[0]: _set_one,
        pickle.SETITEMS[0]: _set_several,
        pickle.DICT[0]: _make_dict,
        pickle.ADDITEMS[0]: _add_members,
        pickle.FROZENSET[0]: _make_frozenset,
        # Bytes that cannot be written to: NumPy takes others for arrays.
        pickle.BYTEARRAY8[0]: _Unpickler.load_binbytes8,
    }


def _check_keys(keys: Iterable[Any]) -> None:
    """Refuse keys and members of sets whose hash or comparison takes time without limit."""
    for key in keys:
        if not _is_plain_key(key):
            raise UnsafePickleError(
                f"it has a key of type {type(key).__name__}, and only text of at most {_LONGEST_KEY:,} characters and "
                f"numbers of at most {_MOST_KEY_BITS} bits are keys"
            )


def _is_plain_key(key: Any) -> bool:
    """Whether it is short, and few others have its hash: of long integers and complex numbers, any number have."""
    if isinstance(key, (str, bytes)):
        return len(key) <= _LONGEST_KEY
    if isinstance(key, np.generic):
        return key.dtype.kind in "biuf" and 8 * key.itemsize <= _MOST_KEY_BITS
    return key is None or isinstance(key, float) or (isinstance(key, int) and key.bit_length() <= _MOST_KEY_BITS)


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
        The file is truncated, continues after its end, or is not a pickle.

    Examples
    --------
    >>> import pickle, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.pk"
    >>> _ = path.write_bytes(pickle.dumps([3, 8, 8]))
    >>> load_plain_pickle(path)
    [3, 8, 8]
    """
    source = Path(path)
    try:
        if source.exists() and not source.is_file():  # a pipe waits, and a device has no end
            raise CorruptFileError(f"{path} is not a regular file; give a pickle.")
        content = source.read_bytes()
    except OSError as error:
        raise CorruptFileError(f"{path} cannot be read ({error.strerror}).") from error
    try:
        return _load(content, encoding)
    except UnsafePickleError as error:
        raise UnsafePickleError(
            f"{path} is refused: {error.args[0]}; a pickle can run programs, so take the file from its publisher again."
        ) from None
    except Exception as error:  # a damaged pickle can fail in any of the constructors, with any exception
        raise CorruptFileError(
            f"{path} is not a whole pickle ({type(error).__name__}: {error}); it may be truncated: fetch it again."
        ) from None


def _load(content: bytes, encoding: str) -> Any:
    for operation, argument, _ in pickletools.genops(content):  # reads every length before memory is taken for it
        number = int(argument or 0) if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") else 0
        if number > len(content):
            raise UnsafePickleError(f"it numbers a value {number:,}, and is {len(content):,} bytes long")
        if isinstance(argument, int) and argument.bit_length() > _MOST_BITS:
            raise UnsafePickleError(f"it holds an integer of {argument.bit_length():,} bits, and labels have few")
    stream = io.BytesIO(content)
    allowance = _Allowance(len(content))
    value = _PlainUnpickler(stream, allowance, encoding=encoding).load()
    if stream.tell() < len(content):
        raise EOFError(f"it stops after {stream.tell():,} of {len(content):,} bytes")
    result, n_values = _Finishing(allowance).finish(value)
    if n_values > _VALUES_PER_BYTE * len(content) + _ALWAYS_ALLOWED:
        raise UnsafePickleError("its containers hold the same values again and again")
    return result


class _Finishing:
    """Replaces what was under construction by what was made, each object once, and counts the values in containers."""

    def __init__(self, allowance: _Allowance) -> None:
        self._allowance = allowance
        # The objects are kept, so that no other gets the identity of one that is gone.
        self._finished: dict[int, tuple[Any, tuple[Any, int] | None]] = {}

    def finish(self, value: Any) -> tuple[Any, int]:
        """The finished value, and how many values it holds, those of shared containers counted each time."""
        if not isinstance(value, (_Array, _Dtype, dict, list, tuple)):
            return value, 1
        known = self._finished.get(id(value))
        if known is None:
            self._finished[id(value)] = value, None
            known = value, self._finish(value)
            self._finished[id(value)] = known
        if known[1] is None:
            raise ValueError("a container holds itself")
        return known[1]

    def _finish(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, _Dtype):
            return value.value, 1
        if isinstance(value, _Array):
            if not value.has_content:
                return None, 1
            array = value.view()
            self._allowance.spend(array.nbytes)
            return array.copy(order="K"), array.size  # a view of bytes cannot be written to
        entries = [self.finish(entry) for entry in (value.values() if isinstance(value, dict) else value)]
        n_values = 1 + sum(count for _, count in entries)
        finished = [entry for entry, _ in entries]
        if isinstance(value, dict):
            return dict(zip(value, finished, strict=True)), n_values
        return type(value)(finished), n_values
