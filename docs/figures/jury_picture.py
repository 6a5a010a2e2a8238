"""The shipped jury with 100 known answers: skill of the jurors, and confidence against accuracy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from example_data import percent, rounded
from matplotlib.figure import Figure

import veridical as vd


@cache
def judged() -> tuple[vd.Predictions, vd.JuryResult, np.ndarray]:
    """The votes, the result with 100 known answers, and the samples that are not among these."""
    jury = vd.load_demo_jury()
    known = np.random.default_rng(0).permutation(jury.n_samples)[:100]
    gold = np.full(jury.n_samples, -1)
    gold[known] = jury.labels[known]
    rest = np.setdiff1d(np.arange(jury.n_samples), known)
    return jury, vd.judge(jury, gold=gold), rest


def compute() -> dict[str, Any]:
    """Accuracy of the majority and of the jury; skill and accuracy of every juror."""
    jury, result, rest = judged()
    votes = np.nan_to_num(jury.values).sum(axis=0)
    right = result.label == jury.labels
    rows = []
    for s, juror in enumerate(result.jurors):
        present = ~np.isnan(jury.values[s, :, 0])
        accuracy = (jury.values[s, present].argmax(axis=1) == jury.labels[present]).mean()
        rows.append([juror.name, round(juror.skill, 3), round(float(accuracy), 3), round(juror.weight, 3)])
    ece = vd.metrics.ece(right[rest], result.confidence[rest])
    return {
        "jurors": rows,
        "majority": percent((votes.argmax(axis=1) == jury.labels)[rest].mean()),
        "accuracy": percent(right[rest].mean()),
        "confidence": percent(result.confidence[rest].mean()),
        "ece": percent(ece),
        "skill_correlation": f"{np.corrcoef([row[1] for row in rows], [row[2] for row in rows])[0, 1]:.2f}",
        "curve": rounded(np.transpose([*_curve(right[rest], result.confidence[rest])])),
    }


def _curve(right: np.ndarray, confidence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    curve = vd.metrics.reliability_curve(right, confidence)
    return curve.confidence, curve.accuracy


def draw(numbers: dict[str, Any]) -> Figure:
    """Skill, estimated without labels, against accuracy; and the reliability diagram."""
    import matplotlib.pyplot as plt

    _, result, rest = judged()
    jury = vd.load_demo_jury()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), constrained_layout=True)
    skill, accuracy = np.array([row[1:3] for row in numbers["jurors"]]).T
    axes[0].plot(100 * accuracy, skill, "o", color="#3457d5", alpha=0.75)
    axes[0].set(xlabel="accuracy, % (all answers known)", ylabel="skill (no answer known)", title="29 language models")
    vd.plots.reliability_diagram(result.label[rest] == jury.labels[rest], result.confidence[rest], ax=axes[1])
    axes[1].set_title("confidence of the jury, 100 known answers")
    return figure
