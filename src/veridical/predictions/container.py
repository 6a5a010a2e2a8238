"""An ensemble's predictions, with what is known about them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import ParameterError, ShapeError, shown
from veridical.predictions.arrays import as_array
from veridical.predictions.validation import (
    KINDS,
    Array,
    Kind,
    check_choice,
    check_labels,
    check_names,
    check_random_state,
    check_real,
    check_scores,
    result_dtype,
    tolerance_of,
)

_SELECTION = "give a slice, a list of indices or a mask"


class Predictions:
    """What S sources say about N samples with L classes.

    Parameters
    ----------
    values : array of shape (S, N, L), or a sequence of S arrays of shape (N, L)
        One score per source, sample and class.  Kept as given: nothing is copied or converted, so memory-mapped
        files and views work.  A row of NaN means that the source is absent for that sample.
    labels : array of N integers in 0..L-1, optional
    kind : {"probs", "logits", "log_probs"}
        What the numbers are.  Never guessed.
    sources_axis : {0, 1}
        1 for an array of shape (N, S, L).
    source_names, class_names : sequences of str, optional

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> vd.Predictions(np.full((3, 5, 2), 0.5), labels=[0, 1, 0, 1, 1])
    Predictions(3 sources, 5 samples, 2 classes, kind='probs', float64, labelled)
    """

    def __init__(
        self,
        values: Any,
        labels: Any = None,
        *,
        kind: Kind = "probs",
        sources_axis: int = 0,
        source_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
    ) -> None:
        self.kind: Kind = check_choice(kind, KINDS, "kind")  # type: ignore[assignment]
        self._values = _as_sources(values, sources_axis)
        shapes = [source.shape for source in self]
        self.n_sources: int = len(shapes)
        self.n_samples, self.n_classes = (int(size) for size in shapes[0])
        self.labels: npt.NDArray[np.int64] | None = (
            None if labels is None else check_labels(labels, self.n_samples, self.n_classes)
        )
        self.source_names = check_names(source_names, self.n_sources, "source")
        self.class_names = check_names(class_names, self.n_classes, "class")
        #: The files that these predictions were read from; none where they were made of arrays.
        self.files: tuple[Path, ...] = ()

    def __iter__(self) -> Iterator[Array]:
        """The sources' arrays of shape (N, L), as given."""
        return iter(self._values)

    @property
    def values(self) -> Array:
        """The scores as one array of shape (S, N, L); a copy only if they were given as separate arrays."""
        return self._values if isinstance(self._values, np.ndarray) else np.stack(self._values)

    @property
    def is_stacked(self) -> bool:
        """Whether the sources share one array."""
        return isinstance(self._values, np.ndarray)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that the numbers are stored in."""
        if isinstance(self._values, np.ndarray):
            return self._values.dtype
        return max((source.dtype for source in self._values), key=lambda dtype: (dtype.kind == "f", dtype.itemsize))

    @property
    def sum_tolerance(self) -> float:
        """How far from one the sum of a source's probabilities may be: as far as its coarsest source needs."""
        return max(tolerance_of(source.dtype, self.n_classes) for source in self)

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The precision that results are computed in."""
        return result_dtype(self.dtype)

    def source_name(self, s: int) -> str:
        """How to call source ``s`` in a message or a table."""
        return f"source {s}" if self.source_names is None else f"source {s} ({self.source_names[s]})"

    def samples(self, start: int, stop: int) -> Array:
        """Samples ``start`` to ``stop`` of all sources, shape (S, stop - start, L); a view where possible."""
        if isinstance(self._values, np.ndarray):
            return self._values[:, start:stop]
        return np.stack([source[start:stop] for source in self._values])

    def with_labels(self, labels: Any) -> Predictions:
        """The same predictions with these labels."""
        return self._derive(self._values, labels, self.source_names)

    def _derive(self, values: Any, labels: Any, source_names: Sequence[str] | None) -> Predictions:
        """Predictions of the same kind, classes and files."""
        result = Predictions(values, labels, kind=self.kind, source_names=source_names, class_names=self.class_names)
        result.files = self.files
        return result

    def present(self) -> npt.NDArray[np.bool_]:
        """(S, N): whether a source says anything about a sample; where it is absent, its row is NaN."""
        return np.stack([~np.isnan(source[:, 0]) for source in self])

    def select(self, *, sources: Any = None, samples: Any = None) -> Predictions:
        """The predictions of some sources for some samples.

        ``sources`` and ``samples`` are anything NumPy indexes one axis with: a slice, a list of indices, a mask;
        ``sources`` may also be a list of source names.  Slices are views, other selections copies.
        """
        chosen = self._source_indices(sources)
        samples = samples if samples is None else _indices(samples, self.n_samples, "samples")
        if isinstance(self._values, np.ndarray):
            values: Any = self._values if sources is None else self._values[chosen]
            values = values if samples is None else values[:, samples]
        else:
            picked = [self._values[s] for s in np.arange(self.n_sources)[chosen]]
            values = picked if samples is None else [source[samples] for source in picked]
        return self._derive(
            values,
            self.labels if self.labels is None or samples is None else self.labels[samples],
            None if self.source_names is None else [*np.asarray(self.source_names, dtype=object)[chosen]],
        )

    def _source_indices(self, sources: Any) -> Any:
        if sources is None:
            return slice(None)
        chosen = sources if isinstance(sources, slice) else np.atleast_1d(as_array(sources, "sources", _SELECTION))
        if isinstance(chosen, np.ndarray) and chosen.dtype.kind in "UO":
            known = {name: s for s, name in enumerate(self.source_names or ())}
            unknown = [str(name) for name in chosen if name not in known]
            if unknown:
                raise ParameterError(
                    f"there is no source called {unknown[0]!r}; the sources are: {', '.join(known) or 'unnamed'}."
                )
            return np.asarray([known[name] for name in chosen], dtype=np.intp)
        return _indices(chosen, self.n_sources, "sources")

    def split(
        self, *, random_state: int | np.random.Generator | None = None, size: float = 0.5
    ) -> tuple[Predictions, Predictions]:
        """Two random parts, the first with ``size`` of the samples (rounded down); each keeps the samples' order."""
        first, second = self.split_indices(random_state=random_state, size=size)
        return self.select(samples=first), self.select(samples=second)

    def split_indices(
        self, *, random_state: int | np.random.Generator | None = None, size: float = 0.5
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The samples of the two parts that :meth:`split` makes, in ascending order."""
        share = check_real(size, "size", 0.0, 1.0)
        if share in (0.0, 1.0):
            raise ParameterError(f"size is {size!r}; give a share between 0 and 1.")
        if self.n_samples < 2:
            raise ShapeError(f"{self.n_samples} sample cannot be split into two parts; at least two are needed.")
        order = check_random_state(random_state).permutation(self.n_samples)
        cut = min(max(int(self.n_samples * share), 1), self.n_samples - 1)
        return np.sort(order[:cut]), np.sort(order[cut:])

    def __repr__(self) -> str:
        return f"Predictions({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{html.escape(fact)}</li>" for fact in self._facts())
        return f"<strong>Predictions</strong><ul>{rows}</ul>"

    def _facts(self) -> list[str]:
        return [
            f"{self.n_sources} source{'s' * (self.n_sources != 1)}",
            f"{self.n_samples} sample{'s' * (self.n_samples != 1)}",
            f"{self.n_classes} classes",
            f"kind={self.kind!r}",
            str(self.dtype),
            "unlabelled" if self.labels is None else "labelled",
        ]


def _as_sources(values: Any, sources_axis: int) -> Array | tuple[Array, ...]:
    """The sources as one (S, N, L) array, or as separate (N, L) arrays where they came so."""
    is_axis = isinstance(sources_axis, (int, np.integer)) and not isinstance(sources_axis, bool)
    if not is_axis or sources_axis not in (0, 1):
        raise ParameterError(f"sources_axis is {shown(sources_axis)}; it is 0 for (S, N, L) or 1 for (N, S, L).")
    if isinstance(values, (list, tuple)) and values and getattr(values[0], "ndim", 0) == 2:
        if sources_axis != 0:
            raise ParameterError("a list of arrays has its sources first; leave sources_axis at 0.")
        sources = tuple(check_scores(source, f"source {s}", 2, "(samples, classes)") for s, source in enumerate(values))
        for s, source in enumerate(sources):
            if source.shape != sources[0].shape:
                raise ShapeError(
                    f"source {s} has shape {source.shape} and source 0 has shape {sources[0].shape}; all sources must "
                    "predict the same samples and classes."
                )
        return sources
    axes = "(sources, samples, classes)" if sources_axis == 0 else "(samples, sources, classes)"
    array = check_scores(values, "the array of predictions", 3, axes)
    array = array if sources_axis == 0 else array.swapaxes(0, 1)
    if array.shape[0] == 0:
        raise ShapeError(f"there are no sources (shape {np.shape(values)}); at least one is needed.")
    return array


def _indices(chosen: Any, size: int, what: str) -> Any:
    """What NumPy indexes one axis of ``size`` with, checked; one number becomes a list of one."""
    index = chosen
    if not isinstance(chosen, slice):
        index = np.atleast_1d(as_array(chosen, what, _SELECTION))
        if index.ndim != 1:
            raise ParameterError(f"these {what} cannot be selected: they have shape {index.shape}; {_SELECTION}.")
        index = index.astype(np.intp) if index.size == 0 else index
    try:
        selected = np.arange(size)[index]
    except (IndexError, TypeError, ValueError) as error:
        raise ParameterError(f"these {what} cannot be selected: {error}.") from None
    if what == "sources" and selected.size == 0:
        raise ParameterError("no sources are selected; at least one is needed.")
    return index


def as_predictions(values: Any, kind: Kind | None = None, sources_axis: int | None = None) -> Predictions:
    """``values`` if it is a :class:`Predictions` already, otherwise one made of it."""
    if not isinstance(values, Predictions):
        return Predictions(
            values, kind="probs" if kind is None else kind, sources_axis=0 if sources_axis is None else sources_axis
        )
    if kind is not None and kind != values.kind:
        raise ParameterError(f"kind={kind!r} contradicts the predictions, which hold {values.kind!r}; leave it out.")
    if sources_axis is not None and not (isinstance(sources_axis, int) and sources_axis == 0):
        raise ParameterError("Predictions know which axis their sources are on; leave sources_axis out.")
    return values
