"""Calibration errors of confidences that are only known by sums over the cells of a fine grid.

Every value comes with a bound on its distance from the exact one.  Cell j is (j / G, (j + 1) / G]; 0 belongs to cell 0.
Within a cell, U is the sum of w over wrong samples and D the sum of 1 - w over right ones: whichever samples of the
cell are taken, their sum of w - c lies from -D to U.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from veridical.metrics.binned import equal_mass_cuts
from veridical.metrics.curve import ReliabilityCurve, band_from_moments
from veridical.metrics.kde import HALF_WIDTH, ReflectingGrid, default_bandwidth, ece_kde_of
from veridical.metrics.sample import Booleans, Floats, Sample

Indices = npt.NDArray[np.int64]

#: Moving samples within an interval of length h to their mean changes ECE-KDE by at most this times (h / H)^2, where H
#: is the half-width of the kernel: an eighth of the integral of |K''|, since their variance is at most h^2 / 4.
_CURVATURE = 0.94


class Bounded(NamedTuple):
    """A value, and how far it can be from the exact one."""

    value: float
    bound: float


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums over the occupied cells of a grid, in increasing order.

    Attributes
    ----------
    index : (K,) integers
    n_cells : int
        Occupied or not.
    count, correct : (K,) arrays
        Samples, and right ones among them.
    confidence, right_confidence : (K,) arrays
        Sums of the confidences of all samples, and of right ones.
    rounding : float
        How far each sample's confidence may be from what was added up.
    """

    index: Indices
    n_cells: int
    count: Floats
    correct: Floats
    confidence: Floats
    right_confidence: Floats
    rounding: float

    @property
    def n_samples(self) -> float:
        """All samples."""
        return float(self.count.sum())

    @property
    def edges(self) -> Floats:
        """All edges of the grid."""
        return np.linspace(0.0, 1.0, self.n_cells + 1)

    @property
    def gaps(self) -> Floats:
        """Sum of w - c per cell."""
        return self.confidence - self.correct

    def spans(self) -> tuple[Floats, Floats]:
        """U and D per cell."""
        up = np.maximum(self.confidence - self.right_confidence, 0.0)
        return up, np.maximum(self.correct - self.right_confidence, 0.0)

    def with_correct(self, correct: Floats) -> Cells:
        """The same confidences with other numbers of right samples, whose confidences are the cell's mean."""
        mean = self.confidence / self.count
        return Cells(self.index, self.n_cells, self.count, correct, self.confidence, correct * mean, self.rounding)

    def pairs(self) -> tuple[Floats, Booleans, Floats]:
        """(confidence, correct, weight): right and wrong samples of each cell at their mean confidences."""
        wrong = self.count - self.correct
        right, mistaken = self.correct > 0, wrong > 0
        confidence = np.concatenate(
            (
                self.right_confidence[right] / self.correct[right],
                (self.confidence - self.right_confidence)[mistaken] / wrong[mistaken],
            )
        )
        correct = np.arange(len(confidence)) < right.sum()
        weight = np.concatenate((self.correct[right], wrong[mistaken]))
        return np.clip(confidence, 0.0, 1.0), correct, weight


def binned_error(cells: Cells, bins: Indices) -> float:
    """ECE with every cell in one bin."""
    return float(np.abs(np.bincount(bins, cells.gaps)).sum() / cells.n_samples)


def _misplaced(cells: Cells, bins: Indices, divided: Indices, other: Indices, certain_pair: Booleans) -> float:
    """Largest change of a binned error if samples of the ``divided`` cells belong to the ``other`` bins.

    Samples whose sum of w - c is y change the error by 2 |y| at most, and not at all if both bins keep the same sign.
    Where a cell may belong to more than two bins (``certain_pair`` is False) the signs are not looked at.
    """
    up, down = cells.spans()
    most = np.maximum(up, down)[divided]
    here = bins[divided]
    n_bins = int(max(bins.max(), other.max(initial=0))) + 1
    sums = np.bincount(bins, cells.gaps, n_bins)
    slack = np.bincount(here, most, n_bins) + np.bincount(other, most, n_bins)
    sign = np.where(np.abs(sums) > slack, np.sign(sums), 0.0)
    harmless = certain_pair & (sign[here] * sign[other] > 0)
    return float(2 * most[~harmless].sum() / cells.n_samples) + cells.rounding


def equal_width_bins(cells: Cells, n_bins: int) -> tuple[Indices, Indices, Indices]:
    """The bin of each cell's mean, and the first and the last bin that the cell meets."""
    edges, grid = np.linspace(0.0, 1.0, n_bins + 1), cells.edges
    first = np.searchsorted(edges, grid[cells.index], side="right") - 1
    last = np.searchsorted(edges, grid[cells.index + 1], side="left") - 1
    by_mean = np.searchsorted(edges, cells.confidence / cells.count, side="left") - 1
    return np.clip(by_mean, first, last), first, last


