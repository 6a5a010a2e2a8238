"""Output of commands: text and tables, or JSON, on stdout; progress on stderr."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol

import click
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table as RichTable
from rich.text import Text

from veridical._json import to_json
from veridical._names import one_line, printable
from veridical._progress import Progress
from veridical._tables import Table, columns_that_fit, shortened_texts

#: Width of tables, unless stdout is a terminal with another width.
_WIDTH = 80
#: Least width of the first column, which holds names.
_NAME_WIDTH = 11
#: Spaces between columns.
_GAP = 2


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --json and --quiet; the command takes an :class:`Output` in their place."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else, on stdout.")
    @click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors (and JSON, with --json).")
    @wraps(command)
    def with_output(*, as_json: bool, quiet: bool, **options: Any) -> Any:
        return command(output=Output(as_json, quiet), **options)

    return with_output


class SupportsDict(Protocol):
    """A result that can be written as JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""


class Output:
    """Prints a command's results as --json and --quiet ask."""

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self._console = Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)

    def text(self, text: str) -> None:
        """Print a sentence, unless JSON is asked for; words such as paths are not broken."""
        if not (self.as_json or self.quiet):
            lines = textwrap.wrap(one_line(text), self._console.width, break_long_words=False, break_on_hyphens=False)
            self._console.print(Text("\n".join(lines)), soft_wrap=True)

    def wrote(self, *paths: str | os.PathLike[str] | None) -> None:
        """Print which files were written; None stands for one that was not asked for."""
        for path in paths:
            if path is not None:
                self.text(f"Wrote {path}")

    def lines(self, text: str) -> None:
        """Print lines as they are, unless JSON is asked for."""
        if not (self.as_json or self.quiet):
            print("\n".join(map(printable, text.splitlines())))

    def table(self, table: Table, *, of_words: bool = False) -> None:
        """Print a table, unless JSON is asked for: a column of names and columns of numbers, or of words that wrap.

        Numbers are never cut: if the columns do not fit, the same rows follow with the remaining columns.
        """
        if self.as_json or self.quiet:
            return
        heading, *rows = [
            [printable(text) for text in shortened_texts(texts)] for texts in (table.columns, *table.texts())
        ]
        if table.caption:
            self._console.print(Text(one_line(table.caption), style="table.title"))
        if of_words:
            self._print(_table_of_words(heading, rows))
            return
        widths = [max(cell_len(row[j]) for row in (heading, *rows)) for j in range(len(heading))]
        least = min(max(_NAME_WIDTH, _longest_word([heading[0], *(row[0] for row in rows)])), self._console.width // 2)
        number_widths = [width + _GAP for width in widths[1:]]
        for part in columns_that_fit(number_widths, self._console.width - least):
            available = self._console.width - sum(number_widths[j] for j in part)
            names = max(min(widths[0], available), least)
            columns = [0, *(j + 1 for j in part)]
            self._print(_table_of_numbers([[row[j] for j in columns] for row in (heading, *rows)], names))

    def _print(self, table: RichTable) -> None:
        self._console.print(table, crop=False)
        self._console.print()

    def json(self, result: SupportsDict | Mapping[str, Any], **more: Any) -> None:
        """Print a result, and what the command adds to it, as a JSON document, if it is asked for."""
        if self.as_json:
            content = result if isinstance(result, Mapping) else result.to_dict()
            print(to_json({**content, **more}, indent=2))

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """A function that draws a bar on stderr, if that is a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            # Replaced by the first step; until then imports, and in a first run the compiler, are at work.
            task = bar.add_task("starting (a first run compiles for some seconds)", total=None)
            yield lambda done, total, what: bar.update(task, completed=done, total=total, description=printable(what))


def _empty_table() -> RichTable:
    return RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))


def _table_of_words(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> RichTable:
    """A column of names, and columns of words that wrap."""
    table = _empty_table()
    for j, column in enumerate(heading):
        table.add_column(column, overflow="fold", no_wrap=j == 0, min_width=_NAME_WIDTH if j == 0 else None)
    for row in rows:
        table.add_row(*map(_cell, row))
    return table


def _table_of_numbers(lines: Sequence[Sequence[str]], names: int) -> RichTable:
    """A column of names that wrap at ``names`` characters, and columns of numbers; the first line is the heading."""
    table = _empty_table()
    widths = [names, *(max(cell_len(line[j]) for line in lines) for j in range(1, len(lines[0])))]
    # A fixed width, whatever the screen's: cropped numbers would still look like numbers.
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
