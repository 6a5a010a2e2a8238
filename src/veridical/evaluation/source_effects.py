"""Which sources are worth keeping: each alone, the mean without it, its learned weight, the smallest sufficient subset.

Only the mean is computed, as sums over sources of which one is left out, block by block of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from veridical._parallel import run_blocks
from veridical.combine.in_memory import probabilities, sample_blocks
from veridical.combine.linear_pool import fit_shares
from veridical.evaluation.engine import Engine, half_split
from veridical.evaluation.facts import names_of_sources
from veridical.evaluation.outcomes import Indices
from veridical.evaluation.source_value import LEAST_PROBABILITY, Effect, SourceValue, SourceValues, mean_is_better
from veridical.metrics.groups import draw_counts
from veridical.metrics.intervals import interval_of
from veridical.metrics.resampling import run_draws
from veridical.metrics.sample import Booleans, Floats
from veridical.predictions.validation import Array

_N_RESAMPLES, _LEVEL = 400, 0.95
#: The search for a subset looks at no more samples than this many sums allow.
_MOST_SUMS = 200_000_000


def value_sources(engine: Engine, agreement: Sequence[Sequence[float]], random_state: int = 0) -> SourceValues | None:
    """The value of each source; None without labels, with one source, or where a sample has no other source.

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
    split = half_split(predictions, random_state)
    assert split.fitted_on is not None
    assert split.scored_on is not None
    scored, fitted = split.scored_on, split.fitted_on
    prob, correct, mean_correct = _probabilities_of_labels(engine)
    if (np.isfinite(prob).sum(axis=0) < 2).any():
        return None
    weights = fit_shares(predictions.select(samples=fitted), engine.labels[fitted])
    nll = _nll_of_mean(prob[:, scored])
    without = _nll_without(prob[:, scored]) - nll
    accuracy_without = correct[:, scored].astype(np.float64) - mean_correct[scored]
    path = _removal_path(prob[:, _some(fitted, n_sources)])
    subsets = np.stack([_nll_of_mean(prob[kept][:, scored]) for kept in path]) - nll
    subsets_correct = _correct_on_path(engine, path)[:, scored].astype(np.float64) - mean_correct[scored]
    right, zeros = _alone(engine, scored)
    alone = np.concatenate((_loss(prob[:, scored]) - nll, right - mean_correct[scored]))
    alone[np.isnan(alone)] = 0.0  # compared where the source is present
    differences = np.concatenate((without, accuracy_without, subsets, subsets_correct, alone))
    effects = _effects(differences, random_state, engine.n_threads, _groups_of(engine, scored))
    nll_without, accuracy_of_rest, subset_nll, subset_accuracy, alone_nll, alone_accuracy = (
        effects[k : k + n_sources] for k in range(0, len(effects), n_sources)
    )
    smallest = max(k for k in range(n_sources) if not mean_is_better(subset_nll[k], subset_accuracy[k]))
    nll_on_fitted = _mean_of_present(prob[:, fitted])
    present = np.flatnonzero(np.isfinite(prob[:, scored]).any(axis=1))
    unbeaten = [s for s in present.tolist() if not mean_is_better(alone_nll[s], alone_accuracy[s])]
    best = min(unbeaten or range(n_sources), key=lambda s: nll_on_fitted[s])
    sources = tuple(
        SourceValue(
            name=name,
            accuracy=mean_of_some(right[s]),
            nll=mean_of_some(_loss(prob[s, scored])),
            nll_without=nll_without[s],
            accuracy_without=accuracy_of_rest[s],
            weight=float(weights[s]),
            agreement=mean_of_some(np.delete(agreement[s], s)),
            zeros=zeros[s],
        )
        for s, name in enumerate(names_of_sources(predictions))
    )
    return SourceValues(
        sources=sources,
        accuracy=float(mean_correct[scored].mean()),
        nll=float(nll.mean()),
        best=best,
        best_accuracy=alone_accuracy[best],
        best_nll=alone_nll[best],
        subset=tuple(path[smallest]),
        subset_nll=subset_nll[smallest],
        subset_accuracy=subset_accuracy[smallest],
        n_samples=len(scored),
    )


def _alone(engine: Engine, samples: Indices) -> tuple[Floats, list[int]]:
    """(S, n) whether each source alone is right, NaN where it is absent; and how many labels it gives probability 0."""
    right, zeros = np.full((engine.predictions.n_sources, len(samples)), np.nan), []
    for s, source in enumerate(engine.sources):
        part = source.among(samples, engine.predictions.n_samples)
        if part.vectors is not None:
            right[s, part.samples] = part.vectors.correct
        zeros.append(0 if part.vectors is None else int(np.isinf(part.vectors.losses("nll")).sum()))
    return right, zeros


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
        total = block[path[-1][0]].copy()
        correct = [total.argmax(axis=1) == truth]
        for s in reversed(removed[1:]):  # sources are added, not taken away, so that ties of few sources stay ties
            total += block[s]
            correct.append(total.argmax(axis=1) == truth)
        correct.append(block.sum(axis=0).argmax(axis=1) == truth)
        return np.stack(correct[::-1])

    return np.concatenate(run_blocks(work, sample_blocks(engine.predictions), engine.n_threads), axis=1)


def _loss(prob: Array) -> Floats:
    losses: Floats = -np.log(np.maximum(prob, LEAST_PROBABILITY))
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


def mean_of_some(values: Floats) -> float:
    """Mean of the values that are not NaN; NaN if all are, as for a source that is always absent."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
