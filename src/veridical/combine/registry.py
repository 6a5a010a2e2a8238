"""Every way of combining sources by name: what calibrators, evaluation, the command line and the docs read."""

from __future__ import annotations

import re

from veridical.combine.across_samples.combiners import ConsensusMean, LabelKeepingConsensusMean
from veridical.combine.base import ATDE, TDE, Combiner, Mean
from veridical.combine.combined import Combined
from veridical.combine.in_memory import CombineOptions
from veridical.combine.linear_pool import LinearPool
from veridical.combine.log_pool import LogPool
from veridical.combine.truth import Labels
from veridical.errors import ParameterError, shown
from veridical.predictions import Predictions

_ALL: tuple[type[Combiner], ...] = (
    Mean,
    TDE,
    ATDE,
    ConsensusMean,
    LabelKeepingConsensusMean,
    LinearPool,
    LogPool,
)

#: Name -> combiner.
COMBINERS: dict[str, type[Combiner]] = {combiner.name: combiner for combiner in _ALL}


def name_of_own(plugin: type) -> str:
    """The name of a class that is to be registered, if one can type it."""
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise ParameterError(f"{plugin.__name__} has the name {shown(name)}; use lower-case letters, digits and -.")
    return name


def register_combiner(combiner: type[Combiner]) -> None:
    """Make a class known by its name, wherever combiners are named.

    Examples
    --------
    >>> import veridical as vd
    >>> class Largest(vd.combine.Combiner):
    ...     name = "largest"
    ...     summary = "The largest of the sources' probabilities, scaled to a distribution."
    ...
    ...     def formula(self, xp, sources):
    ...         return xp.max(sources.probs, axis=0)
    >>> vd.combine.register_combiner(Largest)
    >>> vd.combine.apply_label_free("largest", vd.Predictions([[[0.9, 0.1]], [[0.4, 0.6]]]), vd.Identity()).probs
    array([[0.6, 0.4]])
    >>> del vd.combine.COMBINERS["largest"]
    """
    if not (isinstance(combiner, type) and issubclass(combiner, Combiner)):
        raise ParameterError(f"{shown(combiner)} is no combiner; give a subclass of veridical.combine.Combiner.")
    name = name_of_own(combiner)
    known = COMBINERS.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (combiner.__module__, combiner.__qualname__):
        raise ParameterError(f"there is a combiner called {name!r} already; choose another name.")
    COMBINERS[name] = combiner


def label_free_combiners() -> tuple[str, ...]:
    """Names of the combiners that need neither labels nor a set of samples to be fitted on.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.combine.label_free_combiners()
    ('mean', 'tde', 'atde')
    """
    return tuple(name for name, combiner in COMBINERS.items() if not combiner.has_weights)


def label_keeping_combiners() -> tuple[str, ...]:
    """Names of the combiners that leave the mean's labels as they are.

    Examples
    --------
    >>> import veridical as vd
    >>> vd.combine.label_keeping_combiners()
    ('mean', 'atde', 'aconsensus')
    """
    return tuple(name for name, combiner in COMBINERS.items() if combiner.keeps_labels)


def apply_label_free(name: str, predictions: Predictions, options: CombineOptions) -> Combined:
    """Predictions combined in a way that learns nothing.

    Parameters
    ----------
    name : str
        One of :func:`label_free_combiners`.
    predictions : Predictions
    options : CombineOptions
        An object with ``missing`` and ``n_threads``, such as a calibrator.

    Returns
    -------
    Combined

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> predictions = vd.Predictions(np.array([[[0.9, 0.1]], [[0.5, 0.5]]]))
    >>> vd.combine.apply_label_free("mean", predictions, vd.Identity()).probs
    array([[0.7, 0.3]])
    """
    return COMBINERS[name]().apply(predictions, options)


def fit_combiner(
    name: str, predictions: Predictions, labels: Labels, options: CombineOptions
) -> tuple[Combiner, Combined]:
    """The combiner of that name, fitted where it learns something, and the combined calibration data.

    Parameters
    ----------
    name : str
        A key of :data:`veridical.combine.COMBINERS`.
    predictions : Predictions
    labels : (N,) int64
    options : CombineOptions
        An object with ``missing`` and ``n_threads``, such as a calibrator.

    Returns
    -------
    (Combiner, Combined)

    Examples
    --------
    >>> import veridical as vd
    >>> predictions = vd.load_demo().select(sources=slice(3), samples=slice(500))
    >>> combiner, combined = vd.combine.fit_combiner("linear-pool", predictions, predictions.labels, vd.Identity())
    >>> combined.probs.shape
    (500, 10)
    """
    combiner = COMBINERS[name]()
    combiner.fit(predictions, labels, options)
    return combiner, combiner.apply(predictions, options)
