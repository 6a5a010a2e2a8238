"""Truth discovery, consensus and calibrators over blocks of samples, with results written as they come."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from veridical._outputs import check_outputs, check_replaced_directory
from veridical._progress import Progress
from veridical._version import __version__
from veridical.blocks.blocked import Block, BlockedPredictions
from veridical.blocks.cluster import apply_on_cluster, check_client
from veridical.blocks.identity import identity_of_path
from veridical.blocks.opening import as_blocked
from veridical.blocks.outputs import ArraySpec, BlockOutput, read_arrays
from veridical.blocks.passes import Throughput, run_pass
from veridical.calibrate import Calibrator
from veridical.calibrate.registry import check_calibrator
from veridical.calibrate.saving import fingerprint
from veridical.combine.across_samples.camps import warn_of_camps
from veridical.combine.across_samples.consensus import (
    Consensus,
    ConsensusVectors,
    combine_with_weights,
    consensus_with,
)
from veridical.combine.across_samples.passes import gather_sums, sums_about
from veridical.combine.across_samples.sums import ConsensusSums
from veridical.combine.across_samples.weights import weigh_sources
from veridical.combine.in_memory import AbsentSkipped, SourcesInMemory
from veridical.combine.truth import Truth
from veridical.combine.truth_discovery import Missing
from veridical.combine.truth_discovery import discover as discover_in_memory
from veridical.errors import ParameterError
from veridical.evaluation.applying import Calibrated
from veridical.predictions.validation import (
    Array,
    Kind,
    as_numbers,
    check_choice,
    check_flag,
    check_integer,
    check_real,
)

#: A result of more bytes is not returned in memory; it has to be written to a file.
MOST_IN_MEMORY = 1 << 30

Arrays = dict[str, Array]


class _Sink(NamedTuple):
    """Where a result goes: block number, first sample and arrays are handed to ``write``."""

    first: int
    write: Callable[[int, int, Arrays], None]
    arrays: Callable[[], dict[str, Any]]
    output: BlockOutput | None = None


@contextmanager
def _sink(
    predictions: BlockedPredictions, specs: Mapping[str, ArraySpec], out: Any, resume: bool, job: dict[str, Any]
) -> Iterator[_Sink]:
    """Arrays in memory, or a file that appears when all blocks are written."""
    check_flag(resume, "resume")
    if out is None:
        if resume:
            raise ParameterError("only a result that is written to a file can be continued; give out=.")
        memory = {name: _allocate(name, spec, specs) for name, spec in specs.items()}

        def keep(block: int, start: int, arrays: Arrays) -> None:
            for name, target in memory.items():
                axis = specs[name].samples_axis
                part = slice(start, start + arrays[name].shape[axis])
                target[(slice(None),) * axis + (part,)] = arrays[name]

        yield _Sink(0, keep, lambda: memory)
        return
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
    with BlockOutput(out, specs, {**facts, **job}, predictions.block_size, resume=resume) as output:
        yield _Sink(output.blocks_done, output.write, lambda: read_arrays(output.target), output)
        extra = {} if predictions.labels is None else {"labels": predictions.labels}
        if predictions.class_names is not None:
            extra["class_names"] = np.array(predictions.class_names)
        output.finish(extra)


def _allocate(name: str, spec: ArraySpec, specs: Mapping[str, ArraySpec]) -> Array:
    total = sum(each.n_bytes for each in specs.values())
    if total > MOST_IN_MEMORY:
        raise ParameterError(
            f"the result has {total / 1e9:.3g} GB, more than the {MOST_IN_MEMORY / 1e9:.3g} GB that are returned in "
            "memory; give out=, a .zarr or a directory to write it to."
        )
    return np.empty(spec.shape, spec.dtype)


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
    out: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Truth:
    """:func:`veridical.discover` over blocks of samples; the same bytes as in memory.

    Parameters
    ----------
    predictions : BlockedPredictions, path or array
        A path as in :func:`veridical.scale.open`.
    kind, sources_axis, accuracy_preserving, tol, max_iter, missing, source_weights, trace, n_threads
        As in :func:`veridical.discover`.
    out : path, optional
        Write the arrays of the result there, block by block: a ``.zarr``, a directory of ``.npy`` files (a name without
        suffix), or a ``.npz``.  It appears when it is complete.
    resume : bool
        Continue a result that was begun.
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    Truth
        With mapped arrays, or Zarr arrays, if ``out`` is given.

    Examples
    --------
    >>> import numpy as np
    >>> import veridical as vd
    >>> np.save("probs.npy", np.full((3, 100, 2), 0.5))
    >>> vd.scale.discover("probs.npy", out="truth").probs.shape
    (100, 2)
    """
    blocked = as_blocked(predictions, kind, sources_axis)
    options: dict[str, Any] = {
        "accuracy_preserving": check_flag(accuracy_preserving, "accuracy_preserving"),
        "tol": check_real(tol, "tol", 0.0),
        "max_iter": check_integer(max_iter, "max_iter", 0),
        "missing": check_choice(missing, ("raise", "skip"), "missing"),
        "source_weights": None if source_weights is None else as_numbers(source_weights, "source_weights").tolist(),
        "trace": check_flag(trace, "trace"),
    }
    n_sources, n_samples, n_classes = blocked.shape
    dtype = blocked.result_dtype
    specs = {
        "probs": ArraySpec((n_samples, n_classes), dtype),
        "reliability": ArraySpec((n_sources, n_samples), dtype, 1),
        "hv": ArraySpec((n_samples,), dtype),
        "prediction": ArraySpec((n_samples,), np.dtype(np.int64)),
        "n_iter": ArraySpec((n_samples,), np.dtype(np.int32)),
        "converged": ArraySpec((n_samples,), np.dtype(np.bool_)),
    }
    if trace:
        specs["trace"] = ArraySpec((options["max_iter"] + 1, n_samples), dtype, 1)

    def work(block: Block) -> Truth:
        return discover_in_memory(block.predictions, n_threads=n_threads, **options)

    report = Throughput(progress, blocked, "truth discovery")
    with _sink(blocked, specs, out, resume, {"function": "discover", "options": options}) as sink:
        for block, truth in run_pass(blocked, work, report, first=sink.first):
            sink.write(block.number, block.start, {name: getattr(truth, name) for name in specs})
    arrays: dict[str, Any] = sink.arrays()
    return Truth(**{name: arrays[name] for name in specs})


def consensus(
    predictions: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = False,
    missing: Missing = "skip",
    n_threads: int | None = None,
    out: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Consensus:
    """:func:`veridical.consensus` over blocks of samples: one pass for the sums, which merge, and one for the result.

    Parameters are those of :func:`veridical.consensus` and :func:`veridical.scale.discover`.

    Returns
    -------
    Consensus
        With mapped arrays, or Zarr arrays, if ``out`` is given.

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
    skipping = AbsentSkipped(n_threads, missing)
    weights = weigh_sources(_consensus_sums(blocked, skipping, progress), n_threads)
    warn_of_camps(blocked.whole.source_names, weights.camps)
    fields = ("probs", "prediction", "distinct_sources")
    of_camps = [f"camp_{k}" for k in range(len(weights.camps))]

    def work(block: Block) -> Arrays:
        vectors = combine_with_weights(SourcesInMemory(block.predictions, skipping), weights, accuracy_preserving)
        return {
            **{name: getattr(vectors, name) for name in fields},
            **dict(zip(of_camps, vectors.probs_of_camps, strict=True)),
        }

    vectors_of_all = ArraySpec((blocked.n_samples, blocked.n_classes), blocked.result_dtype)
    specs = {
        "probs": vectors_of_all,
        "prediction": ArraySpec((blocked.n_samples,), np.dtype(np.int64)),
        "distinct_sources": ArraySpec((blocked.n_samples,), np.dtype(np.float64)),
        **dict.fromkeys(of_camps, vectors_of_all),
    }
    options = {"accuracy_preserving": bool(accuracy_preserving), "missing": missing}
    report = Throughput(progress, blocked, "consensus", 2, 1)
    with _sink(blocked, specs, out, resume, {"function": "consensus", "options": options}) as sink:
        for block, arrays in run_pass(blocked, work, report, first=sink.first):
            sink.write(block.number, block.start, arrays)
    result = sink.arrays()
    vectors = ConsensusVectors(
        result["probs"], result["prediction"], result["distinct_sources"], tuple(result[name] for name in of_camps)
    )
    return consensus_with(weights, vectors, blocked.whole.source_names)


