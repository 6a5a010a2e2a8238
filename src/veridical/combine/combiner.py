"""A way of combining sources, fitted where it has weights, and applied to predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from veridical._numpy_kernels import kernel_for
from veridical._parallel import run_blocks
from veridical.combine.across_samples.consensus import names_of, warn_of_camps
from veridical.combine.across_samples.weights import (
    apply_source_weights,
    counted_sources,
    gather_sums,
    is_mean,
    weigh_sources,
    weights_for_sources,
)
from veridical.combine.combined import Combined, CombineOptions, Floats, Labels
from veridical.combine.pools import (
    fit_linear_pool,
    fit_log_pool,
    linear_pool,
    log_pool,
    probabilities,
    sample_blocks,
)
from veridical.combine.projection import LABEL_MARGIN
from veridical.combine.registry import COMBINERS
from veridical.combine.small_inputs import mean_and_truth_of, mean_of, truth_of
from veridical.combine.truth import Truth
from veridical.predictions import Predictions
from veridical.predictions.validation import Array


@dataclass(frozen=True)
class Combiner:
    """A way of combining sources, with its fitted weights where it has any.

    Attributes
    ----------
    name : str
        One of :data:`veridical.combine.COMBINERS`.
    weights : (S,) float64, or None
        The linear pool's weights (they sum to one), the log pool's exponents, or those of the consensus.
    floor : float, or None
        The log pool's smallest probability.
    mean_weight : float, or None
        The log pool's exponent of the mean of the sources.
    dependence : (S, S) float64, or None
        How far the sources of the consensus repeat each other.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> combiner, _ = vd.combine.fit_combiner("linear-pool", predictions, predictions.labels, vd.Identity())
    >>> round(float(combiner.weights.sum()), 6)
    1.0
    """

    name: str
    weights: Floats | None = None
    floor: float | None = None
    mean_weight: float | None = None
    dependence: Floats | None = None

    @property
    def needs_same_sources(self) -> bool:
        """Whether weights belong to sources one by one."""
        return self.weights is not None

    def for_sources(self, known: list[int], n_new: int) -> Combiner:
        """The combiner for some of its sources, by number, followed by ``n_new`` that it was not fitted on.

        A new source has the mean of the fitted weights, to which the fit pulls a source that is never present; in the
        consensus it has typical skill, and depends on no other.
        """
        assert self.weights is not None
        if self.dependence is not None:
            weights, dependence = weights_for_sources(self.weights, self.dependence, known, n_new)
            return replace(self, weights=weights, dependence=dependence)
        weights = np.append(self.weights[known], np.full(n_new, self.weights.mean()))
        if self.name == "linear-pool":
            total = weights.sum()
            weights = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
        return replace(self, weights=weights)

    def apply(
        self,
        predictions: Predictions,
        options: CombineOptions,
        find_truth: Callable[[], Truth] | None = None,
        *,
        checked: bool = False,
    ) -> Combined:
        """Combine the predictions; ``find_truth`` as in :class:`Combined`, ``checked`` if their numbers are valid."""
        if self.weights is None:
            return apply_label_free(self.name, predictions, options, find_truth)
        if not checked:
            _check_numbers(predictions, options)
        return self._apply_weights(predictions, options, find_truth)

    def _apply_weights(
        self, predictions: Predictions, options: CombineOptions, find_truth: Callable[[], Truth] | None
    ) -> Combined:
        if self.dependence is not None:
            return self._apply_consensus(predictions, options, find_truth)
        probs = np.empty((predictions.n_samples, predictions.n_classes), predictions.result_dtype)

        def work(part: slice) -> None:
            block = probabilities(predictions, part)
            probs[part] = self._weighted(block)

        run_blocks(work, sample_blocks(predictions), options.n_threads)
        return Combined(probs, probs.argmax(axis=1), predictions, options, find_truth=find_truth)

    def _apply_consensus(
        self, predictions: Predictions, options: CombineOptions, find_truth: Callable[[], Truth] | None
    ) -> Combined:
        """The consensus with fitted weights; truth discovery on it starts from the same weights."""
        assert self.weights is not None
        assert self.dependence is not None
        if is_mean(self.weights, self.dependence):
            return apply_label_free("mean", predictions, options, find_truth)
        probs, _ = apply_source_weights(predictions, self.weights, self.dependence, options.n_threads)
        prediction = _argmax(probs)
        if COMBINERS[self.name].keeps_labels:
            prediction = mean_of(predictions, options.missing, options.n_threads)[1]
            kernel_for(probs, "projection", "project_rows_onto_winners")(probs, prediction, LABEL_MARGIN)
        weights = counted_sources(self.weights, self.dependence)
        return Combined(probs, prediction, predictions, options, source_weights=weights)

    def _weighted(self, block: Floats) -> Floats:
        assert self.weights is not None
        if self.name == "linear-pool":
            return linear_pool(block, self.weights)
        assert self.floor is not None
        assert self.mean_weight is not None
        return log_pool(block, self.weights, self.mean_weight, self.floor)


def apply_label_free(
    name: str,
    predictions: Predictions,
    options: CombineOptions,
    find_truth: Callable[[], Truth] | None = None,
) -> Combined:
    """The mean or truth discovery of the sources; ``find_truth`` as in :class:`Combined`.

    Parameters
    ----------
    name : {"mean", "tde", "atde"}
    predictions : Predictions
    options : CombineOptions
        An object with ``missing`` and ``n_threads``, such as a calibrator.

    Returns
    -------
    Combined

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> predictions = vd.Predictions(np.array([[[0.9, 0.1]], [[0.5, 0.5]]]))
    >>> vd.combine.apply_label_free("mean", predictions, vd.Identity()).probs
    array([[0.7, 0.3]])
    """
    if name == "mean":
        probs, labels, continue_to_truth = mean_of(predictions, options.missing, options.n_threads)
        return Combined(probs, labels, predictions, options, find_truth=find_truth or continue_to_truth)
    if name == "atde":
        truth = find_truth() if find_truth is not None else truth_of(predictions, options.missing, options.n_threads)
        return Combined(truth.probs, truth.prediction, predictions, options, find_truth=lambda: truth)
    truth = truth_of(predictions, options.missing, options.n_threads, accuracy_preserving=False)
    return Combined(truth.probs, _argmax(truth.probs), predictions, options, find_truth=find_truth)


def apply_mean_and_truth(predictions: Predictions, options: CombineOptions) -> dict[str, Combined]:
    """What :func:`apply_label_free` returns for "mean" and "atde", from one pass over the sources."""
    mean, truth = mean_and_truth_of(predictions, options.missing, options.n_threads)
    return {
        name: Combined(probs, truth.prediction, predictions, options, find_truth=lambda: truth)
        for name, probs in (("mean", mean), ("atde", truth.probs))
    }


def fit_combiner(
    name: str,
    predictions: Predictions,
    labels: Labels,
    options: CombineOptions,
    find_truth: Callable[[], Truth] | None = None,
    *,
    checked: bool = False,
) -> tuple[Combiner, Combined]:
    """The combiner of that name, fitted where it has weights, and the combined calibration data.

    ``find_truth`` as in :class:`Combined`; ``checked`` if the numbers of the predictions are known to be valid.

    Parameters
    ----------
    name : str
        A key of :data:`veridical.combine.COMBINERS`.
    predictions : Predictions
    labels : (N,) int64
    options : CombineOptions
        An object with ``missing`` and ``n_threads``, such as a calibrator.

    Returns
    -------
    (Combiner, Combined)

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(500))
    >>> combiner, combined = vd.combine.fit_combiner("linear-pool", predictions, predictions.labels, vd.Identity())
    >>> combined.probs.shape
    (500, 10)
    """
    if name in ("linear-pool", "log-pool") and not checked:
        _check_numbers(predictions, options)
    if name in ("consensus", "aconsensus"):
        sums, _ = gather_sums(predictions.with_unlabelled(), options.missing, options.n_threads)
        weights = weigh_sources(sums, options.n_threads)
        warn_of_camps(names_of(predictions), weights.camps)
        combiner = Combiner(name, weights.weights, dependence=weights.dependence)
    elif name == "linear-pool":
        combiner = Combiner(name, fit_linear_pool(predictions, labels, options.n_threads))
    elif name == "log-pool":
        exponents, mean_exponent, floor = fit_log_pool(predictions, labels, options.n_threads)
        combiner = Combiner(name, exponents, floor, mean_exponent)
    else:
        return Combiner(name), apply_label_free(name, predictions, options, find_truth)
    return combiner, combiner._apply_weights(predictions, options, find_truth)


def _check_numbers(predictions: Predictions, options: CombineOptions) -> None:
    """Raise where the numbers are invalid: computing the mean checks every row."""
    mean_of(predictions, options.missing, options.n_threads)


def _argmax(probs: Array) -> Labels:
    label: Labels = probs.argmax(axis=1)
    return label
