"""Evaluating predictions that are read in blocks, with calibrators that are fitted on one half of the samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from veridical._progress import Progress
from veridical.blocks.blocked import Block, BlockedPredictions, skeleton
from veridical.blocks.cluster import check_client, scores_on_cluster
from veridical.blocks.fitting import Booleans, Fitting, labelled_blocks
from veridical.blocks.passes import Throughput, run_pass
from veridical.blocks.scoring import ScoreStates, evaluation_of, score_block
from veridical.errors import ParameterError, SubsampleWarning
from veridical.evaluation.evaluating import DEFAULT_METHODS, Evaluation
from veridical.evaluation.fitting import Calibration, resolve_calibrator
from veridical.evaluation.methods import Method, resolve_method, resolve_methods
from veridical.predictions.classes import UNKNOWN, ClassIndices
from veridical.predictions.validation import Kind, check_flag, check_seed


def evaluate(
    predictions: Any,
    labels: Any = None,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    floors: bool = True,
    intervals: bool = False,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
    client: Any = None,
) -> Evaluation:
    """:func:`veridical.evaluate` over blocks of samples, from calibration states.

    Metrics have a bound on their error (``summary["ece"].bound``), and there are no bootstrap intervals.  Calibrators
    are fitted in one pass over one half of the samples, and everything is scored in another on the other half; those
    that need their samples in memory are fitted on a subsample, with a :class:`~veridical.errors.SubsampleWarning`.

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
    blocked = labelled_blocks(predictions, labels, kind, sources_axis)
    reject_intervals(intervals)
    check_flag(floors, "floors")
    check_seed(random_state)
    check_client(client)
    resolved = resolve_methods(methods)
    return _run_evaluation(blocked, resolved, floors, random_state, n_threads, progress, client)[0]


def reject_intervals(intervals: bool) -> None:
    """Bootstrap intervals resample the samples, which are not in memory."""
    if check_flag(intervals, "intervals"):
        raise ParameterError("bootstrap intervals need all predictions in memory; leave intervals=True out.")


def _run_evaluation(
    blocked: BlockedPredictions,
    methods: Sequence[Method | None],
    floors: bool,
    random_state: int,
    n_threads: int | None,
    progress: Progress | None,
    client: Any = None,
) -> tuple[Evaluation, Fitting | None]:
    calibrators = {
        method.name: method.make(random_state, missing="skip", n_threads=n_threads)
        for method in methods
        if method is not None and method.calibrator is not None
    }
    fitting, fitted, in_part = None, {}, None
    n_passes = 1 + bool(calibrators)
    if calibrators:
        in_part = _first_half(blocked, random_state)
        fitting = Fitting(blocked, calibrators, random_state, in_part)
        fitting.run(progress, n_passes)
        fitted = {name: fitting.fit(name, on_part=True) for name in calibrators}

    scores = ScoreStates()

    def work(block: Block) -> None:
        part = block.predictions
        if in_part is not None:
            part = part.select(samples=~in_part[block.start : block.stop])
        score_block(part, methods, fitted, n_threads, scores)

    report = Throughput(progress, blocked, "evaluate", n_passes, n_passes - 1)
    if client is not None:
        scores = scores_on_cluster(_scored(blocked, in_part), methods, fitted, client, report, n_threads)
    else:
        for _ in run_pass(blocked, work, report):
            pass
    evaluation = evaluation_of(
        blocked.whole,
        scores,
        methods,
        protocol="all samples" if in_part is None else "held-out half",
        floors=floors,
        random_state=random_state,
        n_threads=n_threads,
    )
    return evaluation, fitting


def _first_half(blocked: BlockedPredictions, random_state: int) -> Booleans:
    """Which samples are in the first of the halves that :func:`veridical.evaluate` makes of the labelled samples."""
    assert blocked.labels is not None
    known = np.flatnonzero(blocked.labels != UNKNOWN)
    groups = None if blocked.whole.groups is None else blocked.whole.groups[known]
    labelled = skeleton((1, len(known), 2), np.dtype(np.float32), "predictions", groups=groups)
    in_part = np.zeros(blocked.n_samples, dtype=bool)
    in_part[known[labelled.split_indices(random_state=random_state)[0]]] = True
    return in_part


def _scored(blocked: BlockedPredictions, in_part: Booleans | None) -> BlockedPredictions:
    """The predictions with labels for the scored samples alone."""
    if in_part is None:
        return blocked
    assert blocked.labels is not None
    return blocked.with_labels(ClassIndices(np.where(in_part, UNKNOWN, blocked.labels)))


def fit_calibrator(
    predictions: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    kind: Kind | None = None,
    sources_axis: int | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    progress: Progress | None = None,
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
    blocked = labelled_blocks(predictions, labels, kind, sources_axis)
    resolved = resolve_calibrator(method, parameters)
    methods = [resolve_method("mean"), resolved]
    evaluation, fitting = _run_evaluation(blocked, methods, True, random_state, n_threads, progress)
    assert fitting is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SubsampleWarning)  # already warned of for the half
        calibrator = fitting.fit(resolved.name, on_part=False)
    return Calibration(calibrator, evaluation, resolved.name)
