"""Calibration errors over bins of confidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from veridical._parallel import run_blocks
from veridical.backends.foreign import also_foreign
from veridical.errors import ParameterError, shown
from veridical.metrics.sample import Floats, Sample, check_sample, check_sample_weight
from veridical.predictions.sums import tolerance_of
from veridical.predictions.validation import as_numbers, check_choice, check_confidences, check_integer, check_real

Binning = Literal["mass", "width"]
Norm = Literal[1, 2, "max"]
BINNINGS = ("mass", "width")
#: The largest number of bins; more would only take memory.
MOST_BINS = 1_000_000

_BLOCK = 1 << 19


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a metric was called with; its formula is then evaluated many times without looking at them."""
    return {name: _CHECKS[name](value) if name in _CHECKS else value for name, value in options.items()}


def _check_norm(norm: Any) -> Any:
    is_name = isinstance(norm, (int, float, str, np.number)) and not isinstance(norm, bool)
    if not is_name or norm not in (1, 2, "max"):  # the comparison of an array has no truth value
        raise ParameterError(f"norm {shown(norm)} is unknown; choose one of: 1, 2, 'max'.")
    return norm


def _check_bandwidth(bandwidth: Any) -> float | None:
    # Infinity is the limit of wide kernels: both densities are uniform.
    if bandwidth is None or (isinstance(bandwidth, float) and bandwidth == np.inf):
        return bandwidth
    return check_real(bandwidth, "bandwidth", 0.0)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "n_bins": lambda n_bins: check_integer(n_bins, "n_bins", 1, MOST_BINS),
    "binning": lambda binning: check_choice(binning, BINNINGS, "binning"),
    "norm": _check_norm,
    "bandwidth": _check_bandwidth,
}


@also_foreign()
def bin_edges(confidence: Any, n_bins: int = 15, binning: str = "mass", weight: Any = None) -> Floats:
    """Edges of the bins (lo, hi] that :func:`ece` uses, from 0 to 1.

    Parameters
    ----------
    confidence : (N,) array of numbers from 0 to 1, in any order
        A top probability that rounding left just above 1 counts as 1.
    n_bins : int
    binning : {"mass", "width"}
        ``"width"``: equally spaced.  ``"mass"``: the upper edge of bin i is the sorted confidence number
        ``(i + 1) * (N // n_bins)``, counted from 0; with fewer than two samples per bin there are
        ``min(n_bins, N)`` bins, cut after ``round(i N / n_bins)`` samples.
    weight : (N,) array, optional
        Whole numbers count repetitions, so the edges are those of the repeated sample.  Otherwise the edges are
        where the cumulative weight reaches equal shares.

    Returns
    -------
    (B + 1,) array
        Non-decreasing.  Equal edges enclose nothing; the bin between them stays empty.

    Examples
    --------
    >>> import numpy as np
    >>> bin_edges(np.array([0.2, 0.4, 0.6, 0.8]), n_bins=2)
    array([0. , 0.6, 1. ])
    """
    n_bins, binning = checked_options({"n_bins": n_bins, "binning": binning}).values()
    values = as_numbers(confidence, "confidence")
    above = values > 1
    if above.any():
        values = np.where(above & (values <= 1 + tolerance_of(values.dtype)), 1.0, values)
    values = check_confidences(values)
    return _edges(values, n_bins, binning, None if weight is None else check_sample_weight(weight, len(values)))


def _edges(confidence: Floats, n_bins: int, binning: str, weight: Floats | None) -> Floats:
    """:func:`bin_edges` of checked input."""
    if binning == "width":
        return np.linspace(0.0, 1.0, n_bins + 1)
    if weight is None:
        cuts = equal_mass_cuts(len(confidence), n_bins)
        inner = np.partition(confidence, cuts)[cuts] if len(cuts) else confidence[:0]
    else:
        order = np.argsort(confidence, kind="stable")
        inner = confidence[order][_weighted_cuts(weight[order], n_bins)]
    return np.concatenate(([0.0], inner, [1.0]))


