"""Results as tables: in a terminal, in a notebook, and as a pandas DataFrame."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from veridical._extras import require
from veridical._names import CELL, NAME, shortened


def text_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of text, a line per row: names to the left, numbers to the right.

    Examples
    --------
    >>> print(text_table(["method", "ECE"], [["mean", "5.26"], ["temperature", "0.84"]]))
    method        ECE
    mean         5.26
    temperature  0.84
    """
    lines = [shortened_cells(line) for line in (heading, *rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(heading))]
    is_name = [j == 0 or not all(_is_number(row[j]) for row in rows) for j in range(len(heading))]
    padded = [
        [
            cell.ljust(width) if name else cell.rjust(width)
            for cell, width, name in zip(line, widths, is_name, strict=True)
        ]
        for line in lines
    ]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def shortened_cells(row: Sequence[str]) -> list[str]:
    """A row with the middle of very long names left out."""
    return [shortened(cell, CELL if j else NAME) for j, cell in enumerate(row)]


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


def _is_number(cell: str) -> bool:
    """Whether a cell begins as a number does, is empty, or stands for a number that is not known."""
    return not cell or cell.lstrip("+-−.")[:1].isdigit() or cell in ("infinite", "undefined", "–")


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A plain HTML table; every cell is text."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class TableResult:
    """A result that prints as a table.

    A subclass gives :meth:`_heading_and_rows` (text) and, where its numbers have more digits than the text shows,
    :meth:`_records`.
    """

    def _heading_and_rows(self) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        heading: Sequence[str]
        rows: Sequence[Sequence[str]]
        heading, rows = self.rows()  # type: ignore[attr-defined]
        return heading, rows

    def _records(self) -> list[dict[str, Any]]:
        """Column -> value, one dictionary per row."""
        heading, rows = self._heading_and_rows()
        return [dict(zip(heading, row, strict=True)) for row in rows]

    def _caption(self) -> str:
        return ""

    def __str__(self) -> str:
        caption = self._caption()
        return "\n".join([*([caption] if caption else []), text_table(*self._heading_and_rows())])

    def _repr_html_(self) -> str:
        return html_table(*self._heading_and_rows(), caption=self._caption())

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, numbers with all their digits; needs pandas."""
        return require("pandas", "pandas").DataFrame.from_records(self._records())
