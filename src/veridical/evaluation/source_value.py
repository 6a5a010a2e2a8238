"""Which sources are worth keeping: each alone, the mean without it, its learned weight, the smallest sufficient subset.

Only the mean is computed, as sums over sources of which one is left out, block by block of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from veridical._parallel import run_blocks
from veridical._tables import TableResult
from veridical.combine.pools import fit_linear_pool, probabilities, sample_blocks
from veridical.evaluation.engine import Engine, half_split
from veridical.evaluation.outcomes import Indices
from veridical.metrics.groups import draw_counts
from veridical.metrics.intervals import interval_of
from veridical.metrics.resampling import run_draws
from veridical.metrics.sample import Booleans, Floats, Labels
from veridical.predictions.labels import UNKNOWN
from veridical.predictions.validation import Array

_N_RESAMPLES, _LEVEL = 400, 0.95
#: The loss of a label with probability 1e-12 or less; one sample must not decide.
_LEAST_PROBABILITY = 1e-12
#: The search for a subset looks at no more samples than this many sums allow.
_MOST_SUMS = 200_000_000


@dataclass(frozen=True)
class Effect:
    """A paired difference with its 95% bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class SourceValue:
    """What one source is worth.

    Attributes
    ----------
    name : str
    accuracy, nll : float
        Of the source alone, where it is present.
    nll_without, accuracy_without : Effect
        What the mean of the other sources gains (+) or loses (-) in NLL and accuracy: a positive ``nll_without`` means
        a larger loss, so that the source is worth keeping.
    weight : float
        Its share in a linear pool that was fitted on one half of the samples; 1/S is an equal share.
    agreement : float
        How often it names the same label as another source, on average.
    """

    name: str
    accuracy: float
    nll: float
    nll_without: Effect
    accuracy_without: Effect
    weight: float
    agreement: float


@dataclass(frozen=True)
class SourceValues(TableResult):
    """What all sources are worth, on the half of the samples that nothing was chosen on.

    Attributes
    ----------
    sources : tuple of SourceValue
    accuracy, nll : float
        Of the mean.
    best : int
        The source with the lowest NLL on the other half.
    best_accuracy, best_nll : Effect
        Difference of that source to the mean.
    subset : tuple of int
        The smallest set of sources, by removing the least useful one after another, whose mean cannot be told from
        that of all by NLL or accuracy.
    subset_nll, subset_accuracy : Effect
        Difference of its mean to that of all.
    n_samples : int
    """

    sources: tuple[SourceValue, ...]
    accuracy: float
    nll: float
    best: int
    best_accuracy: Effect
    best_nll: Effect
    subset: tuple[int, ...]
    subset_nll: Effect
    subset_accuracy: Effect
    n_samples: int

    @property
    def mean_beats_best(self) -> bool:
        """Whether the mean is better than its best source by more than chance, in accuracy or NLL."""
        return self.best_nll.low > 0 or self.best_accuracy.high < 0

    @property
    def harmful(self) -> tuple[int, ...]:
        """Sources without which the mean is better by more than chance."""
        return tuple(s for s, source in enumerate(self.sources) if source.nll_without.high < 0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to know about the sources, in plain words."""
        sentences = []
        best = self.sources[self.best]
        if not self.mean_beats_best:
            alone = f"accuracy {100 * best.accuracy:.1f}% and NLL {best.nll:.3f}"
            whole = f"{100 * self.accuracy:.1f}% and {self.nll:.3f}"
            sentences.append(f"The mean is not better than its best source, {best.name}: {alone} against {whole}.")
        if len(self.subset) < len(self.sources):
            names = [self.sources[s].name for s in self.subset]
            shown = ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"
            sentences.append(
                f"The mean of {len(names)} of the {len(self.sources)} sources ({shown}) cannot be told from that of "
                f"all: NLL {self.nll + self.subset_nll.value:.3f} against {self.nll:.3f}, accuracy "
                f"{100 * (self.accuracy + self.subset_accuracy.value):.1f}% against {100 * self.accuracy:.1f}%."
            )
        return tuple(sentences)

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, one per source; sources of the smallest sufficient subset have a star."""
        heading = ["source", "accuracy", "NLL", "NLL without it (95%)", "accuracy without it", "weight", "agrees"]
        rows = [
            [
                source.name + " *" * (s in self.subset),
                f"{100 * source.accuracy:.2f}",
                f"{source.nll:.3f}",
                f"{source.nll_without.value:+.4f} ({source.nll_without.low:+.4f} to {source.nll_without.high:+.4f})",
                f"{100 * source.accuracy_without.value:+.2f}",
                f"{100 * source.weight:.1f}",
                f"{100 * source.agreement:.1f}",
            ]
            for s, source in enumerate(self.sources)
        ]
        return heading, rows

    def _caption(self) -> str:
        return f"What sources are worth, on {self.n_samples:,} samples; * is in the smallest subset as good as all"

    def _records(self) -> list[dict[str, Any]]:
        return [
            {"source": s.name, "accuracy": s.accuracy, "nll": s.nll, "weight": s.weight, "agreement": s.agreement}
            | {f"nll_without{end}": value for end, value in _columns(s.nll_without)}
            | {f"accuracy_without{end}": value for end, value in _columns(s.accuracy_without)}
            for s in self.sources
        ]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**asdict(self), "mean_beats_best": self.mean_beats_best, "harmful": list(self.harmful)}


