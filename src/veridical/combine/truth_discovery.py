"""Truth discovery over an ensemble's predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from veridical._kernels.discovery import Options, Outputs, discover_block
from veridical._kernels.loading import ABSENT, FINE, LOG_PROBS, LOGITS, NOBODY, PROBS, Layout
from veridical._parallel import run_blocks
from veridical.combine.projection import LABEL_MARGIN
from veridical.predictions import Predictions, as_predictions
from veridical.predictions.validation import (
    Array,
    Kind,
    check_choice,
    check_integer,
    check_real,
    reject_missing,
    reject_nobody,
    reject_row,
)

Missing = Literal["raise", "skip"]

_KIND_CODE = {"probs": PROBS, "logits": LOGITS, "log_probs": LOG_PROBS}
#: Below this many classes a sample is laid out by class, so that inner loops run over the sources.
_FEW_CLASSES = 48
#: How much of the input is held in the processor's cache at a time, and handed to a thread at a time.
_GROUP_BYTES, _MOST_IN_GROUP = 160 * 1024, 64
_BLOCK_BYTES, _MOST_IN_BLOCK = 16 * 1024**2, 512
#: Input that needs converting is copied in pieces of this size, one per thread.
_COPY_BYTES = 2 * 1024**2


@dataclass(frozen=True, repr=False)
class Truth:
    """What truth discovery finds for each sample.

    Attributes
    ----------
    probs : array of shape (N, L)
        Truth vectors, on the simplex.
    reliability : array of shape (S, N)
        How far each source was trusted for each sample; columns sum to one, absent sources have 0.
    hv : array of shape (N,)
        Entropy-based geometric variance: how much the sources disagree.  A sum over sources, so it grows with S.
    prediction : array of N integers
        The label of the ensemble's mean.  With ``accuracy_preserving=True`` it is the strict maximum of ``probs``.
    n_iter : array of N integers
        Updates used.
    converged : array of N booleans
        Whether the truth came to rest within ``max_iter`` updates.
    trace : array of shape (max_iter + 1, N), or None
        HV at the mean and after each update, repeated once a sample has come to rest; only if asked for.
    """

    probs: Array
    reliability: Array
    hv: Array
    prediction: npt.NDArray[np.int64]
    n_iter: npt.NDArray[np.int32]
    converged: npt.NDArray[np.bool_]
    trace: Array | None = None

    def take(self, samples: Any) -> Truth:
        """The truth of some of the samples, by index."""
        return Truth(
            self.probs[samples],
            self.reliability[:, samples],
            self.hv[samples],
            self.prediction[samples],
            self.n_iter[samples],
            self.converged[samples],
            None if self.trace is None else self.trace[:, samples],
        )

    def __repr__(self) -> str:
        n_sources, n_samples = self.reliability.shape
        if n_samples == 0:
            return f"Truth({n_sources} sources, no samples)"
        return (
            f"Truth({n_sources} sources, {n_samples} samples, {self.probs.shape[1]} classes, "
            f"mean HV {self.hv.mean():.4g}, {self.converged.mean():.1%} converged in {self.n_iter.mean():.1f} updates)"
        )


def discover(
    predictions: Any,
    *,
    kind: Kind | None = None,
    sources_axis: int | None = None,
    accuracy_preserving: bool = True,
    tol: float = math.exp(-8),
    max_iter: int = 20,
    missing: Missing = "raise",
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
    predictions : array of shape (S, N, L), sequence of S arrays (N, L), or Predictions
        float16, float32 or float64.  float64 is computed in float64, everything else in float32.
    kind : {"probs", "logits", "log_probs"}, default "probs"
        What the numbers are.  Logits get a softmax, log-probabilities an exponential.
    sources_axis : {0, 1}, default 0
        1 for an array of shape (N, S, L).
    accuracy_preserving : bool
        Keep the label of the mean as the strict maximum of the truth vector.
    tol : float
        Stop when the squared step is below this.  With 0: only at a fixed point.
    max_iter : int
        Most updates per sample; 0 gives the mean.
    missing : {"raise", "skip"}
        What to do about a source whose row is all NaN: refuse, or leave it out for that sample.
    trace : bool
        Also return HV after each update.
    n_threads : int, optional
        Default: all cores this process may use, or the environment variable ``VERIDICAL_NUM_THREADS``.  The result
        is the same bytes whatever the number.

    Returns
    -------
    Truth

    Notes
    -----
    The label is that of the plain mean of the probabilities as given, summed in float64 in the order of the sources;
    ties go to the lowest index.  Rows that sum to one within the tolerance of their dtype, but not within rounding,
    are then scaled to sum one.

    The first call for a dtype compiles the kernel (some seconds) and stores it on disk for later processes.

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
    given = as_predictions(predictions, kind, sources_axis)
    check_choice(missing, ("raise", "skip"), "missing")
    options = Options(
        kind=_KIND_CODE[given.kind],
        skip_missing=missing == "skip",
        keep_label=bool(accuracy_preserving),
        tolerance=given.sum_tolerance,
        tol=check_real(tol, "tol", 0.0),
        max_iter=check_integer(max_iter, "max_iter", 0),
        margin=LABEL_MARGIN,
        by_class=given.n_classes < _FEW_CLASSES,
        group=_fitting(_GROUP_BYTES, _MOST_IN_GROUP, given),
    )
    outputs = _allocate(given, options.max_iter if trace else None)
    _run(given, options, outputs, n_threads)
    return Truth(*outputs[:-1], trace=outputs.trace if trace else None)


def _fitting(n_bytes: int, most: int, given: Predictions) -> int:
    """How many samples fit into so much memory: at least one, at most ``most``."""
    per_sample = given.n_sources * given.n_classes * given.result_dtype.itemsize
    return max(1, min(most, n_bytes // per_sample))


def _allocate(given: Predictions, traced_iterations: int | None) -> Outputs:
    n_samples, dtype = given.n_samples, given.result_dtype
    return Outputs(
        probs=np.empty((n_samples, given.n_classes), dtype),
        reliability=np.empty((given.n_sources, n_samples), dtype),
        hv=np.empty(n_samples, dtype),
        prediction=np.empty(n_samples, np.int64),
        n_iter=np.empty(n_samples, np.int32),
        converged=np.empty(n_samples, np.bool_),
        trace=np.empty((0 if traced_iterations is None else traced_iterations + 1, n_samples), dtype),
    )


def _run(given: Predictions, options: Options, outputs: Outputs, n_threads: int | None) -> None:
    """Blocks of samples on the thread pool; the first bad sample, in the order of samples, is reported."""
    whole = given.values if given.is_stacked and _is_readable(given.values, given.result_dtype) else None
    size = _fitting(_COPY_BYTES if whole is None else _BLOCK_BYTES, _MOST_IN_BLOCK, given)

    def work(first: int) -> tuple[int, int, int]:
        stop = min(first + size, given.n_samples)
        block = _converted(given, first, stop) if whole is None else whole[:, first:stop]
        return discover_block(*_as_run(block), options, outputs, first)  # type: ignore[no-any-return]

    starts = range(0, given.n_samples, size)
    for first, (status, source, sample) in zip(starts, run_blocks(work, starts, n_threads), strict=True):
        if status != FINE:
            _reject(given, status, source, first + sample)


def _is_readable(values: Array, dtype: np.dtype[Any]) -> bool:
    """Whether a kernel can walk this memory as it is."""
    steps_are_whole = all(step >= 0 and step % values.itemsize == 0 for step in values.strides)
    return values.dtype == dtype and values.dtype.isnative and values.flags.aligned and steps_are_whole


def _converted(given: Predictions, first: int, stop: int) -> Array:
    """A block of samples in the dtype of the result, source by source."""
    block = np.empty((given.n_sources, stop - first, given.n_classes), given.result_dtype)
    for target, source in zip(block, given, strict=True):
        target[...] = source[first:stop]
    return block


def _as_run(block: Array) -> tuple[Array, Layout]:
    """The memory of ``block`` as one read-only run, and where its numbers are in it.

    One-dimensional, contiguous and read-only is what every layout looks like from here: stacked arrays, views,
    transposes and memory maps share one compiled kernel.
    """
    steps = [step // block.itemsize for step in block.strides]
    span = 1 + sum((size - 1) * step for size, step in zip(block.shape, steps, strict=True))
    run = np.lib.stride_tricks.as_strided(block, (span,), (block.itemsize,), writeable=False)
    return run, Layout(0, *steps, *block.shape)


def _reject(given: Predictions, status: int, source: int, sample: int) -> None:
    if status == NOBODY:
        reject_nobody(sample)
    if status == ABSENT:
        reject_missing(given.source_name(source), sample)
    row = next(values[sample] for s, values in enumerate(given) if s == source)
    reject_row(row, given.kind, f"{given.source_name(source)}, sample {sample}", given.sum_tolerance)
