"""The one table: columns and rows of cells, and its renderings for terminals, HTML, Markdown and LaTeX."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any

from veridical._lazy import require
from veridical._names import CELL, NAME, printable, shortened

_RULE = "─"
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    **{mark: f"\\{mark}" for mark in "&%$#_"},
}


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes
    ----------
    text : str
    value : float or str, optional
        What readers sort a page by; by default the text.
    spread : str
        Standard deviation, or empty.
    notes : tuple of str
        Smaller lines below, on pages.
    mark : str
        Classes of the style sheet, such as "best".
    """

    text: str = ""
    value: float | str | None = None
    spread: str = ""
    notes: tuple[str, ...] = ()
    mark: str = ""

    @property
    def is_best(self) -> bool:
        """Whether it is the best of its column or group."""
        return "best" in self.mark.split()

    @property
    def full_text(self) -> str:
        """The text with its standard deviation."""
        return f"{self.text} ± {self.spread}" if self.spread else self.text


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes
    ----------
    cells : tuple of Cell
    group : str
        Title of the rows that it stands with; empty in a table without groups.
    is_note : bool
        Whether it is about the row above it, as intervals are.
    data : mapping
        Data attributes of the row on a page.
    """

    cells: tuple[Cell, ...]
    group: str = ""
    is_note: bool = False
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Columns and rows, as text with what it stands for.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of Row
    caption : str
    n_names : int
        How many of the first columns say what a row is about.
    sortable : bool
        Whether readers of a page may sort it.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""
    n_names: int = 1
    sortable: bool = False

    @classmethod
    def of(
        cls, columns: Iterable[str], rows: Iterable[Sequence[Cell | str]], caption: str = "", *, sortable: bool = False
    ) -> Table:
        """A table of rows of cells; text is a cell."""
        cells = (tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows)
        return cls(tuple(columns), tuple(map(Row, cells)), caption, sortable=sortable)

    def texts(self) -> list[list[str]]:
        """The text of all cells, row by row."""
        return [[cell.text for cell in row.cells] for row in self.rows]

    def part(self, columns: Sequence[int]) -> Table:
        """Some of the columns, the first of which names the row; without notes that are empty in the others."""
        rows = (replace(row, cells=tuple(row.cells[j] for j in columns)) for row in self.rows)
        kept = tuple(row for row in rows if not row.is_note or any(cell.text for cell in row.cells[1:]))
        return replace(self, columns=tuple(self.columns[j] for j in columns), rows=kept, n_names=1)

    def groups(self) -> list[tuple[str, list[Row]]]:
        """(title, rows) of each group, in order."""
        return [(title, list(rows)) for title, rows in groupby(self.rows, lambda row: row.group)]

    def are_names(self) -> list[bool]:
        """For each column, whether it holds names or words rather than numbers."""
        return [j == 0 or not all(_is_number(row.cells[j].text) for row in self.rows) for j in range(len(self.columns))]


def _is_number(text: str) -> bool:
    """Whether a text begins as a number does, is empty, or stands for a number that is not known."""
    return not text or text.lstrip("+-−.")[:1].isdigit() or text in ("infinite", "undefined", "–")


def text_table(table: Table, *, star: str = "", width: int = 80) -> str:
    """A table of text, a line per row: names to the left, numbers to the right.

    Parameters
    ----------
    table : Table
    star : str
        Follows the best of each column; other cells end in as many spaces.
    width : int
        Where titles of groups are wrapped.

    Examples
    --------
    >>> print(text_table(Table.of(["method", "ECE"], [["mean", "5.26"], ["temperature", "0.84"]])))
    method        ECE
    mean         5.26
    temperature  0.84
    """
    widths, names = text_widths(table, star), table.are_names()

    def padded(line: Sequence[str]) -> str:
        cells = zip(line, widths, names, strict=True)
        return "  ".join(text.ljust(size) if name else text.rjust(size) for text, size, name in cells).rstrip()

    printed = [padded(shortened_texts(table.columns))]
    for title, rows in table.groups():
        if title:
            *others, last = textwrap.wrap(f"{_RULE * 2} {title}", width, break_on_hyphens=False)
            printed += [*others, f"{last} ".ljust(sum(widths) + 2 * (len(widths) - 1), _RULE).rstrip()]
        printed += [padded(_printed(row, star)) for row in rows]
    return "\n".join(printed)


def text_widths(table: Table, star: str = "") -> list[int]:
    """The width of each column of :func:`text_table`."""
    lines = [shortened_texts(table.columns), *(_printed(row, star) for row in table.rows)]
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _printed(row: Row, star: str) -> list[str]:
    """The texts of a row; a note is indented."""
    first, *cells = row.cells
    numbers = [f"{cell.full_text}{star if cell.is_best else ' ' * len(star)}" for cell in cells]
    return shortened_texts([f"  {first.text}" if row.is_note else first.text, *numbers])


def shortened_texts(row: Sequence[str]) -> list[str]:
    """A row with the middle of very long names left out."""
    return [shortened(text, CELL if j else NAME) for j, text in enumerate(row)]


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


def html_table(table: Table, id: str = "") -> str:
    """A table as HTML; every cell is text."""
    tag = "table" + (f' id="{id}"' if id else "") + (' class="sortable"' if table.sortable else "")
    caption = f"<caption>{_escaped(table.caption)}</caption>" if table.caption else ""
    heads = (
        f'<th scope="col" aria-sort="none"><button type="button">{_escaped(column)}</button></th>'
        if table.sortable
        else f'<th scope="col">{_escaped(column)}</th>'
        for column in table.columns
    )
    parts = [f"<{tag}>{caption}<thead><tr>{''.join(heads)}</tr></thead>"]
    for title, rows in table.groups() or [("", [])]:
        parts.append("<tbody>")
        if title:
            span = len(table.columns)
            parts.append(f'<tr class="group"><th colspan="{span}" scope="rowgroup">{_escaped(title)}</th></tr>')
        parts += [*(_html_row(row, table.sortable) for row in rows), "</tbody>"]
    return "\n".join([*parts, "</table>"])


def _html_row(row: Row, sortable: bool) -> str:
    data = "".join(f' data-{name}="{html.escape(value)}"' for name, value in row.data.items())
    note = ' class="under"' if row.is_note else ""
    cells = (_html_cell(cell, "td" if j else 'th scope="row"', sortable) for j, cell in enumerate(row.cells))
    return f"<tr{note}{data}>{''.join(cells)}</tr>"


def _html_cell(cell: Cell, tag: str, sortable: bool) -> str:
    value = cell.text if cell.value is None else str(cell.value)
    value = f' data-value="{_escaped(value)}"' if sortable else ""
    mark = f' class="{cell.mark}"' if cell.mark else ""
    spread = f'<span class="spread"> ± {cell.spread}</span>' if cell.spread else ""
    notes = "".join(f"<small>{_escaped(note)}</small>" for note in cell.notes)
    return f"<{tag}{value}{mark}>{_escaped(cell.text)}{spread}{notes}</{tag[:2]}>"


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def markdown_table(table: Table) -> str:
    """A Markdown table; the best of each column is bold, names are text."""
    rules = ["---" if name else "---:" for name in table.are_names()]
    lines = [list(table.columns), rules, *([*map(_markdown_cell, row.cells)] for row in table.rows)]
    for line, row in zip(lines[2:], table.rows, strict=True):
        if row.is_note:
            line[table.n_names - 1] = f"*{line[table.n_names - 1]}*"
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.full_text)
    return f"**{text}**" if cell.is_best else text


def escape_markdown(text: str) -> str:
    """Text without Markdown in it."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text).replace("\n", " ")