def equal_width_error(cells: Cells, n_bins: int) -> Bounded:
    """ECE over equally wide bins; exact, up to rounding, if all edges of the bins are edges of the grid."""
    bins, first, last = equal_width_bins(cells, n_bins)
    divided = np.flatnonzero(first != last)
    other = np.where(bins == first, last, first)[divided]
    bound = _misplaced(cells, bins, divided, other, (last - first == 1)[divided])
    return Bounded(binned_error(cells, bins), bound)


def _cut_cells(cells: Cells, n_bins: int) -> tuple[Indices, Indices]:
    """Positions of the cells that hold the last samples of equal-mass bins, and of how many bins."""
    cuts = equal_mass_cuts(int(cells.n_samples), n_bins)
    positions, n_cuts = np.unique(np.searchsorted(np.cumsum(cells.count), cuts, side="right"), return_counts=True)
    return positions, n_cuts


def equal_mass_bins(cells: Cells, n_bins: int) -> tuple[Indices, Indices]:
    """(bin of each cell, positions of the cells that end a bin), with all samples of a cell in one bin."""
    ends, _ = _cut_cells(cells, n_bins)
    ends = ends[ends < len(cells.index) - 1]
    return np.searchsorted(ends, np.arange(len(cells.index)), side="left"), ends


def equal_mass_error(cells: Cells, n_bins: int) -> Bounded:
    """ECE over bins with equally many samples; only the samples of cells in which bins meet may be in a wrong bin."""
    bins, _ = equal_mass_bins(cells, n_bins)
    divided, n_cuts = _cut_cells(cells, n_bins)
    several = cells.count[divided] > 1
    divided, n_cuts = divided[several], n_cuts[several]
    return Bounded(binned_error(cells, bins), _misplaced(cells, bins, divided, bins[divided] + 1, n_cuts == 1))


def _sums_at_ends(cells: Cells) -> Floats:
    """|sum of w - c| up to the ends of cells."""
    return np.abs(np.concatenate(([0.0], np.cumsum(cells.gaps))))


def cumulative_value(cells: Cells) -> float:
    """KS error at the ends of cells."""
    return float(_sums_at_ends(cells).max() / cells.n_samples)


def cumulative_error(cells: Cells) -> Bounded:
    """KS error at the ends of cells; within a cell the sum rises by at most U and falls by at most D."""
    at_ends = _sums_at_ends(cells)
    up, down = cells.spans()
    within = np.maximum(at_ends[:-1], at_ends[1:]) + np.where(cells.count > 1, np.minimum(up, down), 0.0)
    value = float(at_ends.max() / cells.n_samples)
    return Bounded(value, max(float(within.max() / cells.n_samples) - value, 0.0) + cells.rounding)


def density_value(cells: Cells) -> float:
    """ECE-KDE with right and wrong samples of a cell at their mean confidences."""
    confidence, correct, weight = cells.pairs()
    return ece_kde_of(Sample(confidence, correct, weight=weight))


def density_error(cells: Cells) -> Bounded:
    """ECE-KDE with right and wrong samples of a cell at their mean confidences.

    The bound has three parts: samples are moved within their cells; the bandwidth lacks the variance within cells,
    which is at most a quarter of the squared width; and ECE-KDE itself spreads samples onto a grid, here and in the
    exact value.
    """
    confidence, correct, weight = cells.pairs()
    value = density_value(cells)
    if cells.correct.sum() <= 1:  # the bandwidth is zero in any case, and the value |mean confidence - accuracy|
        return Bounded(value, cells.rounding)
    bandwidth, width = default_bandwidth(confidence, correct, weight), 1 / cells.n_cells
    if HALF_WIDTH * bandwidth < width:  # kernels within a cell: nothing is known about them
        return Bounded(value, max(value, 1 - value))
    grid = ReflectingGrid.around(confidence, bandwidth, weight)
    spread = bandwidth * (2 * cells.n_samples) ** 0.2
    moved = _CURVATURE * (width / grid.half_width) ** 2
    widened = 2 * (np.sqrt(1 + (width / (2 * spread)) ** 2) - 1)
    discretised = 2 * _CURVATURE * (grid.step / grid.half_width) ** 2
    return Bounded(value, min(float(moved + widened + discretised), max(value, 1 - value)))


def curve_of_cells(cells: Cells, n_bins: int, confidence_level: float) -> ReliabilityCurve:
    """The reliability curve over the bins of :func:`equal_mass_error`, whose edges are edges of the grid."""
    bins, ends = equal_mass_bins(cells, n_bins)
    count, confidence, correct = (
        np.bincount(bins, sums).astype(np.float64) for sums in (cells.count, cells.confidence, cells.correct)
    )
    mean = cells.confidence / cells.count
    spread = cells.count * mean * (1 - mean)
    variance = np.bincount(bins, spread) / count**2
    third = np.bincount(bins, spread * (1 - 2 * mean)) / count**3
    tail = (1 - confidence_level) / 2
    bands = [
        band_from_moments(float(m), float(v), float(t), tail)
        for m, v, t in zip(confidence / count, variance, third, strict=True)
    ]
    low, high = np.array(bands).T
    edges = np.concatenate(([0.0], cells.edges[cells.index[ends] + 1], [1.0]))
    return ReliabilityCurve(edges, count, confidence / count, correct / count, low, high, confidence_level)
