"""The one evaluation engine: labelled predictions, splits and methods in, frozen outcomes per method out.

Every way of combining that needs no labels works sample by sample, so it is computed once for all samples; a split
takes its part of the result.  Combiners with weights are fitted once per split.  Everything that scores methods
(``evaluate``, ``compare_calibrators``, ``fit_calibrator``, ``Auto``, the report, the paper's tables and figures) reads
its numbers from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from veridical._progress import Progress, check_progress
from veridical.calibrate.base import Calibrator
from veridical.combine import COMBINERS, Combined, Combiner, discover
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.evaluation.methods import Method
from veridical.evaluation.outcomes import Indices, Outcome, SourceOutcome, top_of
from veridical.metrics.groups import group_codes
from veridical.metrics.sample import Labels, Sample
from veridical.predictions import Predictions
from veridical.predictions.classes import UNKNOWN


@dataclass(frozen=True)
class Split:
    """Which samples methods are fitted on and scored on; None stands for all of them."""

    fitted_on: Indices | None = None
    scored_on: Indices | None = None


def half_split(predictions: Predictions, random_state: int) -> Split:
    """The two random halves that :meth:`veridical.Predictions.split` makes."""
    return Split(*predictions.split_indices(random_state=random_state))


class Shared:
    """Results that methods on the same split have in common, computed once.

    Attributes
    ----------
    fitted : dict
        Name of a combiner -> the fitted combiner and the samples it was fitted on, combined.
    applied : dict
        ``id`` of a fitted combiner -> that combiner (which keeps the ``id`` in use) and the scored samples, combined.
    weights_of_all : bool
        Whether weights that need no labels are those of all samples of the engine, and not of each split's.
    """

    def __init__(self, weights_of_all: bool = False) -> None:
        self.weights_of_all = weights_of_all
        self.fitted: dict[str, tuple[Combiner, Combined]] = {}
        self.applied: dict[int, tuple[Combiner, Combined]] = {}

    def keep_for(self, methods: Iterable[Method | None]) -> None:
        """Keep what these methods use and nothing else; methods that choose among others combine on their own."""
        used = {method.combiner for method in methods if method is not None and not method.chooses}
        self.fitted = {name: entry for name, entry in self.fitted.items() if name in used}
        self.applied = {key: entry for key, entry in self.applied.items() if entry[0].name in used}


@runtime_checkable
class FitsWithEngine(Protocol):
    """A calibrator that evaluates others to choose among them."""

    def fit_with_engine(self, engine: Engine, progress: Progress | None = None) -> Any:
        """Fit on all samples of the engine's predictions."""


