"""A fixed-size summary of any number of predictions, from which calibration metrics are computed; summaries merge."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._atomic import as_path, write_atomically
from veridical._json import read_json, to_json
from veridical._kernels.cells import add_to_cells
from veridical._parallel import run_blocks
from veridical.errors import CorruptFileError, FileFormatError, ParameterError, ShapeError, shown
from veridical.metrics.cells import Cells
from veridical.metrics.floors import NoiseFloor, check_quantiles
from veridical.metrics.resampling import MOST_DRAWS
from veridical.metrics.sample import Booleans, Floats, Sample, check_sample
from veridical.metrics.state_summary import StateSummary, check_errors, floor_draws, summarise
from veridical.predictions.validation import RandomState, check_integer, check_real

Integers = npt.NDArray[np.int64]

#: 15 * 2^10 cells, 6.5e-5 wide; their edges include those of 15 equally wide bins.
DEFAULT_CELLS = 15 << 10
_MOST_CELLS = 1 << 20
#: Confidences and losses are added up as whole multiples of 2^-36, so that sums do not depend on their order.
_BITS = 36
_TYPE, _SCHEMA = "calibration state", 1
_ARRAYS = ("count", "correct", "offset", "right_offset")
_SCALARS = ("n_with_distributions", "nll", "n_infinite", "brier")
#: How many numbers are worked on at a time.
_BLOCK_NUMBERS = 1 << 20


class CalibrationState:
    """Counts and sums over a fine grid of confidences, which can be updated and merged.

    A state has the same size for any number of samples (0.5 MB by default).  Samples may be added in any portions and
    any order, and states merged in any order: the result is the same to the last bit, because all sums are sums of
    integers.  Use it where predictions do not fit in memory, on several machines, or over time: one state per hour.

    Parameters
    ----------
    n_cells : int
        Cells of the grid.  Samples in the same cell count as having equal confidences; the default width is 6.5e-5.

    See Also
    --------
    veridical.metrics.summary : the same metrics, exactly, for arrays in memory.

    Examples
    --------
    >>> from veridical.metrics import CalibrationState
    >>> monday = CalibrationState().update([True, False], [0.75, 0.75])
    >>> tuesday = CalibrationState().update([True, True], [0.75, 0.75])
    >>> both = monday.merge(tuesday)
    >>> both.n_samples, both.compute()["ece"]
    (4, 0.0)
    """

    def __init__(self, n_cells: int = DEFAULT_CELLS) -> None:
        self.n_cells = check_integer(n_cells, "n_cells", 1, _MOST_CELLS)
        self.count, self.correct, self.offset, self.right_offset = np.zeros((4, self.n_cells), dtype=np.int64)
        self.n_with_distributions = 0
        self.nll = self.n_infinite = self.brier = 0

    @property
    def n_samples(self) -> int:
        """How many samples were added."""
        return int(self.count.sum())

    @property
    def capacity(self) -> int:
        """How many samples fit; by default about 10^12."""
        return int((1 << 62) // ((1 << _BITS) // self.n_cells + 2))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CalibrationState):
            return NotImplemented
        arrays = all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _ARRAYS)
        return arrays and all(getattr(self, name) == getattr(other, name) for name in _SCALARS)

    __hash__ = None  # type: ignore[assignment]  # states change

    def __repr__(self) -> str:
        return f"CalibrationState(n_cells={self.n_cells}): {self.n_samples:,} samples"

    def update(self, y_true: Any, probs: Any) -> CalibrationState:
        """Add samples; either all of them are added or, after an error, none.

        Parameters
        ----------
        y_true, probs
            Labels with (N, L) probabilities, or booleans with (N,) confidences, as in :func:`veridical.metrics.ece`.
            NLL and Brier are available if all samples of a state have distributions.

        Returns
        -------
        CalibrationState
            This state.
        """
        sample = check_sample(y_true, probs)
        part = CalibrationState(self.n_cells)
        part._add_outcomes(sample)
        if sample.probs is not None:
            part._add_losses(sample)
        self._add(part)
        return self

    def update_sample(self, sample: Sample) -> CalibrationState:
        """Add a checked sample, with its NLL and Brier losses where it has them; for callers inside the library."""
        part = CalibrationState(self.n_cells)
        part._add_outcomes(sample)
        if sample.has("nll") and sample.has("brier"):
            part._add_known_losses(sample.losses("nll"), sample.losses("brier"))
        self._add(part)
        return self

    def merge(self, *others: CalibrationState) -> CalibrationState:
        """A new state of the samples of this one and of others, which must have equally many cells."""
        result = CalibrationState(self.n_cells)
        for state in (self, *others):
            if not isinstance(state, CalibrationState):
                raise ParameterError(f"cannot merge {shown(state)} with a state; give a CalibrationState.")
            result._add(state)
        return result

    def compute(self, *, n_bins: int = 15, confidence_level: float = 0.95) -> StateSummary:
        """Metrics of all samples, each with a bound on its error, and the reliability curve.

        Parameters
        ----------
        n_bins : int
        confidence_level : float
            Of the band of the reliability curve.

        Returns
        -------
        StateSummary

        Notes
        -----
        All values are exact for confidences that are moved, within their cells, by less than ``resolution``, the cell
        width.  ``bounds`` are limits of the error for the confidences as they are, computed from the sums of the cells:

        - accuracy: none; NLL, Brier, and equal-width ECE whose edges are edges of the grid: 2^-36;
        - equal-mass ECE, and equal-width ECE otherwise: 2 max(U, D) / N, summed over the cells in which bins meet whose
          sums of w - c may differ in sign (between bins of the same sign samples move without effect);
        - KS: the largest min(U, D) / N that can add to the maximum;
        - ECE-KDE: 0.94 (h / H)^2 with cell width h and kernel half-width H, a like term for the bandwidth, and 3e-5 for
          the grid on which ECE-KDE itself is evaluated,

        where U is a cell's sum of w over wrong samples and D its sum of 1 - w over right ones.
        """
        n_bins = check_integer(n_bins, "n_bins", 1, self.n_cells)
        level = check_real(confidence_level, "confidence_level", 0.0, 1.0)
        return summarise(self.cells(), self._mean_losses(), n_bins, level)

    def noise_floors(
        self,
        metrics: Collection[str] | None = None,
        *,
        n_bins: int = 15,
        n_draws: int = 200,
        quantiles: Any = (0.05, 0.5, 0.95),
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> dict[str, NoiseFloor]:
        """Calibration errors of the same confidences under perfect calibration.

        Like :func:`veridical.metrics.noise_floor`, but right samples are drawn per cell, from a binomial distribution,
        so that the cost does not depend on the number of samples.

        Parameters
        ----------
        metrics : sequence of str, optional
            Of "ece_kde", "ece", "ece_width" and "ks_error"; by default all of them.
        n_bins, n_draws : int
        quantiles : sequence of numbers from 0 to 1
        random_state : int, numpy.random.Generator or None
        n_threads : int, optional

        Returns
        -------
        dict
            Metric -> NoiseFloor.
        """
        n_bins = check_integer(n_bins, "n_bins", 1, self.n_cells)
        n_draws = check_integer(n_draws, "n_draws", 1, MOST_DRAWS)
        levels = check_quantiles(quantiles)
        names = check_errors(metrics)
        draws = floor_draws(self.cells(), names, n_bins, n_draws, random_state, n_threads)
        return {name: NoiseFloor.from_draws(name, values, levels) for name, values in draws.items()}

    def cells(self) -> Cells:
        """Sums over the occupied cells, as floating-point numbers."""
        index = np.flatnonzero(self.count)
        if index.size == 0:
            raise ShapeError("the state is empty; update it with at least one sample.")
        low = _edges_and_units(self.n_cells)[1][index].astype(np.float64)
        count, correct = self.count[index].astype(np.float64), self.correct[index].astype(np.float64)
        return Cells(
            index=index,
            n_cells=self.n_cells,
            count=count,
            correct=correct,
            confidence=np.ldexp(count * low + self.offset[index], -_BITS),
            right_confidence=np.ldexp(correct * low + self.right_offset[index], -_BITS),
            rounding=2.0**-_BITS,
        )

    def pairs(self) -> tuple[Floats, Booleans, Floats]:
        """(confidence, correct, weight): at most two weighted samples per cell, for methods that fit on such pairs.

        The right samples of a cell and the wrong ones are each replaced by their mean confidence.
        """
        return self.cells().pairs()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with occupied cells alone: a state of a few samples is small on its way between processes."""
        index = np.flatnonzero(self.count)
        arrays = tuple(getattr(self, name)[index] for name in _ARRAYS)
        return _unpickled, (self.n_cells, index, arrays, tuple(getattr(self, name) for name in _SCALARS))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON; only occupied cells are listed."""
        index = np.flatnonzero(self.count)
        return {
            "type": _TYPE,
            "schema": _SCHEMA,
            "n_cells": self.n_cells,
            "n_samples": self.n_samples,
            **{name: getattr(self, name) for name in _SCALARS},
            "cells": {"index": index.tolist(), **{name: getattr(self, name)[index].tolist() for name in _ARRAYS}},
        }

    @classmethod
    def from_dict(cls, content: Any) -> CalibrationState:
        """The state of which :meth:`to_dict` gave ``content``; other content raises a CorruptFileError."""
        if not isinstance(content, Mapping) or content.get("type") != _TYPE or content.get("schema") != _SCHEMA:
            raise CorruptFileError("this is not a calibration state of a known version.")
        state = cls(_whole(content, "n_cells", 1, _MOST_CELLS))
        for name in _SCALARS:
            setattr(state, name, _whole(content, name, 0, 1 << 120))
        cells = content.get("cells")
        columns = [_column(cells, name) for name in ("index", *_ARRAYS)]
        if len({len(column) for column in columns}) > 1:
            raise CorruptFileError("the columns of the calibration state differ in length.")
        index, *arrays = columns
        if np.any(np.diff(index) <= 0) or np.any((index < 0) | (index >= state.n_cells)):
            raise CorruptFileError("the cells of the calibration state are not in increasing order within the grid.")
        for name, values in zip(_ARRAYS, arrays, strict=True):
            getattr(state, name)[index] = values
        state._check_consistency(content.get("n_samples"))
        return state

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a ``.json`` file."""
        if as_path(path).suffix.lower() != ".json":
            raise FileFormatError(f"states are saved as .json, not as {str(path)!r}; use the extension .json.")
        write_atomically(path, to_json(self.to_dict()).encode())  # on one line: half the size

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CalibrationState:
        """Read a state from a JSON file."""
        source = as_path(path)
        content = read_json(source)
        try:
            return cls.from_dict(content)
        except CorruptFileError as error:
            raise CorruptFileError(f"{source}: {error}") from None

    def _check_consistency(self, n_samples: object) -> None:
        """Reject sums that no samples have: each offset lies between the edges of its cell."""
        total = sum(self.count.tolist())  # as Python's integers, which do not overflow
        known = self.n_infinite <= self.n_with_distributions <= total <= self.capacity and n_samples == total
        known = known and bool(np.all((self.correct >= 0) & (self.correct <= self.count)))
        if known:  # only then do the products below fit
            width = np.diff(np.rint(np.ldexp(np.linspace(0.0, 1.0, self.n_cells + 1), _BITS)).astype(np.int64))
            wrong, wrong_offset = self.count - self.correct, self.offset - self.right_offset
            sums = ((self.correct, self.right_offset), (wrong, wrong_offset))
            known = all(bool(np.all((offset >= 0) & (offset <= count * width))) for count, offset in sums)
        if not known:
            raise CorruptFileError("the sums of the calibration state contradict each other.")

    def _add_outcomes(self, sample: Sample) -> None:
        edges, low = _edges_and_units(self.n_cells)

        def block_sums(start: int) -> Integers:
            part, sums = slice(start, start + _BLOCK_NUMBERS), np.zeros((4, self.n_cells), dtype=np.int64)
            add_to_cells(sample.confidence[part], sample.correct[part], edges, low, 2.0**_BITS, sums)
            return sums

        blocks = run_blocks(block_sums, range(0, len(sample), _BLOCK_NUMBERS))
        for name, sums in zip(_ARRAYS, np.sum(blocks, axis=0), strict=True):
            getattr(self, name)[:] = sums

    def _add_losses(self, sample: Sample) -> None:
        probs, labels = sample.vectors("CalibrationState")
        step = max(1, _BLOCK_NUMBERS // probs.shape[1])
        for start in range(0, len(sample), step):
            # In float64 and C order, so that a row's sums do not depend on the rows around it.
            block = np.ascontiguousarray(probs[start : start + step], dtype=np.float64)
            chosen = block[np.arange(len(block)), labels[start : start + step]]
            with np.errstate(divide="ignore"):
                nll = -np.log(chosen)
            self._add_known_losses(nll, np.maximum((block * block).sum(axis=1) - 2 * chosen + 1, 0.0))

    def _add_known_losses(self, nll: Floats, brier: Floats) -> None:
        finite = np.isfinite(nll)
        self.n_with_distributions += len(nll)
        self.n_infinite += int(np.sum(~finite))
        self.nll += _exact_sum(nll[finite])
        self.brier += _exact_sum(brier)

    def _add(self, other: CalibrationState) -> None:
        if other.n_cells != self.n_cells:
            raise ParameterError(
                f"the states have {self.n_cells} and {other.n_cells} cells; only states of equally many cells merge."
            )
        if self.n_samples + other.n_samples > self.capacity:
            raise ParameterError(f"a state of {self.n_cells} cells holds {self.capacity:,} samples; start another one.")
        for name in _ARRAYS:
            getattr(self, name).__iadd__(getattr(other, name))
        for name in _SCALARS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _mean_losses(self) -> dict[str, float]:
        """NLL and Brier; nothing if some samples have no distributions."""
        n_samples = self.n_samples
        if n_samples == 0 or self.n_with_distributions != n_samples:
            return {}
        scale = n_samples << _BITS
        return {"nll": float("inf") if self.n_infinite else self.nll / scale, "brier": self.brier / scale}


@lru_cache(maxsize=4)
def _edges_and_units(n_cells: int) -> tuple[Floats, Integers]:
    """Edges of the grid, and the lower ones as whole multiples of 2^-36, rounded."""
    edges = np.linspace(0.0, 1.0, n_cells + 1)
    low = np.rint(np.ldexp(edges[:-1], _BITS)).astype(np.int64)
    return edges, low


def _unpickled(
    n_cells: int, index: Integers, arrays: tuple[Integers, ...], scalars: tuple[int, ...]
) -> CalibrationState:
    state = CalibrationState(n_cells)
    for name, values in zip(_ARRAYS, arrays, strict=True):
        getattr(state, name)[index] = values
    for name, value in zip(_SCALARS, scalars, strict=True):
        setattr(state, name, value)
    return state


def _exact_sum(values: Floats) -> int:
    """The sum of the values, each rounded to a whole multiple of 2^-36, in those units."""
    units = np.rint(np.ldexp(values, _BITS)).astype(np.int64)
    return (int(np.sum(units >> 20)) << 20) + int(np.sum(units & ((1 << 20) - 1)))  # neither sum overflows


def _whole(content: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = content.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise CorruptFileError(f"{name} of the calibration state is {shown(value)}, not a whole number in its range.")
    return value


def _column(cells: Any, name: str) -> Integers:
    values = cells.get(name) if isinstance(cells, Mapping) else None
    whole = isinstance(values, list) and all(type(value) is int and abs(value) < 1 << 62 for value in values)
    if not whole:
        raise CorruptFileError(f"{name} of the calibration state is not a list of whole numbers.")
    return np.array(values, dtype=np.int64)
