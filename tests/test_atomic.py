"""Files that are complete or absent."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from veridical._atomic import atomic_directory, atomic_file, storage_errors, write_atomically
from veridical.errors import StorageError, VeridicalError


def test_file_appears_when_it_is_complete(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("existed_before", [True, False])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, MemoryError])
def test_previous_file_survives_an_exception(tmp_path: Path, existed_before: bool, error: type[BaseException]) -> None:
    path = tmp_path / "result"
    if existed_before:
        path.write_bytes(b"old")
    with pytest.raises(error):
        _break_off(path, error)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("result", b"old")] * existed_before


def test_file_permissions_are_those_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    write_atomically(tmp_path / "ours", b"x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


def test_large_content_is_written(tmp_path: Path) -> None:
    content = os.urandom(3_000_001)
    write_atomically(tmp_path / "large", content)
    assert (tmp_path / "large").read_bytes() == content


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_full_disk_is_reported(tmp_path: Path) -> None:
    message = r"there is no space to write .*result \(No space left on device\); free some"
    target = tmp_path / "result"
    with pytest.raises(StorageError, match=message), storage_errors(target), open("/dev/full", "wb", 0) as full:
        full.write(b"x")


def test_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere/result cannot be written \(No such file or directory\)") as caught:
        write_atomically(tmp_path / "nowhere" / "result", b"x")
    assert isinstance(caught.value, VeridicalError)
    assert isinstance(caught.value, OSError)


def test_innermost_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="inner cannot be written"), atomic_file(tmp_path / "outer"):
        write_atomically(tmp_path / "nowhere" / "inner", b"x")
    assert list(tmp_path.iterdir()) == []


def _content(directory: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in directory.iterdir()}


def _write_directory(path: Path, content: bytes) -> None:
    with atomic_directory(path) as folder:
        (folder / "file").write_bytes(content)


def test_directory_appears_when_it_is_whole(tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        _write_directory(tmp_path / "store", content)
        assert _content(tmp_path / "store") == {"file": content}
        assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


def test_directory_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    _write_directory(tmp_path / "store", b"first")
    with pytest.raises(TypeError):
        _write_directory(tmp_path / "store", None)  # type: ignore[arg-type]
    assert _content(tmp_path / "store") == {"file": b"first"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


def test_directory_is_replaced_where_names_cannot_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veridical._atomic._exchange", lambda first, second: False)
    for content in (b"first", b"second"):
        _write_directory(tmp_path / "store", content)
        assert _content(tmp_path / "store") == {"file": content}
        assert [entry.name for entry in tmp_path.iterdir()] == ["store"]


@pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged in one step on Linux")
@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_directory_survives_a_kill_after_any_step(tmp_path: Path, n_steps: int) -> None:
    """The process ends after so many calls that rename or remove anything; the store is the old one or the new one."""
    _write_directory(tmp_path / "store", b"first")
    program = textwrap.dedent(
        f"""
        import os, sys
        from pathlib import Path
        from veridical._atomic import atomic_directory
        left = {n_steps}
        def count(event, arguments):
            global left
            if event in ("os.rename", "os.remove", "os.rmdir", "shutil.rmtree"):
                left -= 1
                if left < 0:
                    os._exit(9)
        sys.addaudithook(count)
        with atomic_directory(sys.argv[1]) as folder:
            (folder / "file").write_bytes(b"second")
        """
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "store"], check=False)
    assert _content(tmp_path / "store") in ({"file": b"first"}, {"file": b"second"})
