"""The directory of a training run: its files, and whether it may be continued.

run.json                         what was asked for: architecture, recipe, seeds, data, versions; the kind, logits
member-000.safetensors           weights of a member
member-000.npy                   its logits (N, L) on the test images
member-000.json                  its seed, accuracy and history; written last, so that it marks a finished member
labels.npy                       labels of the test images
trajectory-000.state.safetensors what the next epoch needs, while a run is under way

``veridical.load`` reads such a directory as predictions: one file per member, labels beside them, kind and class names
in run.json.
"""

from __future__ import annotations

import io
import os
import platform
import re
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._atomic import as_path, storage_errors, write_atomically
from veridical._json import read_json, to_plain, write_json
from veridical._locking import ProcessLock
from veridical._version import versions
from veridical.errors import CorruptFileError, DatasetError, ParameterError
from veridical.training.architectures import ARCHITECTURES
from veridical.training.data.images import MOST_CLASSES

_FORMAT = 1

#: Settings that may differ when a run is continued: a deep ensemble can be given more members.
_MAY_CHANGE = frozenset(("versions", "members", "seeds"))


def describe_machine() -> dict[str, str]:
    """Versions of the software, and the kind of processor, that the numbers depend on."""
    return {**versions("torch"), "machine": platform.machine()}


@dataclass(frozen=True)
class RunDirectory:
    """Paths and small files of one run."""

    path: Path

    @classmethod
    def start(cls, path: str | os.PathLike[str], settings: dict[str, Any]) -> RunDirectory:
        """The directory of a new run, or of one with the same settings that is to be continued."""
        run = cls(as_path(path))
        with storage_errors(run.path):
            run.path.mkdir(parents=True, exist_ok=True)
        settings = to_plain({"format": _FORMAT, "kind": "logits", **settings})
        if run._settings_file.exists():
            run._check_same(settings)
        write_json(run._settings_file, settings)
        return run

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from training in this directory; the lock of a killed process is released."""
        with storage_errors(self.path):
            lock = ProcessLock(self.path / ".lock", f"{self.path} is being trained in")
        with lock:
            self._remove_temporary_files()
            yield

    def _remove_temporary_files(self) -> None:
        """Remove what a killed process was writing: a temporary name is a dot and the name that the file was to get."""
        for path in self.path.glob(".*.*"):
            if path.name.startswith((".run.json.", ".member-", ".trajectory-", ".labels.npy.")):
                path.unlink(missing_ok=True)

    @property
    def _settings_file(self) -> Path:
        return self.path / "run.json"

    def settings(self) -> dict[str, Any]:
        """The content of ``run.json``, checked."""
        settings = self._read_settings()
        for key, is_valid in _SETTINGS.items():
            if not is_valid(settings.get(key)):
                raise CorruptFileError(
                    f"{self._settings_file} has {key} {reprlib.repr(settings.get(key))}, which no training run writes; "
                    "restore the file, or train into another directory."
                )
        return settings

    def _read_settings(self) -> dict[str, Any]:
        if not self._settings_file.is_file():
            raise DatasetError(f"{self.path} has no run.json; give the directory that a run was written to.")
        return _read_object(self._settings_file)

    def _check_same(self, settings: dict[str, Any]) -> None:
        stored = self._read_settings()
        for key in [*settings, *(key for key in stored if key not in settings)]:
            if key not in _MAY_CHANGE and stored.get(key) != settings.get(key):
                name, before, now = _first_difference(key, stored.get(key), settings.get(key))
                raise ParameterError(
                    f"{self.path} holds a run with {name} {reprlib.repr(before)}, not {reprlib.repr(now)}; give "
                    "another directory, or the same settings to continue it."
                )

    def weights(self, member: int) -> Path:
        """The file of a member's weights."""
        return self.path / f"member-{member:03d}.safetensors"

    def logits(self, member: int) -> Path:
        """The file of a member's logits on the test images."""
        return self.path / f"member-{member:03d}.npy"

    def _record(self, member: int) -> Path:
        return self.path / f"member-{member:03d}.json"

    def state(self, trajectory: int) -> Path:
        """The file with what the next epoch of an unfinished trajectory needs."""
        return self.path / f"trajectory-{trajectory:03d}.state.safetensors"

    def finish_member(self, member: int, record: dict[str, Any]) -> None:
        """Mark a member as finished, once its weights and logits are written."""
        write_json(self._record(member), {"member": member, **record, "versions": describe_machine()})

    def is_finished(self, member: int) -> bool:
        """Whether a member's files are complete."""
        return self._record(member).is_file()

    def record(self, member: int) -> dict[str, Any]:
        """A finished member's record, checked."""
        record = _read_object(self._record(member))
        accuracy = record.get("test_accuracy")
        if accuracy is not None and not (_is_number(accuracy) and 0 <= accuracy <= 1):
            raise CorruptFileError(
                f"{self._record(member)} has test_accuracy {reprlib.repr(accuracy)}, which is not a fraction; restore "
                "the file, or remove it and run the training command again."
            )
        return record

    def finished_members(self) -> list[int]:
        """Indices of the finished members."""
        names = (re.fullmatch(r"member-(\d{3,9})\.json", path.name) for path in self.path.glob("member-*.json"))
        return sorted(int(name[1]) for name in names if name)

    def save_test_labels(self, labels: npt.NDArray[np.int64]) -> None:
        """Write the labels that belong to the members' logits."""
        content = io.BytesIO()
        np.save(content, labels, allow_pickle=False)
        write_atomically(self.path / "labels.npy", content.getvalue())


def _read_object(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise CorruptFileError(f"{path} is not a JSON object; restore it, or train into another directory.")
    return content


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= 1e6  # not for NaN


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _is_normalisation(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), list) and len(value[key]) in (1, 3) and all(map(_is_number, value[key]))
        for key in ("mean", "std")
    )


#: What predictions from a run's members depend on: setting -> whether a value may be its.
_SETTINGS: dict[str, Callable[[Any], bool]] = {
    "arch": lambda arch: isinstance(arch, str) and arch in ARCHITECTURES,
    "n_classes": lambda count: _is_count(count, MOST_CLASSES),
    "image_shape": lambda shape: (
        isinstance(shape, list) and len(shape) == 3 and all(_is_count(size, 1 << 16) for size in shape)
    ),
    "normalisation": _is_normalisation,
    "class_names": lambda names: (
        names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names))
    ),
    "dataset": lambda name: name is None or isinstance(name, str),
}


def _first_difference(name: str, before: Any, now: Any) -> tuple[str, Any, Any]:
    """The innermost setting that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*now, *before]:
            if before.get(key) != now.get(key):
                return _first_difference(key, before.get(key), now.get(key))
    return name, before, now
