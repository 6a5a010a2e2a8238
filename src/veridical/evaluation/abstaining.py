"""A threshold of a fitted calibrator's confidence, with a guarantee from fresh samples."""

from __future__ import annotations

from typing import Any

from veridical.calibrate import Calibrator
from veridical.calibrate.registry import check_calibrator
from veridical.evaluation.applying import apply_calibrator
from veridical.evaluation.facts import labelled
from veridical.metrics.selective import AbstentionThreshold, abstention_threshold
from veridical.predictions import as_predictions
from veridical.predictions.validation import InputKind


def choose_threshold(
    calibrator: Calibrator,
    predictions: Any,
    labels: Any = None,
    *,
    max_risk: float,
    confidence_level: float = 0.9,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
) -> AbstentionThreshold:
    """The lowest confidence from which on a calibrator's answers are wrong at most so often, with a guarantee.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted, on other samples than these.
    predictions : Predictions, or arrays in any form that :class:`veridical.Predictions` accepts
        Fresh samples: nothing was fitted or chosen on them.  One sample per group, where there are groups.
    labels : array of N labels, optional
        They replace labels of ``predictions``.  Samples whose label is not known are left out.
    max_risk, confidence_level
        As in :func:`veridical.metrics.abstention_threshold`.
    kind, sources_axis
        By default those that the calibrator was fitted with.

    Returns
    -------
    AbstentionThreshold

    Examples
    --------
    >>> import veridical as vd
    >>> fit, fresh = vd.load_demo().split(random_state=0)
    >>> threshold = vd.choose_threshold(vd.TruthLogit().fit(fit), fresh, max_risk=0.05)
    >>> 0.6 < threshold.coverage < 0.8
    True
    """
    check_calibrator(calibrator)
    if kind is None and sources_axis is None:
        sources = calibrator.new_predictions(predictions)
    else:
        sources = as_predictions(predictions, kind, sources_axis)
    fresh = labelled(sources, labels, None, None).flat()
    calibrated = apply_calibrator(calibrator, fresh)
    return abstention_threshold(
        calibrated.prediction == calibrated.labels,
        calibrated.confidence,
        max_risk=max_risk,
        confidence_level=confidence_level,
        groups=fresh.groups,
    )
