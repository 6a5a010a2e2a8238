"""Risk against coverage on the shipped ensemble, and how often thresholds for a risk of 5% exceed it."""

from __future__ import annotations

from typing import Any

import numpy as np
from example_data import demo_halves, percent
from matplotlib.figure import Figure

import veridical as vd
from veridical.metrics.selective import fewest_samples

RISK, DRAWS = 0.05, 500


def compute() -> dict[str, Any]:
    """Error rate of all samples; how often a threshold for 5% exceeds it, read off the curve and with the guarantee."""
    fit, test = demo_halves()
    calibrator = vd.TruthLogit().fit(fit)
    confidence = calibrator.predict_confidence(test)
    right = calibrator.predict(test) == test.labels
    generator = np.random.default_rng(0)
    exceeded = np.zeros(2)
    for _ in range(DRAWS):
        drawn = generator.integers(0, len(right), 1000)
        result = vd.metrics.abstention_threshold(right[drawn], confidence[drawn], max_risk=RISK)
        order = drawn[np.argsort(-confidence[drawn], kind="stable")]
        risk = (~right[order]).cumsum() / np.arange(1, len(order) + 1)
        on_curve = confidence[order[np.flatnonzero(risk <= RISK).max()]]
        for k, threshold in enumerate((on_curve, result.threshold)):
            if threshold is not None:
                exceeded[k] += (~right[confidence >= threshold]).mean() > RISK
    return {
        "error": percent(1 - right.mean()),
        "curve": percent(exceeded[0] / DRAWS, 0),
        "exceeded": percent(exceeded[1] / DRAWS, 0),
        "draws": DRAWS,
        "least": fewest_samples(0, RISK, 0.1),
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
