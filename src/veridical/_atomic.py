"""Files that are complete or absent.

Everything is written under a temporary name in the same directory, flushed to the disk, and renamed; a full disk, a
kill or an exception leaves the previous file unchanged.  A link is followed: what it leads to is replaced.  What
replaces something gets its mode, owner and group.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from veridical.errors import ParameterError, StorageError, shown

#: Error numbers for lack of space: the disk, the user's quota, or the largest allowed file.
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_WRITE_AT_ONCE = 1 << 20
#: Bytes of a file's name, in every usual file system.
_LONGEST_NAME = 255

#: Arguments of Linux's renameat2: names are relative to the current directory; the two names are exchanged.
_HERE, _EXCHANGE = -100, 2


def as_path(path: object) -> Path:
    """A name that a file can have."""
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(f"the path is {shown(path)} ({type(path).__name__}); give a file name.")
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, UnicodeError):
        raise ParameterError(f"the path is {shown(path)}, which no file can be called; give another name.") from None
    if not name or "\0" in name:
        raise ParameterError(f"the path is {name!r}, which is not a file name; give one without NUL characters.")
    longest = max((len(os.fsencode(part)) for part in Path(name).parts), default=0)
    if longest > _LONGEST_NAME:
        raise ParameterError(f"the path has a part of {longest:,} bytes; file names have at most {_LONGEST_NAME}.")
    return Path(name)


@contextmanager
def storage_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the operating system's errors into one sentence: ``path`` cannot be written."""
    try:
        yield
    except StorageError:  # already a sentence, about a file inside
        raise
    except OSError as error:
        raise StorageError(_sentence(Path(path), error)) from error


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write to, which gets the name ``path`` only if the block ends without an exception.

    Raises
    ------
    StorageError
        The file cannot be written: no space, no permission, no such directory.
    """
    temporary: Path | None = None
    with storage_errors(as_path(path)):
        target = end_of_links(as_path(path))
        _check_replaceable(target)
        try:
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            temporary = Path(name)
            with open(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if not target.exists():
                _give_usual_permissions(temporary)
            move_into_place(temporary, target)
            temporary = None
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` to ``path``, or nothing."""
    with atomic_file(path) as file:
        view = memoryview(content)
        for start in range(0, len(view), _WRITE_AT_ONCE):
            file.write(view[start : start + _WRITE_AT_ONCE])


@contextmanager
def atomic_directory(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty directory to fill, which takes the name ``path`` only if the block ends without an exception.

    A directory of that name changes places with it in one step, and is removed afterwards.  Where the file system
    cannot do that (network file systems), it is set aside first: a kill in that moment leaves it in ``.NAME.*/old``.

    Raises
    ------
    StorageError
        The directory cannot be written.
    """
    with storage_errors(as_path(path)):
        target = end_of_links(as_path(path))
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
            fresh = Path(name) / "new"
            fresh.mkdir()
            yield fresh
            move_into_place(fresh, target)


def end_of_links(path: Path) -> Path:
    """What is written where a result is to be called ``path``: where a chain of links ends, whether it exists or not.

    Raises
    ------
    StorageError
        The links lead in a circle.
    """
    if not path.is_symlink():
        return path
    end = Path(os.path.realpath(path))
    if end.is_symlink():
        raise StorageError(f"{path} is a link that leads in a circle; remove it or choose another name.")
    return end


def move_into_place(fresh: Path, target: Path) -> None:
    """Give a file or directory the name ``target``, and mode, owner and group of what had that name.

    A directory of that name is called ``fresh`` afterwards, or "old" beside it; a file is removed.

    Raises
    ------
    OSError
        It cannot be renamed; ``target`` is what it was.
    """
    if target.exists():
        _take_over_access(fresh, target)
    if not target.exists() or fresh.is_file():
        fresh.replace(target)
    elif not _exchange(fresh, target):
        aside = fresh.with_name("old")
        target.rename(aside)
        try:
            fresh.rename(target)
        except BaseException:  # an interrupt, too, leaves the previous directory
            aside.rename(target)
            raise


def _exchange(first: Path, second: Path) -> bool:
    """Let two files or directories change names in one step; whether the operating system can."""
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if exchange is None:
        return False
    if exchange(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):  # an old kernel, or a file system that cannot
        return False
    raise OSError(error, os.strerror(error), str(second))


def _check_replaceable(target: Path) -> None:
    """A rename would put a file in the place of a device or a pipe, such as /dev/null."""
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise StorageError(f"{target} exists and is not a regular file; choose another name.")


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


#: Read once, at import: reading it sets it for a moment, which affects other threads.
_UMASK = _read_umask()


def _give_usual_permissions(path: Path) -> None:
    """Temporary files are private; a result gets the permissions of any other new file."""
    path.chmod(0o666 & ~_UMASK)


def _take_over_access(fresh: Path, previous: Path) -> None:
    """Mode, owner and group of ``previous``, as far as this user may give them; in directories, entry by entry."""
    before, now = previous.lstat(), fresh.lstat()
    if stat.S_IFMT(before.st_mode) != stat.S_IFMT(now.st_mode):
        return
    for entry in fresh.iterdir() if fresh.is_dir() else ():
        if os.path.lexists(previous / entry.name):
            _take_over_access(entry, previous / entry.name)
    mode = stat.S_IMODE(before.st_mode) & ~stat.S_ISUID
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid) and not _give_away(fresh, before):
        mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3  # another group may do what everyone may
    fresh.chmod(mode)


def _give_away(path: Path, owner: os.stat_result) -> bool:
    """Give a file the owner and the group of another; whether it has the group now, which others than root may set."""
    for user in (owner.st_uid, -1):
        with suppress(OSError):
            os.chown(path, user, owner.st_gid)
            return True
    return False


def _sentence(target: Path, error: OSError) -> str:
    if error.errno in _NO_SPACE:
        return f"there is no space to write {target} ({error.strerror}); free some space and try again."
    return f"{target} cannot be written ({error.strerror or error}); check the directory and its permissions."
