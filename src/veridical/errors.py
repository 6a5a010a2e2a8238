"""Every exception and warning that veridical raises on purpose.

All exceptions derive from :class:`VeridicalError`, so one ``except`` catches what is wrong with the input and
lets real bugs through.  Each message is one sentence or two: what is wrong, where (source, sample, value), and
what to do about it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from veridical._names import one_line

_PACKAGE = os.path.dirname(__file__) + os.sep


class VeridicalError(Exception):
    """Base of all exceptions raised by veridical; a message is one line of at most 2,000 characters."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class InvalidInputError(VeridicalError, ValueError):
    """The input is not valid."""


class ShapeError(InvalidInputError):
    """An array has the wrong number of dimensions, or shapes that belong together differ."""


class DtypeError(InvalidInputError, TypeError):
    """An array holds something other than the numbers that are needed."""


class NotFiniteError(InvalidInputError):
    """A prediction is NaN or infinite."""


class NegativeProbabilityError(InvalidInputError):
    """A probability is below zero."""


class NotNormalisedError(InvalidInputError):
    """Probabilities do not sum to one."""


class ConfidenceError(InvalidInputError):
    """A confidence lies outside 0 to 1."""


class MissingSourceError(InvalidInputError):
    """A source has no prediction for a sample, or no source has one."""


class LabelError(InvalidInputError):
    """Labels are not integers in 0..L-1, or there are more or fewer of them than samples."""


class ParameterError(InvalidInputError):
    """A parameter is outside what the function accepts."""


class UnfittedError(ParameterError, AttributeError):
    """A calibrator is used before ``fit``.

    What is raised is also scikit-learn's ``NotFittedError``; it is not a base of this class, because that would import
    scikit-learn with every error.
    """


class UnknownNameError(ParameterError, KeyError):
    """No method, metric or option goes by this name; the message lists those that exist."""

    def __str__(self) -> str:  # KeyError would print the message in quotes
        return one_line(str(self.args[0])) if self.args else ""


class DatasetError(InvalidInputError):
    """A data set is missing, incomplete, or not in its published form; the message says what to put where."""


class FileFormatError(InvalidInputError):
    """A file is missing, of an unknown format, or laid out in another way; the message says what to write instead."""


class CorruptFileError(FileFormatError):
    """A file is truncated, damaged, or not of the format that its name or header claims."""


class UnsafePickleError(CorruptFileError):
    """A pickle is not one of the published files that are known to be harmless; it was not loaded."""


class CheckpointError(InvalidInputError):
    """A checkpoint does not fit the network it is loaded into; the message names the first tensor that differs."""


class StorageError(VeridicalError, OSError):
    """A file could not be written; nothing half-written was left behind."""


class ExportError(ParameterError):
    """A calibrator has no form in the format that it is exported to; the message says why."""


class MissingExtraError(VeridicalError, ImportError):
    """A feature needs an optional dependency; the message names the extra to install."""


class SavedFileError(VeridicalError, ValueError):
    """A file is not a saved calibrator, or was changed since it was saved."""


class WorkerError(VeridicalError, RuntimeError):
    """A Dask worker died, or has too little memory for a block; the message says what to change."""


class VeridicalWarning(UserWarning):
    """Base of all warnings issued by veridical."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class AbsentSourceWarning(VeridicalWarning):
    """Sources have no predictions for some samples (rows of NaN) and were left out there."""


class UnmatchedIdWarning(VeridicalWarning):
    """Some samples have no label, or some labels no sample, by their ids; or labels without ids are taken in order."""


class SuspectKindWarning(VeridicalWarning):
    """Numbers that are declared to be logits look like probabilities."""


class AmbiguousInputWarning(VeridicalWarning):
    """Input is read as the documentation says and may mean something else; the message says how it is read."""


class ShiftedDataWarning(VeridicalWarning):
    """New predictions are far more or less confident, or disagree far more or less, than those of the fit."""


class CampsWarning(VeridicalWarning):
    """Sources split into camps that agree only among themselves; the message names them, and the mean was used."""


class LongComputationWarning(VeridicalWarning):
    """A computation takes minutes; the message says why, and how to have less of it."""


class ChangedSourcesWarning(VeridicalWarning):
    """Predictions have more, fewer or other sources than those that the calibrator was fitted on."""


class GoldWarning(VeridicalWarning):
    """Known answers are about items that have no votes, or their ids match those of the votes only as numbers."""


class UnseenClassWarning(VeridicalWarning):
    """Samples have a class that no member was fitted on, and were left out of the calibration."""


class SampleWeightWarning(VeridicalWarning):
    """Some members take no sample weights."""


class RechunkWarning(VeridicalWarning):
    """A Dask array is chunked over sources or classes; the message says what it costs to put blocks together."""


class SubsampleWarning(VeridicalWarning):
    """A method that needs its samples in memory was fitted on some of them; the message says on how many."""


class NotConvergedWarning(VeridicalWarning):
    """A fit stopped at the edge of what it may try; the result is usable, and the message says what to look at."""


class KernelCacheWarning(VeridicalWarning):
    """Compiled kernels cannot be read from disk or stored there; they are compiled, which takes some seconds."""


def shown(value: object) -> str:
    """``value`` for an error message: its representation on one line of at most 80 characters, or its type."""
    try:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple) and shape:
            return f"an array of shape {tuple(shape)}"
        text = " ".join(repr(value).split())
    except Exception:  # an object may raise anything
        text = ""
    if not text or " at 0x" in text:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"


def first_line(error: BaseException) -> str:
    """What another library says, as the middle of a sentence."""
    return str(error).strip().partition("\n")[0].rstrip(".")


@contextmanager
def failures_of_model(where: str) -> Iterator[None]:
    """Whatever a model raises about a batch, as one sentence that begins with ``where``."""
    try:
        yield
    except (VeridicalError, MemoryError):
        raise
    except Exception as error:
        raise InvalidInputError(
            f"{where}: the model fails on this batch ({type(error).__name__}: {first_line(error)}); give inputs that "
            "it takes."
        ) from error


def warn_caller(message: str, category: type[Warning]) -> None:
    """Issue a warning at the first line outside this package; Python shows it once for each such line."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
