"""The projection that keeps the mean's label: a truth vector that crosses the line, and where it is put back."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import rounded
from matplotlib.figure import Figure
from simplex_drawing import INK, MEAN, SOURCE, TRUTH, arrow, place, triangle

import veridical as vd

SOURCES = [[0.92, 0.02, 0.06], [0.36, 0.50, 0.14], [0.26, 0.44, 0.30], [0.38, 0.56, 0.06]]


def compute() -> dict[str, Any]:
    """Mean, TDE, and aTDE of four sources whose majority is not the mean's label."""
    probs = np.array(SOURCES)[:, None, :]
    free = vd.discover(probs, accuracy_preserving=False)
    kept = vd.discover(probs)
    mean = probs[:, 0].mean(axis=0)
    assert mean.argmax() == 0
    assert free.probs[0].argmax() == 1
    return {
        "sources": SOURCES,
        "mean": rounded(mean),
        "tde": rounded(free.probs[0]),
        "atde": rounded(kept.probs[0], 6),
        "lead": f"{kept.probs[0, 0] - kept.probs[0, 1]:.0e}",
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """The triangle, and its middle enlarged."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.8))
    for ax in axes:
        triangle(ax, region=0)
        ax.scatter(*place(numbers["sources"]).T, s=60, color=SOURCE, alpha=0.75, lw=0, zorder=2)
        ax.plot(*place(numbers["mean"]), marker="s", ms=7, color=MEAN, zorder=3)
        ax.plot(*place(numbers["tde"]), marker="*", ms=14, mfc="white", mec="#c4591b", zorder=4)
        ax.plot(*place(numbers["atde"]), marker="*", ms=14, color=TRUTH, mec="white", zorder=5)
        arrow(ax, numbers["tde"], numbers["atde"], TRUTH)
    axes[0].set_title("shaded: where the mean's label, cat, wins", color=INK)
    axes[1].set_title("the same, enlarged", color=INK)
    x, y = place(numbers["atde"])
    axes[1].set_xlim(x - 0.1, x + 0.14)
    axes[1].set_ylim(y - 0.1, y + 0.1)
    texts = (("mean", "mean", (-10, -14), MEAN), ("TDE", "tde", (12, 8), "#c4591b"), ("aTDE", "atde", (-34, 8), TRUTH))
    for text, key, offset, shade in texts:
        axes[1].annotate(text, place(numbers[key]), xytext=offset, textcoords="offset points", color=shade)
    axes[1].text(x + 0.003, y - 0.09, "cat = dog", color="#596273", fontsize=8, rotation=90, va="bottom")
    return figure
