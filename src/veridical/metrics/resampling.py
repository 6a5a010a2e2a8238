"""Random draws of a sample and metrics on them, for noise floors and intervals.

Resamples are weights: how often each sample was drawn.  Samples are sorted by confidence once, and every metric is
evaluated on reweighted, already sorted samples.  Each draw has a random generator of its own, so results do not
depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from veridical._parallel import run_blocks
from veridical.errors import ParameterError
from veridical.metrics.binned import checked_options
from veridical.metrics.groups import GroupCorrelation, draw_counts, draw_uniforms
from veridical.metrics.registry import Evaluate, Metric
from veridical.metrics.sample import Booleans, Floats, Labels, Sample
from veridical.predictions.validation import RandomState, check_random_state

_DRAWS_PER_BLOCK = 8
#: More draws than this would take days and fill memory.
MOST_DRAWS = 10_000_000


def evaluator(metric: Metric, options: Mapping[str, Any], *, limit: bool = False) -> Evaluate:
    """The metric, or its limit, with its options; an unknown option is an error that lists the known ones."""
    known = [name for name in metric.function.__kwdefaults__ or {} if name != "sample_weight"]
    for name in options:
        if name not in known:
            raise ParameterError(f"{metric.name} has no option {name!r}; it has: {', '.join(known) or 'none'}.")
    # The doubt is stored with the samples, so that it is sorted with them.
    described = checked_options({name: value for name, value in options.items() if name != "doubt"})
    return partial(metric.limit if limit else metric.of_sample, **described)


def run_draws(
    draw: Callable[[np.random.Generator], Sequence[float]],
    n_draws: int,
    random_state: RandomState,
    n_threads: int | None = None,
) -> Floats:
    """One row of values per draw."""
    generators = check_random_state(random_state).spawn(n_draws)
    blocks = [generators[start : start + _DRAWS_PER_BLOCK] for start in range(0, n_draws, _DRAWS_PER_BLOCK)]
    rows = run_blocks(lambda block: [draw(generator) for generator in block], blocks, n_threads)
    return np.asarray([row for block in rows for row in block], dtype=np.float64)


def resample(
    evaluators: Sequence[Evaluate],
    samples: Sequence[Sample],
    *,
    n_resamples: int,
    random_state: RandomState,
    n_threads: int | None = None,
) -> Floats:
    """Metrics on the same resamples of parallel samples; shape (n_resamples, samples * metrics), samples outermost.

    Sample i of one is sample i of the others, with the same weight.  Samples of weight zero are not drawn: every
    resample has as many samples as there are positive weights.  Where samples have groups, whole groups are drawn.
    """
    orders = [sample.order() for sample in samples]
    ordered = [sample.taken(order, in_order=True) for sample, order in zip(samples, orders, strict=True)]
    n_samples, weight_before = len(samples[0]), samples[0].weight
    counted = np.arange(n_samples) if weight_before is None else np.flatnonzero(weight_before)

    def draw(generator: np.random.Generator) -> list[float]:
        counts = draw_counts(generator, counted, samples[0].group, n_samples)
        values = []
        for sample, order in zip(ordered, orders, strict=True):
            weight = counts[order]
            drawn = sample.reweighted(weight if sample.weight is None else weight * sample.weight)
            values += [evaluate(drawn) for evaluate in evaluators]
        return values

    return run_draws(draw, n_resamples, random_state, n_threads)


def _outcome_source(sample: Sample, chance: Floats | None) -> Callable[[Floats], tuple[Booleans, Labels | None]]:
    """A function from uniform numbers, one per sample, to outcomes.

    Predictions are right with probability ``chance``, by default their confidence; where the sample has distributions,
    labels are drawn from them.
    """
    if sample.probs is None:
        right = sample.confidence if chance is None else chance
        return lambda uniform: (uniform < right, None)
    predicted = sample.probs.argmax(axis=1)
    cumulative = np.cumsum(sample.probs, axis=1, dtype=np.float64)
    # The last sum is 1 only up to rounding, so uniform numbers are scaled to it.
    scale, last_class = cumulative[:, -1], sample.probs.shape[1] - 1

    def outcomes(uniform: Floats) -> tuple[Booleans, Labels]:
        below: Labels = np.sum(cumulative <= (uniform * scale)[:, None], axis=1)
        labels = np.minimum(below, last_class)
        return predicted == labels, labels

    return outcomes


def redraw_outcomes(
    evaluators: Sequence[Evaluate],
    sample: Sample,
    *,
    chances: Sequence[Floats] | None = None,
    flipped: Booleans | None = None,
    n_draws: int,
    random_state: RandomState,
    n_threads: int | None = None,
) -> Floats:
    """Metrics with drawn outcomes, shape (n_draws, chances * metrics), chances outermost.

    Outcomes are drawn from the predictions themselves, or with each of ``chances`` to be right, for samples in order
    of confidence without distributions; always from the same uniform numbers.  With ``flipped``, these belong to the
    samples as they were before they were sorted, so that methods that predict the same label are right together; where
    a method predicts another label, one minus the number is taken.  Where samples have groups, outcomes are as
    correlated within groups as those of the sample are.
    """
    ordered = sample if sample.in_order else sample.taken(sample.order(), in_order=True)
    each: Sequence[Floats | None] = chances or [None]
    sources = [_outcome_source(ordered, chance) for chance in each]
    noise, n_samples = GroupCorrelation.of(ordered), len(ordered)
    if flipped is not None and ordered.origin is not None:
        n_samples = len(flipped)
        noise = noise.reordered(ordered.origin, n_samples)

    def draw(generator: np.random.Generator) -> list[float]:
        uniform = draw_uniforms(generator, noise, n_samples)
        if flipped is not None:
            uniform = np.where(flipped, 1 - uniform, uniform)[ordered.origin]
        drawn = [ordered.with_outcomes(*outcomes(uniform)) for outcomes in sources]
        return [evaluate(one) for one in drawn for evaluate in evaluators]

    return run_draws(draw, n_draws, random_state, n_threads)


def defined_only(draws: Floats) -> Floats:
    """The draws on which the metric is defined; one NaN if there are none."""
    defined = draws[~np.isnan(draws)]
    return defined if defined.size else draws[:1]
