"""Everything at once: complete, continued where it stopped, the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from small_ensembles import small_predictions, write_as_the_authors, write_npz

from veridical import paper
from veridical.errors import StorageError
from veridical.paper.resume import FinishedParts, identity_of

pytestmark = pytest.mark.compiled

TABLES = [f"table{k}{suffix}" for k in (1, 2, 3, 4) for suffix in (".csv", ".json", ".md", ".tex", ".txt")]
FIGURES = [f"figure{k}.{form}" for k in ("2", "3", "A") for form in ("pdf", "png", "svg")]
SETTINGS = paper.Settings(sources=(2, 4), n_splits=2, seed=3)


class InterruptedRunError(Exception):
    """Stands for Ctrl-C at a chosen step."""


def contents(directory):
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("complete")
    path = write_npz(folder / "small.npz")
    return path, contents(paper.reproduce_all([path], folder / "out", settings=SETTINGS).parent)


def test_everything_is_written_and_nothing_else(unbroken):
    assert sorted(unbroken[1]) == sorted([*TABLES, *FIGURES, "index.html"])
    stored = json.loads(unbroken[1]["table1.json"])
    assert [row["method"] for row in stored["rows"][:5]] == ["DE", "TDE", "aTDE", "TDE, 6 updates", "aTDE, 6 updates"]


@pytest.mark.parametrize("stop_at", [1, 4])
def test_an_interrupted_run_continues(unbroken, tmp_path, stop_at):
    path, expected = unbroken
    steps = []

    def interrupt(done, total, what):
        if done == stop_at:
            raise InterruptedRunError

    def note(done, total, what):
        steps.append(what)

    out = tmp_path / "out"
    with pytest.raises(InterruptedRunError):
        paper.reproduce_all([path], out, settings=SETTINGS, progress=interrupt)
    paper.reproduce_all([path], out, settings=SETTINGS, progress=note)
    assert sum("(done before)" in step for step in steps) == min(stop_at, 4)
    assert contents(out) == expected


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_stopped_program_continues(unbroken, tmp_path, how):
    """Stopped after the first finished step; the same command then ends with the same files."""
    path, expected = unbroken
    out = tmp_path / "out"
    command = [sys.executable, "-m", "veridical", "reproduce", "all", str(path), "--out", str(out)]
    command += ["--sources", "2,4", "--splits", "2", "--seed", "3"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(out.glob(".unfinished/*.json")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, how)
    _, said = process.communicate()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert said == "Interrupted.\n"
    assert not (out / "index.html").exists()
    assert list(out.glob(".unfinished/*.json"))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(out / "index.html")
    assert contents(out) == expected


def test_other_circumstances_are_another_run(unbroken, tmp_path):
    path, _ = unbroken

    def interrupt(done, total, what):
        if done == 2:
            raise InterruptedRunError

    out = tmp_path / "out"
    with pytest.raises(InterruptedRunError):
        paper.reproduce_all([path], out, settings=SETTINGS, progress=interrupt)
    steps = []
    other = paper.Settings(sources=(2, 4), n_splits=2, seed=4)
    paper.reproduce_all([path], out, settings=other, progress=lambda done, total, what: steps.append(what))
    assert not any("(done before)" in step for step in steps)


def test_a_damaged_part_is_made_again(tmp_path):
    parts = FinishedParts(tmp_path, {"seed": 0})
    assert parts.get(["step"], lambda: [1.5, None]) == [1.5, None]
    assert parts.has(["step"])
    assert parts.get(["step"], lambda: pytest.fail("it was there")) == [1.5, None]
    (part,) = (tmp_path / ".unfinished").iterdir()
    part.write_text("[1.5, nu")
    assert parts.get(["step"], lambda: [2]) == [2]
    assert not FinishedParts(tmp_path, {"seed": 1}).has(["step"])
    parts.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_another(tmp_path):
    path = tmp_path / "member_1.npy"
    np.save(path, np.zeros(3))
    before, folder, pattern = identity_of(path), identity_of(tmp_path), identity_of(tmp_path / "member_*.npy")
    np.save(path, np.zeros(4))
    assert identity_of(path) != before
    assert identity_of(tmp_path) != folder
    assert identity_of(tmp_path / "member_*.npy") != pattern


def test_threads_change_nothing(unbroken, tmp_path):
    path, expected = unbroken
    paper.reproduce_all([path], tmp_path / "out", settings=SETTINGS, n_threads=1)
    assert contents(tmp_path / "out") == expected


class Page(HTMLParser):
    """Tags that a page opens and closes, what it refers to, and its text."""

    def __init__(self):
        super().__init__()
        self.open, self.references, self.tags, self.text = [], [], set(), ""

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        self.references += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read_page(content):
    page = Page()
    page.feed(content.decode())
    assert page.open == []
    return page


def test_the_page_shows_every_file(unbroken):
    page = read_page(unbroken[1]["index.html"])
    assert set(page.references) == {*TABLES, *FIGURES}
    assert "small, 4 sources" in page.text
    for number in ("Table 1", "Table 4", "Figure 3"):
        assert number in page.text


def test_names_are_text_on_the_page(tmp_path):
    hostile = tmp_path / "<script>alert(1)<b>.npz"
    write_npz(hostile, 2, 120)
    page = paper.reproduce_all([hostile], tmp_path / "out", settings=paper.Settings(n_splits=2, updates=None))
    parsed = read_page(page.read_bytes())
    assert "script" not in parsed.tags
    assert "<script>alert(1)<b>" in parsed.text


def test_several_ensembles_and_the_papers_numbers(tmp_path):
    first, labels = write_as_the_authors(tmp_path, 10, 300)
    second = tmp_path / "mine.npz"
    np.savez(second, logits=small_predictions(3, 300).values)
    out = tmp_path / "out"
    settings = paper.Settings(n_splits=2, updates=None, extended=paper.Extended(n_resamples=10, n_draws=4))
    paper.reproduce_all([first, second], out, labels=[labels], settings=settings)
    table = json.loads((out / "table1.json").read_text())
    assert {row["name"]["dataset"] for row in table["rows"]} == {"CIFAR10", "mine"}
    known = next(row for row in table["rows"] if row["sources"] == 10 and row["method"] == "DE")
    assert known["values"]["ece"]["published"] == {"mean": 0.5, "std": None, "table": "A1"}
    assert table["comparisons"]
    page = read_page((out / "index.html").read_bytes())
    assert "Real differences" in page.text


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError):
        paper.reproduce_all([write_npz(tmp_path / "small.npz", 2, 60)], tmp_path / "file")
