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

from veridical.errors import FileFormatError

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
_OLD_START = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_OLD_PICKLES = 3


def check_pickle(content: bytes, path: Path) -> None:
    """Refuse a pickle that makes anything but tensors and plain values."""
    _Rehearsal(io.BytesIO(content), path).load()


def check_old_file(path: Path) -> None:
    """The same for a file that PyTorch before 1.6 wrote, which is not an archive."""
    with path.open("rb") as file:
        if file.read(len(_OLD_START)) != _OLD_START:
            raise ValueError("it does not begin as such a file does")
        for _ in range(_OLD_PICKLES):
            _Rehearsal(file, path).load()


class _Tensor:
    """Stands for a tensor or its storage; nothing can be done with it."""


class _Dictionary(dict[Any, Any]):
    """Keys are names: the hash of nested tuples can take for ever."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, (str, int)):
            raise TypeError(f"a dictionary has a {type(key).__name__} for a name")
        super().__setitem__(key, value)


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *others: Any) -> _Tensor:
    numbers = (offset, *size, *stride)
    if not isinstance(storage, _Tensor) or not all(isinstance(number, int) for number in numbers) or len(others) > 3:
        raise TypeError("a tensor has no storage, shape or strides")
    return _Tensor()


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any) -> _Tensor:
    return _Tensor()


#: What a pickle may call -> what stands for it.
_FUNCTIONS = {
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "collections.OrderedDict": lambda: _Dictionary(),
}


class _Rehearsal(pickle._Unpickler):
    """Carries a pickle out with stand-ins; written in Python, it also takes no memory for places in the memo."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        super().__init__(file)
        self._path = path

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a function, or the name of a type of storage."""
        whole = f"{module}.{name}"
        if re.fullmatch(r"torch\.\w+Storage", whole):
            return whole
        return _FUNCTIONS.get(whole) or self._refuse(whole)

    def persistent_load(self, pid: Any) -> _Tensor:
        """The stand-in for a storage, which is a part of the mapped file."""
        return _Tensor()

    def _refuse(self, what: str = "an object") -> NoReturn:
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
            self._refuse()

    dispatch: ClassVar[dict[int, Any]] = {
        **dict.fromkeys(range(256), _refuse),
        **{operation[0]: pickle._Unpickler.dispatch[operation[0]] for operation in _OPERATIONS},
        pickle.EMPTY_DICT[0]: _start_dictionary,
        pickle.BUILD[0]: _give_attributes,
    }
