"""Tables as text: for the terminal, Markdown, CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from veridical._json import to_json
from veridical._tables import columns_that_fit
from veridical.paper.layout import Cell, Line, headings, lines_of, verdict_title, verdicts
from veridical.paper.tables import Row, Table, Value
from veridical.predictions.validation import check_choice, check_type

_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{mark: f"\\{mark}" for mark in "&%$#_"},
}
_LATEX_ARROWS = {"↓": r"$\downarrow$", "↑": r"$\uparrow$"}

_RULE = "─"
#: The terminal's width, and what is left free between columns.
_WIDTH, _GAP = 80, 2


def to_terminal(table: Table) -> str:
    """Plain text within 80 columns, a wide table as several; the best of each group has an asterisk."""
    printed = [*_wrapped(table.title), ""]
    for part in _parts(table):
        printed += [*_terminal_lines(table, part), ""]
    printed += ["* best of its group"]
    printed += [line for note in table.notes for line in _wrapped(note)]
    if table.comparisons:
        printed += ["", verdict_title(table)]
    for verdict in verdicts(table):
        beaten = ", ".join(verdict.beats)
        where = f"{verdict.ensemble}, {verdict.sources} sources, {verdict.metric}"
        printed += _wrapped(f"{where}: {verdict.method} is better than {beaten}", indent=2)
    return "\n".join(printed) + "\n"


def _wrapped(text: str, indent: int = 0) -> list[str]:
    """Lines that fit; names with hyphens stay whole."""
    later = " " * (2 * indent)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=" " * indent, subsequent_indent=later, break_on_hyphens=False
    ) or [""]


def _parts(table: Table) -> list[range]:
    """The columns of each of the tables that this one is printed as."""
    lines = [line for row in table.rows for line in lines_of(table, row)]
    widths = [_GAP + width for width in _widths(_heads(table), lines)]
    return columns_that_fit(widths, _WIDTH - _label_width(lines))


def _terminal_lines(table: Table, part: range) -> Iterator[str]:
    """Heading and groups of rows, with some of the columns; lines that are empty in these are left out."""
    blocks = [
        (_group_title(group[0]), [line for row in group for line in _lines_in(table, row, part)])
        for group in table.groups()
    ]
    lines = [line for _, block in blocks for line in block]
    heads = [_heads(table)[j] for j in part]
    first, widths = _label_width(lines), _widths(heads, lines)
    yield " " * first + "".join(f"{'':{_GAP}}{head:>{size}}" for head, size in zip(heads, widths, strict=True))
    for title, block in blocks:
        *others, last = _wrapped(f"{_RULE * 2} {title}")
        yield from others
        yield f"{last} ".ljust(first + sum(widths) + _GAP * len(widths), _RULE)[:_WIDTH]
        for line in block:
            cells = "".join(f"{'':{_GAP}}{_plain(cell):>{size}}" for cell, size in zip(line.cells, widths, strict=True))
            yield f"{_label(line):<{first}}{cells}".rstrip()


def _lines_in(table: Table, row: Row, part: range) -> Iterator[Line]:
    for line in lines_of(table, row):
        cells = tuple(line.cells[j] for j in part)
        if line.is_main or any(cell.text for cell in cells):
            yield replace(line, cells=cells)


def _heads(table: Table) -> list[str]:
    return [f"{title} {arrow}" for title, arrow in headings(table)]


def _widths(heads: Sequence[str], lines: Sequence[Line]) -> list[int]:
    return [max([len(head), *(len(_plain(line.cells[j])) for line in lines)]) for j, head in enumerate(heads)]


def _label(line: Line) -> str:
    return line.label if line.is_main else f"  {line.label}"


def _label_width(lines: Sequence[Line]) -> int:
    return max((len(_label(line)) for line in lines), default=0)


def _group_title(row: Row) -> str:
    return f"{row.name}, {row.sources} source{'s' * (row.sources != 1)}"


def _plain(cell: Cell) -> str:
    spread = f" ± {cell.spread}" if cell.spread else ""
    # Numbers stay aligned whether or not they are starred.
    return f"{cell.text}{spread}{'*' if cell.best else ' '}" if cell.text else " "


def to_markdown(table: Table) -> str:
    """A Markdown table; the best of each group is bold."""
    heads = ["ensemble", "sources", "method", *(f"{title} {arrow}" for title, arrow in headings(table))]
    printed = [f"**{_escape_markdown(table.title)}**", "", _markdown_row(heads)]
    printed.append(_markdown_row(["---", "---:", "---", *("---:" for _ in table.metrics)]))
    for row in table.rows:
        for line in lines_of(table, row):
            where = [_escape_markdown(str(row.name)), str(row.sources)] if line.is_main else ["", ""]
            label = _escape_markdown(line.label) if line.is_main else f"*{line.label}*"
            printed.append(_markdown_row([*where, label, *(_markdown_cell(cell) for cell in line.cells)]))
    printed += [item for note in table.notes for item in ("", note)]
    if table.comparisons:
        printed += ["", f"**{verdict_title(table)}**", ""]
        printed.append(_markdown_row(["ensemble", "sources", "metric", "method", "is better than"]))
        printed.append("| --- | ---: | --- | --- | --- |")
        printed += [
            _markdown_row(
                [
                    _escape_markdown(item.ensemble),
                    str(item.sources),
                    item.metric,
                    _escape_markdown(item.method),
                    ", ".join(item.beats),
                ]
            )
            for item in verdicts(table)
        ]
    return "\n".join(printed) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = f"{cell.text} ± {cell.spread}" if cell.spread else cell.text
    return f"**{text}**" if cell.best else text


def _escape_markdown(text: str) -> str:
    """Names of files without Markdown in them."""
    for mark in "\\`*_|<>[]":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")


def to_latex(table: Table) -> str:
    """A ``table`` environment; the document needs ``\\usepackage{booktabs}``.

    Characters outside ASCII in file names become question marks: which of them a document can set depends on it.
    """
    heads = [f"{_latex_title(title)}{_LATEX_ARROWS[arrow]}" for title, arrow in headings(table)]
    lines = [
        r"\begin{table}[ht]",
        r"  \centering",
        rf"  \caption{{{escape_latex(table.title)}. The best of each group is bold.}}",
        rf"  \label{{tab:veridical-{table.name}}}",
        r"  \small",
        rf"  \begin{{tabular}}{{@{{}}lrl{'r' * len(heads)}@{{}}}}",
        r"    \toprule",
        _latex_row(["Ensemble", "$S$", "Method", *heads]),
    ]
    for group in table.groups():
        lines.append(r"    \midrule")
        for k, row in enumerate(group):
            for line in lines_of(table, row):
                first = line.is_main and k == 0
                where = [escape_latex(str(row.name)), str(row.sources)] if first else ["", ""]
                label = escape_latex(line.label) if line.is_main else rf"\quad\textit{{{escape_latex(line.label)}}}"
                lines.append(_latex_row([*where, label, *(_latex_cell(cell) for cell in line.cells)]))
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _latex_row(cells: list[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _latex_cell(cell: Cell) -> str:
    # A minus sign is one only in mathematics.
    text = f"${cell.text}$" if re.match(r"^[-+]?\d", cell.text) and not cell.best else cell.text
    if " to " in cell.text:
        low, high = cell.text.split(" to ")
        text = f"${low}$--${high}$"
    if cell.spread:
        text = f"{cell.text}{{\\scriptsize$\\pm${cell.spread}}}"
    return rf"\textbf{{{text}}}" if cell.best else text


def _latex_title(title: str) -> str:
    return r"ECE\textsuperscript{\emph{KDE}}" if title == "ECE-KDE" else escape_latex(title)


def escape_latex(text: str) -> str:
    """Text that TeX prints as it is."""
    plain = re.sub(r"[^\x20-\x7e]", "?", text)
    return "".join(_LATEX_SPECIAL.get(mark, mark) for mark in plain)


#: Suffix of a column -> its content.
_CSV_COLUMNS: dict[str, Callable[[Value], Any]] = {
    "": lambda value: value.mean,
    "_std": lambda value: value.std,
    "_best": lambda value: value.best,
    "_paper": lambda value: value.published and value.published.mean,
    "_paper_std": lambda value: value.published and value.published.std,
    "_difference": lambda value: value.difference,
    "_floor": lambda value: value.floor,
    "_low": lambda value: value.low,
    "_high": lambda value: value.high,
}


def to_csv(table: Table) -> str:
    """One line per row at full precision; columns that would be empty throughout are left out."""
    columns: dict[str, list[Any]] = {}
    for metric in table.metrics:
        for suffix, read in _CSV_COLUMNS.items():
            values = [read(row.values[metric]) for row in table.rows]
            if any(value is not None for value in values):
                columns[metric + suffix] = values
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["dataset", "architecture", "ensemble", "sources", "method", *columns])
    for j, row in enumerate(table.rows):
        name = row.name
        cells = ["" if values[j] is None else values[j] for values in columns.values()]
        writer.writerow([name.dataset, name.architecture, name.ensemble, row.sources, row.shown_method, *cells])
    return text.getvalue()


def table_to_json(table: Table) -> str:
    """Everything, at full precision; an infinite NLL is "infinity"."""
    return to_json(table.to_dict(), indent=1) + "\n"


FORMATS: dict[str, Callable[[Table], str]] = {
    "terminal": to_terminal,
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "json": table_to_json,
}
#: What a file of each format is called.
SUFFIXES = {"terminal": ".txt", "markdown": ".md", "csv": ".csv", "latex": ".tex", "json": ".json"}


def format_table(table: Table, form: str = "terminal") -> str:
    """A table as text.

    Parameters
    ----------
    table : Table
    form : {"terminal", "markdown", "csv", "latex", "json"}

    Returns
    -------
    str

    Examples
    --------
    >>> from veridical import paper
    >>> table = paper.table1(paper.open_ensembles(), sources=[20])
    >>> print(paper.format_table(table, "csv").splitlines()[1][:22])
    CIFAR10,ResNet8,deep,2
    """
    check_type(table, Table, "the table", "what veridical.paper.table1 returns")
    return FORMATS[check_choice(form, FORMATS, "format")](table)
