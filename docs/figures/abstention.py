"""Risk against coverage on the shipped ensemble, and the threshold for a risk of 5%."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo_halves, percent
from matplotlib.figure import Figure

import veridical as vd


def compute() -> dict[str, Any]:
    """Error rate of all samples; the coverage at which 5% of the kept ones are wrong."""
    fit, test = demo_halves()
    calibrator = vd.TruthLogit().fit(fit)
    confidence = calibrator.predict_confidence(test)
    wrong = calibrator.predict(test) != test.labels
    order = np.argsort(-confidence, kind="stable")
    risk = wrong[order].cumsum() / np.arange(1, len(order) + 1)
    kept = int(np.flatnonzero(risk <= 0.05).max()) + 1
    return {
        "error": percent(wrong.mean()),
        "coverage": percent(kept / len(order), 0),
        "threshold": f"{confidence[order[kept - 1]]:.2f}",
    }


def draw(numbers: dict[str, Any]) -> Figure:
    """By confidence of the mean, calibrated confidence, and HV."""
    import matplotlib.pyplot as plt

    fit, test = demo_halves()
    mean = test.values.mean(axis=0)
    calibrator = vd.TruthLogit().fit(fit)
    correct = calibrator.predict(test) == test.labels
    confidences = {
        "truth-logit": calibrator.predict_confidence(test),
        "mean": mean.max(axis=1),
        "HV": -vd.discover(test).hv,
    }
    figure, ax = plt.subplots(figsize=(5.6, 3.4), constrained_layout=True)
    doubts = {name: -values for name, values in confidences.items()}
    vd.plots.risk_coverage(correct, mean.max(axis=1), doubt=doubts, ax=ax)
    return figure
