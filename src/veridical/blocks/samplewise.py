"""What there is for each sample, over blocks: truth discovery, the consensus, calibrated predictions."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from veridical._outputs import check_outputs, check_replaced_directory
from veridical._progress import Progress
from veridical._version import __version__
from veridical.blocks.blocked import Block, BlockedPredictions
from veridical.blocks.identity import identity_of_path
from veridical.blocks.on_dask import check_client, delayed_results, lazy_arrays
from veridical.blocks.opening import as_blocked, open
from veridical.blocks.outputs import ArraySpec, BlockOutput, read_arrays, write_arrays
from veridical.blocks.passes import Throughput, map_blocks, merge_blocks
from veridical.calibrate import Calibrator
from veridical.calibrate.fitting_data import FittingData, measure, measured_samples, warn_about_difference
from veridical.calibrate.registry import check_calibrator
from veridical.calibrate.saving import fingerprint
from veridical.combine import Consensus, Truth
from veridical.combine import discover as discover_in_memory
from veridical.combine.across_samples.camps import warn_of_camps
from veridical.combine.across_samples.consensus import ConsensusVectors, combine_with_weights, consensus_with
from veridical.combine.across_samples.passes import gather_sums, sums_about
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.across_samples.weights import weigh_sources
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.combine.truth_discovery import Missing
from veridical.errors import ChangedSourcesWarning, ParameterError
from veridical.evaluation.applying import Calibrated, calibrated_arrays
from veridical.predictions import Predictions
from veridical.predictions.validation import Array, InputKind, check_choice, check_flag

#: A result of more bytes is not returned in memory; it has to be written to a file.
MOST_IN_MEMORY = 1 << 30

Arrays = dict[str, Array]


def over_samples(
    predictions: BlockedPredictions,
    work: Callable[[Block], tuple[Arrays, Any]],
    report: Throughput | None = None,
    *,
    job: dict[str, Any] | None = None,
    out: Any = None,
    resume: bool = False,
    client: Any = None,
) -> tuple[dict[str, Any], list[Any]]:
    """The arrays that ``work`` gives for all samples, put together, and what else it gives for each block.

    They are in memory, in a file that appears when all blocks are written, or lazy where the predictions are.
    """
    check_flag(resume, "resume")
    if out is None and (resume or client is not None):
        what = "only a result that is written to a file can be continued" if resume else "workers write to a file"
        raise ParameterError(f"{what}; give out=.")
    check_client(client, predictions.reader)  # before a file is begun
    empty, _ = work(predictions.empty_block())
    specs = {name: ArraySpec.of(array, predictions.n_samples) for name, array in empty.items()}
    work = partial(_without_warnings, work)  # those about sources were given for the empty block
    if out is not None:
        return _to_file(predictions, work, report, specs, _output(predictions, out, specs, job, resume), client)
    if predictions.reader.is_lazy:
        return lazy_arrays(predictions, delayed_results(predictions, work), specs), []
    arrays, rest = _allocate(specs), []
    for number, (part, other) in map_blocks(predictions, work, report):
        for name, spec in specs.items():
            arrays[name][spec.part(predictions.samples_of(number))] = part[name]
        rest.append(other)
    return arrays, rest


def _to_file(
    predictions: BlockedPredictions,
    work: Callable[[Block], tuple[Arrays, Any]],
    report: Throughput | None,
    specs: dict[str, ArraySpec],
    output: BlockOutput,
    client: Any,
) -> tuple[dict[str, Any], list[Any]]:
    """:func:`over_samples` into a file; workers write into it themselves."""
    with output:
        in_tasks = client is not None or predictions.reader.is_lazy
        write = partial(write_arrays, output.target, output.arrays_path, specs) if in_tasks else output.write
        numbers, rest = range(output.blocks_done, predictions.n_blocks), []
        write_block = partial(_written, work, write)
        for number, other in map_blocks(predictions, write_block, report, numbers=numbers, client=client):
            output.commit(number)
            rest.append(other)
        whole = predictions.whole
        beside = {name: getattr(whole, name) for name in ("labels", "class_names", "sample_ids", "groups")}
        beside["sample_shape"] = whole.sample_shape if len(whole.sample_shape) > 1 else None
        output.finish({name: np.asarray(entry) for name, entry in beside.items() if entry is not None})
    return read_arrays(output.target), rest


def _without_warnings(work: Callable[[Block], Any], block: Block) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ChangedSourcesWarning)
        return work(block)


def _written(work: Callable[[Block], tuple[Arrays, Any]], write: Callable[..., None], block: Block) -> Any:
    arrays, other = work(block)
    write(block.start, arrays)
    return other


def _output(
    predictions: BlockedPredictions, out: Any, specs: dict[str, ArraySpec], job: dict[str, Any] | None, resume: bool
) -> BlockOutput:
    """Where a result is written, with what it is computed from, for a later run to compare."""
    check_outputs({"out": out}, predictions.files)
    check_replaced_directory("out", out, predictions.files)
    inputs = predictions.identity
    facts = {
        "veridical": __version__,
        "input": inputs,
        "files": [identity_of_path(file) for file in predictions.files if str(file.resolve()) != inputs[0]],
        "shape": [*predictions.shape],
        "dtype": str(predictions.dtype),
        "kind": predictions.kind,
    }
    return BlockOutput(out, specs, {**facts, **(job or {})}, predictions.block_size, resume=resume)


def _allocate(specs: dict[str, ArraySpec]) -> Arrays:
    total = sum(each.n_bytes for each in specs.values())
    if total > MOST_IN_MEMORY:
        raise ParameterError(
            f"the result has {total / 1e9:.3g} GB, more than the {MOST_IN_MEMORY / 1e9:.3g} GB that are returned in "
            "memory; give out=, a .zarr or a directory to write it to."
        )
    return {name: np.empty(spec.shape, spec.dtype) for name, spec in specs.items()}


def _in_images(predictions: BlockedPredictions, array: Any) -> Any:
    """A result per sample in the shape of the images; what is in a store, or lazy, stays on one axis of samples."""
    is_array = isinstance(array, np.ndarray) and len(predictions.sample_shape) > 1
    return array.reshape(*predictions.sample_shape, *array.shape[1:]) if is_array else array


def discover(
    predictions: Any,
    *,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    out: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
    client: Any = None,
    **options: Any,
) -> Truth:
    """:func:`veridical.discover` over blocks of samples; the same bytes as in memory.

    Parameters
    ----------
    predictions : BlockedPredictions, path, array or Dask array
        A path as in :func:`veridical.scale.open`.
    kind, sources_axis, **options
        As in :func:`veridical.discover`.
    out : path, optional
        Write the arrays of the result there, block by block: a ``.zarr``, a directory of ``.npy`` files (a name without
        suffix), or a ``.npz``.  It appears when it is complete.
    resume : bool
        Continue a result that was begun.
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    client : dask.distributed.Client, optional
        Its workers read the blocks from the file and write them to ``out``.

    Returns
    -------
    Truth
        With mapped arrays, or Zarr arrays, if ``out`` is given; of a Dask array Dask arrays, of which nothing is
        computed yet (compute several together, or the blocks are worked on once for each).

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> np.save("probs.npy", np.full((3, 100, 2), 0.5))
    >>> vd.scale.discover("probs.npy", out="truth").probs.shape
    (100, 2)
    """
    blocked = as_blocked(predictions, kind, sources_axis)
    bound = inspect.signature(discover_in_memory).bind(None, **options)
    described = {name: np.asarray(v).tolist() for name, v in bound.kwargs.items() if name != "n_threads"}
    job = {"function": "discover", "options": described}
    report = Throughput(progress, "truth discovery")
    how = {"job": job, "out": out, "resume": resume, "client": client}
    arrays, _ = over_samples(blocked, partial(_discover, options), report, **how)
    truth = Truth(**{name: arrays[name] for name in _TRUTH if name in arrays})
    in_images = len(blocked.sample_shape) > 1 and isinstance(truth.probs, np.ndarray)
    return truth.in_shape(blocked.sample_shape) if in_images else truth


_TRUTH = tuple(inspect.signature(Truth).parameters)


def _discover(options: dict[str, Any], block: Block) -> tuple[Arrays, None]:
    truth = discover_in_memory(block.predictions, **options)
    return {name: array for name, array in vars(truth).items() if array is not None}, None


def consensus(
    predictions: Any,
    *,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = False,
    missing: Missing = "skip",
    n_threads: int | None = None,
    out: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
    client: Any = None,
) -> Consensus:
    """:func:`veridical.consensus` over blocks of samples: one pass for the sums, which merge, and one for the result.

    Parameters are those of :func:`veridical.consensus` and :func:`veridical.scale.discover`.

    Returns
    -------
    Consensus
        As for :func:`veridical.scale.discover`.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> np.save("probs.npy", np.random.default_rng(0).dirichlet([1, 1], (3, 100)))
    >>> vd.scale.consensus("probs.npy").probs.shape
    (100, 2)
    """
    blocked = as_blocked(predictions, kind, sources_axis)
    check_choice(missing, ("skip", "raise"), "missing")
    check_flag(accuracy_preserving, "accuracy_preserving")
    check_client(client, blocked.reader)
    skipping = AbsentSkipped(n_threads, missing)
    report = Throughput(progress, "sums of the consensus", 2)
    gathered = merge_blocks(blocked, partial(_gather, skipping), report, client=client)
    sums = gathered["sums"]
    if sums is None:  # sums about the means of all samples, in another pass
        means = gathered["totals"] / np.maximum(gathered["n_present"], 1.0)[:, None]
        sums = merge_blocks(
            blocked, partial(_sums_about, means, skipping), Throughput(progress, "sums", 2), client=client
        )
    weights = weigh_sources(sums, n_threads)
    warn_of_camps(blocked.source_names, weights.camps)

    def work(block: Block) -> tuple[Arrays, None]:
        combined = combine_with_weights(SourcesInMemory(block.predictions, skipping), weights, accuracy_preserving)
        camps = {f"camp_{k}": probs for k, probs in enumerate(combined.probs_of_camps)}
        return {name: getattr(combined, name) for name in ConsensusVectors._fields[:3]} | camps, None

    options = {"accuracy_preserving": bool(accuracy_preserving), "missing": missing}
    how = {"job": {"function": "consensus", "options": options}, "out": out, "resume": resume, "client": client}
    arrays, _ = over_samples(blocked, work, Throughput(progress, "consensus", 2, 1), **how)
    camps = tuple(arrays[f"camp_{k}"] for k in range(len(weights.camps)))
    vectors = ConsensusVectors(arrays["probs"], arrays["prediction"], arrays["distinct_sources"], camps)
    return consensus_with(weights, vectors, blocked.source_names)


def _gather(skipping: AbsentSkipped, block: Block) -> dict[str, Any]:
    """The sums of a block, None where a source is absent, and what the means of the sources are made of."""
    sums, is_complete = gather_sums(SourcesInMemory(block.predictions, skipping))
    totals = sums.means * sums.n_samples[:, None]
    return {"sums": sums if is_complete else None, "n_present": sums.n_samples, "totals": totals}


def _sums_about(means: Array, skipping: AbsentSkipped, block: Block) -> ConsensusSums:
    return sums_about(means, SourcesInMemory(block.predictions, skipping))


def apply_calibrator(
    calibrator: Calibrator,
    predictions: Any,
    *,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    out: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
    client: Any = None,
) -> Calibrated:
    """:func:`veridical.apply_calibrator` over blocks of samples.

    Parameters are those of :func:`veridical.apply_calibrator` and :func:`veridical.scale.discover`.

    Returns
    -------
    Calibrated
        As for :func:`veridical.scale.discover`.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.random.default_rng(0).dirichlet([1, 1], (3, 100))
    >>> calibrator = vd.Platt().fit(probs, np.arange(100) % 2)
    >>> np.save("probs.npy", probs)
    >>> vd.scale.apply_calibrator(calibrator, "probs.npy", out="calibrated.npz").confidence.shape
    (100,)
    """
    blocked = _blocks_for(calibrator, predictions, kind, sources_axis)
    fitted: FittingData | None = getattr(calibrator, "fitting_data_", None)
    work = partial(_apply, calibrator, 0 if fitted is None else measured_samples(blocked.n_samples).step)
    job = {"function": "apply", "calibrator": fingerprint(calibrator)}
    how = {"job": job, "out": out, "resume": resume, "client": client}
    arrays, measured = over_samples(blocked, work, Throughput(progress, f"apply {calibrator.name}"), **how)
    parts = [part for part in measured if part is not None]
    if fitted is not None and parts:
        values = np.concatenate([values for values, _ in parts], axis=1)
        groups = None if blocked.groups is None else np.concatenate([groups for _, groups in parts])
        warn_about_difference(fitted, FittingData.of_measurements(values, groups))
    probs, confidence, prediction = (_in_images(blocked, arrays[name]) for name in _CALIBRATED)
    labels = None if blocked.labels is None else _in_images(blocked, blocked.labels)
    facts = blocked.class_names, blocked.files, blocked.sample_ids, blocked.groups
    return Calibrated(probs, confidence, prediction, labels, *facts)


_CALIBRATED = ("probs", "confidence", "prediction")


def _apply(calibrator: Calibrator, step: int, block: Block) -> tuple[Arrays, Any]:
    """Calibrated predictions; measurements and groups of every ``step``-th sample of the whole that is in the block."""
    arrays = dict(zip(_CALIBRATED, calibrated_arrays(calibrator, block.predictions), strict=True))
    if not step or not len(range(-block.start % step, block.stop - block.start, step)):
        return arrays, None
    part = block.predictions.select(samples=slice(-block.start % step, None, step))
    return arrays, (measure(part, calibrator.n_threads), part.groups)


def _blocks_for(
    calibrator: Calibrator, values: Any, kind: InputKind | None = None, sources_axis: int | None = None
) -> BlockedPredictions:
    """Blocks of what a fitted calibrator predicts for: arrays are of the kind that it was fitted on."""
    check_calibrator(calibrator).check_fitted()
    if isinstance(values, (BlockedPredictions, Predictions)):
        return as_blocked(values, kind, sources_axis)
    axis = calibrator.sources_axis if sources_axis is None else sources_axis
    return open(values, kind=kind, sources_axis=axis, default_kind=calibrator.kind_of_arrays)


def _predictor(name: str) -> Callable[[Calibrator, Any], Any]:
    """What a method of calibrators gives over blocks."""

    def predict(calibrator: Calibrator, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        blocked = _blocks_for(calibrator, X)
        work = partial(_predicted, calibrator, name)
        arrays, _ = over_samples(blocked, work)
        results = tuple(_in_images(blocked, array) for array in arrays.values())
        return results if name == "predict_all" else results[0]

    return predict


def _predicted(calibrator: Calibrator, name: str, block: Block) -> tuple[Arrays, None]:
    result = getattr(calibrator, name)(block.predictions)
    return {str(k): array for k, array in enumerate(result if isinstance(result, tuple) else (result,))}, None


predict_all, predict_proba, predict_confidence, predict = map(
    _predictor, ("predict_all", "predict_proba", "predict_confidence", "predict")
)
