"""Files that are complete or absent."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import veridical as vd
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


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_replaced_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert (path.read_bytes(), _mode(path)) == (b"new", mode)


def test_replaced_directory_keeps_its_modes(tmp_path: Path) -> None:
    store = tmp_path / "store"
    _write_directory(store, b"old")
    store.chmod(0o750)
    (store / "file").chmod(0o600)
    _write_directory(store, b"new")
    assert (_content(store), _mode(store), _mode(store / "file")) == ({"file": b"new"}, 0o750, 0o600)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.chown(path, 1234, 2345)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid, _mode(path)) == (1234, 2345, 0o640)


def test_other_group_may_do_no_more_than_everyone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result"
    path.write_bytes(b"old")
    path.chmod(0o664)
    monkeypatch.setattr("veridical._atomic._give_away", lambda path, owner: False)
    # As if the file belonged to somebody else.
    before = path.lstat()
    foreign = os.stat_result((*before[:5], before.st_gid + 1, *before[6:10]))
    lstat = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda self: foreign if self == path else lstat(self))
    write_atomically(path, b"new")
    monkeypatch.undo()
    assert _mode(path) == 0o644


@pytest.mark.parametrize("exists", [True, False])
def test_links_are_followed(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "data").mkdir()
    link, target = tmp_path / "latest", tmp_path / "data" / "run-7"
    (tmp_path / "middle").symlink_to("data/run-7")
    link.symlink_to("middle")
    for write, read in ((write_atomically, Path.read_bytes), (_write_directory, lambda path: _content(path)["file"])):
        if exists:
            write(target, b"old")
        write(link, b"new")
        assert link.is_symlink()
        assert read(target) == b"new"
        assert sorted(os.listdir(tmp_path)) == ["data", "latest", "middle"]
        assert os.listdir(tmp_path / "data") == ["run-7"]
        target.unlink() if target.is_file() else shutil.rmtree(target)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(StorageError, match="is a link that leads in a circle; remove it"):
        write_atomically(tmp_path / "one", b"x")
    assert (tmp_path / "one").is_symlink()


@pytest.mark.parametrize("suffix", ["npz", "csv", "zarr", "npy"])
def test_links_to_predictions_are_followed(tmp_path: Path, suffix: str) -> None:
    link, target = tmp_path / f"latest.{suffix}", tmp_path / "data" / f"run.{suffix}"
    target.parent.mkdir()
    link.symlink_to(target)
    predictions = vd.Predictions([[[0.5, 0.5], [0.25, 0.75]]])
    for _ in range(2):  # where the link leads nowhere, and where it leads to a result
        vd.save(predictions, link)
        assert link.is_symlink()
        assert vd.load(target).values.tolist() == predictions.values.tolist()