def _consensus_sums(blocked: BlockedPredictions, options: AbsentSkipped, progress: Progress | None) -> ConsensusSums:
    """The sums of all blocks, in one pass; where sources are absent, in a second one about the means of all samples."""
    whole: ConsensusSums | None = None
    n_present, is_complete = np.zeros(blocked.n_sources), True
    totals = np.zeros((blocked.n_sources, blocked.n_classes))
    report = Throughput(progress, blocked, "sums of the consensus", 2)
    for _, (part, complete) in run_pass(
        blocked, lambda b: gather_sums(SourcesInMemory(b.predictions, options)), report
    ):
        is_complete = is_complete and complete
        n_present += part.n_samples
        totals += part.means * part.n_samples[:, None]
        if is_complete:
            whole = part if whole is None else whole.merge(part)
    if is_complete and whole is not None:
        return whole
    means = totals / np.maximum(n_present, 1.0)[:, None]
    sums = ConsensusSums.zeros(blocked.n_sources, blocked.n_classes, means)
    for _, part in run_pass(blocked, lambda b: sums_about(means, SourcesInMemory(b.predictions, options)), report):
        sums = sums.merge(part)
    return sums


def apply_calibrator(
    calibrator: Calibrator,
    predictions: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    out: Any = None,
    resume: bool = False,
    progress: Progress | None = None,
    client: Any = None,
) -> Calibrated:
    """:func:`veridical.apply_calibrator` over blocks of samples.

    Parameters are those of :func:`veridical.apply_calibrator` and :func:`veridical.scale.discover`, and ``client``: a
    Dask client whose workers read the blocks from the file and write them to ``out``.

    Returns
    -------
    Calibrated
        With mapped arrays, or Zarr arrays, if ``out`` is given.

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
    blocked = as_blocked(predictions, kind, sources_axis)
    check_calibrator(calibrator).check_fitted()
    specs = {
        "probs": ArraySpec((blocked.n_samples, blocked.n_classes), blocked.result_dtype),
        "confidence": ArraySpec((blocked.n_samples,), np.dtype(np.float64)),
        "prediction": ArraySpec((blocked.n_samples,), np.dtype(np.int64)),
    }
    job = {"function": "apply", "calibrator": fingerprint(calibrator)}
    report = Throughput(progress, blocked, f"apply {calibrator.name}")

    def work(block: Block) -> tuple[Array, Array, Array]:
        return calibrator.predict_all(block.predictions)

    if client is not None and out is None:
        raise ParameterError("workers write the result to a file; give out=.")
    check_client(client)
    with _sink(blocked, specs, out, resume, job) as sink:
        if client is not None and sink.output is not None:
            apply_on_cluster(calibrator, blocked, sink.output, specs, client, report)
        else:
            _write_blocks(run_pass(blocked, work, report, first=sink.first), sink, list(specs))
    arrays = sink.arrays()
    probs, confidence, prediction = (arrays[name] for name in specs)
    return Calibrated(probs, confidence, prediction, blocked.labels, blocked.class_names, blocked.files)


def _write_blocks(blocks: Iterator[tuple[Block, tuple[Array, ...]]], sink: _Sink, names: Sequence[str]) -> None:
    for block, results in blocks:
        sink.write(block.number, block.start, dict(zip(names, results, strict=True)))