class Engine:
    """Methods on one set of predictions.

    Parameters
    ----------
    predictions : Predictions
        With labels, unless only label-free results are asked for.
    n_threads : int, optional
        Results do not depend on it.
    missing : {"skip", "raise"}
        Whether a source may be absent for a sample.
    """

    def __init__(self, predictions: Predictions, *, n_threads: int | None = None, missing: str = "skip") -> None:
        self._predictions = predictions
        self.n_threads = n_threads
        self.options = AbsentSkipped(n_threads, missing)
        self.n_classes = predictions.n_classes
        self._combined: dict[str, Combined] = {}
        self._weighted: dict[str, tuple[Combiner, Combined]] = {}

    @property
    def leaves_out_samples(self) -> bool:
        """Whether there are samples without labels besides; asked before predictions of a part are copied."""
        return self._predictions.leaves_out_samples

    @cached_property
    def predictions(self) -> Predictions:
        """The predictions, on one axis of samples."""
        return self._predictions.flat()

    @cached_property
    def in_memory(self) -> SourcesInMemory:
        """The sources, which ways to combine them share."""
        return SourcesInMemory(self.predictions, self.options)

    @cached_property
    def labels(self) -> Labels:
        """The labels of all samples."""
        assert self.predictions.labels is not None
        return self.predictions.labels

    @cached_property
    def groups(self) -> Indices | None:
        """(N,) the number of each sample's group; None without groups."""
        return group_codes(self.predictions.groups, self.predictions.n_samples)

    def expect(self, methods: Iterable[Method | None]) -> None:
        """Prepare for these methods: if truth discovery is among them, the mean is taken from the same pass."""
        self.in_memory.expects_truth = any(
            method is not None and COMBINERS[method.combiner].discovers_truth for method in methods
        )

    def combined(self, name: str) -> Combined:
        """All samples combined in a way that needs no labels."""
        if name not in self._combined:
            self._combined[name] = COMBINERS[name]().combine_in_memory(self.in_memory)
        return self._combined[name]

    def remember_data(self, calibrator: Calibrator) -> None:
        """Let a calibrator that was fitted on all samples keep what they look like; nothing is combined for that."""
        hv = self.combined("atde").truth.hv if "atde" in self._combined else None
        calibrator.remember(self.predictions, self.combined("mean").confidence, hv)

    def reference(self, split: Split) -> Labels:
        """The labels of the mean on the scored samples."""
        return self._label_free("mean", split.scored_on).prediction

    def part(self, samples: Indices | None) -> Engine:
        """An engine for some of the samples, which shares what is combined already."""
        return self if samples is None else _PartOfEngine(self, samples)

    @cached_property
    def labelled(self) -> Engine:
        """An engine for the samples whose label is known; this one if all are, or none is."""
        labels = self.predictions.labels
        if labels is None or (labels != UNKNOWN).all():
            return self
        return self.part(np.flatnonzero(labels != UNKNOWN))

    @cached_property
    def sources(self) -> tuple[SourceOutcome, ...]:
        """Each source on its own, on all samples; losses where all samples have labels."""
        return tuple(self._source(s) for s in range(self.predictions.n_sources))

    @cached_property
    def source_labels(self) -> Labels:
        """(S, N) the label that each source alone predicts, -1 where it is absent."""
        labels = np.full((self.predictions.n_sources, self.predictions.n_samples), UNKNOWN, dtype=np.int64)
        for s, source in enumerate(self.sources):
            labels[s, source.samples] = source.prediction
        return labels

    def _source(self, s: int) -> SourceOutcome:
        alone = self.predictions.select(sources=slice(s, s + 1))
        samples = np.flatnonzero(alone.present()[0])
        alone = alone if samples.size == alone.n_samples else alone.select(samples=samples)
        probs = discover(alone, accuracy_preserving=False, max_iter=0, n_threads=self.n_threads).probs
        prediction, confidence = top_of(probs)
        labels = self.predictions.labels
        vectors = None
        if labels is not None and samples.size and (labels != UNKNOWN).all():
            vectors = Sample.of_vectors(probs, labels[samples]).without_vectors()
            vectors.group = None if self.groups is None else self.groups[samples]
        return SourceOutcome(samples, prediction, confidence, vectors)

    def run(
        self,
        methods: Sequence[Method],
        split: Split | None = None,
        *,
        random_state: int | None = 0,
        keep_probs: bool = False,
        weights_of_all: bool = False,
        progress: Progress | None = None,
    ) -> list[Outcome]:
        """Fit every method on one part of the samples and apply it to another.

        Parameters
        ----------
        methods : sequence of Method
        split : Split, optional
            By default everything is fitted and scored on all samples.
        random_state : int
            What is random in a calibrator follows it.
        keep_probs : bool
            Keep the distributions; otherwise only what is needed per sample.
        weights_of_all : bool
            Use the weights of all samples for combiners whose weights need no labels: the folds of a cross-validation
            then share one fit.
        progress : callable, optional
            Called as ``progress(done, total, what)`` before each method.

        Returns
        -------
        list of Outcome
            In the order of the methods.
        """
        split, report, shared = split or Split(), check_progress(progress), Shared(weights_of_all)
        self.expect(methods)
        outcomes = []
        for done, method in enumerate(methods):
            report(done, len(methods), method.title)
            outcomes.append(
                self.run_one(method, split, shared, random_state=random_state, keep_probs=keep_probs, progress=progress)
            )
            shared.keep_for(methods[done + 1 :])
        return outcomes

    def run_one(
        self,
        method: Method,
        split: Split,
        shared: Shared,
        *,
        random_state: int | None = 0,
        keep_probs: bool = False,
        progress: Progress | None = None,
    ) -> Outcome:
        """One method of :meth:`run`; ``shared`` keeps what methods on the same split have in common."""
        if method.calibrator is None:
            outcome = self._outcome(method, self._label_free(method.combiner, split.scored_on), split)
        elif method.fitted is not None:
            outcome = self.apply(method.fitted, split, method=method)
        else:
            calibrator = method.make(random_state, missing=self.options.missing, n_threads=self.n_threads)
            self._fit(calibrator, split.fitted_on, shared, progress)
            outcome = self.apply(calibrator, split, shared, method=method)
        return outcome if keep_probs else replace(outcome, probs=None)

    def _label_free(self, name: str, samples: Indices | None) -> Combined:
        combined = self.combined(name)
        return combined if samples is None else combined.take(samples)

    def _fit(self, calibrator: Calibrator, samples: Indices | None, shared: Shared, progress: Progress | None) -> None:
        if isinstance(calibrator, FitsWithEngine):
            calibrator.fit_with_engine(self.part(samples), progress)
            return
        name = calibrator.combine
        labels = self.labels if samples is None else self.labels[samples]
        if name not in shared.fitted:
            info = COMBINERS[name]
            if info.has_weights and not info.needs_labels and shared.weights_of_all:
                combiner, combined = self._weighted_once(name)
                shared.fitted[name] = combiner, combined if samples is None else combined.take(samples)
            elif info.has_weights:
                shared.fitted[name] = self._fit_combiner(name, samples, labels)
            else:
                shared.fitted[name] = info(), self._label_free(name, samples)
        calibrator.fit_combined(*shared.fitted[name], labels)

    def _weighted_once(self, name: str) -> tuple[Combiner, Combined]:
        """A combiner whose weights need no labels, fitted on all samples, and all samples combined."""
        if name not in self._weighted:
            self._weighted[name] = self._fit_combiner(name, None, self.labels)
        return self._weighted[name]

    def _fit_combiner(self, name: str, samples: Indices | None, labels: Labels) -> tuple[Combiner, Combined]:
        self.combined("mean")  # checks the numbers of all samples
        combiner, sources = COMBINERS[name](), self._sources_of(samples)
        combiner.fit(sources.predictions, labels, self.options)
        return combiner, combiner.combine_in_memory(sources)

    def _sources_of(self, samples: Indices | None) -> SourcesInMemory:
        return self.in_memory if samples is None else self.in_memory.take(samples)

    def apply(
        self,
        calibrator: Calibrator,
        split: Split | None = None,
        shared: Shared | None = None,
        *,
        method: Method | None = None,
    ) -> Outcome:
        """The outcome of a fitted calibrator on the scored samples."""
        split, shared = split or Split(), shared or Shared()
        chosen: Calibrator = calibrator.fitted_calibrator
        if method is not None and method.fitted is not None:
            predictions = self._select(split.scored_on)
            return self._outcome(method, chosen.combine_new(predictions), split, calibrator, chosen)
        combiner = chosen.combiner_
        if not combiner.has_weights:
            combined = self._label_free(combiner.name, split.scored_on)
        elif combiner is self._weighted.get(combiner.name, (None,))[0]:
            combined = self._weighted[combiner.name][1]
            combined = combined if split.scored_on is None else combined.take(split.scored_on)
        else:
            if id(combiner) not in shared.applied:
                self.combined("mean")  # checks the numbers of all samples
                combined = combiner.combine_in_memory(self._sources_of(split.scored_on))
                shared.applied[id(combiner)] = combiner, combined
            combined = shared.applied[id(combiner)][1]
        return self._outcome(method or Method.of(calibrator), combined, split, calibrator, chosen)

    def _select(self, samples: Indices | None) -> Predictions:
        return self.predictions if samples is None else self.predictions.select(samples=samples)

    def _outcome(
        self,
        method: Method,
        combined: Combined,
        split: Split,
        calibrator: Calibrator | None = None,
        chosen: Calibrator | None = None,
    ) -> Outcome:
        if chosen is None:
            probs, confidence, prediction = combined.probs, combined.confidence, combined.prediction
        else:
            probs, confidence, prediction = chosen.predict_combined(combined)
        labels = self.labels if split.scored_on is None else self.labels[split.scored_on]
        vectors = Sample.of_vectors(probs, labels).without_vectors()
        if self.groups is not None:
            vectors.group = self.groups if split.scored_on is None else self.groups[split.scored_on]
        stated = vectors.with_confidence(confidence, prediction == labels)
        return Outcome(method, prediction, probs.argmax(axis=1), stated, vectors, probs, calibrator)


