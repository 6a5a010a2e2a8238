"""What all combiners share: a combiner is one class with what it learns, one formula, and its state."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np

from veridical.backends.namespace import LABEL_MARGIN, class_sums, project, widest_float
from veridical.combine.combined import Combined
from veridical.combine.in_memory import CombineOptions, SourcesInMemory
from veridical.combine.sources import Sources
from veridical.combine.truth import Floats, Labels
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, check_distributions, check_labels, check_real

#: Classes whose scores differ by less than this are tied: of those the lowest is the label, however sums are rounded.
TIED = 1e-5

#: Entries of every saved combiner, None where it has no such state; the first files had two of them.
_ALWAYS_SAVED = ("weights", "floor", "mean_weight")


class Combiner:
    """Base of the ways to combine sources: many distributions per sample to one.

    A subclass names itself, writes :meth:`formula`, and :meth:`fit` if it learns anything; ``veridical.register`` makes
    it known.  The formula is written over an array namespace ``xp``: NumPy, PyTorch, JAX, CuPy and ONNX run it.

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(400))
    >>> combiner, _ = vd.combine.fit_combiner("linear-pool", predictions, predictions.labels, vd.Identity())
    >>> round(float(combiner.weights.sum()), 6)
    1.0
    >>> vd.combine.COMBINERS["atde"].keeps_labels
    True
    """

    #: What one types, as in ``combine="atde"``.
    name: ClassVar[str]
    #: What tables and figures show; the name where there is no usual short title.
    title: ClassVar[str]
    #: One line of explanation.
    summary: ClassVar[str]
    #: Whether the label is always that of the mean of the sources.
    keeps_labels: ClassVar[bool] = False
    #: Whether its weights are fitted on labelled samples.
    needs_labels: ClassVar[bool] = False
    #: Whether each source has a weight that is fitted on a set of samples, with labels or without; all others combine
    #: each sample on its own.
    has_weights: ClassVar[bool] = False
    #: Whether its vectors are those of truth discovery with the mean's labels, which one pass computes with the mean.
    discovers_truth: ClassVar[bool] = False
    #: Rank among combiners of equal merit: the lower, the fewer things it fits.
    complexity: ClassVar[int] = 0
    #: Names of the fitted attributes, which are saved and restored: numbers or float64 arrays.
    _state: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__ and "title" not in cls.__dict__:
            cls.title = cls.name

    # What a combiner writes ---------------------------------------------------------------------------------------

    def fit(self, predictions: Predictions, labels: Labels, options: CombineOptions) -> None:
        """Set the attributes named in ``_state``; ``labels`` are (N,) int64."""

    def formula(self, xp: Any, sources: Sources) -> Any:
        """(N, L) combined vectors of checked sources; they need not sum to one."""
        raise NotImplementedError

    def for_sources(self, known: list[int], n_new: int) -> Self:
        """The combiner for some of its sources, by number, followed by ``n_new`` that it was not fitted on."""
        raise NotImplementedError

    def check_state(self, n_sources: int) -> None:
        """Raise ValueError where a restored state is none that a fit leaves behind."""

    @property
    def source_weights(self) -> Floats | None:
        """(S,) with which weights truth is discovered on the combined vectors; None where all are one."""
        return None

    def _by_kernel(self, sources: SourcesInMemory) -> tuple[Array, Labels] | None:
        """Vectors and labels of many samples, where there is a compiled kernel."""
        return None

    # What is shared -----------------------------------------------------------------------------------------------

    def combine(self, sources: Sources) -> tuple[Any, Any]:
        """(N, L) distributions and (N,) labels, which lead them strictly."""
        xp = sources.xp
        probs = self.formula(xp, sources)
        probs = probs / class_sums(xp, probs)[:, None]
        probs, labels = with_leading_labels(xp, probs, sources.prediction if self.keeps_labels else None)
        return xp.astype(probs, sources.probs.dtype, copy=False), labels

    def combine_arrays(self, sources: Sources) -> Combined:
        """Sources of any library, combined where they are."""
        probs, labels = self.combine(sources)
        wide = widest_float(sources.xp, probs)
        return Combined(wide, labels, sources, self.source_weights, dtype=probs.dtype)

    def combine_in_memory(self, sources: SourcesInMemory) -> Combined:
        """Sources in host memory, combined by a kernel or block by block."""
        probs, labels = (self._by_kernel(sources) if sources.are_many else None) or sources.in_blocks(self.combine)
        probs = probs.astype(sources.predictions.result_dtype, copy=False)
        return Combined(probs, labels, sources, self.source_weights)

    def apply(self, predictions: Predictions, options: CombineOptions) -> Combined:
        """Combine predictions in host memory."""
        return self.combine_in_memory(SourcesInMemory(predictions, options))

    def described(self) -> dict[str, Any]:
        """What is saved: its name and state, as numbers and arrays."""
        return {
            "name": self.name,
            **dict.fromkeys(_ALWAYS_SAVED),
            **{name: getattr(self, name) for name in self._state},
        }

    @classmethod
    def from_described(cls, stored: dict[str, Any], n_sources: int) -> Self:
        """The combiner that :meth:`described` described; ValueError if it is none."""
        present = {name for name, value in stored.items() if value is not None} - {"name"}
        if not {"name", *_ALWAYS_SAVED[:2]} <= set(stored) <= {"name", *_ALWAYS_SAVED, *cls._state}:
            raise ValueError(f"the way to combine its sources is described by {sorted(stored)}")
        if present != {*cls._state}:
            raise ValueError(f"{cls.name} is made of {sorted(cls._state)}, not of {sorted(present)}")
        combiner = cls()
        vars(combiner).update({name: stored[name] for name in cls._state})
        combiner.check_state(n_sources)
        return combiner

    def with_state(self, **state: Any) -> Self:
        """A copy with other fitted attributes."""
        changed = copy.copy(self)
        vars(changed).update(state)
        return changed

    def __repr__(self) -> str:
        state = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in self._state)
        return f"{type(self).__name__}({state})"


def with_leading_labels(xp: Any, probs: Any, labels: Any = None) -> tuple[Any, Any]:
    """The nearest distributions in which ``labels`` lead; by default the lowest classes that do up to rounding."""
    if xp is not np:
        return _projected(xp, probs, labels)
    chosen = probs.argmax(axis=1) if labels is None else labels
    at, others = (np.arange(len(probs)), chosen), probs.copy()
    others[at] = -1.0
    close = np.flatnonzero(probs[at] - others.max(axis=1) < TIED)  # nearly all labels lead clearly
    if len(close):
        probs, chosen = probs.copy(), chosen.copy()
        probs[close], chosen[close] = _projected(np, probs[close], None if labels is None else labels[close])
    return probs, chosen


def _projected(xp: Any, probs: Any, labels: Any) -> tuple[Any, Any]:
    if labels is None:
        top = xp.max(probs, axis=1, keepdims=True)
        labels = xp.argmax(xp.astype(probs >= top - TIED, xp.int32), axis=1)
    return project(xp, probs, labels, LABEL_MARGIN), labels


class Mean(Combiner):
    """The mean of the sources."""

    name = "mean"
    title = "DE"
    summary = "Mean of the sources: the deep (or snapshot) ensemble."
    keeps_labels = True

    def formula(self, xp: Any, sources: Sources) -> Any:
        return sources.mean

    def _by_kernel(self, sources: SourcesInMemory) -> tuple[Array, Labels]:
        # A calibrator that looks at the sources asks for their truth next.
        sources.expects_truth |= getattr(sources.options, "needs_sources", False)
        return sources.mean


class TDE(Combiner):
    """Truth discovery of each sample, whose label may be another than that of the mean."""

    name = "tde"
    title = "TDE"
    summary = "Truth discovery; may change labels."
    complexity = 1

    def formula(self, xp: Any, sources: Sources) -> Any:
        return sources.truth(keep_label=False).probs

    def _by_kernel(self, sources: SourcesInMemory) -> tuple[Array, Labels]:
        return with_leading_labels(np, sources.truth(keep_label=False).probs)


class ATDE(Combiner):
    """Truth discovery of each sample that keeps the label of the mean."""

    name = "atde"
    title = "aTDE"
    summary = "Truth discovery that keeps the mean's labels."
    keeps_labels = True
    discovers_truth = True
    complexity = 1

    def combine(self, sources: Sources) -> tuple[Any, Any]:
        return sources.truth().probs, sources.prediction

    def _by_kernel(self, sources: SourcesInMemory) -> tuple[Array, Labels]:
        return sources.kept_truth.probs, sources.kept_truth.prediction


def keep_labels(probs: Any, labels: Any, *, margin: float = LABEL_MARGIN) -> Array:
    """The nearest distributions in which the given labels win.

    Each row is moved to the closest point (in Euclidean distance) of the simplex at which its label leads every
    other class by ``margin``: the label's score and the k scores above it meet at a common level, the rest stays.
    Rows in which the label already leads are returned as they are.

    Parameters
    ----------
    probs : array of shape (N, L)
    labels : array of N integers in 0..L-1
    margin : float
        With 0 ties are possible, and ``argmax`` may then name another class.

    Returns
    -------
    array of shape (N, L)
        float64 for float64 input, otherwise float32.

    References
    ----------
    Ma et al., UAI 2021, Section 3.3; their pseudo-code can count the label's own class twice, this one cannot.

    Examples
    --------
    >>> from veridical.combine import keep_labels
    >>> keep_labels([[0.5, 0.3, 0.2]], [1], margin=0.0)
    array([[0.4, 0.4, 0.2]])
    """
    from veridical._kernels.projection import project_rows_onto_winners  # loads the compiler

    rows = check_distributions(probs)
    winners = check_labels(labels, *rows.shape)
    result = np.array(rows, order="C")
    project_rows_onto_winners(result, winners, check_real(margin, "margin", 0.0, 1.0))
    return result
