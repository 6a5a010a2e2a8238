"""A run's directory: what is in it, under which names, and whether it may be continued.

run.json                         what was asked for: architecture, recipe, seeds, data, versions; what predictions are
member-000.safetensors           weights of a member
member-000.npy                   its logits (N, L) on the test images
member-000.json                  its seed, accuracy and history; written last, so that it marks the member as whole
labels.npy                       labels of the test images
trajectory-000.state.safetensors what the next epoch needs, while a run is under way

``veridical.load`` reads such a directory: one file per member, labels beside them, kind and class names in run.json.
"""

from __future__ import annotations

import io
import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._atomic import storage_errors, write_atomically
from veridical._version import __version__
from veridical.errors import CorruptFileError, DatasetError, ParameterError

_FORMAT = 1

#: Settings that may differ when a run is continued: a deep ensemble can be given more members, and the kind, always the
#: same, is not said by older runs.
_MAY_CHANGE = frozenset(("versions", "members", "seeds", "kind"))

_LABELS = "labels.npy"
#: What the labels were called before; ``veridical.load`` does not know this name.
_OLDER_LABELS = "test-labels.npy"


def versions() -> dict[str, str]:
    """Of everything that the numbers depend on."""
    import torch

    return {
        "veridical": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


@dataclass(frozen=True)
class RunDirectory:
    """Paths and small files of one run."""

    path: Path

    @classmethod
    def start(cls, path: str | os.PathLike[str], settings: dict[str, Any]) -> RunDirectory:
        """The directory of a new run, or of one with the same settings that is to be continued."""
        run = cls(Path(path))
        with storage_errors(run.path):
            run.path.mkdir(parents=True, exist_ok=True)
        described = {"format": _FORMAT, "kind": "logits", **settings}
        if run._settings_file.exists():
            run._check_same(described)
        run._write_json(run._settings_file, described)
        return run

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from training in this directory; a killed one holds nothing back."""
        if sys.platform == "win32":  # where directories cannot be locked
            yield
            return
        import fcntl

        with storage_errors(self.path):
            handle = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):  # network file systems without locks
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise ParameterError(
                        f"another process is training in {self.path}; wait for it, or give another directory."
                    ) from None
            self._sweep()
            yield
        finally:
            os.close(handle)

    def _sweep(self) -> None:
        """Remove what a killed process was writing; its names begin with a dot and the name it was to get."""
        for path in self.path.glob(".*.*"):
            if path.name.startswith((".run.json.", ".member-", ".trajectory-", f".{_LABELS}.", f".{_OLDER_LABELS}.")):
                path.unlink(missing_ok=True)

    @property
    def _settings_file(self) -> Path:
        return self.path / "run.json"

    def settings(self) -> dict[str, Any]:
        """What ``run.json`` says."""
        if not self._settings_file.is_file():
            raise DatasetError(f"{self.path} holds no run.json; give the directory that a run was written to.")
        return self._read_json(self._settings_file)

    def _check_same(self, described: dict[str, Any]) -> None:
        # Through JSON and back, so that tuples and lists compare equal.
        stored, wanted = self.settings(), json.loads(json.dumps(described))
        for key in [*wanted, *(key for key in stored if key not in wanted)]:
            if key not in _MAY_CHANGE and stored.get(key) != wanted.get(key):
                name, before, now = _first_difference(key, stored.get(key), wanted.get(key))
                raise ParameterError(
                    f"{self.path} holds a run with {name} {before!r}, and {now!r} is asked for; give another "
                    "directory, or the same settings to continue it."
                )

    def weights(self, member: int) -> Path:
        """Where a member's weights are."""
        return self.path / f"member-{member:03d}.safetensors"

    def logits(self, member: int) -> Path:
        """Where a member's predictions on the test images are."""
        return self.path / f"member-{member:03d}.npy"

    def _record(self, member: int) -> Path:
        return self.path / f"member-{member:03d}.json"

    def state(self, trajectory: int) -> Path:
        """Where a run under way keeps what its next epoch needs."""
        return self.path / f"trajectory-{trajectory:03d}.state.safetensors"

    def finish_member(self, member: int, record: dict[str, Any]) -> None:
        """Mark a member as whole: its weights and predictions are there."""
        self._write_json(self._record(member), {"member": member, **record, "versions": versions()})

    def is_finished(self, member: int) -> bool:
        """Whether a member is whole."""
        return self._record(member).is_file()

    def record(self, member: int) -> dict[str, Any]:
        """What was noted about a member."""
        return self._read_json(self._record(member))

    def finished_members(self) -> list[int]:
        """Indices of the members that are whole."""
        return sorted(int(path.stem.partition("-")[2]) for path in self.path.glob("member-*.json"))

    def save_test_labels(self, labels: npt.NDArray[np.int64]) -> None:
        """Write the labels that belong to the members' predictions, in place of an older run's."""
        content = io.BytesIO()
        np.save(content, labels, allow_pickle=False)
        write_atomically(self.path / _LABELS, content.getvalue())
        (self.path / _OLDER_LABELS).unlink(missing_ok=True)

    def test_labels(self) -> npt.NDArray[np.int64]:
        """The labels that belong to the members' predictions."""
        older = self.path / _OLDER_LABELS
        return self.load_array(older if older.is_file() else self.path / _LABELS)

    @staticmethod
    def load_array(path: Path) -> npt.NDArray[Any]:
        """Map an array of the run."""
        try:
            array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise CorruptFileError(
                f"{path} cannot be read ({error}); remove its member's files and run again."
            ) from error
        return array

    @staticmethod
    def _write_json(path: Path, content: dict[str, Any]) -> None:
        write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())

    @staticmethod
    def _read_json(path: Path) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise CorruptFileError(f"{path} is no JSON ({error}); remove it and run again.") from error
        return content


def _first_difference(name: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """The innermost setting that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*now, *before]:
            if before.get(key) != now.get(key):
                return _first_difference(key, before.get(key), now.get(key))
    return name, before, now
