"""Which method when: a decision tree whose leaves carry what was measured on two ensembles."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo, percent, six_classifiers
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import veridical as vd


def scores(ensemble: vd.Predictions, methods: list[str]) -> dict[str, dict[str, str]]:
    """ECE, its floor, NLL and accuracy of each method on the half that it was not fitted on."""
    evaluation = vd.evaluate(ensemble, methods=methods)
    result = {}
    for name in methods:
        summary = evaluation[name].summary
        result[name] = {
            "ece": percent(summary["ece"].value),
            "floor": percent(summary["ece"].floor or 0),
            "nll": f"{summary['nll'].value:.3f}",
            "accuracy": percent(summary["accuracy"].value),
        }
    return result


def compute() -> dict[str, Any]:
    """Both ensembles."""
    return {
        "alike": scores(demo(), ["mean", "atde", "consensus", "temperature", "ptde-kde", "log-pool"]),
        "unlike": scores(
            six_classifiers(), ["mean", "atde", "consensus", "temperature", "truth-logit", "ptde-kde", "log-pool"]
        ),
    }


def leaves(numbers: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(situation, method, evidence) of every leaf, left to right."""
    alike, unlike = numbers["alike"], numbers["unlike"]
    return [
        (
            "no labels, sources alike",
            "the mean, or aTDE",
            f"ECE {alike['mean']['ece']}%\naTDE {alike['atde']['ece']}%\n(20 networks)",
        ),
        (
            "no labels, sources unlike",
            "consensus",
            f"NLL {unlike['mean']['nll']} → {unlike['consensus']['nll']}\naccuracy {unlike['mean']['accuracy']}"
            f" → {unlike['consensus']['accuracy']}%\n(6 classifiers)",
        ),
        (
            "labels, labels of the mean stay, sources alike",
            "temperature",
            f"ECE {alike['mean']['ece']}% → {alike['temperature']['ece']}%\nfloor {alike['temperature']['floor']}%"
            "\n(20 networks)",
        ),
        (
            "labels, labels of the mean stay, one temperature leaves a gap",
            "truth-logit, pTDE",
            f"ECE {unlike['temperature']['ece']}% (TS)\n→ {unlike['truth-logit']['ece']}%, floor "
            f"{unlike['truth-logit']['floor']}%\n(6 classifiers)",
        ),
        (
            "labels, labels may change",
            "log pool",
            f"NLL {unlike['temperature']['nll']} (TS) → {unlike['log-pool']['nll']}\naccuracy "
            f"{unlike['temperature']['accuracy']} → {unlike['log-pool']['accuracy']}%\n(6 classifiers)",
        ),
    ]


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """The tree as text, and all scores."""
    tree = ["| you have | use | measured |", "|---|---|---|"]
    for situation, method, evidence in leaves(numbers):
        tree.append(f"| {situation} | **{method}** | {' '.join(evidence.split())} |")
    rows = ["| method | ECE | floor | NLL | accuracy | ECE | floor | NLL | accuracy |", "|---|" + "---:|" * 8]
    for name in numbers["unlike"]:
        cells = []
        for data in ("alike", "unlike"):
            values = numbers[data].get(name)
            cells += [values[k] for k in ("ece", "floor", "nll", "accuracy")] if values else [""] * 4
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return {"": "\n".join(tree) + "\n", "-scores": "\n".join(rows) + "\n"}


def box(ax: Axes, x: float, y: float, text: str, shade: str, weight: str = "normal") -> None:
    """A box with text in it."""
    style = {"boxstyle": "round,pad=0.4", "fc": shade, "ec": "#aeb6c2"}
    ax.text(x, y, text, ha="center", va="center", fontsize=8.5, bbox=style, weight=weight, zorder=3)


def draw(numbers: dict[str, Any]) -> Figure:
    """Questions above, methods and evidence below."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(10, 4.6))
    ax.axis("off")
    ax.set_xlim(-0.55, 4.6)
    ax.set_ylim(-0.25, 3.6)
    questions = {(2, 3.4): "do you have labels?", (0.5, 2.5): "are the sources alike?", (3, 2.5): "may labels change?"}
    questions[(2.5, 1.65)] = "is one temperature\nenough?"
    edges = [
        ((2, 3.4), (0.5, 2.5), "no"),
        ((2, 3.4), (3, 2.5), "100 or more"),
        ((0.5, 2.5), (0, 0.9), "yes"),
        ((0.5, 2.5), (1, 0.9), "no"),
        ((3, 2.5), (2.5, 1.65), "no"),
        ((3, 2.5), (4, 0.9), "yes"),
        ((2.5, 1.65), (2, 0.9), "yes"),
        ((2.5, 1.65), (3, 0.9), "no"),
    ]
    for start, end, answer in edges:
        ax.plot(*zip(start, end, strict=True), color="#aeb6c2", lw=1.2, zorder=1)
        middle = np.mean([start, end], axis=0)
        ax.text(*middle, answer, fontsize=8, ha="center", va="center", color="#596273", zorder=2,
                bbox={"fc": "white", "ec": "none", "pad": 1.5})  # fmt: skip
    for (x, y), text in questions.items():
        box(ax, x, y, text, "#e4ecf8")
    for x, (_, method, evidence) in enumerate(leaves(numbers)):
        box(ax, x, 0.9, method, "#dff1ea", "bold")
        ax.text(x, 0.62, evidence, ha="center", va="top", fontsize=7.5, color="#1d2430")
    return figure
