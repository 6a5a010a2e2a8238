"""Histogram binning of the top label's score, and scores that are equal up to rounding.

Votes and forests give few distinct scores, which rounding scatters: the mean of the same predictions in another order
is another float.  A fit takes scores in one narrow cell for one, and cuts between cells, so that the last bit of a
score decides nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.backends.rows import value_of_bin
from veridical.calibrate.base import Calibrator
from veridical.combine.combined import Floats
from veridical.combine.state_checks import check_array, check_rising
from veridical.metrics.binned import MOST_BINS, bin_edges
from veridical.predictions.validation import check_integer

#: Scores from 0 to 1 are told apart in cells about 1e-9 wide; those that were rounded to single precision, whose errors
#: are relative, in cells of about 1e-6 of themselves.  Their ends are irrational multiples, so that scores such as 0.5
#: and 1/3, around which rounding scatters, are not on one.
_CELLS, _RELATIVE_CELLS, _FIRST = 1e9 * np.pi / 3, 1e6 * np.pi / 3, np.sqrt(2) - 1
#: Where a cut lies between two scores.  Halfway is where new votes fall (0.5 is between 0.4 and 0.6); at an irrational
#: part a little below, no mean of votes does.
_CUT = np.sqrt(0.24)


def cells_of(scores: Floats, single: bool = False) -> Floats:
    """The number of each score's cell, which rises with the score."""
    scaled = _RELATIVE_CELLS * np.log(np.maximum(scores, 1e-30)) if single else scores * _CELLS
    cells: Floats = np.floor(scaled + _FIRST)
    return cells


def last_of_cells(ordered: Floats, single: bool = False) -> Floats:
    """Sorted scores, each as the largest of its cell."""
    if not len(ordered):
        return ordered
    ends = np.append(np.diff(cells_of(ordered, single)) > 0, True)
    sizes = np.diff(np.flatnonzero(ends), prepend=-1)
    return np.repeat(ordered[ends], sizes)


def cuts_above(scores: Floats, ordered: Floats, single: bool = False) -> Floats:
    """Where to cut above some of the sorted scores ``ordered``; strictly rising, and none above the largest."""
    above = np.unique(cells_of(ordered, single).searchsorted(cells_of(scores, single), side="right"))
    above = above[above < len(ordered)]
    lower, upper = ordered[above - 1], ordered[above]
    return np.unique(lower + _CUT * (upper - lower))


def inner_edges(scores: Floats, n_bins: int, weight: Floats | None = None, *, single: bool = False) -> Floats:
    """Edges between bins of equal mass, strictly rising, each between two distinct scores: ties share a bin, and no
    bin is empty."""
    return cuts_above(bin_edges(scores, n_bins, weight=weight)[1:-1], np.sort(scores), single)


def bins_of(scores: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """The bin (lo, hi] of each score; those beyond the calibration range go to the end bins."""
    return edges.searchsorted(scores, side="left")


def check_edges(edges: Floats, values: Floats) -> None:
    """Raise ValueError unless ``edges`` are scores that separate as many bins as there are values."""
    check_array(edges, "edges_", (-1,), 0.0, 1.0)
    check_rising(edges, "edges_")
    if values.shape != (len(edges) + 1,):
        raise ValueError(f"{values.shape} values do not belong to the bins between {len(edges)} edges")


class HistogramBinning(Calibrator):
    """Histogram binning: the accuracy of the bin that the top label's score falls in.

    Parameters
    ----------
    n_bins : int
        Bins of equal mass over the confidences of the calibration samples.

    Other parameters are those of every calibrator.

    Attributes
    ----------
    edges_ : (B - 1,) array
        Edges between the bins (lo, hi], each between two scores of the fit that differ by more than rounding.
    accuracy_ : (B,) array

    References
    ----------
    Zadrozny, Elkan: Obtaining Calibrated Probability Estimates from Decision Trees and Naive Bayesian Classifiers.
    ICML 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[0.6, 0.4]] * 9 + [[0.4, 0.6]])
    >>> vd.HistogramBinning().fit(probs, np.zeros(10, dtype=int)).predict_confidence(probs)[0].round(3)
    np.float64(0.9)
    """

    name = "histogram"
    summary = "Histogram binning: the accuracy of the top label's bin."
    complexity = 4
    _state = ("edges_", "accuracy_")

    n_bins: int = 15

    def _fit_pairs(
        self, confidence: Floats, correct: npt.NDArray[np.bool_], weight: Floats | None = None, *, single: bool = False
    ) -> None:
        edges = inner_edges(confidence, self.n_bins, weight, single=single)
        bins = bins_of(confidence, edges)
        counts = np.bincount(bins, weights=weight, minlength=len(edges) + 1)
        right = correct if weight is None else correct * weight
        hits = np.bincount(bins, weights=right, minlength=len(edges) + 1)
        self.edges_ = edges
        self.accuracy_ = hits / counts

    def formula(self, xp: Any, combined: Any) -> Any:
        edges, accuracy = combined.constant(self.edges_), combined.constant(self.accuracy_)
        return value_of_bin(xp, combined.confidence, edges, accuracy)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_integer(self.n_bins, "n_bins", 1, MOST_BINS)

    def _check_state(self) -> None:
        check_array(self.accuracy_, "accuracy_", (-1,), 0.0, 1.0)
        check_edges(self.edges_, self.accuracy_)
