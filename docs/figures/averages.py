"""Averaging makes an ensemble less confident: mean confidence and accuracy by the number of networks averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo, percent, rounded
from matplotlib.figure import Figure

SIZES = (1, 2, 3, 5, 8, 12, 20)


def compute() -> dict[str, Any]:
    """For the first S networks: confidence and accuracy of their mean, and of single networks on average."""
    probs, labels = demo().values, demo().labels
    rows = []
    for size in SIZES:
        mean = probs[:size].mean(axis=0)
        rows.append([size, mean.max(axis=1).mean(), (mean.argmax(axis=1) == labels).mean()])
    alone = [probs.max(axis=2).mean(), np.mean(probs.argmax(axis=2) == labels)]
    gaps = {"gap_alone": percent(alone[1] - alone[0]), "gap_mean": percent(rows[-1][2] - rows[-1][1])}
    return {"sizes": rounded(rows, 5), "alone": rounded(alone, 5), **gaps}


def draw(numbers: dict[str, Any]) -> Figure:
    """Two lines that part."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 3.2), constrained_layout=True)
    sizes, confidence, accuracy = np.array(numbers["sizes"]).T
    ax.plot(sizes, 100 * accuracy, "o-", color="#14805e", label="accuracy of the mean")
    ax.plot(sizes, 100 * confidence, "o-", color="#3457d5", label="mean confidence of the mean")
    ax.fill_between(sizes, 100 * confidence, 100 * accuracy, color="#f2b84b", alpha=0.25, lw=0)
    ax.set(xlabel="networks averaged", ylabel="%", xticks=sizes, ylim=(77, 88))
    ax.legend(frameon=False, loc="lower center", ncols=2)
    return figure
