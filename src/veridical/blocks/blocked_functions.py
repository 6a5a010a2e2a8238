"""What the ordinary functions and the methods of calibrators do with blocked predictions, by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from veridical.blocks.evaluating import evaluate, fit_calibrator
from veridical.blocks.fitting import fit
from veridical.blocks.opening import as_blocked
from veridical.blocks.passes import Throughput, run_pass
from veridical.blocks.reporting import build_report
from veridical.blocks.streaming import apply_calibrator, consensus, discover
from veridical.calibrate import Calibrator
from veridical.metrics.sample import Floats, Labels
from veridical.predictions.validation import Array

__all__ = [
    "apply_calibrator",
    "build_report",
    "consensus",
    "discover",
    "evaluate",
    "fit",
    "fit_calibrator",
    "predict",
    "predict_all",
    "predict_confidence",
    "predict_proba",
]


def predict_all(calibrator: Calibrator, X: Any) -> tuple[Array, Floats, Labels]:  # noqa: N803
    """``calibrator.predict_all`` on blocked predictions."""
    result = apply_calibrator(calibrator, X)
    return result.probs, result.confidence, result.prediction


def predict_proba(calibrator: Calibrator, X: Any) -> Array:  # noqa: N803
    """``calibrator.predict_proba`` on blocked predictions."""
    return apply_calibrator(calibrator, X).probs


def predict_confidence(calibrator: Calibrator, X: Any) -> Floats:  # noqa: N803
    """``calibrator.predict_confidence`` on blocked predictions."""
    blocked = as_blocked(X)
    blocks = run_pass(blocked, lambda b: calibrator.predict_confidence(b.predictions), Throughput(None, blocked, ""))
    return np.concatenate([confidence for _, confidence in blocks])


def predict(calibrator: Calibrator, X: Any) -> Labels:  # noqa: N803
    """``calibrator.predict`` on blocked predictions."""
    blocked = as_blocked(X)
    blocks = run_pass(blocked, lambda b: calibrator.predict(b.predictions), Throughput(None, blocked, ""))
    return np.concatenate([prediction for _, prediction in blocks])
