"""JSON as this library writes and reads it: an undefined number is ``null``, an infinite one ``"infinity"``."""

from __future__ import annotations

import json
import math
import numbers
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from veridical._atomic import write_atomically
from veridical.errors import CorruptFileError

#: A larger file is not one that this library wrote.
_MOST_BYTES = 64 << 20


def to_plain(value: Any) -> Any:
    """``value`` in the types that JSON has, recursively.

    NaN becomes None, infinity ``"infinity"`` or ``"-infinity"``, NumPy's numbers Python's, and what JSON has no type
    for its ``str``.

    Examples
    --------
    >>> to_plain({"nll": float("inf"), "spread": (float("nan"), 0.5)})
    {'nll': 'infinity', 'spread': [None, 0.5]}
    """
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isfinite(number):
            return number
        return None if math.isnan(number) else ("infinity" if number > 0 else "-infinity")
    return str(value)


def to_json(content: Any, *, indent: int | None = None) -> str:
    """``content`` as JSON text in ASCII, so that any terminal and any file encoding can hold it."""
    return json.dumps(to_plain(content), indent=indent, allow_nan=False)


def write_json(path: str | os.PathLike[str], content: Any) -> None:
    """Write ``content`` to a file, or nothing."""
    write_atomically(path, (to_json(content, indent=2) + "\n").encode())


def reject_constant(name: str) -> NoReturn:
    """For ``json.loads``, which would read NaN and Infinity."""
    raise ValueError(f"{name} is not a finite number")


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file.

    Raises
    ------
    CorruptFileError
        The file does not exist, is not a regular file of at most 64 MB, not JSON, or nested too deeply.
    """
    source = Path(path)
    try:
        if not source.exists():
            raise CorruptFileError(f"there is no file {source}.")
        if not source.is_file() or source.stat().st_size > _MOST_BYTES:
            raise CorruptFileError(f"{source} is not a regular file of at most {_MOST_BYTES >> 20} MB.")
        return json.loads(source.read_bytes(), parse_constant=reject_constant)
    except RecursionError:
        raise CorruptFileError(f"{source} is nested too deeply to be a file of this library.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, CorruptFileError):
            raise
        raise CorruptFileError(f"{source} is not a JSON file ({error}).") from error
