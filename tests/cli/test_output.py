"""Printed tables: at any width, nothing is cut."""

import pytest
from rich.console import Console

from veridical._tables import Table, columns_that_fit
from veridical.cli.output import Output

HEADING = ["method", "ECE-KDE", "ECE", "KS", "NLL", "Brier", "Acc"]
METHODS = ["DE", "temperature", "log-pool + matrix", "log-pool + truth-logit"]


def numbered_rows(cell):
    """Rows of a comparison in which every cell is different."""
    return [[name, *(cell.format(10 * i + j) for j in range(1, 7))] for i, name in enumerate(METHODS)]


def printed(capsys, *table, width=80, **options):
    output = Output()
    output._console = Console(width=width, highlight=False)
    output.table(Table.of(*table), **options)
    return capsys.readouterr().out


@pytest.mark.parametrize("cell", ["{:02d}.25±1.75*", "{:02d}.25±.75", "{:02d}.5", "infinite{:02d}*"])
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_numbers_are_never_cut(capsys, cell, width):
    rows = numbered_rows(cell)
    text = printed(capsys, HEADING, rows, "A title", width=width)
    words = text.split()
    for column in HEADING:
        assert column in words
    for row in rows:
        for number in row[1:]:
            assert words.count(number) == 1
        for word in row[0].split():
            assert word in words
    assert max(map(len, text.splitlines())) <= width


def test_wide_table_is_printed_in_two_parts(capsys):
    text = printed(capsys, HEADING, numbered_rows("{:02d}.25±1.75*"), "A title")
    assert text.count("A title") == 1
    for name in ("method", *METHODS):  # names are not cut if they fit
        assert sum(line.startswith(f"{name} ") for line in text.splitlines()) == 2
    heads = [line.split() for line in text.splitlines() if line.startswith("method")]
    assert heads == [["method", "ECE-KDE", "ECE", "KS"], ["method", "NLL", "Brier", "Acc"]]


def test_table_that_fits_is_printed_once(capsys):
    text = printed(capsys, HEADING, numbered_rows("{:02d}.25±.75"))
    assert text.count("method") == 1


def test_long_names_and_narrow_screens_lose_nothing(capsys):
    name = "".join(f"{i:03d}" for i in range(60))
    text = printed(capsys, ["source", "figure"], [[name, "86.00±1.25*"]])
    assert name in "".join(line.replace("86.00±1.25*", "").strip() for line in text.splitlines())
    assert "86.00±1.25*" in text
    assert "86.00±1.25*" in printed(capsys, ["source", "figure"], [["a", "86.00±1.25*"]], width=15)


def test_columns_of_words_wrap(capsys):
    text = printed(capsys, ["name", ""], [["temperature", "word " * 40]], of_words=True)
    assert text.split().count("word") == 40
    assert "x" * 50 in printed(capsys, ["name", ""], [["temperature", "x" * 100]], of_words=True)


def test_paths_are_not_broken(capsys):
    path = "/home/somebody/" + "a-long-name-" * 8 + "/report.html"
    Output().text(f"Some words before it, and then: wrote {path} and some more words")
    lines = capsys.readouterr().out.splitlines()
    assert path in lines
    assert all(len(line) <= 80 for line in lines if line != path)


def test_columns_that_fit_makes_parts_of_about_equal_size():
    assert columns_that_fit([10] * 7, 60) == [range(4), range(4, 7)]
    assert columns_that_fit([10] * 5, 20) == [range(2), range(2, 4), range(4, 5)]
    assert columns_that_fit([50, 5], 20) == [range(1), range(1, 2)]
    assert columns_that_fit([], 20) == [range(0)]
