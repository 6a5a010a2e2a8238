"""The mean and truth discovery as combiners use them: by NumPy where there are so few samples that it is done before
a compiler is loaded.

:func:`veridical.discover` itself always runs the kernel, so that a sample's truth has the same bytes however many
samples there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._kernels.arguments import Options
from veridical._numpy_kernels import is_small
from veridical._numpy_kernels.discovery import Loaded, discover_rows, load, written
from veridical._numpy_kernels.softmax import probabilities_of
from veridical.combine.near_ties import mean_labels
from veridical.combine.truth import Truth
from veridical.combine.truth_discovery import (
    Missing,
    allocate_outputs,
    discover,
    discover_with_mean,
    make_options,
    reject_sample,
    truth_in,
)
from veridical.predictions import Predictions
from veridical.predictions.validation import Array

Labels = npt.NDArray[np.int64]


def mean_of(
    predictions: Predictions, missing: Missing, n_threads: int | None
) -> tuple[Array, Labels, Callable[[], Truth] | None]:
    """The mean of the sources, its labels, and a way to their truth that saves loading them again, if there is one."""
    if not _are_small(predictions):
        mean = discover(predictions, missing=missing, max_iter=0, n_threads=n_threads)
        return mean.probs, mean.prediction, None
    options = make_options(predictions, skip_missing=missing == "skip")
    loaded = _load(predictions, options)
    probs = written(loaded.mean, loaded.label, options).astype(predictions.result_dtype, copy=False)
    return probs, loaded.label, lambda: _discover(loaded, predictions, options)


def mean_and_truth_of(predictions: Predictions, missing: Missing, n_threads: int | None) -> tuple[Array, Truth]:
    """The mean of the sources and their truth, which share one reading of the sources; labels are the truth's."""
    if not _are_small(predictions):
        truth, mean = discover_with_mean(predictions, missing, n_threads)
        return mean, truth
    probs, _, continue_to_truth = mean_of(predictions, missing, n_threads)
    assert continue_to_truth is not None
    return probs, continue_to_truth()


def truth_of(
    predictions: Predictions,
    missing: Missing,
    n_threads: int | None,
    *,
    accuracy_preserving: bool = True,
    source_weights: Array | None = None,
) -> Truth:
    """Truth discovery with default parameters; weights are finite and at least 0."""
    if not _are_small(predictions):
        return discover(
            predictions,
            missing=missing,
            accuracy_preserving=accuracy_preserving,
            source_weights=source_weights,
            n_threads=n_threads,
        )
    options = make_options(predictions, skip_missing=missing == "skip", keep_label=accuracy_preserving)
    return _discover(_load(predictions, options), predictions, options, source_weights)


def _are_small(predictions: Predictions) -> bool:
    n_samples = predictions.n_samples
    return n_samples > 0 and is_small(n_samples, n_samples * predictions.n_sources * predictions.n_classes)


def _load(predictions: Predictions, options: Options) -> Loaded:
    scores: Any = predictions.values.astype(predictions.result_dtype, copy=False)
    if predictions.kind != "probs":
        scores = probabilities_of(scores, predictions.kind == "logits")
    loaded = load(scores, options)
    if isinstance(loaded, int):
        reject_sample(predictions, loaded, options)
    undecided = np.flatnonzero(loaded.label < 0)
    if len(undecided):
        loaded.label[undecided] = mean_labels(predictions, undecided)
    return loaded


def _discover(loaded: Loaded, predictions: Predictions, options: Options, source_weights: Array | None = None) -> Truth:
    outputs = allocate_outputs(predictions)
    outputs.prediction[:] = loaded.label
    discover_rows(loaded, options, outputs, source_weights)
    return truth_in(outputs)