def latex_table(table: Table, heads: Mapping[str, str]) -> str:
    """A ``tabular`` environment with the rules of booktabs, one before each group; ``heads`` replace columns."""
    alignment = "".join("l" if name else "r" for name in table.are_names())
    titles = [heads.get(column, escape_latex(re.sub(" (?=[↓↑])", "", column))) for column in table.columns]
    lines = [rf"\begin{{tabular}}{{@{{}}{alignment}@{{}}}}", r"  \toprule", _latex_row(titles)]
    for _, rows in table.groups():
        lines.append(r"  \midrule")
        for k, row in enumerate(rows):
            *repeated, name = (escape_latex(cell.text) for cell in row.cells[: table.n_names])
            repeated = repeated if k == 0 else [""] * len(repeated)
            name = rf"\quad\textit{{{name}}}" if row.is_note else name
            lines.append(_latex_row([*repeated, name, *map(_latex_number, row.cells[table.n_names :])]))
    return "\n".join([*lines, r"  \bottomrule", r"\end{tabular}"])


def _latex_row(cells: Sequence[str]) -> str:
    return f"  {' & '.join(cells)} \\\\"


def _latex_number(cell: Cell) -> str:
    text = cell.text
    if " to " in text:
        text = "${}$--${}$".format(*text.split(" to "))
    elif re.match(r"^[-+]?\d", text) and not cell.is_best:  # a minus sign is one only in mathematics
        text = f"${text}$"
    if cell.spread:
        text = f"{cell.text}{{\\scriptsize$\\pm${cell.spread}}}"
    return rf"\textbf{{{text}}}" if cell.is_best else text


def escape_latex(text: str) -> str:
    """Text that TeX prints as it is; which other characters it could set depends on the document."""
    plain = re.sub(r"[^\x20-\x7e↓↑]", "?", text)
    return "".join(_LATEX_SPECIAL.get(mark, mark) for mark in plain)


class TableResult:
    """A result that prints as a table.

    A subclass has :meth:`rows` (heading and rows of text) and, where its numbers have more digits than the text shows,
    :meth:`_records`.
    """

    def as_table(self, caption: str | None = None) -> Table:
        """The result as a table; its caption says what the numbers are."""
        heading, rows = self._heading_and_rows()
        return Table.of(heading, rows, self._caption() if caption is None else caption)

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
        table = self.as_table()
        return "\n".join([*([table.caption] if table.caption else []), text_table(table)])

    def _repr_html_(self) -> str:
        return html_table(self.as_table())

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame, numbers with all their digits; needs pandas."""
        return require("pandas", "pandas").DataFrame.from_records(self._records())
