"""Points, lines and labels on the simplex of three classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
NAMES = ("cat", "dog", "owl")
INK, QUIET, SOURCE, MEAN, TRUTH, REGION = "#1d2430", "#596273", "#3457d5", "#4f5b6f", "#14805e", "#e4ecf8"


def place(vectors: object) -> np.ndarray:
    """Coordinates of probability vectors."""
    return np.asarray(vectors, dtype=float) @ CORNERS


def triangle(ax: Axes, names: Sequence[str] = NAMES, region: int | None = None) -> None:
    """The simplex, its corners named; the part where class ``region`` wins is shaded."""
    if region is not None:
        others = [c for c in range(3) if c != region]
        centre, corner = np.full(3, 1 / 3), np.eye(3)[region]
        halves = [(corner + np.eye(3)[other]) / 2 for other in others]
        ax.add_patch(Polygon(place([corner, halves[0], centre, halves[1]]), color=REGION, lw=0))
    for other in range(3):  # the lines on which two classes tie
        ends = np.full((2, 3), 1 / 3)
        ends[1] = (1 - np.eye(3)[other]) / 2
        ax.plot(*place(ends).T, color="#aeb6c2", lw=0.8, ls=":")
    ax.add_patch(Polygon(CORNERS, fill=False, ec=QUIET, lw=1))
    for name, corner, (dx, dy) in zip(names, CORNERS, [(-0.02, -0.06), (0.02, -0.06), (0, 0.025)], strict=True):
        ax.text(corner[0] + dx, corner[1] + dy, name, ha="center", color=QUIET, clip_on=True)
    ax.set_aspect("equal")
    ax.axis("off")
    ax.set_xlim(-0.13, 1.13)
    ax.set_ylim(-0.1, 0.95)


def arrow(ax: Axes, start: object, end: object, colour: str) -> None:
    """From one vector to another."""
    style = {"arrowstyle": "-|>", "color": colour, "lw": 1.4, "shrinkA": 3, "shrinkB": 3}
    ax.annotate("", xy=tuple(place(end)), xytext=tuple(place(start)), arrowprops=style)
