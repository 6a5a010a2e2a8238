"""Tables 1 and A1 to A4: DE, TDE and aTDE by number of sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from veridical._parallel import run_blocks
from veridical._progress import Progress, check_progress
from veridical.evaluation.differences import bootstrap_differences
from veridical.evaluation.methods import resolve_method
from veridical.evaluation.source_sweep import DEFAULT_RULES, DiscoveryRule, sweep_sources
from veridical.metrics.registry import SUMMARY_METRICS
from veridical.metrics.sample import Sample
from veridical.metrics.table import summary_of
from veridical.paper.ensembles import Ensemble, check_ensembles, check_sources
from veridical.paper.extended import BOOTSTRAP_NOTE, Extended, check_extended, pairs_of, with_intervals
from veridical.paper.tables import PairedDifference, Row, Table, Value, with_best_marked, with_published
from veridical.predictions.validation import check_integer

_PUBLISHED_IN = ("A1", "A2", "A3", "A4", "1")
#: The paper's steps: ten, up to all sources.
_STEPS = 10


def rules_of(updates: int | None = None) -> dict[str, DiscoveryRule]:
    """Row -> its rule: TDE and aTDE with the paper's stopping rule, and with a fixed number of updates."""
    rules = dict(zip(("TDE", "aTDE"), DEFAULT_RULES, strict=True))
    if updates is not None:
        n = check_integer(updates, "updates", 1)
        times = f"{n} update{'s' * (n != 1)}"
        rules |= {
            f"{method}, {times}": DiscoveryRule(f"{rule.name}, {times}", rule.accuracy_preserving, 0.0, n)
            for method, rule in rules.items()
        }
    return rules


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
    ensembles : sequence of Ensemble
        From :func:`veridical.paper.open_ensembles`.
    sources : sequence of int, optional
        How many of the first sources to use; ten steps up to all by default.
    updates : int, optional
        Also show truth discovery with exactly so many updates and no stopping rule; the authors' program makes 6.
    extended : Extended, optional
        Add noise floors, intervals, paired comparisons, and a row for the consensus.
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
    >>> round(table.row("DE").values["ece"].mean, 4)
    0.0545
    """
    ensembles, extended = check_ensembles(ensembles), check_extended(extended)
    rules, report = rules_of(updates), check_progress(progress)
    rows, pairs = list[Row](), list[PairedDifference]()
    for done, ensemble in enumerate(ensembles):
        steps = check_sources(sources, ensemble, default_sources(ensemble.predictions.n_sources))
        report(done, len(ensembles), f"{ensemble.name}: DE, TDE, aTDE with {', '.join(map(str, steps))} sources")
        sweep = sweep_sources(ensemble.engine(steps[-1], n_threads), steps, list(rules.values()))
        for n in steps:
            samples = {"DE": sweep[n, "mean"], **{method: sweep[n, rule.name] for method, rule in rules.items()}}
            if extended is not None:
                (consensus,) = ensemble.engine(n, n_threads).run([resolve_method("consensus")])
                samples["consensus"] = consensus.vectors
            group = _rows(ensemble, n, samples, extended, n_threads)
            if extended is not None:
                differences = bootstrap_differences(
                    samples,
                    SUMMARY_METRICS,
                    n_resamples=extended.n_resamples,
                    random_state=extended.random_state,
                    n_threads=n_threads,
                )
                group = with_intervals(group, differences)
                pairs += pairs_of(group, differences)
            rows += group
    return Table(
        "table1",
        "DE, TDE and aTDE by number of sources",
        tuple(SUMMARY_METRICS),
        tuple(with_best_marked(with_published(rows, _PUBLISHED_IN, lambda method: method.partition(",")[0]))),
        {"updates": updates},
        () if extended is None else (BOOTSTRAP_NOTE,),
        tuple(pairs),
    )


def _rows(
    ensemble: Ensemble, n_sources: int, samples: dict[str, Sample], extended: Extended | None, n_threads: int | None
) -> list[Row]:
    """One row per method, with noise floors in extended tables."""
    options: dict[str, Any] = {"floors": False} if extended is None else extended.summary_options()
    summaries = run_blocks(lambda sample: summary_of(sample, **options), list(samples.values()), n_threads)
    return [
        Row(ensemble.name, n_sources, method, {row.metric: Value(row.value, floor=row.floor) for row in summary})
        for method, summary in zip(samples, summaries, strict=True)
    ]