def _columns(effect: Effect) -> list[tuple[str, float]]:
    return [("", effect.value), ("_low", effect.low), ("_high", effect.high)]


def value_sources(engine: Engine, agreement: Sequence[Sequence[float]], random_state: int = 0) -> SourceValues | None:
    """What each source is worth; None without labels, with one source, or where a sample has no other source.

    Weights, the best source and the subset are chosen on one random half of the samples and scored on the other.

    Parameters
    ----------
    engine : Engine
    agreement : (S, S) numbers
        How often two sources name the same label.
    random_state : int
        Decides the halves and the resamples.
    """
    engine = engine.labelled
    predictions = engine.predictions
    n_sources = predictions.n_sources
    if predictions.labels is None or n_sources < 2 or predictions.n_labelled < 4:
        return None
    if predictions.n_labelled < predictions.n_samples:
        engine = engine.part(np.flatnonzero(predictions.labels != UNKNOWN))
        predictions = engine.predictions
    split = half_split(predictions, random_state)
    assert split.fitted_on is not None
    assert split.scored_on is not None
    scored, fitted = split.scored_on, split.fitted_on
    prob, correct, mean_correct = _probabilities_of_labels(engine)
    if (np.isfinite(prob).sum(axis=0) < 2).any():
        return None
    weights = fit_linear_pool(predictions.select(samples=fitted), engine.labels[fitted])
    nll = _nll_of_mean(prob[:, scored])
    without = _nll_without(prob[:, scored]) - nll
    accuracy_without = correct[:, scored].astype(np.float64) - mean_correct[scored]
    path = _removal_path(prob[:, _some(fitted, n_sources)])
    subsets = np.stack([_nll_of_mean(prob[kept][:, scored]) for kept in path]) - nll
    subsets_correct = _correct_on_path(engine, path)[:, scored].astype(np.float64) - mean_correct[scored]
    best = int(np.argmin(_mean_of_present(prob[:, fitted])))
    alone, right = engine.sources[best].among(scored, predictions.n_samples), np.full(len(scored), np.nan)
    right[alone.samples] = alone.vectors.correct if alone.vectors is not None else np.nan
    pair = np.stack((_loss(prob[best, scored]) - nll, right - mean_correct[scored]))
    pair[:, np.isnan(pair).any(axis=0)] = 0.0  # compared where the source is present
    differences = np.concatenate((without, accuracy_without, subsets, subsets_correct, pair))
    effects = _effects(differences, random_state, engine.n_threads, _groups_of(engine, scored))
    subset_nll, subset_accuracy = effects[2 * n_sources : 3 * n_sources], effects[3 * n_sources : 4 * n_sources]
    smallest = max(k for k in range(n_sources) if not (subset_nll[k].low > 0 or subset_accuracy[k].high < 0))
    sources = tuple(
        SourceValue(
            name=name,
            accuracy=_source_accuracy(engine, s, scored),
            nll=_mean_of_some(_loss(prob[s, scored])),
            nll_without=effects[s],
            accuracy_without=effects[n_sources + s],
            weight=float(weights[s]),
            agreement=float(np.mean([agreement[s][t] for t in range(n_sources) if t != s])),
        )
        for s, name in enumerate(predictions.source_names or [f"source {s}" for s in range(n_sources)])
    )
    return SourceValues(
        sources=sources,
        accuracy=float(mean_correct[scored].mean()),
        nll=float(nll.mean()),
        best=best,
        best_accuracy=effects[-1],
        best_nll=effects[-2],
        subset=tuple(path[smallest]),
        subset_nll=subset_nll[smallest],
        subset_accuracy=subset_accuracy[smallest],
        n_samples=len(scored),
    )