def equal_mass_cuts(n_samples: int, n_bins: int) -> npt.NDArray[np.intp]:
    """Positions, in sorted order, of the samples that close all bins but the last."""
    if n_samples >= 2 * n_bins:
        return np.minimum(np.arange(1, n_bins) * (n_samples // n_bins), n_samples - 1)
    n_bins = min(n_bins, n_samples)
    return np.rint(np.arange(1, n_bins) * n_samples / n_bins).astype(np.intp) - 1


def _count_repetitions(weight: Floats) -> bool:
    """Whether weights are whole numbers, which count repetitions."""
    return np.array_equal(weight, np.floor(weight))


def _weighted_cuts(weight: Floats, n_bins: int) -> npt.NDArray[np.intp]:
    """The same positions if sorted sample i counts ``weight[i]`` times."""
    cumulative = np.cumsum(weight)
    if _count_repetitions(weight):
        return np.searchsorted(cumulative, equal_mass_cuts(int(cumulative[-1]), n_bins), side="right")
    shares = np.arange(1, n_bins) * (float(cumulative[-1]) / n_bins)
    return np.searchsorted(cumulative, shares * (1 - 1e-12), side="left")


def sums_per_bin(sample: Sample, edges: Floats, *, equal_width: bool = False) -> Floats:
    """Sums of weight, confidence and correct per bin, shape (3, B)."""
    from veridical._kernels.binning import bin_sums  # loads the compiler

    def block_sums(start: int) -> tuple[Floats, bool]:
        part = slice(start, start + _BLOCK)
        weight = None if sample.weight is None else sample.weight[part]
        return bin_sums(sample.confidence[part], sample.correct[part], weight, edges, equal_width)  # type: ignore[no-any-return]

    sums, fine = zip(*run_blocks(block_sums, range(0, len(sample), _BLOCK)), strict=True)
    if not all(fine):
        check_confidences(sample.confidence)  # raises an error that names the sample
    total: Floats = np.sum(sums, axis=0)
    return total


def _sample_edges(sample: Sample, n_bins: int, binning: str) -> Floats:
    if sample.in_order and binning == "mass":
        cuts = equal_mass_cuts(len(sample), n_bins) if sample.weight is None else _weighted_cuts(sample.weight, n_bins)
        return np.concatenate(([0.0], sample.confidence[cuts], [1.0]))
    return _edges(sample.confidence, n_bins, binning, sample.weight)


def bins_of(sample: Sample, n_bins: int, binning: str) -> tuple[Floats, Floats]:
    """(edges, sums per bin) of a sample; where only outcomes are drawn again, only they are added up again."""
    key = "bins", n_bins, binning
    if key not in sample.fixed:
        edges = _sample_edges(sample, n_bins, binning)
        sums = sums_per_bin(sample, edges, equal_width=binning == "width")
        if sample.in_order:
            starts = np.concatenate(([0], np.searchsorted(sample.confidence, edges[1:-1], side="right")))
            sample.fixed[key] = edges, sums[:2], starts
        return edges, sums
    edges, unchanged, starts = sample.fixed[key]
    right = sample.correct.astype(np.float64) if sample.weight is None else sample.weight * sample.correct
    ends = np.concatenate((starts[1:], [len(sample)]))
    filled = starts < ends
    correct = np.zeros(len(starts))
    correct[filled] = np.add.reduceat(right, starts[filled])
    return edges, np.vstack((unchanged, correct))


def ece_of(sample: Sample, *, n_bins: int = 15, binning: str = "mass", norm: Norm = 1) -> float:
    """:func:`ece` of a checked sample, with checked options."""
    _, (weight, confidence, correct) = bins_of(sample, n_bins, binning)
    filled = weight > 0
    gaps = np.abs(confidence - correct)[filled]
    if norm == 1:
        return float(gaps.sum() / weight.sum())
    gaps /= weight[filled]
    return float(gaps.max() if norm == "max" else np.sqrt(gaps**2 @ weight[filled] / weight.sum()))


def ece(
    y_true: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    binning: Binning = "mass",
    norm: Norm = 1,
    sample_weight: Any = None,
) -> float:
    r"""Expected calibration error: the mean gap between confidence and accuracy over bins of confidence.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{N} \, |\mathrm{conf}(b) - \mathrm{acc}(b)|

    The error of the top label, for any number of classes.  Bins are (lo, hi], 0 belongs to the first
    and 1 to the last; see :func:`bin_edges`.

    Parameters
    ----------
    y_true : (N,) integers, or (N,) booleans
        Labels; or, with one-dimensional ``probs``, whether each prediction is right.
    probs : (N, L) array, or (N,) array
        Probabilities; or the confidence in each prediction.
    n_bins : int
    binning : {"mass", "width"}
        Bins with equally many samples, or equally wide ones.
    norm : {1, 2, "max"}
        Mean gap, root mean squared gap, or the largest gap of any bin that holds samples (MCE).
    sample_weight : (N,) array, optional
        Whole numbers act as repetitions.

    Returns
    -------
    float
        From 0 to 1.

    References
    ----------
    Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities using Bayesian binning", AAAI 2015.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.ece([True, True, False, True], [0.9, 0.8, 0.7, 0.6], n_bins=1), 12)
    0.0
    """
    # With equally wide bins one kernel both checks and adds up the confidences.
    sample = check_sample(y_true, probs, sample_weight, check_later=isinstance(binning, str) and binning == "width")
    return ece_of(sample, **checked_options({"n_bins": n_bins, "binning": binning, "norm": norm}))


def classwise_ece_of(sample: Sample, *, n_bins: int = 15, binning: str = "mass", norm: Norm = 1) -> float:
    """:func:`classwise_ece` of a checked sample."""
    probs, labels = sample.vectors("classwise_ece")

    def one_class(l: int) -> float:
        column = np.ascontiguousarray(probs[:, l], dtype=np.float64)
        return ece_of(Sample(column, labels == l, weight=sample.weight), n_bins=n_bins, binning=binning, norm=norm)

    return float(np.mean(run_blocks(one_class, range(probs.shape[1]))))


def classwise_ece(
    y_true: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    binning: Binning = "mass",
    norm: Norm = 1,
    sample_weight: Any = None,
) -> float:
    """Mean over classes of the calibration error of each class's probability.

    For class l, all N probabilities of that class are binned and compared with how often the label is l.  A class
    that never occurs counts like any other: its probabilities should be small.

    Parameters
    ----------
    y_true : (N,) integers
    probs : (N, L) array
    n_bins, binning, norm, sample_weight
        As in :func:`ece`.

    Returns
    -------
    float
        From 0 to 1.

    References
    ----------
    Kull et al., "Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with Dirichlet
    calibration", NeurIPS 2019.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.classwise_ece([0, 1], [[0.75, 0.25], [0.25, 0.75]]), 12)
    0.25
    """
    sample = check_sample(y_true, probs, sample_weight)
    return classwise_ece_of(sample, **checked_options({"n_bins": n_bins, "binning": binning, "norm": norm}))


def debiased_ece_of(sample: Sample, *, n_bins: int = 15, binning: str = "mass") -> float:
    """:func:`debiased_ece` of a checked sample."""
    edges, sums = bins_of(sample, n_bins, binning)
    filled = sums[0] > 0
    weight, confidence, correct = sums[:, filled]
    n_samples = weight
    if sample.weight is not None and not _count_repetitions(sample.weight):
        # Kish's effective size, (sum of weights)^2 / sum of squared weights; 1 for one sample, up to rounding.
        largest = sample.weight.max()  # dividing by it, so that squares neither overflow nor vanish needlessly
        squared = sample.reweighted((sample.weight / largest) ** 2)
        squares = sums_per_bin(squared, edges, equal_width=binning == "width")[0, filled]
        size = np.divide((weight / largest) ** 2, squares, out=np.ones_like(weight), where=squares > 0)
        n_samples = np.round(size, 9)
    accuracy = correct / weight
    squared_gap = (confidence / weight - accuracy) ** 2
    # The squared gap contains the variance of the bin's accuracy, which one sample cannot estimate.
    several = n_samples > 1
    variance = accuracy[several] * (1 - accuracy[several]) / (n_samples[several] - 1)
    return float(np.sqrt(max((squared_gap[several] - variance) @ weight[several] / weight.sum(), 0.0)))


def debiased_ece_limit(sample: Sample, *, n_bins: int = 15, binning: str = "mass") -> float:
    """The error without the variance of outcomes."""
    return ece_of(sample, n_bins=n_bins, binning=binning, norm=2)


def debiased_ece(
    y_true: Any, probs: Any, *, n_bins: int = 15, binning: Binning = "mass", sample_weight: Any = None
) -> float:
    r"""Root of the debiased squared calibration error.

    .. math:: \Big(\sum_b \frac{n_b}{N} \Big[(\mathrm{conf}(b) - \mathrm{acc}(b))^2
              - \frac{\mathrm{acc}(b)(1 - \mathrm{acc}(b))}{n_b - 1}\Big]\Big)_+^{1/2}

    The plain estimate contains the variance of each bin's accuracy and so stays above zero for a perfectly
    calibrated model; here that variance is subtracted.  A negative sum gives 0.  A bin with one sample
    contributes 0, because its variance cannot be estimated.  If not all weights are whole numbers, :math:`n_b` is the
    bin's effective size :math:`(\sum w)^2 / \sum w^2`, which does not depend on the weights' scale.

    Parameters
    ----------
    y_true, probs, n_bins, binning, sample_weight
        As in :func:`ece`.

    Returns
    -------
    float
        From 0 to 1.

    References
    ----------
    Kumar, Liang and Ma, "Verified uncertainty calibration", NeurIPS 2019; for the effective size, Kish, "Survey
    sampling", Wiley 1965.

    Examples
    --------
    >>> from veridical import metrics
    >>> round(metrics.debiased_ece([True, True, True, True], [0.5, 0.5, 0.5, 0.5], n_bins=1), 12)
    0.5
    """
    sample = check_sample(y_true, probs, sample_weight)
    return debiased_ece_of(sample, **checked_options({"n_bins": n_bins, "binning": binning}))
