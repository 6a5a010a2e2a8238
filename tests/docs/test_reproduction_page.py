"""The tables of the reproduction page that are about the shipped ensemble are those that the package computes."""

import numpy as np
import pytest
from page_blocks import DOCS

import veridical as vd
from veridical import paper

pytestmark = pytest.mark.compiled

PAGE = (DOCS / "paper" / "reproduction.md").read_text(encoding="utf-8")


def cells_of(line):
    return [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]


def rows_between(start, end):
    """Rows of the tables between two texts of the page, as cells without emphasis."""
    part = PAGE[PAGE.index(start) : PAGE.index(end)]
    lines = [line for line in part.splitlines() if line.startswith("| ") and "---" not in line]
    return [cells_of(line) for line in lines if "method" not in line]


def printed(value, metric):
    """A number as the page prints it."""
    in_percent = metric not in ("nll", "brier")
    return f"{100 * value:.2f}" if in_percent else f"{value:.3f}"


@pytest.fixture(scope="module")
def sharpened(tmp_path_factory):
    """The shipped ensemble with every logit multiplied by 1.5, as the page makes it."""
    demo = vd.load_demo()
    path = tmp_path_factory.mktemp("sharpened") / "sharpened.npz"
    vd.save(vd.Predictions(1.5 * demo.values.astype(np.float32), demo.labels, kind="logits"), path)
    return paper.open_ensembles([path])


METRICS = ("ece_kde", "ece", "nll", "brier", "ks_error", "accuracy")


def table_rows(table):
    return [[str(row.sources), row.method, *(printed(row.values[m].mean, m) for m in METRICS)] for row in table.rows]


def test_table_1_of_the_shipped_ensemble():
    table = paper.table1(paper.open_ensembles([]), sources=[4, 10, 20], updates=6)
    assert rows_between("CIFAR-10, deep ensemble (`veridical", "![Each metric by") == table_rows(table)


def test_table_1_of_the_sharpened_ensemble(sharpened):
    table = paper.table1(sharpened, sources=[4, 10, 20])
    assert rows_between("CIFAR-10, sharpened:", "**Where truth discovery helps.**") == table_rows(table)


def test_tables_2_and_3_of_the_shipped_ensemble():
    rows = rows_between("ECE and ECE-KDE, five random halves.", "KS (Table 4):")
    for table in (paper.table2(paper.open_ensembles([])), paper.table3(paper.open_ensembles([]))):
        for row in table.rows:
            values = [f"{100 * row.values[m].mean:.2f} ± {100 * row.values[m].std:.2f}" for m in ("ece", "ece_kde")]
            (cells,) = [cells for cells in rows if cells[0] == row.method]
            assert cells[1:3] == values
