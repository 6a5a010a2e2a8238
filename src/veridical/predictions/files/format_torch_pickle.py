"""What the pickle of a ``.pt`` file would do, found out before PyTorch does it.

``torch.load`` with ``weights_only`` runs no foreign program, but calls whatever PyTorch's own files may need: a byte
array of any size, a conversion of a tensor of any shape, a list made of its rows.  So the pickle is first carried out
with stand-ins for tensors, by no more operations than ``torch.save`` writes for tensors, numbers, texts, lists and
dictionaries.
"""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn

from veridical.errors import FileFormatError, first_line

#: Operations of a pickle: constants, the memo, tuples, lists, dictionaries, and tensors by name, storage and call.
_OPERATIONS = (
    *(pickle.PROTO, pickle.STOP, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BINFLOAT, pickle.BINUNICODE),
    *(pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1),
    *(pickle.BINPUT, pickle.LONG_BINPUT, pickle.BINGET, pickle.LONG_BINGET),
    *(pickle.MARK, pickle.TUPLE, pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS, pickle.SETITEM, pickle.SETITEMS),
    *(pickle.GLOBAL, pickle.BINPERSID, pickle.REDUCE),
)


#: How files of PyTorch before 1.6 begin; the pickles of a version, facts about the machine, and the content follow.
_OLD_START = rb"\x80[\x02\x03]\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19\."
_OLD_START_LENGTH = 15
_OLD_PICKLES = 3


def check_pickle(content: bytes, path: Path) -> None:
    """Refuse a pickle that makes anything but tensors and plain values."""
    _rehearse(io.BytesIO(content), path)


def check_old_file(path: Path) -> None:
    """The same for a file that PyTorch before 1.6 wrote, which is not an archive."""
    with path.open("rb") as file:
        if not re.fullmatch(_OLD_START, file.read(_OLD_START_LENGTH)):
            raise ValueError("it does not begin as such a file does")
        for _ in range(_OLD_PICKLES):
            _rehearse(file, path)


def _rehearse(file: BinaryIO, path: Path) -> None:
    rehearsal = _Rehearsal(file, path)
    try:
        rehearsal.load()
    except TypeError as error:  # of a stand-in, about its arguments
        rehearsal.refuse(first_line(error))


class _Tensor:
    """Stands for a tensor or its storage; nothing can be done with it."""


class _Dictionary(dict[Any, Any]):
    """Keys are names and numbers: the hash of nested tuples can take for ever."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_check_plain(key), value)


def _check_plain(*values: Any) -> Any:
    """The last of some values, none of which is a container or a tensor."""
    for value in values:
        if not (value is None or isinstance(value, (str, int, float))):
            raise TypeError(f"a {type(value).__name__} where a name or a number belongs")
    return values[-1] if values else None


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *others: Any) -> _Tensor:
    numbers = (offset, *size, *stride)
    if not isinstance(storage, _Tensor) or not all(isinstance(number, int) for number in numbers) or len(others) > 4:
        raise TypeError("a tensor has no storage, shape or strides")
    return _Tensor()


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> _Tensor:
    return _Tensor()


def _count(counts: _Dictionary) -> _Dictionary:
    """Stands for a Counter, as schedulers of learning rates have it."""
    if not isinstance(counts, _Dictionary):
        raise TypeError("a counter is not made of a dictionary")
    return counts


def _size(sizes: tuple[Any, ...]) -> _Tensor:
    """Stands for a shape; of a tensor, one would be made of all its entries."""
    if not isinstance(sizes, tuple):
        raise TypeError("a shape is not made of a tuple")
    _check_plain(*sizes)
    return _Tensor()


def _set(entries: list[Any]) -> _Tensor:
    if not isinstance(entries, list):
        raise TypeError("a set is not made of a list")
    _check_plain(*entries)
    return _Tensor()


def _device(*parts: Any) -> _Tensor:
    _check_plain(*parts)
    return _Tensor()


#: What a pickle may call -> what stands for it.
_FUNCTIONS = {
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "collections.OrderedDict": lambda: _Dictionary(),
    "collections.Counter": _count,
    "torch.Size": _size,
    "torch.device": _device,
    "builtins.set": _set,
    "__builtin__.set": _set,
}
#: What a pickle may only name: types of storages and of numbers.
_NAMES = r"torch\.(storage\.)?\w+Storage|torch\.(float|bfloat|int|uint|complex|bool)\w*"


class _Rehearsal(pickle._Unpickler):
    """Carries a pickle out with stand-ins; written in Python, it also takes no memory for places in the memo."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        super().__init__(file)
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a function, or the name of a type of storage."""
        whole = f"{module}.{name}"
        if re.fullmatch(_NAMES, whole):
            return whole
        return _FUNCTIONS.get(whole) or self.refuse(whole)

    def persistent_load(self, pid: Any) -> _Tensor:
        """The stand-in for a storage, which is a part of the mapped file."""
        return _Tensor()

    def refuse(self, what: str = "something that torch.save writes with another pickle_protocol only") -> NoReturn:
        raise FileFormatError(
            f"{self._path} holds more than dense tensors ({what}), and unpickling it could run programs; convert it "
            "where you trust it: torch.save(tensor, path), or a dictionary of tensors, such as {'logits': tensor, "
            "'labels': labels} or a state dict."
        )

    def _start_dictionary(self) -> None:
        self.append(_Dictionary())  # type: ignore[attr-defined]

    def _give_attributes(self) -> None:
        """An ordered dictionary of weights has an attribute with the versions of its modules."""
        attributes = self.stack.pop()  # type: ignore[attr-defined]
        if not isinstance(attributes, _Dictionary) or not isinstance(self.stack[-1], _Dictionary):  # type: ignore[attr-defined]
            self.refuse("an object with attributes")

    dispatch: ClassVar[dict[int, Any]] = {
        **dict.fromkeys(range(256), refuse),
        **{operation[0]: pickle._Unpickler.dispatch[operation[0]] for operation in _OPERATIONS},
        pickle.EMPTY_DICT[0]: _start_dictionary,
        pickle.BUILD[0]: _give_attributes,
    }
