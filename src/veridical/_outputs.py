"""Outputs that would destroy something: an input, another output, or a file that is not a report.

Every command and every function that writes asks here before it starts to work.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from veridical._atomic import as_path
from veridical.errors import FileFormatError, ParameterError

_StrPath = str | os.PathLike[str]

_HTML_SUFFIXES = (".html", ".htm")
#: How an HTML page starts, after white space and comments.
_HTML_STARTS = (b"<!doctype html", b"<html")
_LONGEST_START = 4096


def check_outputs(outputs: Mapping[str, _StrPath | None], inputs: Iterable[_StrPath] = ()) -> None:
    """Refuse outputs that are one of the inputs or another output, under any name and through any link.

    Parameters
    ----------
    outputs : mapping of str to path or None
        What to call an output in a message, as in ``"--out"``, and where it is to be written; None where it is not.
    inputs : iterable of paths
        Files and directories that are read.

    Raises
    ------
    ParameterError
        Two of them are the same file.
    """
    paths = {name: as_path(path) for name, path in outputs.items() if path is not None}
    names_of: dict[Any, str] = {}
    for name, path in paths.items():
        other = names_of.setdefault(_identity(path), name)
        if other != name:
            raise ParameterError(f"{other} {paths[other]} and {name} {path} are the same file; give each its own name.")
    for source in inputs:
        name_of_output = names_of.get(_identity(as_path(source)))
        if name_of_output is not None:
            raise ParameterError(
                f"{name_of_output} {paths[name_of_output]} is the same file as the input {source}; choose another name."
            )
        for name, path in paths.items():
            if _is_store(as_path(source)) and _is_within(path, as_path(source)):
                raise ParameterError(f"{name} {path} is a part of the input {source}; choose another name.")


def check_replaced_directory(name: str, path: _StrPath, inputs: Iterable[_StrPath]) -> None:
    """Refuse an output that replaces a whole directory in which an input is."""
    target = as_path(path)
    for source in inputs:
        if target.is_dir() and _is_within(as_path(source), target):
            raise ParameterError(f"{name} {path} is the directory of the input {source}; choose another name.")


def _is_store(path: Path) -> bool:
    """Whether it is a directory that holds Zarr arrays, each of whose files is a part of them."""
    return any((path / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray"))


def _is_within(path: Path, directory: Path) -> bool:
    return Path(os.path.realpath(directory)) in Path(os.path.realpath(path)).parents


def _identity(path: Path) -> Any:
    """Equal for all names of one file: its device and inode, or its name in its directory where it does not exist."""
    resolved = Path(os.path.realpath(path))
    try:
        status = resolved.stat()
    except OSError:
        # The parent of the root is the root, which exists.
        return _identity(resolved.parent), os.path.normcase(resolved.name)
    return status.st_dev, status.st_ino


def check_report_target(path: _StrPath) -> Path:
    """Where a report may be written: under the name of an HTML page, and never over a file that is not one."""
    target = as_path(path)
    if target.suffix.lower() not in _HTML_SUFFIXES:
        raise FileFormatError(f"{target} does not end in .html; a report is written as an HTML page.")
    if target.is_file() and not _is_html(target):
        raise FileFormatError(f"{target} exists and is not an HTML page; choose another name for the report.")
    return target


def _is_html(path: Path) -> bool:
    """Whether a file begins as an HTML page does, or is empty."""
    try:
        with path.open("rb") as file:
            start = file.read(_LONGEST_START)
    except OSError as error:
        raise FileFormatError(f"{path} exists and cannot be read ({error.strerror}); choose another name.") from error
    is_whole = len(start) < _LONGEST_START
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if is_whole and not start:
        return True
    while start.startswith(b"<!--") and b"-->" in start:
        start = start.partition(b"-->")[2].lstrip()
    return start.startswith(_HTML_STARTS)
