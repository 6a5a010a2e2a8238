"""Predictions of any models: one pass per member over the same samples, written to disk batch by batch."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from veridical._atomic import as_path, storage_errors
from veridical._lazy import require
from veridical.errors import (
    InvalidInputError,
    LabelError,
    NotFiniteError,
    ParameterError,
    ShapeError,
    failures_of_model,
    shown,
)
from veridical.predictions import Predictions
from veridical.predictions.classes import ClassIndices
from veridical.predictions.files.format_npz import NpzArrays, write_npz
from veridical.predictions.validation import KINDS, Kind, check_choice, check_integer, entries_of

_Array = npt.NDArray[Any]
#: One source: the kind of its scores, and a function from inputs to scores (B, L).
_Pass = tuple[Kind, Callable[[Any], _Array]]

#: Bytes kept for the header of a .npy file; NumPy pads it to a multiple of 64, and any shape in practice fits twice.
_HEADER_BYTES = 128
#: Rows of a plain (X, y) pair in one batch.
_PAIR_BATCH = 1024


def collect_predictions(
    models: Any,
    loader: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    mc_samples: int | None = None,
    kind: Kind | None = None,
    source_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    device: Any = None,
    precision: str = "float32",
    dtype: npt.DTypeLike = np.float32,
    random_state: int = 0,
) -> Predictions:
    """Predictions of each model of an ensemble for the same samples.

    Parameters
    ----------
    models : iterable of torch modules, one torch module, or iterable of scikit-learn classifiers
        An iterator is consumed one model at a time, so that the models need not fit into memory together.
        One module is one source, or ``mc_samples`` sources by Monte-Carlo dropout (Gal & Ghahramani, 2016).
    loader : iterable of batches ``(inputs, labels)`` or ``inputs``, or one pair ``(X, y)``
        Iterated once per model, in the same order each time: ``shuffle=False``.
    out : path, optional
        A ``.npz`` file to write to.  Memory then holds one batch (and the labels), whatever S and N are, and the
        result is mapped from the file.  By default the predictions are kept in memory.
    mc_samples : int, optional
        Number of passes with dropout on.
    kind : {"logits", "probs", "log_probs"}, optional
        What the models return; by default logits for torch modules and probabilities for classifiers.  Needed where
        both kinds of models are given.
    source_names, class_names : sequences of str, optional
    device : str or torch.device, optional
        Device to run torch modules on; by default the one that they are on.
    precision : {"float32", "bfloat16", "auto"}
    dtype : dtype
        Precision that the scores are stored in.
    random_state : int
        Seed of the dropout masks.

    Returns
    -------
    Predictions
        Scores (S, N, L) with the loader's labels.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from veridical.training import collect_predictions
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    >>> collect_predictions([GaussianNB().fit(X[:20], y[:20]), GaussianNB().fit(X[20:], y[20:])], (X, y))
    Predictions(2 sources, 40 samples, 2 classes, kind='probs', float32, labelled)
    """
    if out is not None and as_path(out).suffix != ".npz":
        raise ParameterError(f"{out} does not end with .npz; predictions are written as .npz.")
    if kind is not None:
        check_choice(kind, KINDS, "kind")
    try:
        np.dtype(dtype)
    except Exception:  # NumPy raises several types
        raise ParameterError(f"dtype is {shown(dtype)}; give a type of real numbers, such as numpy.float32.") from None
    passes = _passes(models, mc_samples, device, precision, random_state)
    first = next(passes, None)
    if first is None:
        raise ParameterError("there are no models; give at least one.")
    with _Rows(None if out is None else as_path(out), np.dtype(dtype)) as rows:
        collected = _Collected(rows)
        for own_kind, predict in itertools.chain([first], passes):
            if kind is None and own_kind != first[0]:
                raise ParameterError(
                    f"model 0 returns {first[0]} and model {collected.n_sources} returns {own_kind}; collect modules "
                    "and classifiers separately, or let the modules return probabilities and pass kind='probs'."
                )
            for inputs, labels in _batches(loader):
                with failures_of_model(collected.place):
                    scores = predict(inputs)
                collected.add(scores, labels)
            collected.end_source()
        values, stored_kind = rows.finish(collected.shape), kind or first[0]
        described = partial(
            Predictions,
            labels=collected.labels,
            kind=stored_kind,
            source_names=source_names,
            class_names=class_names,
        )
        if rows.path is None:
            return described(values)
        write_npz(described(values), as_path(out), rows.path)
    with NpzArrays(as_path(out)) as arrays:
        return described(arrays[stored_kind])


class _Collected:
    """Checks and counts batches of scores."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._labels: list[_Array] = []
        self.n_sources, self._n_samples, self._n_classes = 0, 0, 0
        self._row = 0

    @property
    def place(self) -> str:
        """Which batch is next, for messages."""
        return f"model {self.n_sources}, samples from {self._row}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(S, N, L)."""
        return self.n_sources, self._n_samples, self._n_classes

    @property
    def labels(self) -> ClassIndices | None:
        """The labels of the first pass, if the loader gives any."""
        return ClassIndices(self._labels[0].astype(np.int64)) if self._labels else None

    def add(self, scores: _Array, labels: _Array | None) -> None:
        """Add a batch (B, L) of the current source."""
        where = self.place
        if scores.ndim != 2:
            raise ShapeError(f"{where}: the output has shape {scores.shape}; it must be (batch, classes).")
        self._n_classes = self._n_classes or scores.shape[1]
        if scores.shape[1] != self._n_classes:
            raise ShapeError(
                f"{where}: {scores.shape[1]} classes, and {self._n_classes} before; all models must have the same "
                "classes."
            )
        if np.isnan(scores).any():
            sample = self._row + int(np.isnan(scores).any(axis=1).argmax())
            raise NotFiniteError(f"model {self.n_sources} predicts NaN for sample {sample}; remove the model.")
        if labels is not None:
            self._add_labels(labels, len(scores), where)
        self._rows.append(scores)
        self._row += len(scores)

    def _add_labels(self, labels: _Array, count: int, where: str) -> None:
        if labels.shape != (count,):
            raise LabelError(f"{where}: labels of shape {labels.shape} for {count} samples; give one label per sample.")
        if self.n_sources == 0:
            self._labels.append(labels)
        elif not self._labels or not np.array_equal(labels, self._labels[0][self._row : self._row + count]):
            raise LabelError(
                f"{where}: the labels differ from those of the first pass; the loader must give the same samples in "
                "the same order each time (shuffle=False)."
            )

    def end_source(self) -> None:
        """Check that the current source has as many samples as the first, and start the next."""
        if self.n_sources == 0:
            self._n_samples = self._row
            self._labels = [np.concatenate(self._labels)] if self._labels else []
        if self._row == 0 or self._row != self._n_samples:
            raise InvalidInputError(
                f"the loader gave {self._row} samples to model {self.n_sources} and {self._n_samples} to the first; "
                "give one that can be iterated again (a list or a DataLoader, not a generator)."
            )
        self.n_sources += 1
        self._row = 0


