"""What a calibrator does to a confidence: temperature scaling, opt and pTDE on the shipped ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo_halves, percent, rounded
from matplotlib.figure import Figure

import veridical as vd


def compute() -> dict[str, Any]:
    """Confidence before and after, for 400 samples, and each method's errors."""
    fit, test = demo_halves()
    mean = test.values.mean(axis=0)
    correct = mean.argmax(axis=1) == test.labels
    before = mean.max(axis=1)
    chosen = np.argsort(before, kind="stable")[:: len(before) // 400]
    methods = {"TS": vd.Temperature(), "opt": vd.OptKDE(random_state=0), "pTDE": vd.PTDE(random_state=0)}
    after, errors = {}, {"mean": percent(vd.metrics.ece(correct, before), 2)}
    for name, method in methods.items():
        confidence = method.fit(fit).predict_confidence(test)
        after[name] = rounded(confidence[chosen])
        errors[name] = percent(vd.metrics.ece(correct, confidence), 2)
    floor = vd.metrics.noise_floor("ece", before, n_draws=100).mean
    return {"before": rounded(before[chosen]), "after": after, "ece": errors, "floor": percent(floor, 2)}


def draw(numbers: dict[str, Any]) -> Figure:
    """One panel per method, before on the x axis and after on the y axis."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.3), sharey=True, constrained_layout=True)
    for ax, (name, after) in zip(axes, numbers["after"].items(), strict=True):
        ax.plot([0.2, 1], [0.2, 1], color="#aeb6c2", lw=1, ls="--")
        ax.plot(numbers["before"], after, ".", ms=3, color="#3457d5")
        ax.set(xlabel="confidence of the mean", title=f"{name}: ECE {numbers['ece'][name]}%")
        ax.set_aspect("equal")
    axes[0].set_ylabel("calibrated confidence")
    return figure
