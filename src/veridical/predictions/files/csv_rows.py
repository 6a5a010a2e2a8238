"""The rows of a CSV table, checked one by one."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veridical.errors import CorruptFileError
from veridical.predictions.files.file_checks import wrong_content


@contextmanager
def open_csv(path: Path) -> Iterator[tuple[list[str], Iterator[tuple[int, list[str]]]]]:
    """The column names of a table in UTF-8, and an iterator over (line number, row); empty lines are passed over.

    Errors in reading become a CorruptFileError that says in which line.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            names = [name.strip() for name in next(lines, [])]

            def rows() -> Iterator[tuple[int, list[str]]]:
                for row in lines:
                    if len(row) == len(names):
                        yield lines.line_num, row
                    elif row:
                        raise CorruptFileError(
                            f"line {lines.line_num} of {path} has {len(row)} entries, and there are {len(names)} "
                            "columns; it may be truncated: write it again."
                        )

            yield names, rows()
    except (UnicodeDecodeError, csv.Error) as error:
        raise wrong_content(path, f"a .csv table in UTF-8 ({str(error)[:100]})") from error
