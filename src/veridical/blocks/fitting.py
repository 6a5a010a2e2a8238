"""Fitting calibrators over blocks: from sums over samples where they need no more, otherwise on a subsample."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._progress import Progress
from veridical.blocks.blocked import Block, BlockedPredictions, skeleton
from veridical.blocks.opening import as_blocked
from veridical.blocks.passes import Throughput, map_blocks, merge_blocks
from veridical.calibrate import Calibrator
from veridical.calibrate.fit_sums import FitSums, fit_from_sums
from veridical.calibrate.fitting_data import FittingData, measure, measured_samples
from veridical.errors import SubsampleWarning
from veridical.evaluation.engine import Engine
from veridical.predictions import Predictions
from veridical.predictions.arrays import is_whole_number
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import check_seed

#: Most samples of a subsample; fewer where they would not fit into the memory of a block.
MOST_SAMPLES = 20_000
#: Marks of samples: of the half that is fitted on, of the subsample, and measured for later comparison.
FIRST_HALF, _SUBSAMPLE, _MEASURED = np.uint8(1), np.uint8(2), np.uint8(4)

Marks = npt.NDArray[np.uint8]


def _gather(calibrators: Mapping[str, Calibrator], empty: Mapping[str, FitSums], block: Block) -> dict[str, Any]:
    """What fits need of a block: sums as ``empty`` without samples, the subsample, and measurements of some samples."""
    predictions, marks = block.predictions, block.marks
    assert predictions.labels is not None
    labels, engine = predictions.labels, _engine(predictions, calibrators)
    sums = {}
    for name, without in empty.items():
        combined = engine.combined(calibrators[name].combine)
        for on_half in (True, False):
            samples = np.flatnonzero((labels != UNKNOWN) & ((marks & FIRST_HALF > 0) == on_half))
            sums[name, on_half] = without.of(combined.take(samples), labels[samples])
    marked = {mark: np.flatnonzero(marks & mark) for mark in (_SUBSAMPLE, _MEASURED)}
    chosen, seen = (predictions.select(samples=samples) for samples in marked.values())
    measured = [measure(seen, engine.n_threads)] if seen.n_samples else []
    return {"sums": sums, "scores": [chosen.values] if chosen.n_samples else [], "measured": measured}


def _engine(predictions: Predictions, calibrators: Mapping[str, Calibrator]) -> Engine:
    """What combines a block for calibrators that are fitted together, and so have these parameters in common."""
    one = next(iter(calibrators.values()))
    return Engine(predictions, n_threads=one.n_threads, missing=one.missing)


class Fits:
    """What a pass over the blocks gathered, from which each calibrator is fitted on one half and on all samples."""

    def __init__(
        self,
        predictions: BlockedPredictions,
        calibrators: Mapping[str, Calibrator],
        random_state: int,
        gathered: Mapping[str, Any],
    ) -> None:
        self._predictions, self._calibrators = predictions, calibrators
        self._random_state, self._gathered = random_state, gathered

    def sums(self, name: str, *, on_half: bool) -> FitSums:
        """The sums of a calibrator over one half, or over all samples."""
        half: FitSums = self._gathered["sums"][name, True]
        return half if on_half else half.merge(self._gathered["sums"][name, False])

    def fitted(self, name: str, *, on_half: bool = False) -> Calibrator:
        """A new calibrator, fitted on one half, or on all samples."""
        chosen, whole = self._calibrators[name], self._predictions.whole
        calibrator = type(chosen)(**chosen.get_params(deep=False))
        if (name, True) not in self._gathered["sums"]:
            calibrator.fit(self._subsample(calibrator, on_half))
        else:
            fit_from_sums(calibrator, self.sums(name, on_half=on_half), whole)
        if not on_half:
            measured = np.concatenate(self._gathered["measured"], axis=1)
            known = np.flatnonzero(self._predictions.labels != UNKNOWN)
            groups = None if whole.groups is None else whole.groups[known[measured_samples(len(known))]]
            calibrator.fitting_data_ = FittingData.of_measurements(measured, groups)
        return calibrator

    def _subsample(self, calibrator: Calibrator, on_half: bool) -> Predictions:
        assert self._predictions.marks is not None
        marks = self._predictions.marks
        samples = np.flatnonzero(marks & _SUBSAMPLE)
        subsample = self._predictions.in_memory(np.concatenate(self._gathered["scores"], axis=1), samples)
        subsample = subsample.select(samples=marks[samples] & FIRST_HALF > 0) if on_half else subsample
        n_labelled = self._predictions.whole.n_labelled
        if len(samples) < n_labelled:
            warnings.warn(
                f"{calibrator.name} is fitted on {subsample.n_samples:,} of {n_labelled:,} samples, chosen at random "
                f"(random_state={self._random_state}): its fit needs them in memory.",
                SubsampleWarning,
                stacklevel=5,
            )
        return subsample


def fit_in_blocks(
    predictions: BlockedPredictions,
    calibrators: Mapping[str, Calibrator],
    random_state: int,
    report: Throughput,
    client: Any = None,
) -> Fits:
    """Gather what calibrators are fitted with; another pass follows only where sums turn out to be of too little.

    Samples that are marked with ``FIRST_HALF`` are the half.
    """
    marks = np.zeros(predictions.n_samples, np.uint8) if predictions.marks is None else predictions.marks.copy()
    known = np.flatnonzero(predictions.labels != UNKNOWN)
    marks[known[measured_samples(len(known))]] |= _MEASURED
    empty = {name: sums for name, each in calibrators.items() if (sums := each.new_sums()) is not None}
    if len(empty) < len(calibrators):
        marks[subsample_of(predictions, random_state)] |= _SUBSAMPLE
    predictions = predictions.with_marks(marks)
    if empty:
        begin, first = partial(_begin, calibrators, empty), predictions.block_of(int(known[0]))
        ((_, empty),) = map_blocks(predictions, begin, numbers=[first], client=client)
    while True:
        work = partial(_gather, calibrators, empty)
        gathered = merge_blocks(predictions, work, report, client=client)
        fits = Fits(predictions, calibrators, random_state, gathered)
        wider = {
            name: sums.covering(fits.sums(name, on_half=True)).covering(fits.sums(name, on_half=False))
            for name, sums in empty.items()
        }
        if all(wider[name] is empty[name] for name in empty):
            return fits
        empty = wider


def _begin(calibrators: Mapping[str, Calibrator], empty: Mapping[str, FitSums], block: Block) -> dict[str, FitSums]:
    """Sums without samples, prepared for data such as those of the first block with labels."""
    labelled = block.predictions.labelled()
    assert labelled.labels is not None
    engine = _engine(labelled, calibrators)
    return {
        name: sums.prepared(engine.combined(calibrators[name].combine), labelled.labels) for name, sums in empty.items()
    }


def first_half(predictions: BlockedPredictions, random_state: int) -> Marks:
    """Marks of the first of the halves that :func:`veridical.evaluate` makes of the labelled samples."""
    known = np.flatnonzero(predictions.labels != UNKNOWN)
    groups = None if predictions.groups is None else predictions.groups[known]
    values = skeleton((1, max(len(known), 1), 2), np.dtype(np.float32), "predictions")[:, : len(known)]
    marks = np.zeros(predictions.n_samples, np.uint8)
    marks[known[Predictions(values, groups=groups).split_indices(random_state=random_state)[0]]] = FIRST_HALF
    return marks


def subsample_of(predictions: BlockedPredictions, random_state: int) -> npt.NDArray[np.intp]:
    """At most 20,000 labelled samples, as many as fit into the memory of a block; the same for the same seed.

    Without labels, of all samples.
    """
    labels = predictions.labels
    known = np.arange(predictions.n_samples) if labels is None else np.flatnonzero(labels != UNKNOWN)
    size = most_in_memory(predictions)
    if size >= len(known):
        return known
    generator = np.random.default_rng([check_seed(random_state), len(known)])
    return np.sort(known[generator.choice(len(known), size, replace=False, shuffle=False)])


def most_in_memory(predictions: BlockedPredictions) -> int:
    """How many samples a subsample has at most."""
    per_sample = predictions.n_sources * predictions.n_classes * predictions.result_dtype.itemsize
    return int(min(MOST_SAMPLES, max(predictions.block_memory // per_sample, 2)))


def fit(calibrator: Calibrator, X: Any, y: Any = None, *, progress: Progress | None = None) -> Calibrator:  # noqa: N803
    """``calibrator.fit`` over blocks: fitted in place."""
    calibrator.check_parameters()
    is_array = not isinstance(X, (BlockedPredictions, Predictions))
    options: dict[str, Any] = {"kind": calibrator.kind, "sources_axis": calibrator.sources_axis} if is_array else {}
    blocked = as_blocked(X, labels=y, needs_labels=True, **options)
    seed = getattr(calibrator, "random_state", None)
    seed = int(seed) if is_whole_number(seed) else 0
    fits = fit_in_blocks(blocked, {calibrator.name: calibrator}, seed, Throughput(progress, "fit"))
    calibrator.__dict__.update(fits.fitted(calibrator.name).__dict__)
    return calibrator
