"""Predictions of any models: one pass per member over the same samples, written to disk batch by batch."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from veridical._atomic import as_path
from veridical._extras import require
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
from veridical.predictions.validation import KINDS, Kind, check_choice, check_integer, check_names, entries_of
from veridical.training.prediction_file import PredictionsFile

_Array = npt.NDArray[Any]

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
    stored_kind = kind or first.kind
    with _Collector(None if out is None else PredictionsFile(out, stored_kind, dtype), np.dtype(dtype)) as collector:
        for predict in itertools.chain([first], passes):
            if kind is None:
                _check_same_kind(first, predict, collector.n_sources)
            for inputs, labels in _batches(loader):
                with failures_of_model(collector.place):
                    scores = predict(inputs)
                collector.add(scores, labels)
            collector.end_source()
        return collector.finish(stored_kind, source_names, class_names)


class _Collector:
    """Checks and counts batches of scores, and writes them to a file or keeps them."""

    def __init__(self, file: PredictionsFile | None, dtype: np.dtype[Any]) -> None:
        self._file, self._dtype = file, dtype
        self._kept: list[_Array] = []
        self._labels: list[_Array] = []
        self.n_sources, self.n_samples, self.n_classes = 0, 0, 0
        self._row = 0

    def __enter__(self) -> _Collector:
        if self._file is not None:
            self._file.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            self._file.__exit__(*exception)

    @property
    def place(self) -> str:
        """Which batch is next, for messages."""
        return f"model {self.n_sources}, samples from {self._row}"

    def add(self, scores: _Array, labels: _Array | None) -> None:
        """Add a batch (B, L) of the current source."""
        where = self.place
        if scores.ndim != 2:
            raise ShapeError(f"{where}: the output has shape {scores.shape}; it must be (batch, classes).")
        self.n_classes = self.n_classes or scores.shape[1]
        if scores.shape[1] != self.n_classes:
            raise ShapeError(
                f"{where}: {scores.shape[1]} classes, and {self.n_classes} before; all models must have the same "
                "classes."
            )
        if np.isnan(scores).any():
            sample = self._row + int(np.isnan(scores).any(axis=1).argmax())
            raise NotFiniteError(f"model {self.n_sources} predicts NaN for sample {sample}; remove the model.")
        self._check_labels(labels, len(scores), where)
        if self._file is None:
            self._kept.append(scores.astype(self._dtype))
        else:
            self._file.append(scores)
        self._row += len(scores)

    def _check_labels(self, labels: _Array | None, count: int, where: str) -> None:
        if labels is None:
            return
        if labels.shape != (count,):
            raise LabelError(f"{where}: labels of shape {labels.shape} for {count} samples; give one label per sample.")
        if self.n_sources == 0:
            self._labels.append(labels)
        elif not np.array_equal(labels, self.labels()[self._row : self._row + count]):
            raise LabelError(
                f"{where}: the labels differ from those of the first pass; the loader must give the same samples in "
                "the same order each time (shuffle=False)."
            )

    def labels(self) -> _Array:
        """All labels of the first pass, concatenated once."""
        if len(self._labels) > 1:
            self._labels = [np.concatenate(self._labels)]
        return self._labels[0] if self._labels else np.empty(0, np.int64)

    def end_source(self) -> None:
        """Check that the current source has as many samples as the first, and start the next."""
        if self.n_sources == 0:
            self.n_samples = self._row
        if self._row == 0 or self._row != self.n_samples:
            raise InvalidInputError(
                f"the loader gave {self._row} samples to model {self.n_sources} and {self.n_samples} to the first; "
                "give one that can be iterated again (a list or a DataLoader, not a generator)."
            )
        self.n_sources += 1
        self._row = 0

    def finish(self, kind: Kind, source_names: Sequence[str] | None, class_names: Sequence[str] | None) -> Predictions:
        """The predictions, once all sources are complete."""
        shape = (self.n_sources, self.n_samples, self.n_classes)
        sources = check_names(source_names, self.n_sources, "source")
        classes = check_names(class_names, self.n_classes, "class")
        labels = self.labels().astype(np.int64) if self._labels else None
        indices = None if labels is None else ClassIndices(labels)
        if self._file is None:
            values: _Array = np.concatenate(self._kept).reshape(shape)
        else:
            # Checked before the file gets its name, so that predictions with invalid labels are not written.
            Predictions(np.broadcast_to(np.float32(0), shape), indices, source_names=sources, class_names=classes)
            self._file.finish(shape, labels, sources, classes)
            values = self._file.scores()
        return Predictions(values, indices, kind=kind, source_names=sources, class_names=classes)


def _check_same_kind(first: _Pass, other: _Pass, place: int) -> None:
    """Reject logits among probabilities: one kind holds for all sources."""
    if other.kind != first.kind:
        raise ParameterError(
            f"model 0 returns {first.kind} and model {place} returns {other.kind}; collect modules and classifiers "
            "separately, or let the modules return probabilities and pass kind='probs'."
        )


class _Pass(Protocol):
    """One source: a function from inputs to scores."""

    kind: Kind

    def __call__(self, inputs: Any) -> _Array:
        """Scores (B, L)."""


class _ClassifierPass:
    """A scikit-learn classifier."""

    kind: Kind = "probs"

    def __init__(self, classifier: Any) -> None:
        classes = np.asarray(classifier.classes_)
        if not np.array_equal(classes, np.arange(len(classes))):
            raise LabelError(
                f"a classifier's classes are {list(classes[:5])}...; fit it on labels 0 to L-1, so that columns and "
                "labels agree."
            )
        self._classifier = classifier

    def __call__(self, inputs: Any) -> _Array:
        return np.asarray(self._classifier.predict_proba(inputs))


def _passes(models: Any, mc_samples: int | None, device: Any, precision: str, random_state: int) -> Iterator[_Pass]:
    """One pass per source."""
    is_single = hasattr(models, "predict_proba") or (_is_module(models) and type(models).__name__ != "ModuleList")
    if mc_samples is not None:
        check_integer(mc_samples, "mc_samples", 1)
        if not _is_module(models):
            raise ParameterError("mc_samples is for one torch module with dropout; remove it for several models.")
    for model in [models] if is_single else entries_of(models, "models are", "a list of modules or classifiers"):
        if hasattr(model, "predict_proba"):
            yield _ClassifierPass(model)
        elif _is_module(model):
            from veridical.training.module_pass import ModulePass

            for sample in range(mc_samples or 1):
                seed = None if mc_samples is None else int(random_state) + sample
                yield ModulePass(model, device, precision, seed)
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
