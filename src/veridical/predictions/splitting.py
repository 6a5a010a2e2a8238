"""Parts of predictions: selections, and random parts and folds of samples, which keep groups together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import ParameterError, ShapeError
from veridical.predictions.arrays import Array, as_array

_Indices = npt.NDArray[np.intp]

SELECTION = "give a slice, a list of indices or a mask"


def check_selection(chosen: Any, size: int, what: str) -> Any:
    """An index of one axis of length ``size``, checked; one number becomes a list of one."""
    index = chosen
    if not isinstance(chosen, slice):
        index = np.atleast_1d(as_array(chosen, what, SELECTION))
        if index.ndim != 1:
            raise ParameterError(f"these {what} cannot be selected: they have shape {index.shape}; {SELECTION}.")
        index = index.astype(np.intp) if index.size == 0 else index
    try:
        selected = np.arange(size)[index]
    except (IndexError, TypeError, ValueError) as error:
        raise ParameterError(f"these {what} cannot be selected: {error}.") from None
    if what == "sources" and selected.size == 0:
        raise ParameterError("no sources are selected; at least one is needed.")
    return index


def split_samples(n_samples: int, share: float, generator: np.random.Generator) -> tuple[_Indices, _Indices]:
    """Indices of two random parts, ascending; the first has ``share`` of the samples, rounded down, at least one."""
    if n_samples < 2:
        raise ShapeError(f"{n_samples} sample cannot be split into two parts; at least two are needed.")
    order = generator.permutation(n_samples)
    cut = min(max(int(n_samples * share), 1), n_samples - 1)
    return np.sort(order[:cut]), np.sort(order[cut:])


def split_groups(groups: Array, share: float, generator: np.random.Generator) -> tuple[_Indices, _Indices]:
    """Indices of two random parts of whole groups, ascending; the first has as nearly ``share`` as groups allow."""
    different, group_of, counts = np.unique(groups, return_inverse=True, return_counts=True)
    if len(different) < 2:
        raise ShapeError(f"{len(different)} group cannot be split into two parts; at least two are needed.")
    order = generator.permutation(len(different))
    sizes = np.cumsum(counts[order])[:-1]  # of the first part, if it ends after this group
    cut = int(np.argmin(np.abs(sizes - share * len(groups)))) + 1
    is_first = np.zeros(len(different), bool)
    is_first[order[:cut]] = True
    return np.flatnonzero(is_first[group_of]), np.flatnonzero(~is_first[group_of])


def fold_indices(n_samples: int, groups: Array | None, n_folds: int, generator: np.random.Generator) -> list[_Indices]:
    """Indices of random folds, ascending; of groups, each goes to the fold that is smallest so far.

    A single group is divided like samples without groups.
    """
    if groups is None or (groups == groups[0]).all():
        order = generator.permutation(n_samples)
        n_folds = min(n_folds, n_samples)
        return [np.sort(order[fold::n_folds]) for fold in range(n_folds)]
    different, group_of, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sizes = np.zeros(min(n_folds, len(different)), np.int64)
    fold_of = np.empty(len(different), np.intp)
    for group in generator.permutation(len(different)):
        fold_of[group] = sizes.argmin()
        sizes[fold_of[group]] += counts[group]
    return [np.flatnonzero(fold_of[group_of] == fold) for fold in range(len(sizes))]
