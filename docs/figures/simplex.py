"""Truth discovery for one sample: five sources, their mean, their weights, their truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import rounded
from matplotlib.figure import Figure
from simplex_drawing import INK, MEAN, SOURCE, TRUTH, arrow, place, triangle

import veridical as vd

SOURCES = [[0.80, 0.12, 0.08], [0.62, 0.32, 0.06], [0.58, 0.12, 0.30], [0.48, 0.34, 0.18], [0.04, 0.14, 0.82]]


def compute() -> dict[str, Any]:
    """The mean, the truth after each update, and how far each source is trusted."""
    probs = np.array(SOURCES)[:, None, :]
    path = [vd.discover(probs, accuracy_preserving=False, tol=0, max_iter=k).probs[0] for k in range(9)]
    truth = vd.discover(probs, accuracy_preserving=False)
    mean = probs[:, 0].mean(axis=0)
    return {
        "sources": SOURCES,
        "mean": rounded(mean),
        "path": rounded(path),
        "truth": rounded(truth.probs[0]),
        "reliability": rounded(truth.reliability[:, 0]),
        "mean_confidence": f"{mean.max():.2f}",
        "truth_confidence": f"{truth.probs[0].max():.2f}",
        "least_reliability": f"{100 * truth.reliability.min():.0f}",
        "hv_mean": f"{vd.discover(probs, max_iter=0).hv[0]:.2f}",
        "hv_truth": f"{truth.hv[0]:.2f}",
        "updates": int(truth.n_iter[0]),
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Three steps: the mean, the weights, the truth."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.3), constrained_layout=True)
    titles = ("1. start from the mean", "2. trust what is near", "3. move, and repeat")
    for step, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        triangle(ax)
        ax.set_title(title, color=INK)
        sizes = 60 if step == 0 else 20 + 500 * np.array(numbers["reliability"]) ** 1.5
        points = place(numbers["sources"])
        if step == 1:
            for point in points:
                ax.plot(*np.array([point, place(numbers["mean"])]).T, color="#aeb6c2", lw=0.8, zorder=1)
        ax.scatter(*points.T, s=sizes, color=SOURCE, alpha=0.75, lw=0, zorder=2)
        ax.plot(*place(numbers["mean"]), marker="s", ms=7, color=MEAN, zorder=3)
    axes[0].annotate("mean", place(numbers["mean"]), xytext=(9, 3), textcoords="offset points", color=MEAN)
    axes[0].annotate("a source", points[4], xytext=(-8, -18), textcoords="offset points", color=SOURCE, ha="left")
    for source, point in enumerate(points):
        share = f"{100 * numbers['reliability'][source]:.0f}%"
        offset = {0: (4, -18), 1: (18, -9), 2: (-4, 13), 3: (19, -3), 4: (0, -16)}[source]
        axes[1].annotate(share, point, xytext=offset, textcoords="offset points", fontsize=8, ha="center", color=SOURCE)
    axes[2].plot(*place(numbers["path"]).T, color=TRUTH, lw=1, marker=".", ms=4, zorder=3)
    axes[2].plot(*place(numbers["truth"]), marker="*", ms=15, color=TRUTH, mec="white", zorder=4)
    axes[2].annotate("truth", place(numbers["truth"]), xytext=(-44, -3), textcoords="offset points", color=TRUTH)
    arrow(axes[2], numbers["mean"], numbers["truth"], TRUTH)
    return figure
