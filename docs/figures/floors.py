"""The error of perfectly calibrated predictions, by the number of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo_halves, percent, rounded
from matplotlib.figure import Figure

import veridical as vd

SIZES = (100, 200, 500, 1000, 2000, 5000)


def compute() -> dict[str, Any]:
    """Floors of the calibrated shipped ensemble, and what the mean and TS measure at each size."""
    fit, test = demo_halves()
    mean = test.values.mean(axis=0)
    calibrated = vd.Temperature().fit(fit).predict_proba(test)
    rows = []
    for size in SIZES:
        confidence = calibrated[:size].max(axis=1)
        floor = vd.metrics.noise_floor("ece", confidence, n_draws=200)
        observed = [vd.metrics.ece(test.labels[:size], probs[:size]) for probs in (mean, calibrated)]
        rows.append([size, floor.quantiles[0.05], floor.mean, floor.quantiles[0.95], *observed])
    table = np.array(rows)
    return {
        "rows": rounded(table, 5),
        "at_100": percent(table[0, 2]),
        "at_1000": percent(table[3, 2]),
        "at_5000": percent(table[-1, 2]),
        "mean_100": percent(table[0, 4]),
        "ts_100": percent(table[0, 5]),
        "high_100": percent(table[0, 3]),
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """A band that narrows, and two methods in or above it."""
    import matplotlib.pyplot as plt

    size, low, middle, high, mean, calibrated = np.array(numbers["rows"]).T
    figure, ax = plt.subplots(figsize=(6, 3.3), constrained_layout=True)
    ax.fill_between(
        size, 100 * low, 100 * high, color="#f2b84b", alpha=0.35, lw=0, label="perfectly calibrated, 90 of 100"
    )
    ax.plot(size, 100 * middle, color="#b8801a", label="their mean: the noise floor")
    ax.plot(size, 100 * mean, "s-", color="#4f5b6f", label="the mean of 20 networks")
    ax.plot(size, 100 * calibrated, "o-", color="#3457d5", label="after temperature scaling")
    ax.set(xscale="log", xlabel="samples", ylabel="measured ECE, %", ylim=(0, None), xticks=size)
    ax.set_xticklabels([f"{int(s):,}" for s in size])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)
    return figure
