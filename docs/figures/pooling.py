"""Sums and products: two sources on two classes, and what learned pools weigh on six classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import rounded, six_classifiers
from matplotlib.figure import Figure

import veridical as vd

METHODS = {
    "mean": "the mean",
    "consensus": "consensus (no labels)",
    "temperature": "temperature on the mean",
    "linear-pool": "linear pool",
    "log-pool": "log pool",
}


def compute() -> dict[str, Any]:
    """Shares of the learned pools, and scores on the other half."""
    fit, test = six_classifiers().split(random_state=0)
    evaluation = vd.evaluate(six_classifiers(), methods=list(METHODS), floors=False)
    rows = []
    for name, title in METHODS.items():
        summary = evaluation[name].summary
        rows.append(
            [title, summary["accuracy"].value, summary["nll"].value, summary["brier"].value, summary["ece"].value]
        )
    linear = vd.LinearPool().fit(fit)
    log = vd.LogPool().fit(fit)
    facts = {"linear": vd.inspect_calibrator(linear), "log": vd.inspect_calibrator(log)}
    names = six_classifiers().source_names or ()
    weights = {
        name: {source: round(float(w), 3) for source, w in zip(names, fact.source_weights or (), strict=True)}
        for name, fact in facts.items()
    }
    return {
        "rows": [[title, *rounded(values)] for title, *values in rows],
        "weights": weights,
        "n_test": len(test.labels),
        "log_mean": round(float(facts["log"].mean_weight or 0), 3),
    }


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """Scores, and weights."""
    scores = ["| method | accuracy | NLL | Brier | ECE |", "|---|---:|---:|---:|---:|"]
    for title, accuracy, nll, brier, ece in numbers["rows"]:
        scores.append(f"| {title} | {100 * accuracy:.1f}% | {nll:.3f} | {brier:.3f} | {100 * ece:.1f}% |")
    weights = ["| source | share in the linear pool | exponent in the log pool |", "|---|---:|---:|"]
    for name, share in numbers["weights"]["linear"].items():
        weights.append(f"| {name} | {share:.2f} | {numbers['weights']['log'][name]:.2f} |")
    return {"-scores": "\n".join(scores) + "\n", "-weights": "\n".join(weights) + "\n"}


def draw(numbers: dict[str, Any]) -> Figure:
    """The pooled probability of a class when one source says 0.6 and the other anything."""
    import matplotlib.pyplot as plt

    other = np.linspace(0.001, 0.999, 400)
    figure, ax = plt.subplots(figsize=(5.4, 3.2), constrained_layout=True)
    product = np.sqrt(0.6 * other) / (np.sqrt(0.6 * other) + np.sqrt(0.4 * (1 - other)))
    full = 0.6 * other / (0.6 * other + 0.4 * (1 - other))
    ax.plot(other, (0.6 + other) / 2, color="#4f5b6f", label="linear pool: half and half")
    ax.plot(other, product, color="#3457d5", label="log pool: exponents 1/2, 1/2")
    ax.plot(other, full, color="#14805e", label="log pool: exponents 1, 1")
    ax.set(xlabel="probability by the other source", ylabel="pooled probability", ylim=(0, 1), xlim=(0, 1))
    ax.set_title("one source says 0.6")
    ax.legend(frameon=False, fontsize=8)
    return figure
