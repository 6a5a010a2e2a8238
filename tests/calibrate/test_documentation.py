"""The calibration page names every method and says of each what the registry says."""

from pathlib import Path

import pytest

import veridical as vd

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "calibrators.md"


@pytest.mark.parametrize("name", [name for name in vd.calibrators() if name != "auto"])
def test_table_of_methods(name):
    (row,) = [line for line in PAGE.read_text().splitlines() if f"`{name}`" in line.partition("|")[2].partition("|")[0]]
    _, _, _, sources, keeps, _ = (cell.strip() for cell in row.split("|"))
    assert (sources == "yes") == vd.calibrators()[name].needs_sources
    assert (keeps == "yes") == vd.calibrators()[name].keeps_labels
