"""How long-running functions report what they are doing."""

from __future__ import annotations

from collections.abc import Callable

from veridical.errors import ParameterError, shown

#: Called as ``progress(done, total, what)`` with the number of finished steps, of all steps, and what comes next.
Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, what: str) -> None:
    """Report nothing."""


def check_progress(progress: Progress | None) -> Progress:
    """``progress``, or what reports nothing in place of None."""
    if progress is not None and not callable(progress):
        raise ParameterError(f"progress is {shown(progress)}; give a function that takes (done, total, what).")
    return no_progress if progress is None else progress
