"""Evaluation over blocks, from calibration states; calibrators are fitted on one half; reports are of a subsample."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from veridical._outputs import check_report_target
from veridical._progress import Progress
from veridical._version import versions
from veridical.blocks.blocked import Block, BlockedPredictions
from veridical.blocks.fitting import FIRST_HALF, Fits, first_half, fit_in_blocks, most_in_memory, subsample_of
from veridical.blocks.on_dask import check_client
from veridical.blocks.opening import as_blocked
from veridical.blocks.passes import Throughput, merge_blocks
from veridical.calibrate import Calibrator
from veridical.calibrate.fitting_data import measured_samples
from veridical.errors import AbsentSourceWarning, ParameterError, SubsampleWarning
from veridical.evaluation.engine import Engine, Shared, Split
from veridical.evaluation.evaluating import DEFAULT_METHODS, Evaluation, MethodScores
from veridical.evaluation.facts import DataFacts, warn_of_absent
from veridical.evaluation.fitting import Calibration, resolve_calibrator
from veridical.evaluation.methods import Method, resolve_method, resolve_methods
from veridical.evaluation.notes import in_sample_notes, label_counts, label_order_note, source_counts
from veridical.metrics import SUMMARY_METRICS, CalibrationState, Summary
from veridical.metrics.groups import group_codes
from veridical.metrics.sample import Labels, Sample
from veridical.metrics.state_summary import SUMMARY_ERRORS
from veridical.metrics.table import SummaryRow, summary_of
from veridical.predictions.classes import UNKNOWN
from veridical.predictions.validation import Array, InputKind, check_flag, check_seed
from veridical.report import Report
from veridical.report.build import finish_report
from veridical.report.prepare import prepare_report


def score_block(
    methods: Sequence[Method | None], fitted: Mapping[str, Calibrator], n_threads: int | None, block: Block
) -> dict[str, Any]:
    """Scores of the methods on the labelled samples of a block; None stands for every single source.

    They have, by method, the state of its distributions ("states"), how many labels differ from those of the mean
    ("changed"), and the samples where there are groups, whose floors need them one by one ("samples"); and how many
    samples have labels, and how many predictions of single sources are absent there ("n_samples", "n_absent").  Where
    the block has marks, calibrators were fitted on its first half, which is not scored.
    """
    predictions = block.predictions
    assert predictions.labels is not None
    n_absent = int((~predictions.present()[:, predictions.labels != UNKNOWN]).sum())
    scores: dict[str, Any] = {"n_samples": predictions.n_labelled, "n_absent": n_absent}
    scores |= {"states": {}, "changed": {}, "samples": {}}
    if block.marks is not None:
        predictions.labels = np.where(block.marks & FIRST_HALF, UNKNOWN, predictions.labels)
    part = predictions.labelled()
    if part.n_samples == 0:
        return scores
    engine, split, shared = Engine(part, n_threads=n_threads), Split(), Shared()
    engine.expect(methods)
    reference = engine.reference(split)

    def add(name: str, sample: Sample, prediction: Labels, samples: Any = slice(None)) -> None:
        scores["states"][name] = CalibrationState().update_sample(sample)
        scores["changed"][name] = int((prediction != reference[samples]).sum())
        if part.groups is not None:
            scores["samples"][name] = [Sample(sample.confidence, sample.correct, group=part.groups[samples])]

    for method in methods:
        if method is None:
            for s, source in enumerate(engine.sources):
                if source.vectors is not None:
                    add(f"source:{s}", source.vectors, source.prediction, source.samples)
            continue
        calibrator = fitted.get(method.name, method.fitted)
        if calibrator is None:
            outcome = engine.run_one(method, split, shared)
        else:
            outcome = engine.apply(calibrator, split, shared, method=method)
        add(method.name, outcome.vectors, outcome.vector_labels)
    return scores


def evaluate(
    predictions: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    floors: bool = True,
    intervals: bool = False,
    random_state: int = 0,
    walk_forward: Any = False,
    period_order: str = "value",
    n_threads: int | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Evaluation:
    """:func:`veridical.evaluate` over blocks of samples, from calibration states.

    Metrics have a bound on their error (``summary["ece"].bound``), and there are no bootstrap intervals and no walk
    forward, which need all samples in memory.  Calibrators are fitted in one pass over one half of the samples, and
    everything is scored in another on the other half; those that need their samples in memory are fitted on a
    subsample, with a :class:`~veridical.errors.SubsampleWarning`.  Where samples have groups, 9 bytes are kept for
    every sample and method, and for every sample and source with "members".

    Parameters are those of :func:`veridical.evaluate`.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import veridical as vd
    >>> vd.scale.evaluate(vd.load_demo(), methods=["mean"], floors=False)["mean"].title
    'DE'
    """
    blocked = as_blocked(predictions, kind, sources_axis, labels, needs_labels=True)
    if check_flag(intervals, "intervals"):
        raise ParameterError("bootstrap intervals need all predictions in memory; leave intervals=True out.")
    if walk_forward is not False:
        raise ParameterError("periods are scored in memory; leave walk_forward out, or load the predictions whole.")
    check_flag(floors, "floors")
    return _run(blocked, resolve_methods(methods), floors, check_seed(random_state), n_threads, progress, client)[0]


def fit_calibrator(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
    client: Any = None,
    **parameters: Any,
) -> Calibration:
    """:func:`veridical.fit_calibrator` over blocks of samples; without advice, which compares single samples.

    Parameters are those of :func:`veridical.fit_calibrator`.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> import veridical as vd
    >>> vd.scale.fit_calibrator(vd.load_demo(), method="temperature").method
    'temperature'
    """
    blocked = as_blocked(predictions, kind, sources_axis, labels, needs_labels=True)
    resolved = resolve_calibrator(method, parameters)
    methods = [resolve_method("mean"), resolved]
    evaluation, fits = _run(blocked, methods, True, check_seed(random_state), n_threads, progress, client)
    assert fits is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubsampleWarning)  # already warned of for the half
        calibrator = fits.fitted(resolved.name)
    return Calibration(calibrator, evaluation, resolved.name)


def build_report(
    predictions: Any,
    labels: Any = None,
    *,
    out: Any = None,
    kind: Any = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    progress: Any = None,
    **options: Any,
) -> Report:
    """:func:`veridical.build_report` on a random subsample of at most 20,000 samples; the report says so.

    Parameters are those of :func:`veridical.build_report`.  For scores of all samples see
    :func:`veridical.scale.evaluate`.
    """
    if out is not None:
        check_report_target(out)
    blocked = as_blocked(predictions, kind, sources_axis, labels)
    is_all = blocked.n_samples <= most_in_memory(blocked)
    chosen = np.arange(blocked.n_samples) if is_all else subsample_of(blocked, random_state)
    data = prepare_report(blocked.take(chosen), random_state=random_state, progress=progress, **options)
    if len(chosen) < blocked.n_samples:
        facts = f"{len(chosen):,} of {blocked.n_samples:,} samples, chosen at random (random_state={random_state})"
        warnings.warn(f"the report is about {facts}.", SubsampleWarning, stacklevel=2)
        samples = tuple(replace(sample, sample=int(chosen[sample.sample])) for sample in data.disputed)
        data = replace(data, verdict=f"About {facts}. {data.verdict}", disputed=samples)
    return finish_report(data, out, progress)


def _run(
    blocked: BlockedPredictions,
    methods: Sequence[Method | None],
    floors: bool,
    random_state: int,
    n_threads: int | None,
    progress: Progress | None,
    client: Any,
) -> tuple[Evaluation, Fits | None]:
    """The evaluation of some methods, and what calibrators are fitted with."""
    check_client(client, blocked.reader)
    calibrators = {
        method.name: method.make(random_state, missing="skip", n_threads=n_threads)
        for method in methods
        if method is not None and method.needs_fit
    }
    fits, fitted, n_passes = None, {}, 1 + bool(calibrators)
    if calibrators:
        blocked = blocked.with_marks(first_half(blocked, random_state))
        fits = fit_in_blocks(blocked, calibrators, random_state, Throughput(progress, "fit", n_passes), client)
        fitted = {name: fits.fitted(name, on_half=True) for name in calibrators}
    coded = blocked.with_group_codes(_codes(blocked))
    report = Throughput(progress, "evaluate", n_passes, n_passes - 1)
    scores = merge_blocks(coded, partial(score_block, methods, fitted, n_threads), report, client=client)
    warn_of_absent(scores["n_absent"], blocked.n_sources * scores["n_samples"])
    names = blocked.source_names or tuple(f"source {s}" for s in range(blocked.n_sources))
    titles: dict[str, str] = {}
    for method in methods:
        if method is None:
            titles |= {f"source:{s}": name for s, name in enumerate(names)}
        else:
            titles[method.name] = method.title
    rows = []
    for name, title in titles.items():
        if name in scores["states"]:
            rows.append(_method_scores(name, title, scores, floors, random_state=random_state, n_threads=n_threads))
        else:
            warnings.warn(f"{title} has no prediction for any sample; it has no row.", AbsentSourceWarning, 4)
    evaluation = Evaluation(
        data=DataFacts.without_hash(blocked.whole),
        methods=tuple(rows),
        protocol="held-out half" if calibrators else "all samples",
        random_state=random_state,
        versions=versions(),
        notes=_notes(blocked, rows, methods, client),
    )
    return evaluation, fits


def _codes(blocked: BlockedPredictions) -> Array | None:
    """Numbers of the groups of labelled samples, as in memory; 0 for the others."""
    if blocked.groups is None:
        return None
    known = blocked.labels != UNKNOWN
    codes = np.zeros(blocked.n_samples, np.intp)
    codes[known] = group_codes(blocked.groups[known], int(known.sum()))
    return codes


def _notes(
    blocked: BlockedPredictions, rows: Sequence[MethodScores], methods: Sequence[Method | None], client: Any
) -> tuple[str, ...]:
    """Notes that make the figures doubtful; samples are read again only where there may be one."""
    known = np.flatnonzero(blocked.labels != UNKNOWN)
    notes: list[str] = []
    most_frequent = np.bincount(blocked.labels[known]).max() / len(known)  # chance is not above this
    best = max((row.summary["accuracy"].value for row in rows), default=1.0)
    if best <= most_frequent + 4 * np.sqrt(most_frequent * (1 - most_frequent) / len(known)):
        notes += label_order_note(*merge_blocks(blocked, _label_counts, client=client).values())
    if any(method is not None and method.fitted is not None for method in methods):
        measured = blocked.take(known[measured_samples(len(known))])
        notes += in_sample_notes(Engine(measured), methods)
    return tuple(notes)


def _label_counts(block: Block) -> dict[int, Any]:
    engine = Engine(block.predictions.labelled())
    return dict(enumerate((*label_counts(engine), *source_counts(engine))))


def _method_scores(name: str, title: str, scores: Mapping[str, Any], floors: bool, **how: Any) -> MethodScores:
    state = scores["states"][name]
    result = state.compute()
    noise: dict[str, tuple[float | None, float | None]] = {}
    if floors and name in scores["samples"]:
        parts = scores["samples"][name]
        whole = Sample.joined(parts)
        whole.group = np.concatenate([part.group for part in parts if part.group is not None])
        noise = {row.metric: (row.floor, row.floor_high) for row in summary_of(whole, metrics=SUMMARY_ERRORS, **how)}
    elif floors:
        drawn = state.noise_floors(SUMMARY_ERRORS, quantiles=(0.95,), **how)
        noise = {metric: (floor.mean, floor.quantiles[0.95]) for metric, floor in drawn.items()}
    rows = [
        SummaryRow(metric, result.values[metric], *noise.get(metric, (None, None)), bound=result.bounds[metric])
        for metric in SUMMARY_METRICS
        if metric in result.values
    ]
    mean_confidence = float(np.sum(state.cells().confidence)) / state.n_samples
    return MethodScores(
        method=name,
        title=title,
        summary=Summary(tuple(rows), state.n_samples),
        mean_confidence=mean_confidence,
        gap=mean_confidence - result["accuracy"],
        labels_changed=scores["changed"][name],
        is_source=name.startswith("source:"),
    )
