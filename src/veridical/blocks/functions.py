"""The functions that take over for predictions in blocks, by the names of the ordinary functions and methods."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from veridical._outputs import check_report_target
from veridical.blocks.evaluating import evaluate, fit_calibrator
from veridical.blocks.fitting import fit, most_in_memory, subsample_of
from veridical.blocks.opening import as_blocked
from veridical.blocks.samplewise import (
    apply_calibrator,
    consensus,
    discover,
    predict,
    predict_all,
    predict_confidence,
    predict_proba,
)
from veridical.errors import SubsampleWarning
from veridical.report import Report
from veridical.report.build import finish_report
from veridical.report.prepare import prepare_report

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


def build_report(
    predictions: Any,
    labels: Any = None,
    *,
    out: Any = None,
    kind: Any = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    progress: Any = None,
    **options: Any,
) -> Report:
    """:func:`veridical.build_report` on a random subsample of at most 20,000 samples; the report says so.

    Parameters are those of :func:`veridical.build_report`.  For scores of all samples see
    :func:`veridical.scale.evaluate`.
    """
    if out is not None:
        check_report_target(out)
    blocked = as_blocked(predictions, kind, sources_axis, labels)
    is_all = blocked.n_samples <= most_in_memory(blocked)
    chosen = np.arange(blocked.n_samples) if is_all else subsample_of(blocked, random_state)
    data = prepare_report(blocked.take(chosen), random_state=random_state, progress=progress, **options)
    if len(chosen) < blocked.n_samples:
        facts = f"{len(chosen):,} of {blocked.n_samples:,} samples, chosen at random (random_state={random_state})"
        warnings.warn(f"the report is about {facts}.", SubsampleWarning, stacklevel=2)
        samples = tuple(replace(sample, sample=int(chosen[sample.sample])) for sample in data.disputed)
        data = replace(data, verdict=f"About {facts}. {data.verdict}", disputed=samples)
    return finish_report(data, out, progress)
