"""Copies count once: six classifiers on digits, the worst of them copied; what that does to three ways to combine."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import percent, rounded, six_classifiers
from matplotlib.figure import Figure

import veridical as vd

COPIES = (1, 2, 4, 6, 8, 10)
METHODS = {"mean": "mean", "tde": "TDE", "consensus": "consensus"}


def combined(probs: np.ndarray) -> dict[str, np.ndarray]:
    """One distribution per sample by each method."""
    tde = vd.discover(probs, accuracy_preserving=False).probs
    return {"mean": probs.mean(axis=0), "tde": tde, "consensus": vd.consensus(probs).probs}


def compute() -> dict[str, Any]:
    """Accuracy and NLL of each method by the number of copies of the stump."""
    ensemble = six_classifiers()
    rows = []
    for copies in COPIES:
        probs = np.concatenate([ensemble.values[:5], np.repeat(ensemble.values[5:], copies, axis=0)])
        scores = combined(probs)
        accuracy = [(scores[name].argmax(axis=1) == ensemble.labels).mean() for name in METHODS]
        nll = [vd.metrics.nll(ensemble.labels, np.clip(scores[name], 1e-9, 1)) for name in METHODS]
        rows.append([copies, *accuracy, *nll])
    table = np.array(rows)
    alone = (ensemble.values.argmax(axis=2) == ensemble.labels).mean(axis=1)
    result = vd.consensus(ensemble)
    return {
        "rows": rounded(table, 5),
        "stump": percent(alone[5]),
        "mean_1": percent(table[0, 1]),
        "mean_10": percent(table[-1, 1]),
        "tde_10": percent(table[-1, 2]),
        "consensus_1": percent(table[0, 3]),
        "consensus_10": percent(table[-1, 3]),
        "names": list(ensemble.source_names or ()),
        "accuracy": rounded(alone, 3),
        "skill": rounded(result.skill, 2),
        "shares": rounded(result.shares, 2),
    }


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """The sources one by one."""
    lines = ["| source | accuracy (with labels) | skill (without) | share |", "|---|---:|---:|---:|"]
    for name, accuracy, skill, share in zip(
        *(numbers[k] for k in ("names", "accuracy", "skill", "shares")), strict=True
    ):
        lines.append(f"| {name} | {100 * accuracy:.1f}% | {skill:.2f} | {share:.2f} |")
    return {"": "\n".join(lines) + "\n"}


def draw(numbers: dict[str, Any]) -> Figure:
    """Accuracy and NLL against the number of copies."""
    import matplotlib.pyplot as plt

    table = np.array(numbers["rows"])
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.1), constrained_layout=True)
    for column, (title, shade) in enumerate(zip(METHODS.values(), ("#4f5b6f", "#c4591b", "#14805e"), strict=True), 1):
        axes[0].plot(table[:, 0], 100 * table[:, column], "o-", color=shade, label=title)
        axes[1].plot(table[:, 0], table[:, column + 3], "o-", color=shade, label=title)
    axes[0].set(ylabel="accuracy, %", xlabel="copies of the worst source")
    axes[1].set(ylabel="negative log-likelihood", xlabel="copies of the worst source")
    axes[0].legend(frameon=False, loc="lower left")
    return figure
