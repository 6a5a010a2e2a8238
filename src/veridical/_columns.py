"""Tables that are wider than the screen, as several with the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def columns_that_fit(widths: Sequence[int], available: int) -> list[range]:
    """Columns in as few tables as they fit into, about equally many in each.

    A column that is wider than the screen gets a table of its own, and the terminal wraps it.

    Examples
    --------
    >>> columns_that_fit([10, 10, 10], 30)
    [range(0, 3)]
    >>> columns_that_fit([10, 10, 10], 29)
    [range(0, 2), range(2, 3)]
    """
    for n_tables in range(1, len(widths) + 1):
        parts = _equal_parts(len(widths), n_tables)
        if all(sum(widths[j] for j in part) <= available for part in parts):
            return parts
    return _equal_parts(len(widths), max(len(widths), 1))


def _equal_parts(n: int, n_parts: int) -> list[range]:
    """``range(n)`` in pieces whose lengths differ by one at most."""
    ends = [-(-n * i // n_parts) for i in range(n_parts + 1)]
    return [range(first, end) for first, end in pairwise(ends)]
