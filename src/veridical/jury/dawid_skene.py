"""Dawid and Skene's model of votes: every source has a confusion matrix, every item a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veridical.combine.across_samples.votes import Votes, counts_of_votes
from veridical.combine.combined import Floats, Labels
from veridical.errors import ParameterError, ShapeError, shown

#: EM stops where the log-likelihood per vote rises by less than this.
_TOLERANCE = 1e-7
_MOST_ITERATIONS = 200
#: Limit to the numbers in all confusion matrices: 2 GB.
_MOST_NUMBERS = 1 << 28
#: Added to every entry of a confusion matrix: a label that a source never gave is unlikely, not impossible.
_PSEUDO_COUNT = 0.01


@dataclass(frozen=True, repr=False, eq=False)
class DawidSkene:
    """The model's view of the votes.

    Attributes
    ----------
    probs : (N, L) float64
        Posterior of each item's class.
    confusion : (S, L, L) float64
        Probability that a source gives the label of the last axis, for each true class.
    priors : (L,) float64
        How frequent the classes are.
    n_iter : int
    converged : bool

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> from veridical.combine.across_samples.votes import sort_votes
    >>> sources, items = np.divmod(np.arange(60), 20)
    >>> result = vd.fit_dawid_skene(sort_votes(items, sources, items % 2, (3, 20, 2)))
    >>> result.probs.shape, result.confusion.shape
    ((20, 2), (3, 2, 2))
    """

    probs: Floats
    confusion: Floats
    priors: Floats
    n_iter: int
    converged: bool

    @property
    def prediction(self) -> Labels:
        """(N,) the most probable class of each item."""
        label: Labels = self.probs.argmax(axis=1)
        return label

    def __repr__(self) -> str:
        n_items, n_classes = self.probs.shape
        state = "converged" if self.converged else "did not converge"
        size = f"{len(self.confusion)} sources, {n_items} items, {n_classes} classes"
        return f"DawidSkene({size}; {state} in {self.n_iter} iterations)"


def fit_dawid_skene(votes: Votes) -> DawidSkene:
    r"""Maximum likelihood by EM, from the shares of the votes on.

    With :math:`\pi_s(k, l)` the probability that source s gives label l where class k is true, and :math:`p(k)` the
    frequency of the classes, the posterior of an item is

    .. math:: P(k \mid \text{votes}) \propto p(k) \prod_{(s, l)} \pi_s(k, l).

    Sources are taken to err independently, which real ones do not: the posterior is far too sure, and needs a
    temperature wherever there are labels to fit one.  Memory is that of the votes and of S L^2 numbers.

    References
    ----------
    Dawid and Skene: Maximum likelihood estimation of observer error-rates using the EM algorithm.  Applied Statistics
    28, 1979.

    Parameters
    ----------
    votes : Votes
        Sorted by item, as ``combine.across_samples.votes.sort_votes`` makes them.

    Returns
    -------
    DawidSkene

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> from veridical.combine.across_samples.votes import sort_votes
    >>> sources, items = np.divmod(np.arange(60), 20)  # 3 sources vote on 20 items
    >>> labels = np.where(sources == 2, 0, items % 2)  # the third always says 0
    >>> result = vd.fit_dawid_skene(sort_votes(items, sources, labels, (3, 20, 2)))
    >>> bool((result.prediction == np.arange(20) % 2).all())
    True
    """
    if not isinstance(votes, Votes):
        raise ParameterError(f"votes is {shown(votes)}; give Votes, or a table of votes to veridical.judge.")
    n_sources, _, n_classes = votes.shape
    if n_sources * n_classes**2 > _MOST_NUMBERS:
        raise ShapeError(
            f"{n_sources:,} confusion matrices of {n_classes:,} classes have too many numbers; leave out jurors with "
            "few votes, or classes that nobody chose."
        )
    items, cells = votes.items[votes.entries], votes.sources[votes.entries] * n_classes + votes.labels
    probs = counts_of_votes(votes, np.ones(len(votes.items)))
    probs /= probs.sum(axis=1, keepdims=True)
    confusion, priors = np.empty((n_sources * n_classes, n_classes)), np.empty(n_classes)
    before, n_iter, converged = -np.inf, 0, False
    while n_iter < _MOST_ITERATIONS and not converged:
        _maximise(probs, items, cells, votes.values, confusion, priors)
        likelihood = _expect(confusion, priors, items, cells, votes.values, probs)
        converged = likelihood - before < _TOLERANCE * max(len(items), 1)
        before, n_iter = likelihood, n_iter + 1
    by_class = confusion.reshape(n_sources, n_classes, n_classes).transpose(0, 2, 1)
    return DawidSkene(probs, by_class, priors, n_iter, converged)


def _maximise(probs: Floats, items: Labels, cells: Labels, values: Floats, confusion: Floats, priors: Floats) -> None:
    """``confusion[s L + l, k]`` and ``priors`` from the posteriors; a vote's cell is s L + l."""
    n_classes = probs.shape[1]
    for k in range(n_classes):
        confusion[:, k] = np.bincount(cells, weights=values * probs[items, k], minlength=len(confusion))
    confusion += _PSEUDO_COUNT
    by_source = confusion.reshape(-1, n_classes, n_classes)
    by_source /= by_source.sum(axis=1, keepdims=True)
    priors[:] = (probs.sum(axis=0) + _PSEUDO_COUNT) / (len(probs) + n_classes * _PSEUDO_COUNT)


def _expect(confusion: Floats, priors: Floats, items: Labels, cells: Labels, values: Floats, probs: Floats) -> float:
    """Write the posteriors to ``probs``; returns the log-likelihood."""
    logs = np.log(confusion)
    for k in range(probs.shape[1]):
        probs[:, k] = np.log(priors[k]) + np.bincount(items, weights=values * logs[cells, k], minlength=len(probs))
    most = probs.max(axis=1, keepdims=True)
    np.exp(probs - most, out=probs)
    total = probs.sum(axis=1, keepdims=True)
    probs /= total
    return float((most + np.log(total)).sum())
