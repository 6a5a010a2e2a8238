"""The arrays of a saved calibrator: as lists in the document or, where they are large, in an npz file beside it."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import write_atomically
from veridical.errors import FileFormatError, InvalidInputError, SavedFileError
from veridical.predictions.validation import Array


def count_numbers(node: Any) -> int:
    """How many numbers all arrays of a document hold."""
    return sum(array.size for array in _arrays_in(node))


def encode_inline(node: Any) -> Any:
    """The document with arrays as lists."""
    return _encoded(node, lambda array: {"shape": list(array.shape), "values": array.ravel().tolist()})


def encode_beside(node: Any, path: Path) -> tuple[Any, Path]:
    """The document with references to arrays, which are written to a file beside ``path``, and that file.

    The file is named by its content, so that those of the document that stands there until now stay as they are.  The
    document says its name and checksum.
    """
    arrays = {f"a{i}": array for i, array in enumerate(_arrays_in(node))}
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    checksum = hashlib.sha256(content.getbuffer()).hexdigest()
    beside = path.with_name(f"{path.name}.{checksum[:12]}.npz")
    write_atomically(beside, content.getvalue())
    names = iter(arrays)
    encoded = _encoded(node, lambda array: {"npz": next(names), "shape": list(array.shape)})
    return {**encoded, "arrays": beside.name, "arrays_sha256": checksum}, beside


def decode(node: Any, source: Path, name: Any, checksum: Any) -> Any:
    """The document with its arrays; ``name`` and ``checksum`` are what it says of the file beside it."""
    wanted = _references_in(node)
    if name is None:
        if wanted or checksum is not None:
            raise ValueError("it refers to arrays in another file, and does not say in which")
        return _decoded(node, {})
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"its arrays are in {name!r}, which is not beside it")
    from veridical.predictions.files.format_npz import NpzArrays

    path = source.with_name(name)
    try:
        with NpzArrays(path) as stored:
            if checksum is not None and checksum != file_checksum(path):
                raise FileFormatError(f"{name} is not the file that was saved with it")
            if sorted(stored.names) != sorted(wanted):
                raise FileFormatError(f"{name} holds other arrays")
            # Copies: a calibrator must not change when the file does.
            beside = {key: np.array(stored[key]) for key in wanted}
    except (InvalidInputError, OSError) as error:
        reason = str(error).rstrip(".")
        raise SavedFileError(f"the arrays of {source} cannot be read from {name} ({reason}); save it again.") from None
    return _decoded(node, beside)


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _arrays_in(node: Any) -> list[Array]:
    """All arrays, in the order that encoding meets them."""
    if isinstance(node, np.ndarray):
        return [node]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple)) else ()
    return [array for child in children for array in _arrays_in(child)]


def _references_in(node: Any) -> list[str]:
    """The names under which arrays are looked for beside the document."""
    if isinstance(node, dict) and isinstance(node.get("npz"), str):
        return [node["npz"]]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [name for child in children for name in _references_in(child)]


def _encoded(node: Any, encode: Any) -> Any:
    if isinstance(node, np.ndarray):
        return encode(node)
    if isinstance(node, dict):
        return {key: _encoded(value, encode) for key, value in node.items()}
    if isinstance(node, np.floating):  # of which JSON knows float64 alone
        return float(node)
    return [_encoded(value, encode) for value in node] if isinstance(node, (list, tuple)) else node


def _decoded(node: Any, beside: dict[str, Array]) -> Any:
    if isinstance(node, dict) and "shape" in node:
        return _array(node, beside)
    if isinstance(node, dict):
        return {key: _decoded(value, beside) for key, value in node.items()}
    return [_decoded(value, beside) for value in node] if isinstance(node, list) else node


def _array(node: dict[str, Any], beside: dict[str, Array]) -> Array:
    if not isinstance(node["shape"], list) or not all(type(size) is int and size >= 0 for size in node["shape"]):
        raise ValueError(f"an array has the shape {node['shape']!r}")
    shape = tuple(node["shape"])
    if set(node) == {"shape", "npz"} and node["npz"] in beside:
        array = beside[node["npz"]]
    elif set(node) == {"shape", "values"} and isinstance(node["values"], list):
        if not all(type(value) in (int, float) for value in node["values"]):
            raise ValueError("an array holds something other than numbers")
        array = np.array(node["values"], dtype=np.float64)
        if array.size == np.prod(shape, dtype=object):
            array = array.reshape(shape)
    else:
        raise ValueError(f"an array is described by {sorted(node)}")
    if array.shape != shape or array.dtype != np.float64:
        raise ValueError(f"an array has shape {array.shape} and dtype {array.dtype} where {shape} was promised")
    return array
