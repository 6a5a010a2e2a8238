"""How good each choice is with no label, with 20, with 100, with 600: alike and unlike sources."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from example_data import demo, six_classifiers
from matplotlib.figure import Figure

import veridical as vd

SIZES = (20, 100, 600)
METHODS = {
    "temperature": vd.Temperature(),
    "log-pool": vd.LogPool(),
}


def curve(ensemble: vd.Predictions) -> dict[str, list[float | None]]:
    """Method -> NLL on the second half with 0, 20, 100 and 600 labels of the first; the mean over three draws."""
    fit, test = ensemble.split(random_state=0)
    floor = lambda probs: np.clip(probs, 1e-6, 1)  # noqa: E731  (trees give zeros, and one would make the mean infinite)
    score = lambda probs: vd.metrics.nll(test.labels, floor(probs) / floor(probs).sum(axis=1, keepdims=True))  # noqa: E731
    result: dict[str, list[float | None]] = {
        "mean": [score(test.values.mean(axis=0))],
        "consensus": [score(vd.consensus(test).probs)],
    }
    for name, method in METHODS.items():
        row: list[float | None] = [None]
        for size in SIZES:
            draws = []
            for seed in range(3):
                known = np.random.default_rng(seed).permutation(len(fit.labels))[:size]
                labels = np.full(len(fit.labels), -1)
                labels[known] = fit.labels[known]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", vd.errors.NotConvergedWarning)
                    calibrator = method.fit(fit.with_labels(labels))
                draws.append(score(calibrator.predict_proba(test)))
            row.append(float(np.mean(draws)))
        result[name] = row
    return result


def compute() -> dict[str, Any]:
    """Both ensembles."""
    shipped = demo().select(samples=slice(4000))
    curves = {"alike": curve(shipped), "unlike": curve(six_classifiers())}
    rounded = {
        data: {name: [None if x is None else round(x, 3) for x in row] for name, row in rows.items()}
        for data, rows in curves.items()
    }
    return {"curves": rounded}


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """One table for both."""
    titles = {"alike": "20 networks that are alike", "unlike": "6 unlike classifiers"}
    lines = ["| sources | method | no label | 20 | 100 | 600 |", "|---|---|---:|---:|---:|---:|"]
    for data, rows in numbers["curves"].items():
        for name, row in rows.items():
            cells = [*("" if x is None else f"{x:.3f}" for x in row), *[""] * (4 - len(row))]
            lines.append(f"| {titles[data]} | {name} | " + " | ".join(cells) + " |")
    return {"": "\n".join(lines) + "\n"}


def draw(numbers: dict[str, Any]) -> Figure:
    """NLL against the number of labels, one panel per ensemble."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.2), constrained_layout=True)
    shades = {"mean": "#4f5b6f", "consensus": "#14805e", "temperature": "#c4591b", "log-pool": "#3457d5"}
    for ax, (data, title) in zip(
        axes, (("alike", "20 alike networks"), ("unlike", "6 unlike classifiers")), strict=True
    ):
        for name, row in numbers["curves"][data].items():
            if len(row) == 1:
                ax.axhline(row[0], color=shades[name], ls="--", lw=1.2, label=f"{name}, no labels")
            else:
                ax.plot(SIZES, row[1:], "o-", color=shades[name], label=name)
        ax.set(xscale="log", title=title, xlabel="labels", xticks=SIZES, ylabel="negative log-likelihood")
        ax.set_xticklabels([str(size) for size in SIZES])
        ax.minorticks_off()
    axes[0].legend(frameon=False, fontsize=8)
    return figure
