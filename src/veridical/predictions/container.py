"""The predictions of an ensemble, with labels, ids and names."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from veridical.errors import ParameterError, ShapeError, shown
from veridical.predictions.arrays import Array, as_array, holds_bfloat16
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.inputs import read_scores
from veridical.predictions.labels import Samples, resolve_labels, warn_of_order, warn_of_unnamed_classes
from veridical.predictions.sample_ids import check_groups, check_sample_ids, check_sample_shape
from veridical.predictions.splitting import SELECTION, check_selection, split_groups, split_samples
from veridical.predictions.sums import tolerance_of
from veridical.predictions.validation import (
    INPUT_KINDS,
    InputKind,
    Kind,
    check_choice,
    check_integer,
    check_names,
    check_random_state,
    check_real,
    result_dtype,
)
from veridical.predictions.votes import vectors_of_votes


class Predictions:
    """Predictions of S sources for N samples and L classes.

    Parameters
    ----------
    values : array of shape (S, N, L), or one array of shape (N, L) per source
        One score per source, sample and class.  Nothing is copied or converted, so memory-mapped files and views
        work.  A row of NaN means that the source has no prediction for that sample.  Also accepted: one array of shape
        (N, L) as one source; a dictionary of name and array, whose names become those of the sources; data frames,
        whose columns are matched by name and whose index becomes the sample ids; PyTorch tensors; dense predictions of
        shape (S, N, H, W, L), whose pixels are the samples and whose images are the groups.
    labels : array of N labels, mapping of id and label, or series, optional
        Integers in 0..L-1, names of classes, or booleans for two classes.  None, NaN, blank and -1 are labels that are
        not known.  A mapping, or a series with an index where there are sample ids, is joined by id.
    kind : {"probs", "logits", "log_probs", "binary", "labels"}
        What the numbers are; never inferred from them.  "binary" is the probability of the positive class alone, of
        shape (S, N) or (N,); it becomes two columns of kind "probs".  "labels" are votes of shape (S, N): places of
        classes, -1 for no vote, or names of classes, "" for no vote; they become vectors of kind "probs".
    sources_axis : {0, 1, 2}
        1 for an array of shape (N, S, L), 2 for (N, L, S).
    class_axis : int, optional
        Axis of the classes; default the last.  For images with channels first, (S, N, L, H, W), it is 2.
    source_names, class_names : sequences of str, optional
    sample_ids : sequence of N texts or whole numbers, optional
        Each once.
    groups : sequence of N texts or whole numbers, optional
        Samples of one group stay together in :meth:`split`.  Of dense predictions also one entry per image, which is
        the default.
    sample_shape : sequence of int, optional
        (N, H, W) for dense predictions whose pixels are on one axis already.
    renormalize : bool
        Divide each row of ``kind="probs"`` by its sum, whatever it is: counts, percentages, coarsely rounded numbers.

    Attributes
    ----------
    n_sources, n_samples, n_classes : int
    labels : (N,) array of int64, or None
        -1 where a label is not known; see :meth:`labelled`.
    is_votes : bool
        Whether they were made of votes, which have no probabilities of their own.
    files : tuple of Path
        The files that these predictions were read from; none for arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> vd.Predictions(np.full((3, 5, 2), 0.5), labels=[0, 1, 0, 1, 1])
    Predictions(3 sources, 5 samples, 2 classes, kind='probs', float64, labelled)
    >>> vd.Predictions({"forest": [[0.9, 0.1]], "boosting": [[0.7, 0.3]]}).source_names
    ('forest', 'boosting')
    >>> vd.Predictions([0.9, 0.2, 0.4], labels=["spam", "ham", None], kind="binary", class_names=["ham", "spam"])
    Predictions(1 source, 3 samples, 2 classes, kind='probs', float64, 2 of 3 labelled)
    """

    def __init__(
        self,
        values: Any,
        labels: Any = None,
        *,
        kind: InputKind | Literal["labels"] = "probs",
        sources_axis: int = 0,
        class_axis: int | None = None,
        source_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        sample_ids: Any = None,
        groups: Any = None,
        sample_shape: Sequence[int] | None = None,
        renormalize: bool = False,
    ) -> None:
        check_choice(kind, (*INPUT_KINDS, "labels"), "kind")
        self.is_votes = kind == "labels"
        if kind == "labels":
            values, class_names = vectors_of_votes(values, class_names, sources_axis)
            kind, sources_axis = "probs", 0
        scores = read_scores(values, kind, sources_axis, class_axis, class_names, renormalize)
        self._keep(scores.values)
        #: How far from one the sums of a table's rows may be by the digits they are written with.
        self.rounding = scores.rounding
        self.kind: Kind = "probs" if kind == "binary" else kind
        #: What the caller passed: "binary" for scores that became two columns of probabilities.
        self.input_kind: InputKind = kind
        self._is_bfloat16 = holds_bfloat16(values)
        self.sample_shape = check_sample_shape(_either(sample_shape, scores.sample_shape), self.n_samples)
        self.source_names = self._check_source_names(_either(source_names, scores.source_names))
        self.class_names = check_names(_either(class_names, scores.class_names), self.n_classes, "class")
        ids = _either(sample_ids, scores.sample_ids)
        self.sample_ids: Array | None = None if ids is None else check_sample_ids(ids, self.n_samples)
        self.groups: Array | None = check_groups(groups, self.sample_shape)
        self.labels: npt.NDArray[np.int64] | None = self._resolve(labels)
        if scores.is_table:
            warn_of_order(labels, self.sample_ids, scores.order, "the data frames")
            if class_names is None:
                warn_of_unnamed_classes(self.labels, self.class_names, kind, "the data frame")
        self.files: tuple[Path, ...] = ()
        #: Number of the first sample, for messages: blocks of larger predictions count as the whole does.
        self.first_sample = 0
        #: The predictions that these labelled samples were taken from, and where they are among them.
        self._origin: tuple[Predictions, npt.NDArray[np.intp]] | None = None

    def _keep(self, values: Array | tuple[Array, ...]) -> None:
        """Keep scores of shape (S, N, L), or one array (N, L) per source."""
        self._values = values
        self.n_sources: int = len(values)
        self.n_samples, self.n_classes = (int(size) for size in values[0].shape)
        self._dtypes = {values.dtype} if isinstance(values, np.ndarray) else {source.dtype for source in values}
        #: The precision of the stored numbers, and that of results.
        self.dtype: np.dtype[Any] = max(self._dtypes, key=lambda dtype: (dtype.kind == "f", dtype.itemsize))
        self.result_dtype: np.dtype[Any] = result_dtype(self.dtype)

    def _check_source_names(self, names: Any) -> tuple[str, ...] | None:
        try:
            return check_names(names, self.n_sources, "source")
        except ShapeError as error:
            if self.n_sources > 1:
                raise
            message = f"{error} One sample of several sources has shape (sources, 1, classes)."
            raise ShapeError(message) from None

    def __iter__(self) -> Iterator[Array]:
        """The arrays of the sources, shape (N, L)."""
        return iter(self._values)

    @property
    def values(self) -> Array:
        """The scores as one array of shape (S, N, L); a copy only if they are separate arrays."""
        return self._values if isinstance(self._values, np.ndarray) else np.stack(self._values)

    @property
    def is_stacked(self) -> bool:
        """Whether the sources share one array."""
        return isinstance(self._values, np.ndarray)

    @property
    def sum_tolerance(self) -> float:
        """How far from one the sum of a source's probabilities may be: by dtype, of the coarsest source, and digits."""
        stored_as = "bfloat16" if self._is_bfloat16 else None
        of_dtype = max(tolerance_of(dtype, self.n_classes, stored_as) for dtype in self._dtypes)
        return of_dtype + (self.rounding if self.kind == "probs" else 0.0)

    @property
    def n_labelled(self) -> int:
        """Number of samples whose label is known."""
        return 0 if self.labels is None else int((self.labels != UNKNOWN).sum())

    def source_name(self, s: int) -> str:
        """The name of source ``s`` in messages and tables."""
        s = check_integer(s, "a source", 0, self.n_sources - 1)
        return f"source {s}" if self.source_names is None else f"source {s} ({self.source_names[s]})"

    def sample_number(self, n: int) -> int:
        """The number of sample ``n`` in messages: that in the whole, of labelled samples and of blocks."""
        if self._origin is None:
            return self.first_sample + n
        whole, places = self._origin
        return whole.sample_number(int(places[n]))

    def samples(self, start: int, stop: int) -> Array:
        """Samples ``start`` to ``stop`` of all sources, shape (S, stop - start, L); a view where possible."""
        start, stop = (check_integer(n, "a sample", 0, self.n_samples) for n in (start, stop))
        if isinstance(self._values, np.ndarray):
            return self._values[:, start:stop]
        return np.stack([source[start:stop] for source in self._values])

    def in_sample_shape(self, results: Any) -> Array:
        """Results per sample, of shape (n_samples, ...), in the shape of the input: (N, H, W, ...) for images."""
        array = as_array(results, "the results", f"give one entry for each of {self.n_samples} samples")
        if array.shape[:1] != (self.n_samples,):
            raise ShapeError(
                f"the results have shape {array.shape}; give one entry for each of {self.n_samples} samples."
            )
        return array.reshape(*self.sample_shape, *array.shape[1:])

    def flat(self) -> Predictions:
        """The same predictions with pixels of images as samples on one axis; the same object if they are so already."""
        if len(self.sample_shape) == 1:
            return self
        result = self.with_scores(self._values)
        result.sample_shape = (self.n_samples,)
        return result

    def with_labels(self, labels: Any) -> Predictions:
        """The same predictions with these labels, which may be in any form that the constructor accepts."""
        result = self.with_scores(self._values)
        result.labels = self._resolve(labels)
        return result

    def _resolve(self, labels: Any) -> npt.NDArray[np.int64] | None:
        """Labels as indices of classes, -1 where they are not known; None if none is."""
        if labels is None:
            return None
        indices = resolve_labels(labels, Samples(self.sample_shape, self.sample_ids, self.n_classes, self.class_names))
        return indices if len(indices) == 0 or (indices != UNKNOWN).any() else None

    def labelled(self) -> Predictions:
        """The predictions for the samples whose label is known; the same object if all are."""
        if self.labels is None or (self.labels != UNKNOWN).all():
            return self
        known = np.flatnonzero(self.labels != UNKNOWN)
        result = self.select(samples=known)
        result._origin = self, known
        return result

    @property
    def leaves_out_samples(self) -> bool:
        """Whether :meth:`labelled` left samples out, which :meth:`with_unlabelled` adds again."""
        return self._origin is not None

    def with_unlabelled(self) -> Predictions:
        """These samples together with those that :meth:`labelled` left out: what weights without labels are fitted on.

        The same object where no sample was left out.
        """
        if self._origin is None:
            return self
        whole, places = self._origin
        assert whole.labels is not None
        wanted = whole.labels == UNKNOWN
        wanted[places] = True
        return whole if wanted.all() else whole.select(samples=np.flatnonzero(wanted))

    def in_class_order(self, class_names: Sequence[str]) -> Predictions:
        """The same predictions with the classes, and the labels with them, in the order of these names."""
        names = check_names(class_names, self.n_classes, "class")
        if names is None or self.class_names is None or sorted(names) != sorted(self.class_names):
            raise ParameterError(f"class_names is {shown(class_names)}; give the names of the classes in a new order.")
        order = [self.class_names.index(name) for name in names]
        stacked = isinstance(self._values, np.ndarray)
        columns: Any = self.values[..., order] if stacked else tuple(source[:, order] for source in self)
        result = self.with_scores(columns)
        result.class_names = names
        if order != sorted(order):
            result.input_kind = self.kind  # scores of the positive class alone would be those of another class
        if self.labels is not None:
            # -1, unknown, is the last entry.
            result.labels = np.append(np.argsort(order), UNKNOWN)[self.labels]
        return result

    def with_scores(self, values: Any, samples: Any = None) -> Predictions:
        """The same with other scores, which are not checked; ``samples`` is the index of theirs, or None for all."""
        result = copy(self)
        result._keep(values)
        result._origin = None
        if samples is not None:
            # An index may take a sample twice.
            for name in ("labels", "sample_ids", "groups"):
                entries = getattr(self, name)
                setattr(result, name, entries if entries is None else entries[samples])
            result.sample_shape, result.first_sample = (result.n_samples,), 0
        return result

    def present(self) -> npt.NDArray[np.bool_]:
        """(S, N): whether a source has a prediction for a sample; if not, its row is NaN."""
        return np.stack([~np.isnan(source[:, 0]) for source in self])

    def select(self, *, sources: Any = None, samples: Any = None) -> Predictions:
        """The predictions of some sources for some samples.

        ``sources`` and ``samples`` are anything NumPy indexes one axis with: a slice, a list of indices, a mask;
        ``sources`` may also be a list of source names.  Slices are views, other selections copies.
        """
        chosen = self._source_indices(sources)
        samples = samples if samples is None else check_selection(samples, self.n_samples, "samples")
        if isinstance(self._values, np.ndarray):
            values: Any = self._values if sources is None else self._values[chosen]
            values = values if samples is None else values[:, samples]
        else:
            picked = [self._values[s] for s in np.arange(self.n_sources)[chosen]]
            values = tuple(picked if samples is None else [source[samples] for source in picked])
        names = self.source_names
        if names is not None and sources is not None:
            names = check_names([*np.asarray(names, dtype=object)[chosen]], len(values), "source")
        result = self.with_scores(values, samples)
        result.source_names = names
        if self._origin is not None:
            whole, places = self._origin
            whole = whole if sources is None else whole.select(sources=sources)
            result._origin = whole, places if samples is None else places[samples]
        return result

    def _source_indices(self, sources: Any) -> Any:
        if sources is None:
            return slice(None)
        chosen = sources if isinstance(sources, slice) else np.atleast_1d(as_array(sources, "sources", SELECTION))
        if isinstance(chosen, np.ndarray) and chosen.dtype.kind in "UO":
            known = {name: s for s, name in enumerate(self.source_names or ())}
            unknown = [name for name in chosen.ravel() if not isinstance(name, str) or name not in known]
            if unknown or chosen.ndim > 1:
                called = shown(str(unknown[0]) if isinstance(unknown[0], str) else unknown[0]) if unknown else "that"
                raise ParameterError(
                    f"there is no source called {called}; the sources are: {', '.join(known) or 'unnamed'}."
                )
            return np.asarray([known[name] for name in chosen], dtype=np.intp)
        return check_selection(chosen, self.n_sources, "sources")

    def split(
        self, *, random_state: int | np.random.Generator | None = None, size: float = 0.5
    ) -> tuple[Predictions, Predictions]:
        """Two random parts, the first with ``size`` of the samples; each keeps the samples' order.

        Without groups the number is rounded down.  With groups, all samples of a group are in the same part, and the
        first part has as nearly ``size`` of the samples as the groups allow.
        """
        first, second = self.split_indices(random_state=random_state, size=size)
        return self.select(samples=first), self.select(samples=second)

    def split_indices(
        self, *, random_state: int | np.random.Generator | None = None, size: float = 0.5
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The samples of the two parts that :meth:`split` makes, in ascending order."""
        share = check_real(size, "size", 0.0, 1.0)
        if share in (0.0, 1.0):
            raise ParameterError(f"size is {shown(size)}; give a share between 0 and 1.")
        generator = check_random_state(random_state)
        if self.groups is None:
            return split_samples(self.n_samples, share, generator)
        return split_groups(self.groups, share, generator)

    def __repr__(self) -> str:
        return f"Predictions({', '.join(self._facts())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{html.escape(fact)}</li>" for fact in self._facts())
        return f"<strong>Predictions</strong><ul>{rows}</ul>"

    def _facts(self) -> list[str]:
        labelled = f"{self.n_labelled} of {self.n_samples} labelled"
        if self.n_labelled in (0, self.n_samples):
            labelled = "labelled" if self.n_labelled else "unlabelled"
        return [
            f"{self.n_sources} source{'s' * (self.n_sources != 1)}",
            f"{self.n_samples} sample{'s' * (self.n_samples != 1)}",
            f"{self.n_classes} classes",
            *(["votes"] if self.is_votes else [f"kind={self.kind!r}", str(self.dtype)]),
            labelled,
        ]


def _either(passed: Any, of_input: Any) -> Any:
    """What the caller passes, or else what the input contains."""
    return of_input if passed is None else passed


def as_predictions(
    values: Any, kind: InputKind | Literal["labels"] | None = None, sources_axis: int | None = None
) -> Predictions:
    """``values`` as :class:`Predictions`."""
    if not isinstance(values, Predictions):
        return Predictions(
            values, kind="probs" if kind is None else kind, sources_axis=0 if sources_axis is None else sources_axis
        )
    own_kind = "labels" if values.is_votes else values.kind
    if kind is not None and not (isinstance(kind, str) and kind == own_kind):
        raise ParameterError(
            f"kind={shown(kind)} contradicts the predictions, which are {values.kind!r}; leave it out."
        )
    if sources_axis is not None and not (isinstance(sources_axis, int) and sources_axis == 0):
        raise ParameterError("Predictions have their sources on a fixed axis; leave sources_axis out.")
    return values
