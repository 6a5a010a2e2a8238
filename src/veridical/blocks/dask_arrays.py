"""Dask arrays (S, N, L) through truth discovery, calibrators and evaluation: lazily, block by block of samples."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from veridical._lazy import require
from veridical._parallel import THREADS_IN_WORKERS, resolve_threads
from veridical._progress import Progress, check_progress
from veridical.blocks.blocked import skeleton
from veridical.blocks.blocks_on_workers import discover_block, merge_scores, predict_block, scores_of_block
from veridical.blocks.cluster import check_client, compute
from veridical.blocks.scoring import ScoreStates, evaluation_of
from veridical.calibrate import Calibrator
from veridical.calibrate.registry import check_calibrator
from veridical.combine.source_weights import check_source_weights
from veridical.combine.truth import Truth
from veridical.combine.truth_discovery import Missing
from veridical.errors import DtypeError, LabelError, ParameterError, RechunkWarning, ShapeError, shown
from veridical.evaluation.applying import Calibrated
from veridical.evaluation.evaluating import DEFAULT_METHODS, Evaluation
from veridical.evaluation.methods import Method, resolve_methods
from veridical.predictions import Predictions
from veridical.predictions.arrays import is_whole_number
from veridical.predictions.validation import (
    KINDS,
    Kind,
    check_choice,
    check_flag,
    check_integer,
    check_labels,
    check_real,
    check_seed,
    result_dtype,
)

#: So many states are merged by one task.
_FAN_IN = 8


def _require_dask() -> Any:
    return require("dask", "cluster")


def _blocks_of(array: Any, sources_axis: int | None) -> tuple[Any, list[int]]:
    """The array as (S, N, L) with one chunk over sources and classes, and where its blocks of samples begin."""
    if array.ndim != 3:
        raise ShapeError(f"the Dask array has shape {array.shape}; give (sources, samples, classes).")
    if sources_axis is not None and not (is_whole_number(sources_axis) and sources_axis in (0, 1)):
        raise ParameterError(f"sources_axis is {shown(sources_axis)}; it is 0 for (S, N, L) or 1 for (N, S, L).")
    if sources_axis == 1:
        array = array.swapaxes(0, 1)
    if any(math.isnan(size) for sizes in array.chunks for size in sizes):
        raise ShapeError("the Dask array has chunks of unknown size; call its compute_chunk_sizes() first.")
    if array.shape[0] == 0 or array.shape[2] < 2:
        raise ShapeError(f"the Dask array has shape {array.shape}; give at least one source and two classes.")
    if np.dtype(array.dtype).kind not in "fiub":
        raise DtypeError(f"the Dask array has dtype {array.dtype}; give real numbers.")
    n_pieces = len(array.chunks[0]) * len(array.chunks[2])
    if n_pieces > 1:
        warnings.warn(
            f"the Dask array is chunked over sources or classes, {n_pieces} chunks for each block of samples; they are "
            f"put together first, which moves up to {array.nbytes * (n_pieces - 1) / n_pieces / 1e9:.3g} GB between "
            "workers and holds each block twice: chunk over samples alone, rechunk({0: -1, 2: -1}), where it is made.",
            RechunkWarning,
            stacklevel=4,
        )
        array = array.rechunk({0: -1, 2: -1})
    return array, np.cumsum([0, *array.chunks[1]])[:-1].tolist()


def _over_blocks(array: Any, starts: Sequence[int], work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """``work(block, start, *arguments)``, delayed, for every block of samples."""
    delayed = _require_dask().delayed
    task = delayed(work, pure=True)
    shared = [delayed(argument) for argument in arguments]
    return [task(block, start, *shared) for block, start in zip(array.to_delayed().ravel(), starts, strict=True)]


def _assemble(parts: Sequence[Any], pick: Any, shapes: Sequence[tuple[int, ...]], dtype: Any, axis: int = 0) -> Any:
    """One Dask array of a field of the results of all blocks."""
    module = require("dask.array", "cluster")
    delayed = _require_dask().delayed
    blocks = [
        module.from_delayed(delayed(_pick, pure=True)(part, pick), shape=shape, dtype=dtype)
        for part, shape in zip(parts, shapes, strict=True)
    ]
    return module.concatenate(blocks, axis=axis)


def _pick(result: Any, field: Any) -> Any:
    if field is None:
        return result
    return getattr(result, field) if isinstance(field, str) else result[field]


def _threads_in_task(n_threads: int | None) -> int:
    return THREADS_IN_WORKERS if n_threads is None else resolve_threads(n_threads)


def discover(
    predictions: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = True,
    tol: float = math.exp(-8),
    max_iter: int = 20,
    missing: Missing = "raise",
    source_weights: Any = None,
    trace: bool = False,
    n_threads: int | None = None,
) -> Truth:
    """:func:`veridical.discover` of a Dask array: a Truth of Dask arrays, of which nothing is computed yet.

    The same kernels as in memory: computed, the arrays have the same bytes.  Compute several of them together
    (``dask.compute(truth.probs, truth.hv)``), or the blocks are worked on once for each.
    """
    array, starts = _blocks_of(predictions, sources_axis)
    options: dict[str, Any] = {
        "accuracy_preserving": check_flag(accuracy_preserving, "accuracy_preserving"),
        "tol": check_real(tol, "tol", 0.0),
        "max_iter": check_integer(max_iter, "max_iter", 0),
        "missing": check_choice(missing, ("raise", "skip"), "missing"),
        "source_weights": source_weights,
        "trace": check_flag(trace, "trace"),
        "n_threads": _threads_in_task(n_threads),
    }
    if source_weights is not None:
        no_samples = Predictions(np.empty((array.shape[0], 0, 2)))
        options["source_weights"] = check_source_weights(source_weights, no_samples)
    parts = _over_blocks(
        array, starts, discover_block, check_choice("probs" if kind is None else kind, KINDS, "kind"), options
    )
    n_sources, sizes, n_classes = array.shape[0], array.chunks[1], array.shape[2]
    dtype = result_dtype(np.dtype(array.dtype))

    def field(name: str, shape: tuple[int, ...], of: Any, axis: int = 0) -> Any:
        return _assemble(parts, name, [tuple(n if k < 0 else k for k in shape) for n in sizes], of, axis)

    return Truth(
        probs=field("probs", (-1, n_classes), dtype),
        reliability=field("reliability", (n_sources, -1), dtype, 1),
        hv=field("hv", (-1,), dtype),
        prediction=field("prediction", (-1,), np.int64),
        n_iter=field("n_iter", (-1,), np.int32),
        converged=field("converged", (-1,), np.bool_),
        trace=field("trace", (options["max_iter"] + 1, -1), dtype, 1) if trace else None,
    )


def consensus(*_: Any, **__: Any) -> Any:
    """Not for Dask arrays: the weights depend on all samples, so nothing of it is lazy."""
    raise ParameterError(
        "the consensus of a Dask array is not computed; write the array to a .zarr and use veridical.scale.open on it."
    )


def _names_of(calibrator: Calibrator, array: Any) -> dict[str, Any]:
    """The names of an array that ``to_dask`` made; else the sources are those of the fit where as many are there."""
    own = {name: getattr(array, name, None) for name in ("source_names", "class_names")}
    if own["source_names"] is None and array.shape[calibrator.sources_axis] == calibrator.n_sources_:
        own["source_names"] = calibrator.source_names_
    return own


def _predictions_of(calibrator: Calibrator, X: Any, name: str) -> tuple[list[Any], tuple[int, ...], Any]:  # noqa: N803
    calibrator.check_fitted()
    array, starts = _blocks_of(X, calibrator.sources_axis)
    if array.shape[2] != calibrator.n_classes_:
        raise ShapeError(
            f"this calibrator was fitted for {calibrator.n_classes_} classes and the Dask array has {array.shape[2]}; "
            "fit one for them."
        )
    single = type(calibrator)(**{**calibrator.get_params(deep=False), "n_threads": THREADS_IN_WORKERS})
    single.__dict__.update({key: value for key, value in calibrator.__dict__.items() if key.endswith("_")})
    names = _names_of(calibrator, X)
    parts = [
        _require_dask().delayed(predict_block, pure=True)(single, name, block, start, calibrator.kind, names)
        for block, start in zip(array.to_delayed().ravel(), starts, strict=True)
    ]
    return parts, array.chunks[1], result_dtype(np.dtype(array.dtype))


def predict_proba(calibrator: Calibrator, X: Any) -> Any:  # noqa: N803
    """(N, L) Dask array of calibrated distributions."""
    parts, sizes, dtype = _predictions_of(calibrator, X, "predict_proba")
    return _assemble(parts, None, [(n, calibrator.n_classes_) for n in sizes], dtype)


def predict_confidence(calibrator: Calibrator, X: Any) -> Any:  # noqa: N803
    """(N,) Dask array of calibrated confidences."""
    parts, sizes, _ = _predictions_of(calibrator, X, "predict_confidence")
    return _assemble(parts, None, [(n,) for n in sizes], np.float64)


def predict(calibrator: Calibrator, X: Any) -> Any:  # noqa: N803
    """(N,) Dask array of labels."""
    parts, sizes, _ = _predictions_of(calibrator, X, "predict")
    return _assemble(parts, None, [(n,) for n in sizes], np.int64)


def predict_all(calibrator: Calibrator, X: Any) -> tuple[Any, Any, Any]:  # noqa: N803
    """Dask arrays of distributions, confidences and labels, from one task per block."""
    parts, sizes, dtype = _predictions_of(calibrator, X, "predict_all")
    return (
        _assemble(parts, 0, [(n, calibrator.n_classes_) for n in sizes], dtype),
        _assemble(parts, 1, [(n,) for n in sizes], np.float64),
        _assemble(parts, 2, [(n,) for n in sizes], np.int64),
    )


def apply_calibrator(
    calibrator: Calibrator, predictions: Any, *, kind: Kind | None = None, sources_axis: int | None = None
) -> Calibrated:
    """:func:`veridical.apply_calibrator` of a Dask array: Dask arrays, of which nothing is computed yet."""
    check_calibrator(calibrator)
    own = ((kind, calibrator.kind), (sources_axis, calibrator.sources_axis))
    if any(value is not None and not (type(value) is type(known) and value == known) for value, known in own):
        raise ParameterError("kind and sources_axis of a Dask array are those of the calibrator; set them there.")
    return Calibrated(*predict_all(calibrator, predictions))


def fit(calibrator: Calibrator, X: Any, y: Any = None, *, progress: Progress | None = None) -> Calibrator:  # noqa: N803
    """Not for Dask arrays."""
    raise ParameterError(
        f"{calibrator.name} is not fitted on a Dask array; write the array to a .zarr and give veridical.scale.open of "
        "it, or fit on a part of it in memory."
    )


def fit_calibrator(*_: Any, **__: Any) -> Any:
    """Not for Dask arrays."""
    raise ParameterError(
        "calibrators are not fitted on a Dask array; write the array to a .zarr and give veridical.scale.open of it, "
        "or fit on a part of it in memory."
    )


def build_report(*_: Any, **__: Any) -> Any:
    """Not for Dask arrays."""
    raise ParameterError("a report is not made of a Dask array; make it of a part of the samples in memory.")


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
    """:func:`veridical.evaluate` of a Dask array: calibration states of all blocks, merged on the workers.

    Methods that are fitted are not evaluated: fit them first, and evaluate what their ``predict_proba`` gives.
    """
    from veridical.blocks.evaluating import reject_intervals

    array, starts = _blocks_of(predictions, sources_axis)
    chosen_kind = check_choice("probs" if kind is None else kind, KINDS, "kind")
    report = check_progress(progress)
    reject_intervals(intervals)
    check_flag(floors, "floors")
    check_seed(random_state)
    check_client(client)
    resolved = unfitted_methods(methods)
    if labels is None:
        raise LabelError("this needs labels; give labels, one integer per sample.")
    in_memory = compute(labels, client) if hasattr(labels, "dask") else labels
    checked = check_labels(in_memory, array.shape[1], array.shape[2])
    delayed = _require_dask().delayed
    task, shared = delayed(scores_of_block, pure=True), delayed(({}, resolved, {}, _threads_in_task(n_threads)))
    parts = [
        task(block, checked[start : start + size], start, chosen_kind, shared[0], shared[1], shared[2], shared[3])
        for block, start, size in zip(array.to_delayed().ravel(), starts, array.chunks[1], strict=True)
    ]
    report(0, array.shape[1], "evaluate")
    scores: ScoreStates = compute(_tree(parts, delayed(merge_scores, pure=True)), client)
    report(array.shape[1], array.shape[1], "done")
    whole = skeleton(array.shape, np.dtype(array.dtype), "the Dask array", kind=chosen_kind)
    return evaluation_of(
        whole,
        scores,
        resolved,
        protocol="all samples",
        floors=floors,
        random_state=random_state,
        n_threads=n_threads,
    )


def unfitted_methods(methods: Sequence[str]) -> tuple[Method | None, ...]:
    """Methods that need no fit; others are refused."""
    resolved = resolve_methods(methods)
    for method in resolved:
        if method is not None and method.calibrator is not None:
            raise ParameterError(
                f"{method.name} has to be fitted, which is not done on a Dask array; fit it with "
                "veridical.fit_calibrator, and evaluate what its predict_proba gives."
            )
    return resolved


def _tree(parts: list[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """Merge by eights until one is left, so that no task and no worker gets all states at once."""
    while len(parts) > 1:
        parts = [merge(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
    return parts[0]
