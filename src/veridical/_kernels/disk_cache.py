"""Compiled kernels on disk: a copy that cannot be read or written is as good as none.

Numba's own cache raises what the disk or a damaged file raises, and would run damaged machine code.  Here every file
begins with a checksum, a damaged file is compiled again and replaced, and where nothing can be written kernels are
compiled in memory.  The user is told once per process.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from veridical.errors import KernelCacheWarning

_MARK_BYTES = _CHECKSUM_BYTES = 16


def _fingerprint() -> str:
    """Hash of every kernel's source."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


#: Numba stamps a cached kernel with its own file's date only, so a change in a kernel it inlines would go unnoticed.
#: The stamp is replaced by a hash over all kernels.
_SOURCES = _fingerprint()

_already_warned = False


def disk_cache(function: Callable[..., Any]) -> Any:
    """Where the compiled versions of ``function`` are kept: the first directory that can be written, or nowhere."""
    try:
        return _KernelCache(function)
    except (RuntimeError, OSError):  # no directory can be used, or it has just disappeared
        return _NoCache()


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, which fails by being empty."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, _SOURCES)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # what damaged content raises depends on where the damage is
            _warn_once(f"compiled kernels in {self.cache_path} cannot be read ({error}); they are compiled again.")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once(_cannot_be_stored(f"in {self.cache_path} ({error.strerror or error})"))


class _NoCache(NullCache):  # type: ignore[misc]
    """Stands where no directory for a cache can be used; says so when a kernel is compiled."""

    def save_overload(self, sig: Any, cres: Any) -> None:
        _warn_once(_cannot_be_stored("on disk"))


def _cannot_be_stored(where: str) -> str:
    return (
        f"compiled kernels cannot be stored {where}, so they are compiled in each process; set NUMBA_CACHE_DIR to a "
        "directory that can be written."
    )


def _warn_once(sentence: str) -> None:
    global _already_warned
    if not _already_warned:
        _already_warned = True
        warnings.warn(KernelCacheWarning(sentence), stacklevel=2)


class _DamagedFileError(Exception):
    """A file of the cache is not as it was written."""


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and data files, each after a mark of what wrote it and a checksum.

    A data file holds its key, too: two processes that compile different versions of a function at the same time choose
    the same name.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: str) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._mark = hashlib.sha256(f"{self._version} {source_stamp}".encode()).digest()[:_MARK_BYTES]

    def load(self, key: Any) -> Any:
        name = self._load_index().get(key)
        content = None if name is None else self._read(self._data_path(name))
        return content[1] if content is not None and content[0] == key else None

    def save(self, key: Any, data: Any) -> None:
        try:
            names = self._load_index()
        except (_DamagedFileError, OSError):
            names = {}
        if key not in names:
            taken = set(names.values())
            names[key] = next(name for name in map(self._data_name, itertools.count(1)) if name not in taken)
            self._save_index(names)
        self._write(self._data_path(names[key]), (key, data))

    def _load_index(self) -> dict[Any, str]:
        return self._read(self._index_path) or {}

    def _save_index(self, names: dict[Any, str]) -> None:
        self._write(self._index_path, names)

    def _write(self, path: str, content: Any) -> None:
        pickled = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(self._mark + _checksum(pickled) + pickled)

    def _read(self, path: str) -> Any:
        """The content of a file, or None where it does not exist or other sources or another Numba wrote it."""
        try:
            with open(path, "rb") as file:
                mark, checksum, pickled = file.read(_MARK_BYTES), file.read(_CHECKSUM_BYTES), file.read()
        except FileNotFoundError:
            return None
        if mark != self._mark:
            return None
        if checksum != _checksum(pickled):
            raise _DamagedFileError(f"{Path(path).name} is damaged")
        return pickle.loads(pickled)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).digest()
