"""Compute the numbers of the pages and draw their figures.

    python docs/figures/make.py [NAME ...]

A module here has ``compute``, which returns numbers, and may have ``draw``, which makes a figure of them, and
``tables``, which makes Markdown.  Numbers go to ``docs/numbers/NAME.json``, tables to ``docs/numbers/NAME*.md`` and the
figure to ``docs/figures/NAME.png``, which carries a checksum of its numbers.  ``tests/docs/test_numbers.py`` computes
all of them again and fails if a page would show something else.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
NUMBERS = HERE.parent / "numbers"

#: Modules of this folder, each with the numbers of one figure or table.
NAMES = (
    "simplex",
    "projection",
    "disagreement",
    "reliability",
    "averages",
    "copies",
    "ptde_curve",
    "pooling",
    "floors",
    "difference",
    "few_labels",
    "method_tree",
    "jury_picture",
    "abstention",
    "corrections",
    "paper_tables",
    "conformance",
)


def module(name: str) -> ModuleType:
    """A module of this folder."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    return importlib.import_module(name)


def as_text(numbers: dict[str, Any]) -> str:
    """Numbers as they are stored."""
    return json.dumps(numbers, indent=1, ensure_ascii=False) + "\n"


def checksum(numbers: dict[str, Any]) -> str:
    """What a figure carries to show which numbers it was drawn from."""
    return hashlib.sha256(as_text(numbers).encode()).hexdigest()


def make(name: str) -> None:
    """Compute, draw and write."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    part = module(name)
    numbers = part.compute()
    (NUMBERS / f"{name}.json").write_text(as_text(numbers), encoding="utf-8")
    for suffix, text in getattr(part, "tables", lambda _: {})(numbers).items():
        (NUMBERS / f"{name}{suffix}.md").write_text(text, encoding="utf-8")
    if hasattr(part, "draw"):
        style = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "white"}
        with plt.rc_context(style):
            figure = part.draw(numbers)
            description = {"Description": checksum(numbers), "Software": None}
            figure.savefig(HERE / f"{name}.png", dpi=150, bbox_inches="tight", metadata=description)
        plt.close(figure)
    print(name)


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        make(name)
