"""Numbers, tables and figures of the pages are those that their scripts compute."""

import importlib.util
import json
import re
import sys

import pytest
from page_blocks import DOCS, PAGES
from PIL import Image

pytestmark = pytest.mark.compiled

SPEC = importlib.util.spec_from_file_location("docs_figures_make", DOCS / "figures" / "make.py")
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)

#: Largest difference of a number that different processors may cause; the pages print fewer digits.
TOLERANCE = 2e-3


@pytest.fixture(autouse=True)
def path_of_scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(make.HERE))
    yield
    for name in (*make.NAMES, "example_data", "simplex_drawing"):
        sys.modules.pop(name, None)


def numbers_of(name):
    return json.loads((make.NUMBERS / f"{name}.json").read_text(encoding="utf-8"))


def assert_same(stored, computed, where):
    """Equal up to the tolerance; numbers that pages print as text too."""
    if isinstance(stored, dict):
        assert stored.keys() == computed.keys(), where
        for key in stored:
            assert_same(stored[key], computed[key], f"{where}.{key}")
    elif isinstance(stored, list):
        assert len(stored) == len(computed), where
        for place, pair in enumerate(zip(stored, computed, strict=True)):
            assert_same(*pair, f"{where}[{place}]")
    elif isinstance(stored, float):
        assert computed == pytest.approx(stored, rel=TOLERANCE, abs=TOLERANCE), where
    else:
        assert computed == stored, where


@pytest.mark.parametrize("name", make.NAMES)
def test_numbers_are_computed_again(name):
    part = make.module(name)
    stored = numbers_of(name)
    assert_same(stored, json.loads(make.as_text(part.compute())), name)
    for suffix, text in getattr(part, "tables", lambda _: {})(stored).items():
        assert (make.NUMBERS / f"{name}{suffix}.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", [name for name in make.NAMES if (make.HERE / f"{name}.png").exists()])
def test_figure_was_drawn_from_these_numbers(name):
    """A figure carries the checksum of its numbers, so one that was not drawn again is noticed."""
    with Image.open(make.HERE / f"{name}.png") as picture:
        assert picture.info["Description"] == make.checksum(numbers_of(name))


def test_difference_in_code_is_that_of_the_table():
    """The page on noise floors shows the same comparison in a table and as the output of code."""
    page = (DOCS / "learn" / "noise-floors.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^(\S+) points, from (\S+) to (\S+)$", page, flags=re.MULTILINE)
    (row,) = (row for row in numbers_of("difference")["rows"] if row[:2] == ["ptde-kde", "ece"])
    assert [float(number) for number in shown] == row[2:]


def test_every_picture_has_a_script():
    """``veridical reproduce`` writes the reproduction, a browser the report, and a benchmark the learning curve."""
    pictures = {path for page in PAGES for path in pictures_of(page)}
    made = {make.HERE / f"{name}.png" for name in make.NAMES}
    others = {path for path in pictures if path not in made}
    reproduced = {DOCS / "paper" / "reproduction" / f"{name}.svg" for name in ("figure2", "figure3", "figureA")}
    assert others == {DOCS / "learn" / "report.png", DOCS / "learn" / "learning_curve.svg", *reproduced}
    assert (
        made - pictures - {make.HERE / f"{name}.png" for name in make.NAMES if not hasattr(make.module(name), "draw")}
        == set()
    )


def pictures_of(page):
    """Files of the pictures on a page."""
    return [(page.parent / target).resolve() for target in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())]
