"""Every way of combining sources by name: what calibrators, evaluation, the command line and the docs read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CombinerInfo:
    """A way of combining sources, and what one needs to know to use it.

    Attributes
    ----------
    name : str
        What one types, as in ``combine="atde"``.
    title : str
        What tables and figures show.
    summary : str
        One line of explanation.
    keeps_labels : bool
        Whether the label is always that of the mean of the sources.
    needs_labels : bool
        Whether it has weights that are fitted on labelled samples.
    has_weights : bool
        Whether each source has a weight that is fitted on a set of samples, with labels or without; all others combine
        each sample on its own.
    complexity : int
        Rank among combiners of equal merit: the lower, the fewer things it fits.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.combine.COMBINERS["atde"].keeps_labels
    True
    """

    name: str
    title: str
    summary: str
    keeps_labels: bool = False
    needs_labels: bool = False
    has_weights: bool = False
    complexity: int = 0


_ALL = (
    CombinerInfo("mean", "DE", "Mean of the sources: the deep (or snapshot) ensemble.", keeps_labels=True),
    CombinerInfo("tde", "TDE", "Truth discovery; may change labels.", complexity=1),
    CombinerInfo("atde", "aTDE", "Truth discovery that keeps the mean's labels.", keeps_labels=True, complexity=1),
    CombinerInfo(
        "consensus",
        "consensus",
        "Weighted mean of the sources, weights from their agreement over all samples, copies counted once.",
        has_weights=True,
        complexity=1,
    ),
    CombinerInfo(
        "aconsensus",
        "aconsensus",
        "The consensus, projected so that the mean's labels are kept.",
        keeps_labels=True,
        has_weights=True,
        complexity=1,
    ),
    CombinerInfo(
        "linear-pool",
        "linear-pool",
        "Weighted mean of the sources, weights learnt from the labels.",
        needs_labels=True,
        has_weights=True,
        complexity=2,
    ),
    CombinerInfo(
        "log-pool",
        "log-pool",
        "Weighted geometric mean of the sources and their mean, exponents learnt from the labels.",
        needs_labels=True,
        has_weights=True,
        complexity=2,
    ),
)

#: Name -> combiner.
COMBINERS: dict[str, CombinerInfo] = {info.name: info for info in _ALL}


def label_free_combiners() -> tuple[str, ...]:
    """Names of the combiners that need neither labels nor a set of samples to be fitted on.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.combine.label_free_combiners()
    ('mean', 'tde', 'atde')
    """
    return tuple(name for name, info in COMBINERS.items() if not info.has_weights)


def label_keeping_combiners() -> tuple[str, ...]:
    """Names of the combiners that leave the mean's labels as they are.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.combine.label_keeping_combiners()
    ('mean', 'atde', 'aconsensus')
    """
    return tuple(name for name, info in COMBINERS.items() if info.keeps_labels)
