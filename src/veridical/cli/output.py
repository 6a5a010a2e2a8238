"""What every command prints: a table for people or JSON for machines on stdout, progress on stderr."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from veridical._columns import columns_that_fit
from veridical._json import to_json

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Tables are laid out for this width unless a terminal says that it is wider.
_WIDTH = 80
#: The first column holds names: no less than this, or they cannot be read.
_NAME_WIDTH = 11
#: Between columns.
_GAP = 2


def output_options(command: _Command) -> _Command:
    """--json and --quiet."""
    for option in (
        click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors (and JSON, if asked for)."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on stdout."),
    ):
        command = option(command)
    return command


class Output:
    """Where a command's words go."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self._console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)

    def say(self, text: str) -> None:
        """A sentence for people; what has no spaces, such as a path, stays in one piece."""
        if not (self.as_json or self.quiet):
            lines = textwrap.wrap(text, self._console.width, break_long_words=False, break_on_hyphens=False)
            self._console.print(Text("\n".join(lines)), soft_wrap=True)

    def table(
        self, heading: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", *, of_words: bool = False
    ) -> None:
        """A table for people: figures to the right of a name, or words that may wrap; cells are never markup.

        Figures are never cut: where they do not fit beside each other, the same rows follow with the other columns.
        """
        if self.as_json or self.quiet:
            return
        if title:
            self._console.print(Text(title, style="table.title"))
        if of_words:
            self._print(_table_of_words(heading, rows))
            return
        widths = [max(cell_len(row[j]) for row in (heading, *rows)) for j in range(len(heading))]
        least = min(max(_NAME_WIDTH, _longest_word([heading[0], *(row[0] for row in rows)])), self._console.width // 2)
        figures = [width + _GAP for width in widths[1:]]
        for part in columns_that_fit(figures, self._console.width - least):
            room = self._console.width - sum(figures[j] for j in part)
            names = max(min(widths[0], room), least)
            columns = [0, *(j + 1 for j in part)]
            self._print(_table_of_figures([[row[j] for j in columns] for row in (heading, *rows)], names))

    def _print(self, table: Table) -> None:
        self._console.print(table, crop=False)
        self._console.print()

    def result(self, content: dict[str, Any]) -> None:
        """The JSON document, if that was asked for."""
        if self.as_json:
            click.echo(to_json(content, indent=2))

    @contextmanager
    def progress(self) -> Iterator[Callable[[int, int, str], None] | None]:
        """A bar on stderr while something runs; nothing where no terminal is there to draw on."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


def _empty_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))


def _table_of_words(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Whole names, and words that wrap beside them."""
    table = _empty_table()
    for j, column in enumerate(heading):
        table.add_column(column, overflow="fold", no_wrap=j == 0, min_width=_NAME_WIDTH if j == 0 else None)
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _table_of_figures(lines: Sequence[Sequence[str]], names: int) -> Table:
    """Figures to the right of names, which wrap at ``names`` characters; the first line is the heading."""
    table = _empty_table()
    widths = [names, *(max(cell_len(line[j]) for line in lines) for j in range(1, len(lines[0])))]
    # Of a given width, whatever the screen's: figures that are cropped would still look like figures.
    table.width = sum(widths) + _GAP * (len(widths) - 1)
    for j, (column, width) in enumerate(zip(lines[0], widths, strict=True)):
        table.add_column(column, justify="right" if j else "left", no_wrap=j > 0, overflow="fold", width=width)
    for row in lines[1:]:
        table.add_row(*map(_cell, row))
    return table


def _cell(text: str) -> Text:
    return Text(text, style="bold" if text.endswith("*") else "")


def _longest_word(names: Sequence[str]) -> int:
    return max((cell_len(word) for name in names for word in name.split()), default=0)
