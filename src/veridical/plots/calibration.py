"""Reliability diagrams and histograms of confidences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from veridical.errors import ParameterError
from veridical.evaluation.curves import ConfidenceHistogram
from veridical.metrics import reliability_curve
from veridical.metrics.sample import Sample, check_sample
from veridical.plots.style import (
    LEVEL_BOUNDS,
    N_LEVELS,
    axes_or_new,
    colour,
    legend_of_colours,
    level_role,
    styled,
)
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import check_integer, check_real

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def outcomes_and_probs(y_true: Any, probs: Any) -> tuple[Any, Any]:
    """Labels (or booleans) and distributions (or confidences), from arrays or from results.

    Samples of a result whose label is not known are left out.
    """
    if probs is None:
        if getattr(y_true, "labels", None) is None or not hasattr(y_true, "probs"):
            raise ParameterError(
                f"probs is missing and {type(y_true).__name__} does not hold labels and distributions; give labels "
                "and probabilities of shape (samples, classes)."
            )
        known = np.asarray(y_true.labels) != UNKNOWN
        return y_true.labels[known], y_true.probs[known]
    return y_true, getattr(probs, "probs", probs)


@runtime_checkable
class ReliabilityBins(Protocol):
    """The bins of a reliability diagram: a ReliabilityCurve, or a panel of a report."""

    @property
    def edges(self) -> Sequence[float]: ...
    @property
    def counts(self) -> Sequence[float]: ...
    @property
    def confidence(self) -> Sequence[float]: ...
    @property
    def accuracy(self) -> Sequence[float]: ...
    @property
    def low(self) -> Sequence[float]: ...
    @property
    def high(self) -> Sequence[float]: ...


@styled
def reliability_diagram(
    y_true: Any,
    probs: Any = None,
    *,
    n_bins: int = 15,
    edges: Any = None,
    lowest: float | None = None,
    most: float | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Accuracy against confidence in bins, with the band in which calibrated confidences would lie.

    A bar is as high as the share of right predictions in its bin, and its colour shows the number of samples.  A dot
    is at the mean confidence and the accuracy of a bin.  The stroke behind it is the consistency band: where the
    accuracy falls 95 times of 100 if the confidences are right.

    Parameters
    ----------
    y_true : (N,) labels, (N,) booleans, or a result
        A :class:`veridical.metrics.ReliabilityCurve`, or calibrated predictions with labels, need no ``probs``.
    probs : (N, L) or (N,) array, or a result with ``probs``
        Distributions, or confidences with boolean ``y_true``.
    n_bins, edges
        As in :func:`veridical.metrics.reliability_curve`.
    lowest : float, optional
        Where the axis of confidence begins; by default a tenth below the least confident bin.
    most : float, optional
        The number of samples that has the strongest colour; by default that of the largest bin.
    legend : bool
        Add the meaning of colours.
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.reliability_diagram([True, True, False, True], [0.9, 0.8, 0.7, 0.6], n_bins=2)
    >>> ax.get_ylabel()
    'accuracy'
    """
    bins = y_true
    if not isinstance(bins, ReliabilityBins):
        bins = reliability_curve(*outcomes_and_probs(y_true, probs), n_bins=n_bins, edges=edges)
    lowest = lowest_confidence([bins]) if lowest is None else check_real(lowest, "lowest", 0.0, 0.99)
    most = max(bins.counts) if most is None else check_real(most, "most", 1.0)
    axes = axes_or_new(ax, 4.5, 4.3)
    _draw_bars(axes, bins, most, lowest)
    axes.plot([lowest, 1], [lowest, 1], color=colour("quiet"), linewidth=1, linestyle=(0, (4, 3)))
    _draw_bands(axes, bins)
    axes.set(xlim=(lowest, 1.004), ylim=(0, 1.02), xlabel="confidence", ylabel="accuracy")
    axes.grid(True)
    if legend:
        # Only colours that occur: all levels would cover bars at the left.
        drawn = {level_role(count / most) for count in bins.counts if count}
        entries = [(role, text) for role, text in count_legend(most) if role in drawn]
        legend_of_colours(axes, entries, "samples in a bin", loc="upper left")
    return axes


