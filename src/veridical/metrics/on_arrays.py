"""Metrics of arrays of other libraries: distributions stay on their device, of each sample a few numbers are copied."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from veridical.backends.foreign import Foreign, NeedsHostError, to_host
from veridical.backends.namespace import at_label, device_of, widest_float
from veridical.combine.sources import load, load_arrays
from veridical.metrics.sample import Floats, Labels, Sample
from veridical.metrics.uncertainty import PredictiveUncertainty
from veridical.predictions.validation import check_labels


class SampleOnDevice(Sample):
    """A sample whose distributions are on a device; metrics that need them whole copy them on first use."""

    def __init__(self, confidence: Floats, correct: Any, labels: Labels, distributions: Any) -> None:
        super().__init__(confidence, correct, labels=labels)
        del self.probs
        self._distributions = distributions

    @cached_property
    def probs(self) -> Any:  # type: ignore[override]
        """(N, L) distributions, on the host."""
        return to_host(self._distributions)


def sample_on_device(y_true: Any, foreign: Foreign) -> Sample:
    """The sample of labels and distributions (N, L), whose confidences and losses are found on the device."""
    values = foreign.values
    if foreign.traced or getattr(values, "ndim", 0) != 2 or values.shape[0] == 0 or values.shape[1] < 2:
        raise NeedsHostError
    xp = foreign.namespace
    if not xp.isdtype(values.dtype, ("real floating", "integral", "bool")):
        raise NeedsHostError
    loaded = load(xp, values[None, ...], "probs", "raise", traced=False)
    distributions = loaded.probs[0, ...]
    labels = check_labels(y_true, values.shape[0], values.shape[1])
    predicted = xp.argmax(distributions, axis=1)
    confidence = _copied(widest_float(xp, at_label(xp, distributions, predicted)))
    sample = SampleOnDevice(np.minimum(confidence, 1.0), to_host(predicted) == labels, labels, distributions)
    at = widest_float(xp, at_label(xp, distributions, xp.asarray(labels, device=device_of(distributions))))
    wide = widest_float(xp, distributions)
    squares = xp.sum(wide * wide, axis=1) - 2 * at + 1
    sample.per_sample("nll", lambda: _losses(_copied(at)))
    sample.per_sample("brier", lambda: _copied(xp.maximum(squares, xp.zeros_like(squares))))
    return sample


def _losses(at_label: Floats) -> Floats:
    """-log p on the host: of a label that is impossible it is infinite, which libraries warn of or not."""
    with np.errstate(divide="ignore"):
        losses: Floats = -np.log(at_label)
    return losses


def _copied(values: Any) -> Floats:
    return np.array(to_host(values), np.float64)


def predictive_uncertainty(
    foreign: Foreign,
    *,
    kind: Any = None,
    sources_axis: int | None = None,
    missing: Any = "raise",
    n_threads: int | None = None,
) -> PredictiveUncertainty:
    """As :func:`veridical.metrics.predictive_uncertainty`, on the device of the arrays."""
    loaded = load_arrays(foreign, kind, sources_axis, missing)
    xp = loaded.xp
    probs = widest_float(xp, loaded.probs)
    n_present = loaded.n_present
    total = xp.sum(_entropies(xp, xp.sum(probs, axis=0) / n_present[:, None]), axis=1)
    member = xp.sum(_entropies(xp, probs), axis=(0, 2)) / n_present
    information = total - member
    hv = loaded.truth(tol=float(np.exp(-8)), max_iter=20).hv
    return PredictiveUncertainty(
        total, member, xp.maximum(information, xp.zeros_like(information)), widest_float(xp, hv)
    )


def _entropies(xp: Any, probs: Any) -> Any:
    """-p ln p, 0 at 0; derivatives of what is not chosen are finite."""
    inside = xp.where(probs > 0, probs, xp.ones_like(probs))
    return -inside * xp.log(inside)