class _PartOfEngine(Engine):
    """Some samples of another engine; what needs no labels is taken from it.  Predictions are copied on first use."""

    def __init__(self, whole: Engine, samples: Indices) -> None:
        super().__init__(whole.predictions, n_threads=whole.n_threads, missing=whole.options.missing)
        self._whole, self._samples = whole, samples

    @cached_property
    def predictions(self) -> Predictions:
        """The predictions for the samples."""
        return self._whole.predictions.select(samples=self._samples)

    @cached_property
    def in_memory(self) -> SourcesInMemory:
        """The sources of the samples."""
        return self._whole.in_memory.take(self._samples)

    @cached_property
    def labels(self) -> Labels:
        """The labels of the samples."""
        return self._whole.labels[self._samples]

    @cached_property
    def groups(self) -> Indices | None:
        """(N,) the number of each sample's group; None without groups."""
        groups = self._whole.groups
        return None if groups is None else group_codes(groups[self._samples], len(self._samples))

    @cached_property
    def source_labels(self) -> Labels:
        """(S, N) the part of the whole engine's."""
        return self._whole.source_labels[:, self._samples]

    def part(self, samples: Indices | None) -> Engine:
        """Taken from the whole, so that nothing is kept for samples in between."""
        return self if samples is None else _PartOfEngine(self._whole, self._samples[samples])

    def combined(self, name: str) -> Combined:
        """The part of what the whole engine combined."""
        if name not in self._combined:
            self._combined[name] = self._whole.combined(name).take(self._samples)
        return self._combined[name]
