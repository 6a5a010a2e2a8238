"""Fitting calibrators on predictions that are read in blocks."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical._progress import Progress
from veridical.blocks.blocked import Block, BlockedPredictions
from veridical.blocks.opening import as_blocked
from veridical.blocks.passes import Throughput, run_pass
from veridical.blocks.temperature_sums import TemperatureSums
from veridical.calibrate import Calibrator
from veridical.calibrate.temperature import EnsembleTemperature, Temperature
from veridical.combine import COMBINERS, Combined, apply_label_free
from veridical.errors import LabelError, SubsampleWarning
from veridical.metrics import CalibrationState
from veridical.metrics.sample import Sample
from veridical.predictions import Predictions
from veridical.predictions.arrays import is_whole_number
from veridical.predictions.classes import UNKNOWN, ClassIndices
from veridical.predictions.labels import LABELS_NEEDED
from veridical.predictions.validation import Kind, check_seed

#: Most samples of a subsample; fewer where they would not fit into the memory of a block.
MOST_SAMPLES = 20_000

Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Options:
    """How sources are combined while a calibrator is fitted."""

    missing: str
    n_threads: int | None
    small_inputs_compiled: bool = False


@dataclass
class _Part:
    """What a fit needs to know of one part of the samples."""

    states: dict[str, CalibrationState] = field(default_factory=dict)
    temperatures: dict[str, TemperatureSums] = field(default_factory=dict)


class Fitting:
    """Fits several calibrators in one pass over the blocks, each on part of the samples and on all of them.

    Parameters
    ----------
    predictions : BlockedPredictions
        With labels.
    calibrators : mapping
        Name -> calibrator, not fitted.
    random_state : int
        Which subsample is taken for calibrators that need one.
    in_part : (N,) booleans, optional
        The part of the samples.
    """

    def __init__(
        self,
        predictions: BlockedPredictions,
        calibrators: Mapping[str, Calibrator],
        random_state: int,
        in_part: Booleans | None = None,
    ) -> None:
        self._predictions, self._calibrators, self._random_state = predictions, dict(calibrators), random_state
        self._in_part = in_part
        self.parts = (_Part(), _Part())
        #: What the temperatures of a pass cover, in ln(1/T); it only grows, so that there is a last pass.
        self._ranges: dict[str, tuple[float, float]] = {}
        chosen = [name for name, each in calibrators.items() if not each.fits_pairs() and not _is_temperature(each)]
        self._needs_subsample = bool(chosen)
        self._subsample: list[Predictions] = []
        self._positions: list[npt.NDArray[np.intp]] = []
        self._chosen = choose_subsample(predictions, random_state) if chosen else np.empty(0, np.intp)

    def run(self, progress: Progress | None, n_passes: int = 1) -> None:
        """Gather everything; another pass follows only where a temperature was not among those that were tried."""
        while True:
            report = Throughput(progress, self._predictions, "fit", n_passes)
            for _ in run_pass(self._predictions, self._gather, report):
                pass
            missing = [
                (name, *which.temperatures[name].wider(edge))
                for name in self.parts[0].temperatures
                for which in (self.whole(), self.parts[0])
                for temperature, edge in [which.temperatures[name].solve()]
                if temperature is None
            ]
            if not missing:
                return
            for name, lowest, highest in missing:  # all samples and the part may need temperatures that are far apart
                before = self._ranges.get(name, (lowest, highest))
                self._ranges[name] = min(lowest, before[0]), max(highest, before[1])
            self.parts, self._subsample, self._positions = (_Part(), _Part()), [], []

    def _gather(self, block: Block) -> None:
        predictions = block.predictions
        assert predictions.labels is not None
        labels = predictions.labels
        known = labels != UNKNOWN
        if self._needs_subsample:
            here = self._chosen[(self._chosen >= block.start) & (self._chosen < block.stop)]
            if here.size:
                self._subsample.append(predictions.select(samples=here - block.start))
                self._positions.append(here)
        in_part = known if self._in_part is None else self._in_part[block.start : block.stop]
        combined: dict[tuple[str, str], Combined] = {}
        for which, part in enumerate(self.parts):
            samples = np.flatnonzero(known & (in_part if which == 0 else ~in_part))
            for name, calibrator in self._calibrators.items():
                self._add(part, name, calibrator, predictions, samples, combined)

    def _add(
        self,
        part: _Part,
        name: str,
        calibrator: Calibrator,
        predictions: Predictions,
        samples: npt.NDArray[np.intp],
        combined: dict[tuple[str, str], Combined],
    ) -> None:
        if not (calibrator.fits_pairs() or _is_temperature(calibrator)):
            return
        key = calibrator.combine, calibrator.missing
        if key not in combined:
            options = _Options(calibrator.missing, calibrator.n_threads)
            combined[key] = apply_label_free(calibrator.combine, predictions, options)
        assert predictions.labels is not None
        labels = predictions.labels[samples]
        taken = combined[key].take(samples)
        if calibrator.fits_pairs():
            state = part.states.setdefault(name, CalibrationState())
            if samples.size:
                state.update_sample(Sample(taken.confidence, taken.correct(labels)))
            return
        assert isinstance(calibrator, Temperature)
        sums = part.temperatures.get(name)
        if sums is None or sums.nodes is None:  # both parts have the nodes of the first samples, in whichever block
            known = [each.temperatures[name] for each in self.parts if name in each.temperatures]
            other = next((each for each in known if each.nodes is not None), None)
            sums = part.temperatures[name] = TemperatureSums(calibrator) if other is None else other.like()
        if sums.nodes is None:
            if name in self._ranges:
                sums.cover(*self._ranges[name])
            elif samples.size:
                sums.set_nodes(taken, labels)
        if sums.nodes is not None and samples.size:
            sums.update(taken, labels)

    def whole(self) -> _Part:
        """What is known of all samples."""
        first, second = self.parts
        states = {name: state.merge(second.states[name]) for name, state in first.states.items()}
        sums = {name: each.merge(second.temperatures[name]) for name, each in first.temperatures.items()}
        return _Part(states, sums)

    def fit(self, name: str, *, on_part: bool) -> Calibrator:
        """Fit a calibrator on the part, or on all samples; a new object."""
        calibrator = self._fitted(name, on_part=on_part)
        calibrator.remember_scores(self._predictions.kind, self._predictions.class_names)
        return calibrator

    def _fitted(self, name: str, *, on_part: bool) -> Calibrator:
        calibrator = _copy(self._calibrators[name])
        part = self.parts[0] if on_part else self.whole()
        whole = self._predictions
        if calibrator.fits_pairs():
            return calibrator.fit_state(
                part.states[name], n_classes=whole.n_classes, n_sources=whole.n_sources, source_names=whole.source_names
            )
        if _is_temperature(calibrator):
            assert isinstance(calibrator, Temperature)
            temperature, _ = part.temperatures[name].solve()
            assert temperature is not None
            calibrator.temperature_ = temperature
            calibrator._set_fitted(
                COMBINERS[calibrator.combine](), whole.n_sources, whole.n_classes, whole.source_names
            )
            return calibrator
        return self._fit_on_subsample(calibrator, on_part)

    def _fit_on_subsample(self, calibrator: Calibrator, on_part: bool) -> Calibrator:
        subsample = self._whole_subsample()
        if on_part and self._in_part is not None:
            subsample = subsample.select(samples=self._in_part[np.concatenate(self._positions)])
        n_labelled = int((self._labels() != UNKNOWN).sum())
        if len(self._chosen) < n_labelled:
            warnings.warn(
                f"{calibrator.name} is fitted on {subsample.n_samples:,} of {n_labelled:,} samples, chosen at random "
                f"(random_state={self._random_state}): its fit needs them in memory.",
                SubsampleWarning,
                stacklevel=5,
            )
        return calibrator.fit(subsample)

    def _whole_subsample(self) -> Predictions:
        if len(self._subsample) == 1:
            return self._subsample[0]
        values = np.concatenate([part.values for part in self._subsample], axis=1)
        labels = np.concatenate([part.labels for part in self._subsample if part.labels is not None])
        whole = self._predictions
        return Predictions(
            values,
            ClassIndices(labels),
            kind=whole.kind,
            source_names=whole.source_names,
            class_names=whole.class_names,
        )

    def _labels(self) -> npt.NDArray[np.int64]:
        assert self._predictions.labels is not None
        return self._predictions.labels


def _is_temperature(calibrator: Calibrator) -> bool:
    """Whether the fit is a sum over samples at any temperature."""
    return (
        isinstance(calibrator, Temperature)
        and not isinstance(calibrator, EnsembleTemperature)
        and not COMBINERS[calibrator.combine].has_weights
    )


def _copy(calibrator: Calibrator) -> Calibrator:
    return type(calibrator)(**calibrator.get_params(deep=False))


def choose_subsample(predictions: BlockedPredictions, random_state: int) -> npt.NDArray[np.intp]:
    """At most 20,000 labelled samples, as many as fit into the memory of a block; the same for the same seed.

    Without labels, of all samples.
    """
    labels = predictions.labels
    known = np.arange(predictions.n_samples) if labels is None else np.flatnonzero(labels != UNKNOWN)
    per_sample = predictions.n_sources * predictions.n_classes * predictions.result_dtype.itemsize
    size = min(MOST_SAMPLES, max(predictions.block_memory // per_sample, 2))
    if size >= len(known):
        return known
    generator = np.random.default_rng([check_seed(random_state), len(known)])
    return np.sort(known[generator.choice(len(known), size, replace=False, shuffle=False)])


def labelled_blocks(predictions: Any, labels: Any, kind: Kind | None, sources_axis: int | None) -> BlockedPredictions:
    """Blocked predictions with labels."""
    blocked = as_blocked(predictions, kind, sources_axis, labels)
    if blocked.labels is None:
        raise LabelError(LABELS_NEEDED)
    return blocked


def fit(calibrator: Calibrator, X: Any, y: Any = None, *, progress: Progress | None = None) -> Calibrator:  # noqa: N803
    """``calibrator.fit`` on blocked predictions: fitted in place."""
    calibrator.check_parameters()
    blocked = labelled_blocks(X, y, None, None)
    seed = getattr(calibrator, "random_state", None)
    seed = int(seed) if is_whole_number(seed) else 0
    fitting = Fitting(blocked, {calibrator.name: calibrator}, seed)
    fitting.run(progress)
    fitted = fitting.fit(calibrator.name, on_part=False)
    calibrator.__dict__.update(fitted.__dict__)
    return calibrator
