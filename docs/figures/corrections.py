"""What the paper's formulas do when taken literally: weights without the square, ties, and the scale of HV."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo, percent, six_classifiers

import veridical as vd


def unsquared(probs: np.ndarray, updates: int = 6) -> tuple[float, float]:
    """Share of samples with a negative weight, and the smallest component of a vector, with ln(V / distance)."""
    truth = probs.mean(axis=0)
    negative = np.zeros(probs.shape[1], dtype=bool)
    lowest = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(updates):
            squares = ((truth - probs) ** 2).sum(axis=2)
            weights = np.log(squares.sum(axis=0) / np.sqrt(squares))
            negative |= (weights < 0).any(axis=0)
            truth = (weights[:, :, None] * probs).sum(axis=0) / weights.sum(axis=0)[:, None]
            lowest = min(lowest, float(np.nanmin(truth)))
            truth = np.where(np.isfinite(truth).all(axis=1, keepdims=True), truth, probs.mean(axis=0))
    return float(negative.mean()), lowest


def nearest(vector: np.ndarray, label: int) -> np.ndarray:
    """The nearest vector in which no class exceeds ``label``: the projection without a lead."""
    others = [c for c in np.argsort(-vector, kind="stable") if c != label]
    result = vector.copy()
    for count in range(len(vector)):
        level = (vector[label] + vector[others[:count]].sum()) / (count + 1)
        if count == len(others) or level >= vector[others[count]]:
            result[[label, *others[:count]]] = level
            break
    return result


def ties(probs: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Accuracy of the mean, of TDE projected without a lead, and of aTDE."""
    mean = probs.mean(axis=0)
    label = mean.argmax(axis=1)
    free = vd.discover(probs, accuracy_preserving=False).probs
    projected = np.array([nearest(vector, c) for vector, c in zip(free, label, strict=True)])
    kept = vd.discover(probs).probs
    return {
        "changed": int((projected.argmax(axis=1) != label).sum()),
        "accuracy_mean": percent((label == labels).mean(), 2),
        "accuracy_ties": percent((projected.argmax(axis=1) == labels).mean(), 2),
        "accuracy_atde": percent((kept.argmax(axis=1) == labels).mean(), 2),
        "changed_atde": int((kept.argmax(axis=1) != label).sum()),
    }


def compute() -> dict[str, Any]:
    """On the shipped ensemble and on six classifiers."""
    six, shipped = six_classifiers(), demo()
    negative, lowest = unsquared(six.values)
    negative_demo, lowest_demo = unsquared(shipped.values)
    hv = {size: vd.discover(shipped.values[:size]).hv for size in (3, 5, 10, 20)}
    return {
        "negative": percent(negative),
        "lowest": f"{lowest:.2f}",
        "negative_demo": percent(negative_demo),
        "lowest_demo": f"{lowest_demo:.2f}",
        "n_six": six.n_samples,
        "ties": ties(six.values, six.labels),
        "hv": [[size, round(float(x.mean()), 3), round(float(np.quantile(x, 0.99)), 2)] for size, x in hv.items()],
    }


def tables(numbers: dict[str, Any]) -> dict[str, str]:
    """HV by the number of sources."""
    lines = ["| sources | mean HV | 99% quantile |", "|---:|---:|---:|"]
    lines += [f"| {size} | {mean:.3f} | {high:.2f} |" for size, mean, high in numbers["hv"]]
    return {"": "\n".join(lines) + "\n"}
