"""Samples that belong together: resamples of whole groups, and outcomes that are correlated within groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from veridical.errors import ParameterError
from veridical.predictions.sample_ids import check_groups

if TYPE_CHECKING:
    from veridical.metrics.sample import Floats, Sample

Codes = npt.NDArray[np.intp]

#: Miscalibration looks like correlation; it is removed as the mean residual of so many bins of confidence.
_N_BINS = 10
_LARGEST_CORRELATION = 0.95
#: One group, or one with nearly all samples, tells nothing about others.
_LEAST_FREEDOM = 0.05
#: Confidences are represented by so many quantiles where the correlation of their outcomes is computed.
_N_QUANTILES = 20
#: Angles whose sines are correlations of normal numbers.
_ANGLES = np.linspace(0, np.pi / 2 * _LARGEST_CORRELATION, 96)


def group_codes(groups: Any, n_samples: int) -> Codes | None:
    """(N,) numbers 0, 1, ... of the groups; None without groups."""
    ids = check_groups(groups, (n_samples,))
    return None if ids is None else np.unique(ids, return_inverse=True)[1].reshape(-1).astype(np.intp)


def draw_counts(generator: np.random.Generator, counted: Codes, group: Codes | None, n_samples: int) -> Any:
    """(N,) how often each sample is drawn: samples or whole groups, with replacement, among those ``counted``."""
    if group is None:
        drawn = counted[generator.integers(0, len(counted), len(counted))]
        return np.bincount(drawn, minlength=n_samples).astype(np.float64)
    different, places = np.unique(group[counted], return_inverse=True)
    draws = np.bincount(generator.integers(0, len(different), len(different)), minlength=len(different))
    counts = np.zeros(n_samples)
    counts[counted] = draws[places]
    return counts


def _outcome_correlations(chances: Floats) -> Floats:
    """Correlations of outcomes that are right where a normal number with correlation sin(angle) is below a threshold.

    Two of them, right with probabilities p and q and thresholds a and b of the normal distribution, have the covariance

        integral over t from 0 to the angle of exp(-(a^2 + b^2 - 2 a b sin t) / (2 cos^2 t)) / (2 pi),

    and the correlation is that over sqrt(p (1 - p) q (1 - q)): 2/pi times the angle for probabilities of 1/2, less for
    others.  Returned is its mean over all pairs of ``chances``, for each of ``_ANGLES``.
    """
    import scipy.special

    threshold, variance = scipy.special.ndtri(chances), chances * (1 - chances)
    a, b, angle = threshold[:, None], threshold, _ANGLES[:, None, None]
    density = np.exp((a * b * np.sin(angle) - (a**2 + b**2) / 2) / np.cos(angle) ** 2) / (2 * np.pi)
    slopes = np.mean(density / np.sqrt(np.multiply.outer(variance, variance)), axis=(1, 2))
    steps = np.diff(_ANGLES) * (slopes[1:] + slopes[:-1]) / 2
    return np.concatenate(([0.0], np.cumsum(steps)))


@dataclass(frozen=True)
class GroupCorrelation:
    """How much outcomes of one group have in common, and how surely that is known.

    Standardised residuals have variance 1; ``ratio`` estimates the variance of a group's sum, divided by the group's
    size: 1 + (size - 1) * correlation.

    Attributes
    ----------
    group : (N,) integers, or None
    ratio : float
    size : float
        Of the group of an average sample.
    freedom : float
        Degrees of freedom of ``ratio``: groups minus one, and fewer if some are much larger than others.
    by_angle : (angles,) array
        Correlations of outcomes, for angles whose sines are those of the normal numbers that they are drawn from.
    """

    group: Codes | None
    ratio: float = 1.0
    size: float = 1.0
    freedom: float = np.inf
    by_angle: Floats = field(default_factory=lambda: 2 / np.pi * _ANGLES, repr=False)

    @classmethod
    def of(cls, sample: Sample) -> GroupCorrelation:
        """That of a sample's residuals, after the mean residual of ten bins of confidence is removed."""
        if sample.group is None:
            return cls(None)
        confidence, group = sample.confidence, sample.group
        residuals = sample.correct - confidence
        bins = np.searchsorted(np.quantile(confidence, np.linspace(0, 1, _N_BINS + 1)[1:-1]), confidence)
        residuals = residuals - (np.bincount(bins, residuals) / np.maximum(np.bincount(bins), 1))[bins]
        scale = np.sqrt(np.maximum(confidence * (1 - confidence), 1e-12))
        known = scale > 1e-3  # a sure sample has no residual to correlate
        sizes = np.bincount(group[known]).astype(np.float64)
        n_known = sizes.sum()
        size = float(sizes @ sizes / n_known) if n_known else 1.0
        freedom = n_known / size - 1
        if size == 1.0 or freedom <= 0:
            return cls(group, size=size, freedom=max(freedom, 0.0))
        sums = np.bincount(group[known], residuals[known] / scale[known])
        # Residuals add up to zero, which takes the part 1 / (freedom + 1) from the variance between groups.
        ratio = float(sums @ sums) / n_known * (freedom + 1) / freedom
        chances = np.quantile(confidence[known], (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES)
        return cls(group, ratio, size, freedom, _outcome_correlations(chances))

    def reordered(self, origin: Codes, n_samples: int) -> GroupCorrelation:
        """The same for the samples before they were sorted or left out."""
        if self.group is None:
            return self
        group = np.zeros(n_samples, dtype=np.intp)
        group[origin] = self.group
        return replace(self, group=group)

    def _correlation(self, ratio: float) -> float:
        return min(max((ratio - 1) / (self.size - 1), 0.0), _LARGEST_CORRELATION) if self.size > 1 else 0.0

    @property
    def correlation(self) -> float:
        """The estimate, from 0 to 0.95."""
        return self._correlation(self.ratio)

    @property
    def inflation(self) -> float:
        """How many times the variance of a mean is that of independent samples."""
        return 1 + (self.size - 1) * self.correlation

    def draw(self, generator: np.random.Generator) -> float:
        """A correlation that is compatible with the estimate; of one group alone nothing is known, and it is large.

        ``ratio`` of G groups varies like its true value times chi-squared over G - 1.
        """
        if self.size == 1.0:
            return 0.0
        if self.freedom < _LEAST_FREEDOM:
            return _LARGEST_CORRELATION
        possible = 1.0 if np.isinf(self.freedom) else self.freedom / generator.chisquare(self.freedom)
        return self._correlation(self.ratio * possible)


def draw_uniforms(generator: np.random.Generator, noise: GroupCorrelation, n_samples: int) -> Any:
    """(N,) uniform numbers; with groups, those of one group have a common part.

    They come from normal numbers, with the correlation for which outcomes of the sample's confidences have the
    correlation that ``noise`` draws.
    """
    correlation = noise.draw(generator)
    if noise.group is None or correlation == 0.0:
        return generator.random(n_samples)
    import scipy.special

    latent = np.sin(np.interp(correlation, noise.by_angle, _ANGLES))
    common = generator.standard_normal(int(noise.group.max()) + 1)[noise.group]
    return scipy.special.ndtr(np.sqrt(latent) * common + np.sqrt(1 - latent) * generator.standard_normal(n_samples))


def check_independent(groups: Any, n_samples: int) -> None:
    """Refuse groups of more than one sample, for bounds that count independent samples."""
    codes = group_codes(groups, n_samples)
    if codes is None:
        return
    shared = int((np.bincount(codes)[codes] > 1).sum())
    if shared:
        raise ParameterError(
            f"{shared:,} of {n_samples:,} samples share their group with another, and the bound holds for independent "
            "samples; keep one sample per group, chosen without looking at its label."
        )
