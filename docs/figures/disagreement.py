"""HV: three samples on the simplex, and how often predictions are wrong by HV on the shipped ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo, percent, rounded
from matplotlib.figure import Figure
from simplex_drawing import INK, SOURCE, TRUTH, place, triangle

import veridical as vd

SAMPLES = {
    "agreed": [[0.70, 0.20, 0.10], [0.72, 0.17, 0.11], [0.68, 0.20, 0.12], [0.71, 0.19, 0.10]],
    "one differs": [[0.70, 0.20, 0.10], [0.72, 0.17, 0.11], [0.68, 0.20, 0.12], [0.20, 0.60, 0.20]],
    "two camps": [[0.75, 0.15, 0.10], [0.72, 0.17, 0.11], [0.20, 0.70, 0.10], [0.18, 0.66, 0.16]],
}


def compute() -> dict[str, Any]:
    """HV of the samples; errors of the shipped ensemble by fifths of HV; how well HV and confidence find errors."""
    small = {}
    for name, sources in SAMPLES.items():
        truth = vd.discover(np.array(sources)[:, None, :])
        small[name] = {"sources": sources, "truth": rounded(truth.probs[0]), "hv": f"{truth.hv[0]:.3f}"}
    ensemble = demo()
    hv = vd.discover(ensemble).hv
    mean = ensemble.values.mean(axis=0)
    wrong = mean.argmax(axis=1) != ensemble.labels
    order = np.argsort(hv, kind="stable")
    fifths = [[hv[part].mean(), wrong[part].mean()] for part in np.array_split(order, 5)]
    by_hv = vd.metrics.error_auroc(ensemble.labels, mean, doubt=hv)
    by_confidence = vd.metrics.error_auroc(ensemble.labels, mean)
    return {
        "samples": small,
        "fifths": rounded(fifths),
        "lowest": percent(fifths[0][1]),
        "highest": percent(fifths[-1][1]),
        "auroc_hv": f"{by_hv:.3f}",
        "auroc_confidence": f"{by_confidence:.3f}",
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Three triangles and one bar chart."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(10.4, 2.8), width_ratios=[1, 1, 1, 1.3], constrained_layout=True)
    for ax, (name, sample) in zip(axes, numbers["samples"].items(), strict=False):
        triangle(ax)
        ax.scatter(*place(sample["sources"]).T, s=40, color=SOURCE, alpha=0.7, lw=0, zorder=2)
        ax.plot(*place(sample["truth"]), marker="*", ms=11, color=TRUTH, mec="white", zorder=3)
        ax.set_title(f"{name}: HV = {sample['hv']}", color=INK, fontsize=9)
    wrong = 100 * np.array(numbers["fifths"])[:, 1]
    bars = axes[3].bar(range(1, 6), wrong, color="#d9775f")
    axes[3].bar_label(bars, fmt="%.1f%%", fontsize=8)
    axes[3].set(xlabel="fifth of the samples by HV", ylabel="wrong predictions, %", title="shipped ensemble")
    axes[3].title.set_fontsize(9)
    return figure
