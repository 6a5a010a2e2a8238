"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from veridical._atomic import atomic_file, storage_errors, write_atomically
from veridical.errors import StorageError, VeridicalError


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "result"
    with atomic_file(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and whole")
    assert path.read_bytes() == b"half and whole"
    assert list(tmp_path.iterdir()) == [path]


def _break_off(path: Path, error: type[BaseException]) -> None:
    with atomic_file(path) as file:
        file.write(b"new")
        raise error


@pytest.mark.parametrize("there_before", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_what_was_there_survives_an_exception(tmp_path: Path, there_before: bool, error: type[BaseException]) -> None:
    path = tmp_path / "result"
    if there_before:
        path.write_bytes(b"old")
    with pytest.raises(error):
        _break_off(path, error)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("result", b"old")] * there_before


def test_files_are_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_atomically(tmp_path / "ours", b"x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


def test_large_content(tmp_path: Path) -> None:
    content = os.urandom(3_000_001)
    write_atomically(tmp_path / "large", content)
    assert (tmp_path / "large").read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk(tmp_path: Path) -> None:
    said = r"there is no room to write .*result \(No space left on device\); free some"
    target = tmp_path / "result"
    with pytest.raises(StorageError, match=said), storage_errors(target), open("/dev/full", "wb", 0) as full:
        full.write(b"x")


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/result cannot be written \(No such file or directory\)") as caught:
        write_atomically(tmp_path / "nowhere" / "result", b"x")
    assert isinstance(caught.value, VeridicalError)
    assert isinstance(caught.value, OSError)


def test_the_innermost_file_is_the_one_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="inner cannot be written"), atomic_file(tmp_path / "outer"):
        write_atomically(tmp_path / "nowhere" / "inner", b"x")
    assert list(tmp_path.iterdir()) == []
