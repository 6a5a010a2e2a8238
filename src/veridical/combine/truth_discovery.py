"""Truth discovery over an ensemble's predictions."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from veridical._dispatch import also_out_of_memory
from veridical._kernels.arguments import LANES, Layout, Options, Outputs
from veridical._parallel import run_blocks
from veridical.backends.foreign import also_foreign
from veridical.backends.namespace import LABEL_MARGIN
from veridical.backends.truth import AT_TRUTH
from veridical.combine.sources import STEP, UPDATES, label_of_mean
from veridical.combine.truth import Truth, check_source_weights
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.inputs import check_has_sources
from veridical.predictions.validation import (
    LARGEST_COUNT,
    Array,
    InputKind,
    Kind,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    reject_missing_prediction,
    reject_row,
    reject_sample_without_sources,
)

Missing = Literal["raise", "skip"]

#: Sixteen samples are worked on at once where their scores take at most so much memory: about where both ways took
#: equally long, for 3 to 50 sources and 32 to 512 classes.
_LANES_BYTES = 384 * 1024
#: With fewer classes than this, the softmax is taken of sixteen samples at once.
_FEW_CLASSES = 48
#: How much of the input is held in the processor's cache at a time, and handed to a thread at a time.
_GROUP_BYTES, _MOST_IN_GROUP = 160 * 1024, 64
_BLOCK_BYTES, _MOST_IN_BLOCK = 16 * 1024**2, 512
#: Input that needs converting is copied in pieces of this size, one per thread.
_COPY_BYTES = 2 * 1024**2
#: By how many units of rounding the mean of probabilities that a kernel computed from logits can be wrong: the shift
#: by the largest, the exponential, the sum of fewer than 48 numbers and the division, each with a margin.
_SOFTMAX_ERROR = 64
MOST_TRACED = 100_000  # updates; a trace has a number for each


@also_foreign("veridical.combine.on_arrays")
@also_out_of_memory()
def discover(
    predictions: Any,
    *,
    kind: InputKind | None = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = True,
    tol: float = STEP,
    max_iter: int = UPDATES,
    missing: Missing = "raise",
    source_weights: Any = None,
    trace: bool = False,
    n_threads: int | None = None,
) -> Truth:
    r"""Find, for each sample, the vector that the sources most plausibly scatter around.

    Starting from the mean of the sources' vectors :math:`z_s`, alternate between how reliable each source looks and
    the mean weighted by that,

    .. math:: w_s = \ln\frac{V}{\|z^* - z_s\|^2},\quad V = \sum_s \|z^* - z_s\|^2,\qquad
              z^* = \frac{\sum_s w_s z_s}{\sum_s w_s},

    which descends on :math:`HV = \sum_s \|z^* - z_s\|^2\, w_s`.  With ``accuracy_preserving`` (aTDE) every :math:`z^*`
    is projected onto the part of the simplex where the mean's label wins, so no predicted label changes; without it
    (TDE) labels may change.

    Parameters
    ----------
    predictions : array of shape (S, N, L), Predictions, or another form that these accept
        float16, float32 or float64.  float64 is computed in float64, everything else in float32.
    kind : {"probs", "logits", "log_probs", "binary"}, default "probs"
        What the numbers are.  Logits get a softmax, log-probabilities an exponential.
    sources_axis : {0, 1, 2}, default 0
        1 for an array of shape (N, S, L), 2 for (N, L, S).
    accuracy_preserving : bool
        Keep the label of the mean as the strict maximum of the truth vector.
    tol : float
        Stop when the squared step is below this.  With 0: only at a fixed point.
    max_iter : int
        Most updates per sample; 0 gives the mean.
    missing : {"raise", "skip"}
        What to do about a source whose row is all NaN: refuse, or leave it out for that sample.
    source_weights : array of S numbers, optional
        How many sources each source counts as, from 0 to 1e30; all one by default.  With them the search starts from
        the weighted mean, :math:`V = \sum_s a_s \|z^* - z_s\|^2`, and :math:`w_s = a_s \ln(V / \|z^* - z_s\|^2)`, or
        0 where the logarithm is negative.  ``prediction`` stays the label of the plain mean.
        :attr:`Consensus.source_weights` are such weights.
    trace : bool
        Also return HV after each update.
    n_threads : int, optional
        Default: all cores, or the variable ``VERIDICAL_NUM_THREADS``.  The result is the same bytes for any number.

    Returns
    -------
    Truth

    Notes
    -----
    The label is that of the plain mean of the probabilities as given, summed in float64 in the order of the sources;
    ties go to the lowest index.  For logits and log-probabilities these are the softmax and the exponential in float64.
    Rows that sum to one within the tolerance of their dtype, but not within rounding, are then scaled to sum one.

    The first call for a dtype compiles the kernel (some seconds) and stores it on disk for later processes.

    Results for PyTorch, JAX and CuPy arrays are arrays of the same library, on the same device.

    References
    ----------
    Ma, Huang, Xian, Gao, Xu: Improving Uncertainty Calibration of Deep Neural Networks via Truth Discovery and
    Geometric Optimization.  UAI 2021.

    Examples
    --------
    Two sources agree, the third does not; it is trusted least, and the truth moves away from it:

    >>> import numpy as np
    >>> import veridical as vd
    >>> probs = np.array([[[0.8, 0.2]], [[0.7, 0.3]], [[0.2, 0.8]]])
    >>> truth = vd.discover(probs)
    >>> truth.reliability.argmin(axis=0)
    array([2])
    >>> bool(truth.probs[0, 0] > probs.mean(axis=0)[0, 0])
    True
    """
    predictions = as_predictions(check_has_sources(predictions, kind), kind, sources_axis)
    check_choice(missing, ("raise", "skip"), "missing")
    check_flag(trace, "trace")
    weights = check_source_weights(source_weights, predictions)
    options = make_options(
        predictions,
        skip_missing=missing == "skip",
        keep_label=check_flag(accuracy_preserving, "accuracy_preserving"),
        tol=check_real(tol, "tol", 0.0),
        max_iter=check_integer(max_iter, "max_iter", 0, MOST_TRACED if trace else LARGEST_COUNT),
        weighted=source_weights is not None,
    )
    outputs = allocate_outputs(predictions, options.max_iter if trace else None)
    _run(predictions, options, weights, outputs, n_threads)
    truth = truth_in(outputs, traced=trace)
    return truth if len(predictions.sample_shape) == 1 else truth.in_shape(predictions.sample_shape)


def discover_with_mean(predictions: Predictions, missing: Missing, n_threads: int | None) -> tuple[Truth, Array]:
    """The truth as :func:`discover` finds it, and the mean as it finds it without updates, in one pass."""
    options = make_options(predictions, skip_missing=missing == "skip")
    outputs = allocate_outputs(predictions, with_mean=True)
    _run(predictions, options, check_source_weights(None, predictions), outputs, n_threads)
    return truth_in(outputs), outputs.mean


def truth_in(outputs: Outputs, *, traced: bool = False) -> Truth:
    """The outputs of the kernel as a result."""
    return Truth(
        outputs.probs,
        outputs.reliability,
        outputs.hv,
        outputs.prediction,
        outputs.n_iter,
        outputs.converged,
        outputs.trace if traced else None,
    )


def make_options(
    predictions: Predictions,
    *,
    skip_missing: bool,
    keep_label: bool = True,
    tol: float = STEP,
    max_iter: int = UPDATES,
    weighted: bool = False,
) -> Options:
    """What the kernel is asked for; parameters as in :func:`discover`."""
    dtype = np.finfo(predictions.result_dtype)
    are_probs = predictions.kind == "probs"
    return Options(
        tolerance=predictions.sum_tolerance,
        rounding=16 * float(dtype.eps),
        skip_missing=skip_missing,
        keep_label=keep_label,
        tol=tol,
        max_iter=max_iter,
        margin=LABEL_MARGIN,
        group=_samples_within(_GROUP_BYTES, _MOST_IN_GROUP, predictions),
        near=4 if are_probs else _SOFTMAX_ERROR,
        exact_scores=are_probs,
        weighted=weighted,
        eps=float(dtype.eps),
        tiny=AT_TRUTH[dtype.bits] ** 2,
    )


def _samples_within(n_bytes: int, most: int, predictions: Predictions) -> int:
    """How many samples fit into so much memory: at least one, at most ``most``."""
    per_sample = predictions.n_sources * predictions.n_classes * predictions.result_dtype.itemsize
    return max(1, min(most, n_bytes // per_sample))


def allocate_outputs(
    predictions: Predictions, traced_iterations: int | None = None, *, with_mean: bool = False
) -> Outputs:
    """Arrays for the results of all samples."""
    n_samples, dtype = predictions.n_samples, predictions.result_dtype
    return Outputs(
        probs=np.empty((n_samples, predictions.n_classes), dtype),
        reliability=np.empty((predictions.n_sources, n_samples), dtype),
        hv=np.empty(n_samples, dtype),
        prediction=np.full(n_samples, -1, np.int64),
        n_iter=np.empty(n_samples, np.int32),
        converged=np.empty(n_samples, np.bool_),
        trace=np.empty((0 if traced_iterations is None else traced_iterations + 1, n_samples), dtype),
        mean=np.empty((n_samples if with_mean else 0, predictions.n_classes), dtype),
    )


class _Workspace(threading.local):
    """Memory that a thread uses for all its blocks of at most ``size`` samples."""

    def __init__(self, predictions: Predictions, n_samples: int, group: int) -> None:
        shape, dtype = (predictions.n_sources, predictions.n_classes), predictions.result_dtype
        self.discover: Callable[..., int]
        self.memory: tuple[Any, ...]
        if math.prod(shape) * LANES * dtype.itemsize <= _LANES_BYTES:
            from veridical._kernels.few_classes import discover_few_classes  # loads the compiler
            from veridical._kernels.few_classes_loading import allocate

            self.discover, self.memory = discover_few_classes, (allocate(*shape, dtype),)
        else:
            from veridical._kernels.discovery import allocate_scratch, discover_block
            from veridical._kernels.loading import allocate_group

            size = min(group, n_samples)
            self.discover = discover_block
            self.memory = allocate_group(size, *shape, dtype), allocate_scratch(size, *shape, dtype)
        self._dtype, self._numbers = dtype, n_samples * shape[0] * shape[1]

    @cached_property
    def scores(self) -> Array:
        """The scores of a block, in the dtype of the result."""
        return np.empty(self._numbers, self._dtype)

    @cached_property
    def probs(self) -> Array:
        """The probabilities of a block, where the scores are something else."""
        return np.empty(self._numbers, self._dtype)


def _run(predictions: Predictions, options: Options, weights: Array, outputs: Outputs, n_threads: int | None) -> None:
    """Blocks of samples on the thread pool; the first invalid sample, in the order of samples, is reported."""
    whole = _as_run(predictions.values) if predictions.is_stacked and _is_readable(predictions) else None
    as_it_is = whole is not None and predictions.kind == "probs"
    size = _samples_within(_BLOCK_BYTES if as_it_is else _COPY_BYTES, _MOST_IN_BLOCK, predictions)
    workspace = _Workspace(predictions, min(size, predictions.n_samples), options.group)

    def work(first: int) -> int:
        stop = min(first + size, predictions.n_samples)
        if whole is None:
            scores, layout = _converted(predictions, first, stop, workspace.scores)
        else:
            scores, layout = whole[0], whole[1]._replace(start=first * whole[1].sample_stride, n_samples=stop - first)
        if predictions.kind != "probs":
            scores, layout = _probabilities(scores, layout, predictions.kind, workspace.probs)
        memory = options, weights, *workspace.memory, outputs
        invalid: int = workspace.discover(scores, layout, *memory, first)
        undecided = np.flatnonzero(outputs.prediction[first:stop] < 0)
        if invalid < 0 and len(undecided):
            outputs.prediction[first + undecided] = _exact_labels(predictions, first + undecided)
            for i in undecided.tolist():
                sample = layout._replace(start=layout.start + i * layout.sample_stride, n_samples=1)
                workspace.discover(scores, sample, *memory, first + i)
        return invalid

    starts = range(0, predictions.n_samples, size)
    for first, invalid in zip(starts, run_blocks(work, starts, n_threads), strict=True):
        if invalid >= 0:
            reject_sample(predictions, first + invalid, skip_missing=options.skip_missing)


def _is_readable(predictions: Predictions) -> bool:
    """Whether a kernel can read this memory as it is."""
    values, dtype = predictions.values, predictions.result_dtype
    steps_are_whole = all(step >= 0 and step % values.itemsize == 0 for step in values.strides)
    scores_are_neighbours = values.strides[2] == values.itemsize
    native = values.dtype == dtype and values.dtype.isnative and values.flags.aligned
    return native and steps_are_whole and scores_are_neighbours


def _as_run(values: Array) -> tuple[Array, Layout]:
    """The memory of ``values`` as one read-only run, and where its numbers are in it.

    One-dimensional, contiguous and read-only is what every layout looks like from here: stacked arrays, views,
    transposes and memory maps share one compiled kernel.
    """
    steps = [step // values.itemsize for step in values.strides]
    if values.flags.c_contiguous:
        return _contiguous(values.reshape(-1), values.shape)
    span = 1 + sum((size - 1) * step for size, step in zip(values.shape, steps, strict=True))
    run = np.lib.stride_tricks.as_strided(values, (span,), (values.itemsize,), writeable=False)
    return run, Layout(0, *steps[:2], *values.shape)


def _contiguous(numbers: Array, shape: tuple[int, ...]) -> tuple[Array, Layout]:
    """The same for numbers that follow each other."""
    run = numbers.view()
    run.flags.writeable = False
    return run, Layout(0, shape[1] * shape[2], shape[2], *shape)


def _converted(predictions: Predictions, first: int, stop: int, memory: Array) -> tuple[Array, Layout]:
    """A block of samples in the dtype of the result, source by source."""
    shape = predictions.n_sources, stop - first, predictions.n_classes
    numbers = memory[: math.prod(shape)]
    for target, source in zip(numbers.reshape(shape), predictions, strict=True):
        target[...] = source[first:stop]
    return _contiguous(numbers, shape)


def _probabilities(scores: Array, layout: Layout, kind: Kind, memory: Array) -> tuple[Array, Layout]:
    """A block of logits or log-probabilities as probabilities."""
    # Compiled only where it is needed.
    from veridical._kernels.softmax import probabilities_into, softmax_of_few_classes

    shape = layout.n_sources, layout.n_samples, layout.n_classes
    numbers = memory[: math.prod(shape)]
    probs = numbers.reshape(shape)
    if kind == "logits" and layout.n_classes < _FEW_CLASSES:
        columns = np.zeros((layout.n_classes, LANES), probs.dtype)
        softmax_of_few_classes(scores, layout, probs, columns)
    else:
        probabilities_into(scores, layout, kind == "logits", probs, probs.view(f"i{probs.itemsize}"), numbers)
    return _contiguous(numbers, shape)


def _exact_labels(predictions: Predictions, samples: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
    """Labels of the mean by its definition, of logits and log-probabilities whose classes tie, or nearly do."""
    scores = np.stack([source[samples] for source in predictions]).astype(np.float64)
    present = ~np.isnan(scores[:, :, 0])
    scores = np.where(present[:, :, None], scores, 0.0)
    labels: npt.NDArray[np.int64] = label_of_mean(np, scores, present, kind=predictions.kind)
    return labels


def reject_sample(predictions: Predictions, sample: int, *, skip_missing: bool) -> NoReturn:
    """Raise the error of an invalid sample: the first source that is absent or not a distribution."""
    rows, number = [source[sample] for source in predictions], predictions.sample_number(sample)
    absent = [bool(np.isnan(row).all()) for row in rows]
    off = [0.0 if absent[s] else _distance_from_one(row, predictions) for s, row in enumerate(rows)]
    if any(absent) and not skip_missing:
        wrong = absent.index(True)
        if not any(distance > predictions.sum_tolerance for distance in off[:wrong]):
            reject_missing_prediction(predictions.source_name(wrong), number)
    if all(absent):
        reject_sample_without_sources(number)
    # Sums are not rounded alike everywhere: where none is too far off, it is the one that is furthest.
    wrong = next((s for s, distance in enumerate(off) if distance > predictions.sum_tolerance), int(np.argmax(off)))
    what = f"{predictions.source_name(wrong)}, sample {number}"
    reject_row(rows[wrong], predictions.kind, what, predictions.sum_tolerance)


def _distance_from_one(row: Array, predictions: Predictions) -> float:
    """How far a source's scores are from a distribution; infinite where they are none whatever their sum is."""
    scores = row.astype(predictions.result_dtype)
    if predictions.kind == "logits":
        return 0.0 if np.isfinite(scores).all() else math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        probs = np.exp(scores) if predictions.kind == "log_probs" else scores
        distance = abs(float(probs.sum()) - 1)
        return distance if (probs >= 0).all() and np.isfinite(distance) else math.inf
