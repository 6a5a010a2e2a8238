"""Samples that belong together: resamples of whole groups, and outcomes that are correlated within groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from veridical.errors import ParameterError
from veridical.predictions.sample_ids import check_groups

if TYPE_CHECKING:
    from veridical.metrics.sample import Sample

Codes = npt.NDArray[np.intp]

#: Miscalibration looks like correlation; it is removed as the mean residual of so many bins of confidence.
_N_BINS = 10
_LARGEST_CORRELATION = 0.95


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


def correlation_within_groups(sample: Sample, group: Codes) -> float:
    """Mean correlation of the standardised residuals of two samples of one group, from 0 to 0.95."""
    confidence = sample.confidence
    residuals = sample.correct - confidence
    bins = np.searchsorted(np.quantile(confidence, np.linspace(0, 1, _N_BINS + 1)[1:-1]), confidence)
    residuals = residuals - (np.bincount(bins, residuals) / np.maximum(np.bincount(bins), 1))[bins]
    scale = np.sqrt(np.maximum(confidence * (1 - confidence), 1e-12))
    known = scale > 1e-3  # a sure sample has no residual to correlate
    standard, members = residuals[known] / scale[known], group[known]
    sizes = np.bincount(members)
    n_pairs = float((sizes * (sizes - 1.0)).sum())
    if n_pairs == 0:
        return 0.0
    products = float((np.bincount(members, standard) ** 2).sum() - (standard**2).sum())
    return min(max(products / n_pairs, 0.0), _LARGEST_CORRELATION)


def draw_uniforms(generator: np.random.Generator, group: Codes | None, correlation: float, n_samples: int) -> Any:
    """(N,) uniform numbers; with groups, those of one group have a common part.

    They come from normal numbers with correlation sin(pi/2 * ``correlation``), for which outcomes of probability 1/2
    have the correlation asked for.
    """
    if group is None or correlation == 0.0:
        return generator.random(n_samples)
    import scipy.special

    latent = np.sin(np.pi / 2 * correlation)
    common = generator.standard_normal(int(group.max()) + 1)[group]
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
