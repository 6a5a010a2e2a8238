"""Compiling the kernels ahead of time, so that no later process waits for the compiler."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veridical import _kernels
from veridical._progress import Progress, check_progress
from veridical._tables import TableResult
from veridical.calibrate import Identity, calibrators
from veridical.combine.across_samples.consensus import consensus
from veridical.combine.base import keep_labels
from veridical.combine.in_memory import MOST_SAMPLES
from veridical.combine.registry import apply_label_free
from veridical.combine.small_arrays import combine_array
from veridical.errors import KernelCacheWarning, StorageError, VeridicalWarning
from veridical.evaluation.evaluating import evaluate
from veridical.predictions import Predictions
from veridical.predictions.validation import KINDS, check_flag

#: Numbers of sources and of classes, one pair for each of the two kernels of truth discovery.
_SHAPES = ((3, 4), (128, 64))
_DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class CompiledKernels(TableResult):
    """The result of :func:`compile_kernels`.

    Attributes
    ----------
    directory : str
        Where the compiled kernels are.
    n_compiled, n_found : int
        Versions of kernels that were compiled now, and that were there already.

    Examples
    --------
    >>> from veridical import evaluation
    >>> kernels = evaluation.compile_kernels()
    >>> kernels.n_compiled + kernels.n_found > 0
    True
    """

    directory: str
    n_compiled: int
    n_found: int

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows: how many, and where."""
        counts = [["compiled", str(self.n_compiled)], ["found on disk", str(self.n_found)]]
        return ["kernels", ""], [*counts, ["directory", self.directory]]

    def _records(self) -> list[dict[str, Any]]:
        return [self.to_dict()]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counts = {"n_compiled": self.n_compiled, "n_found": self.n_found}
        return {"schema": 1, "type": "compiled", "directory": self.directory, **counts}


def compile_kernels(*, everything: bool = False, progress: Progress | None = None) -> CompiledKernels:
    """Compile the kernels that applying a calibrator needs, and keep them on disk for other processes.

    Parameters
    ----------
    everything : bool
        Also what fitting and evaluating need.
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    CompiledKernels

    Raises
    ------
    StorageError
        Compiled kernels cannot be kept on disk.

    Notes
    -----
    They are kept in ``NUMBA_CACHE_DIR`` where that is set, else beside the package, else in the user's cache directory.
    Compiled code is for the processor that compiled it; another kind compiles again.

    Examples
    --------
    Kernels that are on disk already are counted apart:

    >>> from veridical import evaluation
    >>> kernels = evaluation.compile_kernels()
    >>> evaluation.compile_kernels().n_found > 0
    True
    """
    check_flag(everything, "everything")
    report = check_progress(progress)
    compiled_before = _n_compiled()
    cases = [(dtype, shape) for dtype in _DTYPES for shape in _SHAPES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridicalWarning)  # random numbers have little to fit
        warnings.simplefilter("error", KernelCacheWarning)
        try:
            for done, (dtype, shape) in enumerate(cases):
                report(done, len(cases), f"{dtype}, {shape[1]} classes")
                _use_kernels(dtype, *shape, everything)
        except KernelCacheWarning as warning:
            raise StorageError(str(warning)) from None
    report(len(cases), len(cases), "done")
    kernels = list(loaded_kernels())
    n_loaded = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
    return CompiledKernels(
        str(Path(kernels[0]._cache.cache_path).parent), _n_compiled() - compiled_before, n_loaded + compiled_before
    )


def _n_compiled() -> int:
    """Number of versions of kernels that this process has compiled; they are on disk."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in loaded_kernels())


def _use_kernels(dtype: str, n_sources: int, n_classes: int, everything: bool) -> None:
    rng = np.random.default_rng(0)
    n_samples = MOST_SAMPLES + 1  # fewer are left to NumPy
    probs = rng.dirichlet(np.ones(n_classes), size=(n_sources, n_samples)).astype(dtype)
    labels = np.arange(n_samples) % n_classes
    for kind in KINDS:
        _apply(Predictions(probs if kind == "probs" else np.log(probs), kind=kind))
    keep_labels(probs[0], labels)
    if everything:
        predictions = Predictions(probs, labels)
        for method in calibrators().values():
            method().fit(predictions).predict_all(predictions)
        consensus(predictions)
        evaluate(predictions, n_threads=1)


def _apply(predictions: Predictions) -> None:
    """Everything that applying any calibrator calls."""
    options = Identity()
    for combiner in ("mean", "tde", "atde"):
        combined = apply_label_free(combiner, predictions, options)
    fitted = Identity(kind=predictions.kind).fit(predictions, combined.prediction)
    fitted.predict_all(predictions)
    _apply_to_one_sample(fitted.load_kernels())


def _apply_to_one_sample(fitted: Identity) -> None:
    """Use the kernels that :meth:`veridical.calibrate.Calibrator.load_kernels` loads."""
    n_sources, n_classes = fitted.n_sources_, fitted.n_classes_
    sample = np.full((n_sources, 1, n_classes), 0.4 / (n_classes - 1))
    sample[:, :, 0] = 0.6
    combined = combine_array(sample, "probs", 0, fitted)
    assert combined is None or combined.hv is not None


def loaded_kernels() -> Iterator[Any]:
    """The compiled functions of all kernel modules that are loaded."""
    for module in pkgutil.iter_modules(_kernels.__path__):
        home = f"veridical._kernels.{module.name}"
        for member in vars(importlib.import_module(home)).values():
            is_cached = getattr(getattr(member, "_cache", None), "cache_path", None) is not None
            if is_cached and member.__module__ == home:
                yield member
