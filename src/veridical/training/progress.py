"""What a long run shows: a bar with accuracy and time left on a terminal, a line per epoch elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from veridical.training.loop import EpochResult

#: Reading the accuracy waits for the device, so it is read this seldom (seconds).
_REFRESH = 0.5


class RunProgress:
    """Counts batches over all members of a run; does nothing where ``shown`` is False."""

    def __init__(self, shown: bool, total_batches: int) -> None:
        self._console = Console(stderr=True)
        self._lines = shown and not self._console.is_terminal
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[accuracy]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
            disable=not shown or self._lines,
        )
        self._task = self._bar.add_task("starting", total=total_batches, accuracy="")
        self._read_at = 0.0

    def __enter__(self) -> RunProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def epoch(self, description: str) -> None:
        """A new epoch begins."""
        self._bar.update(self._task, description=description)

    def skip(self, batches: int) -> None:
        """Batches that an earlier process has done; they say nothing about the time left."""
        task = self._bar.tasks[0]
        self._bar.update(self._task, total=(task.total or 0) - batches)

    def batch(self, seen: int, right: Tensor) -> None:
        """A batch is done."""
        now = time.monotonic()
        if not self._bar.disable and now - self._read_at > _REFRESH:
            self._read_at = now
            self._bar.update(self._task, accuracy=f"training accuracy {int(right) / seen:.1%}")
        self._bar.advance(self._task)

    def finished_epoch(self, description: str, result: EpochResult, seconds: float) -> None:
        """An epoch is done."""
        if self._lines:
            self._console.print(
                f"{description}: loss {result.loss:.4f}, training accuracy {result.accuracy:.2%}, {seconds:.1f} s",
                highlight=False,
            )

    def finished_member(self, name: str, accuracy: float | None) -> None:
        """A member is written."""
        if not self._bar.disable or self._lines:
            said = "" if accuracy is None else f", test accuracy {accuracy:.2%}"
            self._console.print(f"{name} written{said}", highlight=False)
