"""Work that is done stays done: finished parts of a long run, kept on disk until the run is complete."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from veridical._atomic import storage_errors, write_atomically
from veridical._version import __version__

_FOLDER = ".unfinished"


class FinishedParts:
    """The results of a run's steps, under names that change with everything that decides them.

    Parameters
    ----------
    directory : path
        Where the run writes to; the parts lie in a folder of it.
    circumstances : mapping
        What all steps depend on, ready for JSON: data, options.  A part that was made under others is not found.
    """

    def __init__(self, directory: Path, circumstances: Mapping[str, Any]) -> None:
        self._folder = directory / _FOLDER
        self._circumstances = {"version": __version__, **circumstances}

    def get(self, step: Sequence[Any], compute: Callable[[], Any]) -> Any:
        """What ``compute`` returns, ready for JSON; from disk where an earlier run came this far."""
        path = self._path(step)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not there, or not ours
            pass
        result = compute()
        with storage_errors(path):
            self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(result).encode())
        # What is stored is what is used, so that a continued run cannot differ from an unbroken one.
        return json.loads(json.dumps(result))

    def has(self, step: Sequence[Any]) -> bool:
        """Whether an earlier run finished this step."""
        return self._path(step).is_file()

    def discard(self) -> None:
        """The run is complete: nothing is left to continue."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, step: Sequence[Any]) -> Path:
        said = json.dumps([self._circumstances, list(step)], sort_keys=True, default=str)
        return self._folder / f"{hashlib.sha256(said.encode()).hexdigest()[:32]}.json"


def identity_of(path: str | Path) -> list[Any]:
    """A file or directory and what it was like: a changed one is another."""
    where = Path(path)
    if where.is_dir():
        return [str(where), *(identity_of(inner) for inner in sorted(where.iterdir()))]
    try:
        facts = where.stat()
    except OSError:  # a pattern such as member_*.npy
        return [str(where), *(identity_of(inner) for inner in sorted(where.parent.glob(where.name)))]
    return [str(where.resolve()), facts.st_size, facts.st_mtime_ns]
