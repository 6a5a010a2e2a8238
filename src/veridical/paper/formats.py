"""The paper's tables as text: for the terminal, Markdown, CSV, LaTeX and JSON."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from veridical._json import to_json
from veridical._tables import (
    Cell,
    Row,
    Table,
    columns_that_fit,
    escape_latex,
    escape_markdown,
    latex_table,
    markdown_table,
    text_table,
    text_widths,
)
from veridical.metrics.registry import METRICS
from veridical.paper.tables import Row as PaperRow
from veridical.paper.tables import Table as PaperTable
from veridical.paper.tables import Value, column_title, decimals
from veridical.predictions.validation import check_choice, check_type

#: The terminal's width, and the space between columns.
_WIDTH, _GAP = 80, 2
_LATEX_HEADS = {
    "ensemble": "Ensemble",
    "sources": "$S$",
    "method": "Method",
    "ECE-KDE ↓": r"ECE\textsuperscript{\emph{KDE}}$\downarrow$",
}


def number(metric: str, value: float | None, *, signed: bool = False) -> str:
    """A figure as the paper prints it: percent for errors and accuracy, and its number of decimals."""
    if value is None:
        return ""
    if not signed or not math.isfinite(value):
        return METRICS[metric].number(value, decimals(metric))
    text = f"{METRICS[metric].scaled(value):+.{decimals(metric)}f}"
    # A difference that is printed as zero has no sign.
    return text.lstrip("+-") if float(text) == 0 else text


def _published(metric: str, value: Value) -> Cell:
    published = value.published
    if published is None:
        return Cell()
    return Cell(number(metric, published.mean), spread=number(metric, published.std))


def _interval(metric: str, value: Value) -> Cell:
    if value.low is None or value.high is None:
        return Cell()
    return Cell(f"{number(metric, value.low)} to {number(metric, value.high)}")


#: The lines below a method's own figures.
_NOTES: dict[str, Callable[[str, Value], Cell]] = {
    "paper": _published,
    "difference": lambda metric, value: Cell(number(metric, value.difference, signed=True)),
    "floor": lambda metric, value: Cell(number(metric, value.floor)),
    "95%": _interval,
}


def as_table(table: PaperTable) -> Table:
    """The numbers as text: the ensemble, the number of sources, the method, and its figures."""
    arrows = {metric: "↓" if METRICS[metric].lower_is_better else "↑" for metric in table.metrics}
    columns = ["ensemble", "sources", "method", *(f"{column_title(m)} {arrow}" for m, arrow in arrows.items())]
    rows = tuple(row for one in table.rows for row in _rows_of(one, table.metrics))
    return Table(tuple(columns), rows, table.title, n_names=3)


def _rows_of(row: PaperRow, metrics: tuple[str, ...]) -> Iterator[Row]:
    """A method's own figures, then the lines below them."""
    group = f"{row.name}, {row.sources} source{'s' * (row.sources != 1)}"
    values = [(metric, row.values[metric]) for metric in metrics]
    own = [Cell(number(m, v.mean), spread=number(m, v.std), mark="best" * v.best) for m, v in values]
    yield Row((Cell(str(row.name)), Cell(str(row.sources)), Cell(row.shown_method), *own), group)
    for label, make_cell in _NOTES.items():
        cells = [make_cell(metric, value) for metric, value in values]
        if any(cell.text for cell in cells):
            yield Row((Cell(), Cell(), Cell(label), *cells), group, is_note=True)


def verdict_table(table: PaperTable) -> Table:
    """The methods that really are better than others, by their paired comparisons."""
    beaten_by: dict[tuple[str, str, str, str], list[str]] = {}
    for pair in table.comparisons:
        if pair.better is not None:
            beaten = pair.b if pair.better == pair.a else pair.a
            key = str(pair.name), str(pair.sources), column_title(pair.metric), pair.better
            beaten_by.setdefault(key, []).append(beaten)
    rows = [[*key, ", ".join(beaten)] for key, beaten in beaten_by.items()]
    n_real = sum(pair.better is not None for pair in table.comparisons)
    caption = f"Real differences: {n_real} of {len(table.comparisons)} pairs"
    return Table.of(["ensemble", "sources", "metric", "method", "is better than"], rows, caption)


def to_terminal(table: PaperTable) -> str:
    """Plain text within 80 columns, a wide table as several; the best of each group has an asterisk."""
    printed = [*_wrapped(table.title), ""]
    for part in _parts(as_table(table)):
        printed += [text_table(part, star="*", width=_WIDTH), ""]
    printed += ["* best of its group"]
    printed += [line for note in table.notes for line in _wrapped(note)]
    verdicts = verdict_table(table)
    if table.comparisons:
        printed += ["", verdicts.caption]
    for ensemble, sources, metric, method, beaten in verdicts.texts():
        printed += _wrapped(f"{ensemble}, {sources} sources, {metric}: {method} is better than {beaten}", indent=2)
    return "\n".join(printed) + "\n"


def _wrapped(text: str, indent: int = 0) -> list[str]:
    """Lines that fit; names with hyphens stay whole."""
    later = " " * (2 * indent)
    return textwrap.wrap(
        text, _WIDTH, initial_indent=" " * indent, subsequent_indent=later, break_on_hyphens=False
    ) or [""]


def _parts(table: Table) -> list[Table]:
    """The tables that a wide one is printed as, with the ensembles as titles of groups."""
    table = replace(table, columns=("", "", "", *table.columns[3:]))
    label, *widths = text_widths(table.part(range(2, len(table.columns))), "*")
    parts = columns_that_fit([_GAP + width for width in widths], _WIDTH - label)
    return [table.part([2, *(j + 3 for j in part)]) for part in parts]


def to_markdown(table: PaperTable) -> str:
    """A Markdown table; the best of each group is bold."""
    printed = [f"**{escape_markdown(table.title)}**", "", markdown_table(as_table(table))]
    printed += [item for note in table.notes for item in ("", note)]
    if table.comparisons:
        verdicts = verdict_table(table)
        printed += ["", f"**{verdicts.caption}**", "", markdown_table(verdicts)]
    return "\n".join(printed) + "\n"


def to_latex(table: PaperTable) -> str:
    """A ``table`` environment; the document needs ``\\usepackage{booktabs}``.

    Characters outside ASCII in file names become question marks: which of them a document can set depends on it.
    """
    lines = [
        r"\begin{table}[ht]",
        r"  \centering",
        rf"  \caption{{{escape_latex(table.title)}. The best of each group is bold.}}",
        rf"  \label{{tab:veridical-{table.name}}}",
        r"  \small",
        textwrap.indent(latex_table(as_table(table), _LATEX_HEADS), "  "),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


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


def to_csv(table: PaperTable) -> str:
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


def table_to_json(table: PaperTable) -> str:
    """Everything, at full precision; an infinite NLL is "infinity"."""
    return to_json(table.to_dict(), indent=1) + "\n"


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "terminal": to_terminal,
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
    "json": table_to_json,
}
#: Format -> the extension of its files.
SUFFIXES = {"terminal": ".txt", "markdown": ".md", "csv": ".csv", "latex": ".tex", "json": ".json"}


def format_table(table: PaperTable, form: str = "terminal") -> str:
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
    check_type(table, PaperTable, "the table", "what veridical.paper.table1 returns")
    return FORMATS[check_choice(form, FORMATS, "format")](table)