def _probabilities_of_labels(engine: Engine) -> tuple[Floats, Booleans, Booleans]:
    """(S, N) what each source gives the label; (S, N) and (N,) whether the mean without it, and of all, is right."""
    predictions, labels = engine.predictions, engine.labels

    def work(part: slice) -> tuple[Floats, Booleans, Booleans]:
        block, truth = probabilities(predictions, part), labels[part]
        prob: Floats = np.take_along_axis(block, truth[None, :, None], axis=2)[:, :, 0]
        total = np.nansum(block, axis=0)
        # The mean of the rest and their sum have the same largest entry.
        correct = np.stack([(total - np.nan_to_num(source)).argmax(axis=1) == truth for source in block])
        return prob, correct, total.argmax(axis=1) == truth

    blocks = run_blocks(work, sample_blocks(predictions), engine.n_threads)
    prob, correct = (np.concatenate([block[k] for block in blocks], axis=1) for k in (0, 1))
    return prob, correct, np.concatenate([block[2] for block in blocks])


def _correct_on_path(engine: Engine, path: Sequence[Sequence[int]]) -> Booleans:
    """(S, N) whether the mean of each set of sources on the path is right."""
    removed = [next(iter(set(before) - set(after))) for before, after in pairwise(path)]

    def work(part: slice) -> Booleans:
        block, truth = np.nan_to_num(probabilities(engine.predictions, part)), engine.labels[part]
        total = block.sum(axis=0)
        correct = [total.argmax(axis=1) == truth]
        for s in removed:
            total -= block[s]
            correct.append(total.argmax(axis=1) == truth)
        return np.stack(correct)

    return np.concatenate(run_blocks(work, sample_blocks(engine.predictions), engine.n_threads), axis=1)


def _loss(prob: Array) -> Floats:
    losses: Floats = -np.log(np.maximum(prob, _LEAST_PROBABILITY))
    return losses


def _nll_of_mean(prob: Floats) -> Floats:
    """(n,) loss of the mean of the sources that are present; infinite where none is."""
    present = np.isfinite(prob)
    n_present = present.sum(axis=0)
    losses: Floats = _loss(np.where(present, prob, 0.0).sum(axis=0) / np.maximum(n_present, 1))
    return losses


def _nll_without(prob: Floats) -> Floats:
    """(S, n) loss of the mean without each source."""
    present, known = np.isfinite(prob), np.nan_to_num(prob)
    losses: Floats = _loss((known.sum(axis=0) - known) / (present.sum(axis=0) - present))
    return losses


def _mean_of_present(prob: Floats) -> Floats:
    """(S,) mean loss of each source alone; infinite for a source that is never present."""
    present = np.isfinite(prob)
    losses = np.where(present, _loss(np.nan_to_num(prob, nan=1.0)), 0.0).sum(axis=1)
    means: Floats = np.divide(losses, present.sum(axis=1), out=np.full(len(prob), np.inf), where=present.any(axis=1))
    return means


def _some(samples: Indices, n_sources: int) -> Indices:
    """As many of the samples as the search for a subset can afford."""
    affordable = max(_MOST_SUMS // n_sources**2, 1000)
    return samples[:: -(-len(samples) // affordable)]


def _removal_path(prob: Floats) -> list[list[int]]:
    """All sources, then without the one whose removal leaves the lowest NLL, and so on down to one."""
    kept = list(range(len(prob)))
    path = [kept]
    while len(kept) > 1:
        inside = prob[kept]
        losses = _nll_without(inside) if np.isfinite(inside).all() else _nll_without_some(inside)
        kept = [s for k, s in enumerate(kept) if k != int(losses.mean(axis=1).argmin())]
        path.append(kept)
    return path


def _nll_without_some(prob: Floats) -> Floats:
    """(S, n) loss of the mean without each source, where some sample may be left without any source."""
    return np.stack([_nll_of_mean(np.delete(prob, s, axis=0)) for s in range(len(prob))])


def _source_accuracy(engine: Engine, s: int, samples: Labels) -> float:
    part = engine.sources[s].among(samples, engine.predictions.n_samples)
    return float(part.vectors.correct.mean()) if part.vectors is not None and len(part.samples) else float("nan")


def _groups_of(engine: Engine, samples: Indices) -> Indices | None:
    return None if engine.groups is None else engine.groups[samples]


def _effects(
    differences: Floats, random_state: int, n_threads: int | None, group: Indices | None = None
) -> list[Effect]:
    """The mean of each row, with an interval from resamples that all rows share."""
    columns = np.ascontiguousarray(differences.T)
    n_samples = len(columns)
    every_sample = np.arange(n_samples)

    def draw(generator: np.random.Generator) -> Sequence[float]:
        counts = draw_counts(generator, every_sample, group, n_samples)
        means: Sequence[float] = (counts @ columns / counts.sum()).tolist()
        return means

    draws = run_draws(draw, _N_RESAMPLES, random_state, n_threads)
    values = differences.mean(axis=1)
    return [
        Effect(float(value), *interval_of(float(value), draws[:, k], _LEVEL, "basic", least=-np.inf))
        for k, value in enumerate(values)
    ]


def _mean_of_some(values: Floats) -> float:
    """Mean of the values that are not NaN; NaN if all are, as for a source that is always absent."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
