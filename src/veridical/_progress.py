"""How long-running functions report what they are doing."""

from __future__ import annotations

from collections.abc import Callable

#: Called as ``progress(done, total, what)`` with the number of finished steps, of all steps, and what comes next.
Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, what: str) -> None:
    """Report nothing."""
