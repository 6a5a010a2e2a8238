"""Tables in LaTeX, as the paper sets them: booktabs rules, the best in bold."""

from __future__ import annotations

import re

from veridical.paper.layout import Cell, headings, lines_of
from veridical.paper.tables import Table

_SPECIAL = {
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
_ARROWS = {"↓": r"$\downarrow$", "↑": r"$\uparrow$"}


def to_latex(table: Table) -> str:
    """A ``table`` environment; the document needs ``\\usepackage{booktabs}``.

    Characters outside ASCII in file names become question marks: which of them a document can set depends on it.
    """
    heads = [f"{_title(title)}{_ARROWS[arrow]}" for title, arrow in headings(table)]
    lines = [
        r"\begin{table}[ht]",
        r"  \centering",
        rf"  \caption{{{escaped(table.title)}. The best of each group is bold.}}",
        rf"  \label{{tab:veridical-{table.name}}}",
        r"  \small",
        rf"  \begin{{tabular}}{{@{{}}lrl{'r' * len(heads)}@{{}}}}",
        r"    \toprule",
        _row(["Ensemble", "$S$", "Method", *heads]),
    ]
    for group in table.groups():
        lines.append(r"    \midrule")
        for k, row in enumerate(group):
            for line in lines_of(table, row):
                first = line.is_main and k == 0
                where = [escaped(str(row.name)), str(row.sources)] if first else ["", ""]
                label = escaped(line.label) if line.is_main else rf"\quad\textit{{{escaped(line.label)}}}"
                lines.append(_row([*where, label, *(_cell(cell) for cell in line.cells)]))
    lines += [r"    \bottomrule", r"  \end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _cell(cell: Cell) -> str:
    # A minus sign is one only in mathematics.
    text = f"${cell.text}$" if re.match(r"^[-+]?\d", cell.text) and not cell.best else cell.text
    if " to " in cell.text:
        low, high = cell.text.split(" to ")
        text = f"${low}$--${high}$"
    if cell.spread:
        text = f"{cell.text}{{\\scriptsize$\\pm${cell.spread}}}"
    return rf"\textbf{{{text}}}" if cell.best else text


def _title(title: str) -> str:
    return r"ECE\textsuperscript{\emph{KDE}}" if title == "ECE-KDE" else escaped(title)


def escaped(text: str) -> str:
    """Text that TeX prints as it is."""
    plain = re.sub(r"[^\x20-\x7e]", "?", text)
    return "".join(_SPECIAL.get(mark, mark) for mark in plain)
