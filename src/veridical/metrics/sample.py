"""The checked sample that every metric is computed from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks
from veridical.backends.foreign import NeedsHostError, as_foreign
from veridical.errors import AmbiguousInputWarning, NotFiniteError, ShapeError, UnmatchedIdWarning, warn_caller
from veridical.metrics.groups import group_codes
from veridical.predictions.arrays import holds_bfloat16
from veridical.predictions.validation import (
    all_probabilities,
    as_numbers,
    check_confidences,
    check_distributions,
    check_labels,
    check_outcomes,
    check_same_length,
    check_weights,
)

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.int64]

_BLOCK = 1 << 19
#: Sums of weights stay within these bounds, so that neither sums nor products leave the range of floats.
_LEAST_TOTAL, _MOST_TOTAL = 2.0**-53, 2.0**53
#: A positive weight is at least this share of the largest.
_LEAST_SHARE = 1e-280


class Sample:
    """Checked predictions and their outcomes.

    Attributes
    ----------
    confidence : (N,) float64
        The largest probability of each sample.
    correct : (N,) bool
        Whether the class that holds it (the first, on ties) is the label.
    probs, labels : (N, L) and (N,), or None
        None if only confidences are available.
    weight : (N,) float64, or None for all ones
    doubt : (N,) float64, or None for minus the confidence
        Larger where the prediction is more doubtful.
    in_order : bool
        Whether samples are sorted by confidence.
    origin : (N,) integers, or None for 0..N-1
        Position of each sample in the input.
    group : (N,) integers, or None
        Samples of one group are drawn together.
    """

    def __init__(
        self,
        confidence: Floats,
        correct: Booleans,
        *,
        probs: npt.NDArray[Any] | None = None,
        labels: Labels | None = None,
        weight: Floats | None = None,
        doubt: Floats | None = None,
        in_order: bool = False,
        origin: npt.NDArray[np.intp] | None = None,
        group: npt.NDArray[np.intp] | None = None,
    ) -> None:
        self.confidence = confidence
        self.correct = correct
        self.probs = probs
        self.labels = labels
        self.weight = weight
        self.doubt = doubt
        self.in_order = in_order
        self.origin = origin
        self.group = group
        self._per_sample: dict[str, Floats] = {}
        #: What follows from confidences and weights, for samples that differ in outcomes alone.
        self.fixed: dict[Any, Any] = {}

    @classmethod
    def of_vectors(cls, probs: npt.NDArray[Any], labels: Labels) -> Sample:
        """A sample of valid distributions (N, L) and labels; nothing is checked."""
        predicted = probs.argmax(axis=1)
        confidence = probs[np.arange(len(probs)), predicted].astype(np.float64)
        np.minimum(confidence, 1.0, out=confidence)  # rounding may have left a probability of 1 + 1e-16
        return cls(confidence, predicted == labels, probs=probs, labels=labels)

    @classmethod
    def joined(cls, parts: Sequence[Sample]) -> Sample:
        """Consecutive parts without distributions or weights as one sample."""
        whole = cls(
            np.concatenate([part.confidence for part in parts]), np.concatenate([part.correct for part in parts])
        )
        whole._per_sample = {
            name: np.concatenate([part._per_sample[name] for part in parts]) for name in parts[0]._per_sample
        }
        return whole

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def total_weight(self) -> float:
        """N, or the sum of the weights."""
        return float(len(self)) if self.weight is None else float(self.weight.sum())

    def mean(self, values: npt.NDArray[Any]) -> float:
        """The (weighted) mean of one value per sample."""
        if self.weight is None:
            return float(values.mean(dtype=np.float64))
        with np.errstate(invalid="ignore"):
            total = float((values * self.weight).sum())  # not @, whose threads and ours would wait for each other
        if np.isnan(total):  # samples of weight zero do not count, even if their loss is infinite
            counted = self.weight > 0
            total = float((values[counted] * self.weight[counted]).sum())
        return total / self.total_weight

    def vectors(self, metric: str) -> tuple[npt.NDArray[Any], Labels]:
        """(probs, labels); an error that names the metric if there are none."""
        if self.probs is None or self.labels is None:
            raise ShapeError(
                f"{metric} needs whole distributions; give integer labels and probabilities of shape "
                "(samples, classes)."
            )
        return self.probs, self.labels

    def per_sample(self, name: str, compute: Callable[[], Floats]) -> Floats:
        """One value per sample that does not depend on the weights; computed once, shared by reweighted samples."""
        if name not in self._per_sample:
            self._per_sample[name] = compute()
        return self._per_sample[name]

    def losses(self, name: str) -> Floats:
        """(N,) a loss per sample that is known."""
        return self._per_sample[name]

    def has(self, name: str) -> bool:
        """Whether a loss per sample is known, so that the distributions are not needed for it."""
        return name in self._per_sample

    def without_vectors(self) -> Sample:
        """The same sample with its losses per sample (NLL and Brier) in place of the distributions."""
        if self.probs is None:
            return self
        from veridical.metrics.proper import brier_of, nll_of

        nll_of(self), brier_of(self)  # computed once and kept per sample
        kept = {name: self._per_sample[name] for name in ("nll", "brier")}
        return self._changed(probs=None, labels=None, _distributions=None, _per_sample=kept)

    def _changed(self, **changes: Any) -> Sample:
        """The same sample with some attributes replaced; in resamples and draws, so nothing is copied."""
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, **changes}
        return other

    def with_confidence(self, confidence: Floats, correct: Booleans) -> Sample:
        """The same samples and losses with other confidences."""
        other = Sample(confidence, correct, weight=self.weight, group=self.group)
        other._per_sample = self._per_sample
        return other

    def reweighted(self, weight: Floats) -> Sample:
        """The same samples with new weights."""
        return self._changed(weight=weight, fixed={})

    def with_outcomes(self, correct: Booleans, labels: Labels | None) -> Sample:
        """The same predictions and weights with other outcomes."""
        return self._changed(correct=correct, labels=labels, _per_sample={})

    def order(self) -> npt.NDArray[np.intp]:
        """The indices that sort the samples by confidence."""
        return np.argsort(self.confidence, kind="stable")

    def taken(self, order: npt.NDArray[np.intp], *, in_order: bool = False) -> Sample:
        """The samples at these indices."""
        part = Sample(
            self.confidence[order],
            self.correct[order],
            probs=None if self.probs is None else self.probs[order],
            labels=None if self.labels is None else self.labels[order],
            weight=None if self.weight is None else self.weight[order],
            doubt=None if self.doubt is None else self.doubt[order],
            in_order=in_order,
            origin=order if self.origin is None else self.origin[order],
            group=None if self.group is None else self.group[order],
        )
        part._per_sample = {name: values[order] for name, values in self._per_sample.items()}
        return part

    def by_confidence(self) -> tuple[Floats, Booleans, Floats | None]:
        """Confidence, correct and weight, sorted by confidence."""
        if self.in_order:
            return self.confidence, self.correct, self.weight
        order = self.order()
        weight = None if self.weight is None else self.weight[order]
        return self.confidence[order], self.correct[order], weight


def _all_probabilities(values: Floats) -> bool:
    """Whether all values lie from 0 to 1; long arrays are read by all cores."""
    if len(values) <= _BLOCK:
        return all_probabilities(values)
    from veridical._kernels.binning import all_probabilities as block_is_fine

    return all(run_blocks(block_is_fine, [values[start : start + _BLOCK] for start in range(0, len(values), _BLOCK)]))


def check_sample_weight(sample_weight: Any, n_samples: int) -> Floats:
    """Weights of at least zero, one per sample, of which at least one is positive.

    Weights as large as 1e308 or as small as 5e-324 are multiplied by a common factor, so that their sum lies from
    2^-53 to 2^53.  Beyond these, no metric depends on the sum of the weights in a way that a float could show.
    """
    weight = check_weights(sample_weight, n_samples)
    largest = float(weight.max())
    shares = weight / largest
    total = float(shares.sum())
    if largest < 1 and abs(largest * total - 1) < 1e-6:  # one weight of 1 among zeros chooses a sample
        warn_caller(
            "the sample weights sum to 1, and are read as those of one sample where a metric depends on how many there "
            "are; multiply them by the number of samples.",
            AmbiguousInputWarning,
        )
    smallest = float(shares[shares > 0].min())
    if _LEAST_TOTAL <= largest * total <= _MOST_TOTAL and smallest >= _LEAST_SHARE:
        return weight
    positive: Floats = np.where(weight > 0, np.maximum(shares, _LEAST_SHARE), 0.0)
    return positive * min(max(largest, _LEAST_TOTAL), _MOST_TOTAL / total)


def check_sample(
    y_true: Any,
    probs: Any,
    sample_weight: Any = None,
    doubt: Any = None,
    *,
    groups: Any = None,
    check_later: bool = False,
) -> Sample:
    """Check the input of a metric: labels with (N, L) probabilities, or booleans with (N,) confidences.

    With ``check_later`` the range of (N,) confidences is left to the kernel that adds them up.
    """
    _warn_of_order(y_true, probs)
    sample = _sample_on_device(y_true, probs)
    if sample is None:
        sample = _sample_on_host(y_true, probs, check_later)
    if sample_weight is not None:
        sample.weight = check_sample_weight(sample_weight, len(sample))
    if doubt is not None:
        sample.doubt = check_doubt(doubt, len(sample))
    sample.group = group_codes(groups, len(sample))
    return sample


def _warn_of_order(y_true: Any, probs: Any) -> None:
    """Warn where the rows of data frames and series are the same in another order."""
    rows: Any = getattr(y_true, "index", None)
    others: Any = getattr(probs, "index", None)
    have_rows = hasattr(rows, "equals") and hasattr(others, "equals") and len(rows) == len(others)
    if have_rows and not rows.equals(others) and not len(rows.symmetric_difference(others)):
        order = "the index of y_true has that of probs in another order, and metrics take rows as they stand"
        warn_caller(f"{order}; to join them, give y_true.loc[probs.index].", UnmatchedIdWarning)


def _sample_on_device(y_true: Any, probs: Any) -> Sample | None:
    """The sample of an array on another device; None for everything in host memory, and for what is invalid."""
    foreign = as_foreign(probs)
    if foreign is None or not foreign.takes_array_path:
        return None
    from veridical.metrics.on_arrays import sample_on_device

    try:
        return sample_on_device(y_true, foreign)
    except NeedsHostError:
        return None


def _sample_on_host(y_true: Any, probs: Any, check_later: bool) -> Sample:
    values = as_numbers(probs, "probs")
    if values.ndim == 1:
        confidence = check_confidences(values, are_fine=(lambda _: True) if check_later else _all_probabilities)
        correct = check_outcomes(y_true)
        check_same_length(y_true=correct, confidence=confidence)
        return Sample(confidence, correct)
    distributions = check_distributions(probs if holds_bfloat16(probs) else values)
    n_samples, n_classes = distributions.shape
    if n_samples == 0:
        raise ShapeError("probs is empty; at least one sample is needed.")
    return Sample.of_vectors(distributions, check_labels(y_true, n_samples, n_classes))


def check_doubt(doubt: Any, n_samples: int, what: str = "doubt") -> Floats:
    """One finite number per sample, larger where the prediction is more doubtful."""
    values = as_numbers(doubt, what).astype(np.float64)
    if values.shape != (n_samples,):
        raise ShapeError(f"{what} has shape {values.shape}; give one number per sample, shape ({n_samples},).")
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise NotFiniteError(f"{what} of sample {wrong[0]} is {values[wrong[0]]}; replace it by a finite number.")
    return values
