"""The mean and truth discovery of the first sources, for growing numbers of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veridical._parallel import run_blocks
from veridical.combine import discover
from veridical.combine.in_memory import probabilities
from veridical.evaluation.engine import Engine
from veridical.metrics.sample import Sample
from veridical.predictions.validation import Array

#: Memory of one block of samples, as float64 probabilities.
_BLOCK_BYTES = 8 * 1024**2


@dataclass(frozen=True)
class DiscoveryRule:
    """A variant of truth discovery.

    Attributes
    ----------
    name : str
        What results call it.
    accuracy_preserving : bool
    tol : float
    max_iter : int
        When to stop.
    """

    name: str
    accuracy_preserving: bool
    tol: float = math.exp(-8)
    max_iter: int = 20


#: Truth discovery as :func:`veridical.discover` does it by default, without and with the mean's labels kept.
DEFAULT_RULES = (DiscoveryRule("tde", False), DiscoveryRule("atde", True))

#: (number of sources, "mean" or the name of a rule) -> confidence, correctness and losses per sample.
Sweep = dict[tuple[int, str], Sample]


def sweep_sources(engine: Engine, sizes: Sequence[int], rules: Sequence[DiscoveryRule] = DEFAULT_RULES) -> Sweep:
    """Score the mean and truth discovery of the first n sources, for each n of ``sizes``.

    What uses all sources is taken from the engine.  For fewer, a block of samples is turned into probabilities once;
    the mean of n sources is a running sum, and truth discovery takes views of the block.  Numbers of sources that
    leave some sample without any are left out.
    """
    n_sources = engine.predictions.n_sources
    results: Sweep = {}
    fewer = [n for n in sorted(set(sizes)) if n < n_sources]
    if fewer:
        results |= _sweep_blocks(engine, fewer, rules)
    if n_sources in sizes:
        results |= _all_sources(engine, rules)
    return results


def _all_sources(engine: Engine, rules: Sequence[DiscoveryRule]) -> Sweep:
    predictions = engine.predictions
    results = {(predictions.n_sources, "mean"): _scored(engine.combined("mean").probs, engine.labels)}
    for rule in rules:
        if rule in DEFAULT_RULES:
            probs = engine.combined(rule.name).probs
        else:
            probs = discover(
                predictions,
                accuracy_preserving=rule.accuracy_preserving,
                tol=rule.tol,
                max_iter=rule.max_iter,
                missing="skip",
                n_threads=engine.n_threads,
            ).probs
        results[predictions.n_sources, rule.name] = _scored(probs, engine.labels)
    return results


def _sweep_blocks(engine: Engine, sizes: Sequence[int], rules: Sequence[DiscoveryRule]) -> Sweep:
    engine.combined("mean")  # checks the numbers of all samples
    predictions = engine.predictions.select(sources=slice(max(sizes)))
    n_per_block = max(1, _BLOCK_BYTES // (8 * predictions.n_sources * predictions.n_classes))

    def work(first: int) -> Sweep:
        part = slice(first, min(first + n_per_block, predictions.n_samples))
        block = probabilities(predictions, part)
        return {key: _scored(probs, engine.labels[part]) for key, probs in _combine_block(block, sizes, rules)}

    blocks = run_blocks(work, range(0, predictions.n_samples, n_per_block), engine.n_threads)
    complete = [key for key in blocks[0] if all(key in block for block in blocks)]
    return {key: Sample.joined([block[key] for block in blocks]) for key in complete}


def _combine_block(
    block: Array, sizes: Sequence[int], rules: Sequence[DiscoveryRule]
) -> Iterator[tuple[tuple[int, str], Array]]:
    present = ~np.isnan(block[:, :, :1])
    total, n_present, added = np.zeros(block.shape[1:]), np.zeros((block.shape[1], 1)), 0
    for n in sizes:
        for source, is_present in zip(block[added:n], present[added:n], strict=True):
            total += np.where(is_present, source, 0.0)
            n_present += is_present
        added = n
        if not n_present.all():
            continue
        yield (n, "mean"), total / n_present
        for rule in rules:
            yield (
                (n, rule.name),
                discover(
                    block[:n],
                    accuracy_preserving=rule.accuracy_preserving,
                    tol=rule.tol,
                    max_iter=rule.max_iter,
                    missing="skip",
                    n_threads=1,
                ).probs,
            )


def _scored(probs: Array, labels: Array) -> Sample:
    return Sample.of_vectors(probs, labels).without_vectors()
