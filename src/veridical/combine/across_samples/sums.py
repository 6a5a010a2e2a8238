"""Sums over samples from which the consensus of the sources is computed; they merge."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from veridical.combine.truth import Floats
from veridical.errors import ShapeError
from veridical.predictions.validation import Array

#: A source whose variance is a smaller share than this of its mean square says the same of every sample.
_LEAST_VARIANCE = 1e-10
#: Correlations closer to one than rounding in single precision allows to tell are one.
_ROUNDING = 1e-6
#: Sources that give the same votes on so many samples are copies; good sources agree on fewer by chance.
_MANY_VOTES = 100

#: Every pair of sources is compared; of this many, each of several matrices takes 0.8 GB.
MOST_SOURCES = 10_000


def check_pairs(n_sources: int) -> None:
    """Refuse more sources than can be compared with each other."""
    if n_sources > MOST_SOURCES:
        raise ShapeError(
            f"there are {n_sources:,} sources, and the consensus compares every pair of them; give at most "
            f"{MOST_SOURCES:,}: leave out those with the fewest predictions."
        )


class Correlations(NamedTuple):
    """How sources vary together.

    ``correlation`` (S, S) is 0 for sources that say the same of every sample; ``counts`` (S, S) is how many samples
    each pair shares; ``variance`` (S,) is each source's mean squared distance from its own mean vector; ``copies``
    (S, S) marks sources that say the same of the same samples throughout, beyond chance.
    """

    correlation: Floats
    counts: Floats
    variance: Floats
    copies: Array


@dataclass
class ConsensusSums:
    """What the consensus needs to know of the predictions: sums over samples for each pair of sources.

    With x_s = p_s - shift_s the vector of source s, all sums over the samples where both sources are present:

    Attributes
    ----------
    shift : (S, L) float64
        A vector near each source's mean, subtracted so that sums of products lose no digits.
    totals : (S, L) float64
        Sum of x_s over the source's own samples.
    counts : (S, S) float64
        Number of samples.
    products : (S, S) float64
        Sum of x_s . x_t.
    squares : (S, S) float64
        ``squares[s, t]`` is the sum of |x_s|^2.
    pair_totals : (S, S, L) float64, or None
        ``pair_totals[s, t]`` is the sum of x_s.  None while no source was ever absent: it is then ``totals[s]``.
        Also None where ``shift`` is the mean of all samples, because nothing is left to centre.

    Notes
    -----
    Sums of different samples merge by addition, in any order, also where their shifts differ.
    """

    shift: Floats
    totals: Floats
    counts: Floats
    products: Floats
    squares: Floats
    pair_totals: Floats | None = None

    @classmethod
    def zeros(cls, n_sources: int, n_classes: int, shift: Floats | None = None) -> Self:
        """Sums over no samples."""
        check_pairs(n_sources)
        start = np.zeros((n_sources, n_classes)) if shift is None else np.array(shift, dtype=np.float64)
        if start.shape != (n_sources, n_classes):
            raise ShapeError(f"shift has shape {start.shape}; give one vector per source, ({n_sources}, {n_classes}).")
        pairs = (n_sources, n_sources)
        return cls(start, np.zeros_like(start), np.zeros(pairs), np.zeros(pairs), np.zeros(pairs))

    def update(self, block: Array, present: Array | None = None, *, shift_is_mean: bool = False) -> Self:
        """Add probabilities (S, n, L) of the sources in ``present``, all by default; nothing is checked.

        With ``shift_is_mean`` no totals of pairs are kept: the caller knows the means of all samples.
        """
        self._add(_sums_of_block(block, present, self.shift, shift_is_mean))
        return self

    def merge(self, other: ConsensusSums) -> ConsensusSums:
        """The sums over the samples of both."""
        if other.shift.shape != self.shift.shape:
            raise ShapeError(
                f"sums for {self.shift.shape[0]} sources and {self.shift.shape[1]} classes cannot be merged with sums "
                f"for {other.shift.shape[0]} sources and {other.shift.shape[1]} classes."
            )
        merged = copy.deepcopy(self)
        merged._add(other.shifted_to(self.shift))
        return merged

    def _add(self, other: ConsensusSums) -> None:
        if self.pair_totals is not None or other.pair_totals is not None:
            self.pair_totals = self._totals_of_pairs() + other._totals_of_pairs()
        self.totals += other.totals
        self.counts += other.counts
        self.products += other.products
        self.squares += other.squares

    def _totals_of_pairs(self) -> Floats:
        if self.pair_totals is not None:
            return self.pair_totals
        return np.repeat(self.totals[:, None, :], len(self.totals), axis=1)

    def _along(self, vectors: Floats) -> tuple[Floats, Floats]:
        """(S, S) sums of x_s . v_t and of x_s . v_s over the samples that s and t share."""
        if self.pair_totals is None:
            offsets = self.totals / np.maximum(self.n_samples, 1.0)[:, None]
            own = np.einsum("sl,sl->s", offsets, vectors)[:, None]
            return self.counts * (offsets @ vectors.T), self.counts * own
        return np.einsum("stl,tl->st", self.pair_totals, vectors), np.einsum("stl,sl->st", self.pair_totals, vectors)

    def shifted_to(self, shift: Floats) -> ConsensusSums:
        """The same sums about other vectors."""
        if np.array_equal(self.shift, shift):
            return self
        by = self.shift - shift
        across, own = self._along(by)
        lengths = np.einsum("sl,sl->s", by, by)[:, None]
        return ConsensusSums(
            shift,
            self.totals + self.n_samples[:, None] * by,
            self.counts,
            self.products + across + across.T + self.counts * (by @ by.T),
            self.squares + 2.0 * own + self.counts * lengths,
            None if self.pair_totals is None else self.pair_totals + self.counts[:, :, None] * by[:, None, :],
        )

    @property
    def n_samples(self) -> Floats:
        """(S,) number of samples of each source."""
        return np.diag(self.counts)

    @property
    def means(self) -> Floats:
        """(S, L) mean vector of each source over its own samples; the shift for a source without any."""
        means: Floats = self.shift + self.totals / np.maximum(self.n_samples, 1.0)[:, None]
        return means

    def correlations(self) -> Correlations:
        """Correlations of the sources about their means."""
        means = self.means
        about_means = self.shifted_to(means)
        counts, variances = about_means.counts, about_means.squares
        variance = np.diag(variances) / np.maximum(self.n_samples, 1.0)
        mean_square = np.einsum("sl,sl->s", means, means) + variance
        varies = variances > _LEAST_VARIANCE * counts * mean_square[:, None]
        varies &= varies.T
        scale = np.sqrt(np.where(varies, variances, 1.0))
        correlation = np.where(varies, about_means.products, 0.0)
        correlation /= scale * scale.T
        np.clip(correlation, -1.0, 1.0, out=correlation)
        correlation[correlation > 1.0 - _ROUNDING] = 1.0
        # Equal votes on a few samples are chance; equal probabilities are not.
        copies = (correlation == 1.0) & (counts == self.n_samples) & (counts == self.n_samples[:, None])
        copies &= (mean_square < 1.0 - _ROUNDING) | (counts >= _MANY_VOTES)
        np.fill_diagonal(copies, True)
        return Correlations(correlation, counts, np.where(np.diag(varies), variance, 0.0), copies)


def _sums_of_block(block: Array, present: Array | None, shift: Floats, shift_is_mean: bool) -> ConsensusSums:
    """The sums over probabilities (S, n, L), where sources are present (None: everywhere)."""
    n_sources, n_block, _ = block.shape
    centred, pair_totals = block - shift[:, None, :].astype(block.dtype), None
    if present is not None:
        centred *= present[:, :, None]
    flat = centred.reshape(n_sources, -1)
    products = (flat @ flat.T).astype(np.float64)
    if present is None:
        counts = np.full((n_sources, n_sources), float(n_block))
        squares = np.repeat(np.diag(products)[:, None], n_sources, axis=1)
    else:
        here = present.astype(np.float64)
        counts = here @ here.T
        squares = np.einsum("snl,snl->sn", centred, centred, dtype=np.float64) @ here.T
        pair_totals = None if shift_is_mean else np.matmul(present.astype(block.dtype), centred).astype(np.float64)
    return ConsensusSums(shift, centred.sum(axis=1, dtype=np.float64), counts, products, squares, pair_totals)
