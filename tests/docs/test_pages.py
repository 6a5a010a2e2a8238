"""Every code block of the site runs, and prints what the page shows."""

import matplotlib
import pytest
from page_blocks import DOCS, NOT_RUN, PAGES, SHOWN, blocks_of, commands_of, run_page

pytestmark = pytest.mark.compiled

RUN = [page for page in PAGES if any(block.language in ("python", "console") for block in blocks_of(page))]


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_runs(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    run_page(page)
    if "matplotlib.pyplot" in __import__("sys").modules:
        import matplotlib.pyplot as plt

        plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_has_no_block_that_is_not_run(page):
    for block in blocks_of(page):
        assert block.language in {"python", "console", "output", *SHOWN}, f"{page}:{block.line}: {block.language!r}"
        if block.language == "console":
            assert {command.split()[0] for command, _ in commands_of(block.text)} <= {"veridical", *NOT_RUN}


def test_every_block_about_arrays_runs_on_its_own():
    blocks = [block for block in blocks_of(DOCS / "how-to" / "arrays.md") if block.language == "python"]
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block.text, f"arrays.md:{block.line}", "exec"), {})