class _Rows:
    """A ``.npy`` file in memory, or a temporary one beside ``out``, whose shape is written when all rows are there.

    Models predict one after another, batch by batch, which is the order of an array (S, N, L) in memory.
    """

    def __init__(self, out: Path | None, dtype: np.dtype[Any]) -> None:
        self._out, self._dtype = out, dtype
        self.path: Path | None = None

    def __enter__(self) -> _Rows:
        with self._errors(), ExitStack() as stack:
            if self._out is None:
                self._file: IO[bytes] = io.BytesIO()
            else:
                folder = TemporaryDirectory(dir=self._out.parent, prefix=f".{self._out.name}.")
                self.path = Path(stack.enter_context(folder)) / "rows.npy"
                # Unbuffered: batches are large, and a full disk fails at the batch that does not fit.
                self._file = stack.enter_context(self.path.open("wb", buffering=0))
            self._file.write(b"\0" * _HEADER_BYTES)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def _errors(self) -> AbstractContextManager[None]:
        return nullcontext() if self._out is None else storage_errors(self._out)

    def append(self, scores: _Array) -> None:
        """Append the scores (B, L) of a batch."""
        remaining = np.ascontiguousarray(scores, dtype=self._dtype).data.cast("B")
        with self._errors():
            while remaining:  # an unbuffered file may take a part, and fails only at the next call if the disk is full
                remaining = remaining[self._file.write(remaining) :]

    def finish(self, shape: tuple[int, int, int]) -> _Array:
        """All rows as an array of this shape."""
        if isinstance(self._file, io.BytesIO):
            return np.frombuffer(self._file.getbuffer(), self._dtype, offset=_HEADER_BYTES).reshape(shape)
        with self._errors():
            self._file.seek(0)
            header = {"descr": npy_format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
            npy_format.write_array_header_1_0(self._file, header)
            array: _Array = np.load(self._file.name, mmap_mode="r", allow_pickle=False)
        return array


def _classifier_pass(classifier: Any) -> _Pass:
    """The probabilities of a scikit-learn classifier."""
    classes = np.asarray(classifier.classes_)
    if not np.array_equal(classes, np.arange(len(classes))):
        raise LabelError(
            f"a classifier's classes are {list(classes[:5])}...; fit it on labels 0 to L-1, so that columns and "
            "labels agree."
        )
    return "probs", lambda inputs: np.asarray(classifier.predict_proba(inputs))


def _passes(models: Any, mc_samples: int | None, device: Any, precision: str, random_state: int) -> Iterator[_Pass]:
    """One pass per source."""
    is_single = hasattr(models, "predict_proba") or (_is_module(models) and type(models).__name__ != "ModuleList")
    if mc_samples is not None:
        check_integer(mc_samples, "mc_samples", 1)
        if not _is_module(models):
            raise ParameterError("mc_samples is for one torch module with dropout; remove it for several models.")
    for model in [models] if is_single else entries_of(models, "models are", "a list of modules or classifiers"):
        if hasattr(model, "predict_proba"):
            yield _classifier_pass(model)
        elif _is_module(model):
            from veridical.training.module_pass import ModulePass

            for sample in range(mc_samples or 1):
                seed = None if mc_samples is None else int(random_state) + sample
                yield "logits", ModulePass(model, device, precision, seed)
        else:
            raise ParameterError(
                f"a model is a {type(model).__name__}; give torch modules, or classifiers with predict_proba."
            )


def _is_module(model: Any) -> bool:
    """Whether ``model`` is a torch module; torch is imported only if it may be one."""
    if not any(base.__module__.startswith("torch.") for base in type(model).__mro__):
        return False
    torch = require("torch", "torch")
    return isinstance(model, torch.nn.Module)


def _batches(loader: Any) -> Iterator[tuple[Any, _Array | None]]:
    """Batches ``(inputs, labels or None)`` of a loader or of one pair ``(X, y)``."""
    if isinstance(loader, tuple) and len(loader) == 2 and all(hasattr(part, "__len__") for part in loader):
        inputs, labels = loader
        if len(inputs) != len(labels):
            raise LabelError(f"there are {len(labels)} labels for {len(inputs)} samples; give one label each.")
        for start in range(0, len(inputs), _PAIR_BATCH):
            rows = slice(start, start + _PAIR_BATCH)
            yield inputs[rows], _as_array(labels[rows])
        return
    for batch in entries_of(loader, "loader is", "an iterable of batches, or a pair (X, y)"):
        if isinstance(batch, (tuple, list)) and len(batch) == 2:
            yield batch[0], _as_array(batch[1])
        else:
            yield (batch[0] if isinstance(batch, (tuple, list)) and len(batch) == 1 else batch), None


def _as_array(labels: Any) -> _Array:
    """Labels as an array, copied from their device."""
    return np.asarray(labels.cpu() if hasattr(labels, "cpu") else labels)
