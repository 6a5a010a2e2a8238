"""What tells the content of an input from that of another: sizes, dates, and a hash of samples of every file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veridical.predictions.validation import Array

#: Bytes of a sample of a file, a page; there is one for so many bytes, at least three, and at most so many.
_SAMPLE, _SPACING, _LEAST, _MOST = 4096, 16 << 20, 3, 4096
#: Numbers of an array in memory that are hashed.
_N_NUMBERS = 1 << 16


def identity_of_path(path: Path) -> list[Any]:
    """Name, number of files, bytes, and a hash over a file or all files of a directory, ready for JSON.

    Names, sizes, dates and samples are hashed: a file that is rewritten has another date, and one whose date was set
    back is noticed by its samples.
    """
    digest, n_files, n_bytes = hashlib.sha256(), 0, 0
    for file in _files_in(path):
        digest.update(os.fsencode(os.path.relpath(file, path)))
        try:
            n_bytes += _add_file(digest, file)
        except OSError as error:  # whoever reads it says what is wrong
            digest.update(str(error.errno).encode())
        n_files += 1
    return [str(path.resolve()), n_files, n_bytes, digest.hexdigest()]


def _add_file(digest: Any, file: str) -> int:
    """Add size, date and samples of a file to a hash; its size."""
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(descriptor)
        digest.update(f"\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        for start in _starts(status.st_size):
            os.lseek(descriptor, start, os.SEEK_SET)
            digest.update(os.read(descriptor, _SAMPLE))
    finally:
        os.close(descriptor)
    return status.st_size


def _files_in(path: Path) -> Iterator[str]:
    """The file itself, or all files in a directory, in the order of their names."""
    if not path.is_dir():
        yield str(path)
        return
    for folder, directories, names in os.walk(path):
        directories.sort()
        yield from (os.path.join(folder, name) for name in sorted(names))


def _starts(n_bytes: int) -> list[int]:
    """Where the samples of a file begin: evenly spaced, the first at its start and the last at its end."""
    n_samples = min(max(n_bytes // _SPACING, _LEAST), _MOST)
    if n_bytes <= n_samples * _SAMPLE:
        return list(range(0, n_bytes, _SAMPLE))
    return [k * (n_bytes - _SAMPLE) // (n_samples - 1) for k in range(n_samples)]


def identity_of_array(array: Array) -> list[Any]:
    """Shape, dtype, and a hash of evenly spaced numbers of an array (S, N, L) in memory."""
    n_sources, n_samples, n_classes = array.shape
    step = max(n_samples * n_sources * n_classes // _N_NUMBERS, 1)
    digest = hashlib.sha256(array[:, ::step].tobytes())
    return ["memory", list(array.shape), str(array.dtype), digest.hexdigest()]
