"""What every command prints: a table for people or JSON for machines on stdout, progress on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Tables are laid out for this width unless a terminal says that it is wider.
_WIDTH = 80
#: The first column holds names: no less than this, or they cannot be read.
_NAME_WIDTH = 11


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
        """A line for people."""
        if not (self.as_json or self.quiet):
            self._console.print(Text(text))

    def table(
        self, heading: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", *, of_words: bool = False
    ) -> None:
        """A table for people: figures to the right of a name, or words that may wrap; cells are never markup."""
        if self.as_json or self.quiet:
            return
        table = Table(
            title=title or None,
            title_justify="left",
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 0, 0, 1),
        )
        for j, column in enumerate(heading):
            is_figure = j > 0 and not of_words
            table.add_column(
                column,
                justify="right" if is_figure else "left",
                no_wrap=is_figure or (of_words and j == 0),
                min_width=_NAME_WIDTH if j == 0 else None,
            )
        for row in rows:
            table.add_row(*(Text(cell, style="bold" if cell.endswith("*") else "") for cell in row))
        self._console.print(table)
        self._console.print()

    def result(self, content: dict[str, Any]) -> None:
        """The JSON document, if that was asked for."""
        if self.as_json:
            click.echo(json.dumps(_without_nan(content), indent=2, ensure_ascii=False, allow_nan=False))

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


def _without_nan(value: Any) -> Any:
    """JSON has no NaN or infinity: what is undefined is null, and infinity says so in words."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("infinity" if value > 0 else "-infinity")
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(entry) for entry in value]
    return value