def lowest_confidence(panels: Sequence[ReliabilityBins]) -> float:
    """Where the axis of confidence begins in all diagrams: below the least confident bin, at a tenth."""
    shown = [value for panel in panels for value in panel.confidence if not math.isnan(value)]
    return min(max(math.ceil(10 * min(shown)) - 1, 0) / 10, 0.8) if shown else 0.0


def count_legend(most: float) -> list[tuple[str, str]]:
    """(role of the colour, which numbers of samples have it)."""
    bounds = [0, *(math.floor(bound * most) for bound in LEVEL_BOUNDS), round(most)]
    pairs = [(bounds[k] + 1, bounds[k + 1]) for k in range(N_LEVELS)]
    return [(f"level-{k}", f"{low:,}–{high:,}") for k, (low, high) in enumerate(pairs) if low <= high]


def _draw_bars(axes: Axes, bins: ReliabilityBins, most: float, lowest: float) -> None:
    for b, count in enumerate(bins.counts):
        left, right = max(bins.edges[b], lowest), bins.edges[b + 1]
        if not count or right <= left:
            continue
        (bar,) = axes.bar(
            left,
            bins.accuracy[b],
            right - left,
            align="edge",
            color=colour(level_role(count / most)),
            edgecolor=colour("surface"),
            linewidth=0.8,
        )
        bar.set_gid(f"bin-{b}")


def _draw_bands(axes: Axes, bins: ReliabilityBins) -> None:
    for b, count in enumerate(bins.counts):
        if not count:
            continue
        where = bins.confidence[b]
        (band,) = axes.plot(
            [where, where], [bins.low[b], bins.high[b]], color=colour("band"), linewidth=3.4, solid_capstyle="round"
        )
        (dot,) = axes.plot(where, bins.accuracy[b], "o", color=colour("ink"), markersize=3.6, zorder=5, clip_on=False)
        band.set_gid(f"band-{b}")
        dot.set_gid(f"dot-{b}")


@styled
def confidence_histogram(
    y_true: Any,
    probs: Any = None,
    *,
    n_bins: int = 20,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """How often which confidence is stated, for right and wrong predictions, with mean confidence and accuracy.

    Parameters
    ----------
    y_true, probs
        As in :func:`reliability_diagram`; or a histogram of a report.
    n_bins : int
    legend : bool
        Add the meaning of colours and lines.
    ax : matplotlib Axes, optional
        By default a new figure is made.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import veridical as vd
    >>> ax = vd.plots.confidence_histogram([True, True, False], [0.9, 0.8, 0.7], n_bins=10)
    >>> ax.get_xlabel()
    'confidence'
    """
    histogram = y_true
    if not isinstance(histogram, ConfidenceHistogram):
        sample: Sample = check_sample(*outcomes_and_probs(y_true, probs))
        histogram = ConfidenceHistogram.of("", sample, check_integer(n_bins, "n_bins", 1))
    axes = axes_or_new(ax, 4.5, 2.6)
    width = histogram.edges[1] - histogram.edges[0]
    for b, (right, wrong) in enumerate(zip(histogram.right, histogram.wrong, strict=True)):
        for side, count, bottom in (("right", right, 0), ("wrong", wrong, right)):
            if not count:
                continue
            (bar,) = axes.bar(
                histogram.edges[b],
                count,
                width,
                bottom=bottom,
                align="edge",
                color=colour(side),
                edgecolor=colour("surface"),
                linewidth=0.6,
            )
            bar.set_gid(f"{side}-{b}")
    ink: dict[str, Any] = {"color": colour("ink"), "linewidth": 1.2}
    axes.axvline(histogram.mean_confidence, label="mean confidence", **ink)
    axes.axvline(histogram.accuracy, linestyle=(0, (1, 1.4)), label="accuracy", **ink)
    axes.set(xlabel="confidence", ylabel="samples")
    axes.locator_params(axis="y", nbins=3)
    if legend:
        from matplotlib.patches import Patch

        patches = [Patch(color=colour(side), label=side) for side in ("right", "wrong")]
        axes.legend(handles=[*patches, *axes.get_legend_handles_labels()[0]], loc="upper left")
    return axes
