"""DE, TDE and aTDE by number of sources: Tables 1 and A1 to A4, Figure 2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veridical._parallel import run_blocks
from veridical._progress import Progress, no_progress
from veridical.combine import discover
from veridical.combine.pools import probabilities
from veridical.errors import InvalidInputError
from veridical.paper.extended import NOTE, Extended, judge_by_bootstrap
from veridical.paper.inputs import Ensemble, check_sources
from veridical.paper.scores import COLUMNS, Scores, score_vectors
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, check_integer

TABLES = ("A1", "A2", "A3", "A4", "1")
#: The paper's steps: ten, up to all the sources there are.
_STEPS = 10
#: Memory of one block of samples, as float64 probabilities.
_BLOCK_BYTES = 8 * 1024**2


@dataclass(frozen=True)
class Rule:
    """When truth discovery stops.

    Attributes
    ----------
    method : str
        What tables call it.
    accuracy_preserving : bool
    tol : float
    max_iter : int
    """

    method: str
    accuracy_preserving: bool
    tol: float = math.exp(-8)
    max_iter: int = 20

    @property
    def published_as(self) -> str:
        """What the paper calls it, whatever the stopping rule."""
        return "aTDE" if self.accuracy_preserving else "TDE"


def rules(updates: int | None = None) -> tuple[Rule, ...]:
    """TDE and aTDE with the paper's stopping rule and, where asked for, with a fixed number of updates."""
    chosen = [Rule("TDE", False), Rule("aTDE", True)]
    if updates is not None:
        n = check_integer(updates, "updates", 1)
        times = f"{n} update{'s' * (n != 1)}"
        chosen += [Rule(f"TDE, {times}", False, 0.0, n), Rule(f"aTDE, {times}", True, 0.0, n)]
    return tuple(chosen)


def default_sources(n_sources: int) -> list[int]:
    """Ten steps up to all sources, fewer where there are fewer.

    Examples
    --------
    >>> default_sources(50)
    [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    >>> default_sources(3)
    [1, 2, 3]
    """
    return sorted({max(round(step * n_sources / _STEPS), 1) for step in range(1, _STEPS + 1)})


def sweep(
    predictions: Predictions, sources: Sequence[int], variants: Sequence[Rule], n_threads: int | None = None
) -> dict[tuple[int, str], Scores]:
    """Scores of the mean and of truth discovery for growing numbers of sources; the data is read once.

    A block of samples is turned into probabilities once; the mean of the first S sources is that of fewer plus the
    rest; truth discovery takes views of the block.

    Returns
    -------
    dict
        (number of sources, method) -> :class:`Scores`
    """
    assert predictions.labels is not None
    labels, most = predictions.labels, max(sources)
    used = predictions.select(sources=slice(most))
    size = max(1, _BLOCK_BYTES // (8 * most * predictions.n_classes))

    def work(first: int) -> dict[tuple[int, str], Scores]:
        part = slice(first, min(first + size, predictions.n_samples))
        discover(used.select(samples=part), max_iter=0)  # checks the numbers as they were given
        block = probabilities(used, part)
        return {key: _score(probs, labels[part]) for key, probs in _outputs(block, sources, variants)}

    try:
        blocks = run_blocks(work, range(0, predictions.n_samples, size), n_threads)
    except InvalidInputError:
        discover(used, max_iter=0, n_threads=n_threads)  # says the same of the sample's place in the whole
        raise
    return {key: Scores.joined([block[key] for block in blocks]) for key in blocks[0]}


def _outputs(block: Array, sources: Sequence[int], variants: Sequence[Rule]) -> Iterator[tuple[tuple[int, str], Array]]:
    total = np.zeros(block.shape[1:])
    added = 0
    for n in sorted(sources):
        for source in block[added:n]:
            total += source
        added = n
        yield (n, "DE"), total / n
        for rule in variants:
            truth = discover(
                block[:n], accuracy_preserving=rule.accuracy_preserving, tol=rule.tol, max_iter=rule.max_iter
            )
            yield (n, rule.method), truth.probs


def _score(probs: Array, labels: Array) -> Scores:
    prediction = probs.argmax(axis=1)
    confidence = np.minimum(probs[np.arange(len(probs)), prediction], 1.0)
    return score_vectors(probs, labels, confidence, prediction)


def table1(
    ensembles: Sequence[Ensemble],
    *,
    sources: Sequence[int] | None = None,
    updates: int | None = None,
    extended: Extended | None = None,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """Tables 1 and A1 to A4: the mean, TDE and aTDE by number of sources, on all samples.

    Parameters
    ----------
    ensembles : sequence of Ensemble, from :func:`veridical.paper.open_ensembles`
    sources : sequence of int, optional
        How many of the first sources to use; ten steps up to all by default.
    updates : int, optional
        Also show truth discovery with exactly so many updates and no stopping rule; the authors' program makes 6.
    extended : Extended, optional
        Add noise floors, intervals and paired comparisons.
    n_threads : int, optional
        Results do not depend on it.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each ensemble.

    Returns
    -------
    Table

    References
    ----------
    Ma et al., Improving Uncertainty Calibration of Deep Neural Networks, UAI 2021, Section 5.1.

    Examples
    --------
    >>> from veridical import paper
    >>> table = paper.table1(paper.open_ensembles(), sources=[20])
    >>> round(table.row("DE").values["ece"].mean, 2)
    5.45
    """
    variants, report = rules(updates), progress or no_progress
    rows, pairs = list[Row](), list[PairedDifference]()
    for done, ensemble in enumerate(ensembles):
        steps = check_sources(sources or default_sources(ensemble.predictions.n_sources), ensemble)
        report(done, len(ensembles), f"{ensemble.name}: DE, TDE, aTDE with {', '.join(map(str, steps))} sources")
        scores = sweep(ensemble.predictions, steps, variants, n_threads)
        found, compared = _judged(sweep_rows(ensemble, scores, n_threads), scores, extended)
        rows += found
        pairs += compared
    as_paper = {"DE": "DE", **{rule.method: rule.published_as for rule in variants}}
    return Table(
        "table1",
        "DE, TDE and aTDE by number of sources",
        COLUMNS,
        tuple(with_best_marked(with_published(rows, TABLES, as_paper.__getitem__))),
        {"updates": updates},
        () if extended is None else (NOTE,),
        tuple(pairs),
    )


def _judged(
    rows: list[Row], scores: dict[tuple[int, str], Scores], extended: Extended | None
) -> tuple[list[Row], list[PairedDifference]]:
    """The rows with what their figures are worth, where that is asked for."""
    if extended is None:
        return rows, []
    judged: list[Row] = []
    pairs: list[PairedDifference] = []
    for n in dict.fromkeys(row.sources for row in rows):
        group = [row for row in rows if row.sources == n]
        found, compared = judge_by_bootstrap(group, {row.method: scores[n, row.method] for row in group}, extended)
        judged += found
        pairs += compared
    return judged, pairs


def sweep_rows(ensemble: Ensemble, scores: dict[tuple[int, str], Scores], n_threads: int | None = None) -> list[Row]:
    """One row per number of sources and method."""
    measured = run_blocks(lambda key: scores[key].metrics(COLUMNS), list(scores), n_threads)
    return [
        Row(ensemble.name, n, method, {metric: Value(value) for metric, value in values.items()})
        for (n, method), values in zip(scores, measured, strict=True)
    ]
