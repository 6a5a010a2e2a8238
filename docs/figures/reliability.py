"""The shipped ensemble before and after calibration: confidence against accuracy, with the consistency band."""

from __future__ import annotations

from typing import Any

from example_data import demo_halves, percent
from matplotlib.figure import Figure

import veridical as vd


def scores(labels: Any, probs: Any) -> dict[str, str]:
    """Percentages as the pages print them."""
    summary = vd.metrics.summary(labels, probs, n_draws=100)
    confidence = probs.max(axis=1).mean()
    return {
        "accuracy": percent(summary["accuracy"].value),
        "confidence": percent(confidence),
        "gap": percent(abs(confidence - summary["accuracy"].value)),
        "ece": percent(summary["ece"].value),
        "floor": percent(summary["ece"].floor or 0),
        "nll": f"{summary['nll'].value:.3f}",
    }


def compute() -> dict[str, Any]:
    """Scores of the mean and of two calibrators on the half that they were not fitted on."""
    fit, test = demo_halves()
    mean = test.values.mean(axis=0)
    return {
        "mean": scores(test.labels, mean),
        "temperature": scores(test.labels, vd.Temperature().fit(fit).predict_proba(test)),
        "ptde": scores(test.labels, vd.PTDE(random_state=0).fit(fit).predict_proba(test)),
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """Two diagrams side by side."""
    import matplotlib.pyplot as plt

    fit, test = demo_halves()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, constrained_layout=True)
    after = vd.PTDE(random_state=0).fit(fit).predict_proba(test)
    for ax, name, probs in ((axes[0], "mean", test.values.mean(axis=0)), (axes[1], "ptde", after)):
        vd.plots.reliability_diagram(test.labels, probs, ax=ax, lowest=0.3, legend=False)
        title = "before (mean of 20 networks)" if name == "mean" else "after (pTDE)"
        ax.set_title(f"{title}: ECE {numbers[name]['ece']}%, floor {numbers[name]['floor']}%")
    axes[1].set_ylabel("")
    return figure
