"""All tables and figures at once: complete, whole or not at all, the same bytes each time."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from small_ensembles import small_predictions, write_as_the_authors, write_npz

from veridical import paper
from veridical.errors import StorageError

pytestmark = pytest.mark.compiled

TABLES = [f"table{k}{suffix}" for k in (1, 2, 3, 4) for suffix in (".csv", ".json", ".md", ".tex", ".txt")]
FIGURES = [f"figure{k}.{form}" for k in ("2", "3", "A") for form in ("pdf", "png", "svg")]
SETTINGS = paper.Settings(sources=(2, 4), n_splits=2, random_state=3)


def contents(directory):
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    folder = tmp_path_factory.mktemp("complete")
    path = write_npz(folder / "small.npz")
    return path, contents(paper.reproduce_all([path], folder / "out", settings=SETTINGS).parent)


def test_all_files_are_written(complete):
    assert sorted(complete[1]) == sorted([*TABLES, *FIGURES, "index.html"])
    stored = json.loads(complete[1]["table1.json"])
    assert [row["method"] for row in stored["rows"][:5]] == ["DE", "TDE", "aTDE", "TDE, 6 updates", "aTDE, 6 updates"]


@pytest.mark.parametrize("stop_at", [1, 4])
def test_interrupted_run_leaves_no_files(complete, tmp_path, stop_at):
    path = complete[0]

    def interrupt(done, total, what):
        if done == stop_at:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce_all([path], out, settings=SETTINGS, progress=interrupt)
    assert not out.exists()


def test_files_do_not_depend_on_threads_and_progress_counts_every_step(complete, tmp_path):
    path, expected = complete
    steps = []
    out = tmp_path / "out"
    paper.reproduce_all([path], out, settings=SETTINGS, n_threads=1, progress=lambda *step: steps.append(step))
    assert contents(out) == expected
    assert [done for done, _, _ in steps] == [0, 1, 2, 3, 4, 5]
    assert {total for _, total, _ in steps} == {5}
    assert steps[-1][2] == "done"


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


def test_page_refers_to_every_file(complete):
    page = read_page(complete[1]["index.html"])
    assert set(page.references) == {*TABLES, *FIGURES}
    assert "small, 4 sources" in page.text
    for number in ("Table 1", "Table 4", "Figure 3"):
        assert number in page.text


def test_page_shows_names_as_text(tmp_path):
    hostile = tmp_path / "<script>alert(1)<b>.npz"
    write_npz(hostile, 2, 120)
    page = paper.reproduce_all([hostile], tmp_path / "out", settings=paper.Settings(n_splits=2, updates=None))
    parsed = read_page(page.read_bytes())
    assert "script" not in parsed.tags
    assert "<script>alert(1)<b>" in parsed.text


def test_several_ensembles_with_published_numbers(tmp_path):
    first, labels = write_as_the_authors(tmp_path, 10, 300)
    second = tmp_path / "mine.npz"
    np.savez(second, logits=small_predictions(3, 300).values)
    out = tmp_path / "out"
    settings = paper.Settings(n_splits=2, updates=None, extended=paper.Extended(n_resamples=10, n_draws=4))
    paper.reproduce_all([first, second], out, labels=[labels], settings=settings)
    table = json.loads((out / "table1.json").read_text())
    assert {row["name"]["dataset"] for row in table["rows"]} == {"CIFAR10", "mine"}
    row_of_paper = next(row for row in table["rows"] if row["sources"] == 10 and row["method"] == "DE")
    assert row_of_paper["values"]["ece"]["published"] == {"mean": 0.005, "std": None, "table": "A1"}
    assert table["comparisons"]
    page = read_page((out / "index.html").read_bytes())
    assert "Real differences" in page.text


def test_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError):
        paper.reproduce_all([write_npz(tmp_path / "small.npz", 2, 60)], tmp_path / "file")
