"""One process at a time: the lock of what is written step by step."""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from veridical.errors import StorageError

#: What locks raise where another process has it, and where the file system has none.
_IS_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_HAS_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
#: Windows keeps others from reading what is locked, so this byte is, beyond the record.
_LOCKED_BYTE = 1 << 20


class ProcessLock:
    """A lock file that says which process has it, and goes with that process, however it ends.

    Parameters
    ----------
    path : Path
        The lock file; it is there while the lock is held, or after a kill.
    what : str
        What its holder does, for messages, as in ``"out.npz is being written"``.

    Raises
    ------
    StorageError
        Another process has the lock.
    OSError
        No file can be written there.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path, self._what = path, what
        record = {
            "pid": os.getpid(),
            "host": platform.node(),
            "started": datetime.now().astimezone().isoformat(" ", "seconds"),
            "token": secrets.token_hex(8),
        }
        self._content = json.dumps(record).encode()
        self._file = self._acquire()
        try:
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, self._content)
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def _acquire(self) -> int:
        """The locked file, opened."""
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                self._lock(file)
                if _is_called(file, self.path):  # or its holder removed it before it could be locked here
                    return file
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _lock(self, file: int) -> None:
        try:
            _lock_file(file)
        except OSError as error:
            record = _read_record(file)
            is_held = error.errno in _IS_HELD
            if not is_held and error.errno not in _HAS_NO_LOCKS:
                raise
            if is_held or _may_run(record):
                advice = "" if is_held else f" (if it is gone, remove {self.path})"
                raise StorageError(
                    f"{self._what} by {_name_of(record)}; wait until that has ended{advice}, or choose another name."
                ) from None

    def check(self) -> None:
        """Raise if the lock was taken away: somebody removed the file, and another process may have begun anew.

        Raises
        ------
        StorageError
            The lock file is not that of this process.
        """
        try:
            is_mine = self.path.read_bytes() == self._content
        except OSError:
            is_mine = False
        if not is_mine:
            raise StorageError(f"{self.path}, the lock of this run, was removed; run again when no other is under way.")

    def release(self) -> None:
        """Remove the file; only what this process created."""
        with suppress(StorageError, OSError):
            self.check()
            with suppress(PermissionError):
                self.path.unlink()
        os.close(self._file)
        if sys.platform == "win32":  # which removes no open files, and none that another process has opened by now
            with suppress(OSError):
                self.path.unlink()


def _lock_file(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_called(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _read_record(file: int) -> dict[str, Any]:
    """What the file says about its holder; nothing if it was not written yet, or is damaged."""
    try:
        os.lseek(file, 0, os.SEEK_SET)
        record = json.loads(os.read(file, 1 << 12))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _may_run(record: dict[str, Any]) -> bool:
    """Whether the process of a record may still run; only those of this machine can be looked up."""
    if record.get("host") != platform.node():
        return bool(record)
    try:
        os.kill(int(record["pid"]), 0)
    except PermissionError:
        return True
    except (OSError, LookupError, TypeError, ValueError, OverflowError):
        return False
    return True


def _name_of(record: dict[str, Any]) -> str:
    if not record.keys() >= {"pid", "host", "started"}:
        return "another process"
    return f"process {record['pid']!s:.20} on {record['host']!s:.100}, which began at {record['started']!s:.40}"
