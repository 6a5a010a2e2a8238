"""Checks of parameters, shapes, labels, names and numbers, with the messages of their errors.

Shapes, dtypes and labels are checked here before any work starts.  The numbers themselves are checked by the
kernels while they are in cache, which saves a second pass over memory; if a kernel reports a bad row,
:func:`reject_row` finds out what is wrong with that row.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from numbers import Number
from typing import Any, Literal, NoReturn, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from veridical._names import nearest_name
from veridical.errors import (
    ConfidenceError,
    InvalidInputError,
    LabelError,
    MissingSourceError,
    NegativeProbabilityError,
    NotFiniteError,
    NotNormalisedError,
    ParameterError,
    ShapeError,
    UnknownNameError,
    shown,
)
from veridical.predictions.arrays import Array as Array
from veridical.predictions.arrays import as_array, holds_bfloat16, is_whole_number
from veridical.predictions.arrays import as_numbers as as_numbers
from veridical.predictions.sums import tolerance_of

Kind = Literal["probs", "logits", "log_probs"]
#: What users may pass: "binary" is the probability of the positive class alone, and becomes two columns of "probs".
InputKind = Literal["probs", "logits", "log_probs", "binary"]
RandomState = int | np.random.Generator | None
KINDS: tuple[Kind, ...] = get_args(Kind)
INPUT_KINDS: tuple[InputKind, ...] = get_args(InputKind)

_Type = TypeVar("_Type")
#: Counts of anything are smaller, and fit into the compiled loops' integers.
LARGEST_COUNT = 2**31 - 1
_LARGEST_SEED = 2**63 - 1
#: Advice for scores that look unnormalised, and for rows to be divided, where parameters can be passed.
_FOR_SCORES = 'if these are unnormalised scores, pass kind="logits"'
_TO_DIVIDE = "divide each row by its sum, or pass renormalize=True"
#: Sums of percentages and of bytes, which are probabilities all the same.
_USUAL_SUMS = (100, 255)


def check_choice(value: object, choices: Iterable[str], what: str, also: Mapping[str, str] | None = None) -> str:
    """``value`` if it is one of ``choices``; otherwise the message names the nearest and lists them.

    ``also`` are short names, which the caller has replaced, and what they stand for.
    """
    names = list(choices)
    if isinstance(value, str) and value in names:
        return value
    short = {name: stands_for for name, stands_for in (also or {}).items() if stands_for in names}
    listed = ", ".join(names)
    if short:
        listed += f" (short: {', '.join(f'{name} for {stands_for}' for name, stands_for in short.items())})"
    raise UnknownNameError(
        f"{what} {shown(value)} is unknown{nearest(value, [*names, *short])}; choose one of: {listed}."
    )


def nearest(value: object, names: Iterable[str]) -> str:
    """A question about the name that is nearest to a misspelt one, or nothing."""
    close = nearest_name(value, names) if isinstance(value, str) else None
    return f" (did you mean {close!r}?)" if close else ""


def check_integer(value: object, what: str, minimum: int, maximum: int = LARGEST_COUNT) -> int:
    """``value`` as an int in [minimum, maximum]."""
    whole = is_whole_number(value)
    if not is_whole_number(value) or not minimum <= value <= maximum:
        is_usual = maximum == LARGEST_COUNT and not (whole and value > maximum)  # type: ignore[operator]
        bounds = f"of at least {minimum}" if is_usual else f"from {minimum} to {maximum:,}"
        raise ParameterError(f"{what} is {shown(value)}; give a whole number {bounds}.")
    return int(value)


def check_seed(value: object, what: str = "random_state") -> int:
    """``value`` as the seed of a random generator."""
    return check_integer(value, what, 0, _LARGEST_SEED)


def check_real(value: object, what: str, minimum: float, maximum: float = np.inf) -> float:
    """``value`` as a finite float in [minimum, maximum]."""
    real = is_whole_number(value) or isinstance(value, (float, np.floating))
    try:
        number = float(value) if real else np.nan  # type: ignore[arg-type]
    except OverflowError:  # a whole number beyond the largest float
        number = np.nan
    if not (minimum <= number <= maximum and np.isfinite(number)):
        bounds = f"of at least {minimum:g}" if maximum == np.inf else f"from {minimum:g} to {maximum:g}"
        finite = "finite " if number == np.inf else ""
        raise ParameterError(f"{what} is {shown(value)}; give a {finite}number {bounds}.")
    return number


def check_flag(value: object, what: str) -> bool:
    """``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ParameterError(f"{what} is {shown(value)}; give True or False.")
    return bool(value)


def check_type(value: object, expected: type[_Type], what: str, needed: str) -> _Type:
    """``value`` if it is an ``expected``."""
    if not isinstance(value, expected):
        raise ParameterError(f"{what} is {shown(value)}; give {needed}.")
    return value


def check_random_state(random_state: RandomState) -> np.random.Generator:
    """A generator: ``random_state`` itself, or a new one from a seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = is_whole_number(random_state) and random_state >= 0
    if random_state is not None and not seed:
        raise ParameterError(
            f"random_state is {shown(random_state)}; give a whole number of at least 0, a numpy.random.Generator, or "
            "None."
        )
    return np.random.default_rng(random_state)


def renormalized(values: Array, where: str) -> Array:
    """Rows of numbers from zero (..., L), divided by their sums; rows of NaN stay."""
    values = values.astype(result_dtype(values.dtype))
    rows = values.reshape(-1, values.shape[-1])
    with np.errstate(invalid="ignore", over="ignore"):
        sums = _row_sums(rows)
        bad = np.flatnonzero(~((sums > 0) & (sums < np.inf) & (rows.min(axis=1) >= 0)) & ~np.isnan(rows).all(axis=1))
    if bad.size:
        first, where = int(bad[0]), f"{where}, sample {bad[0]}"
        if sums[first] == 0 and not rows[first].any():
            raise NotNormalisedError(f"{where}: the probabilities are all 0, and have no sum to divide by.")
        reject_row(rows[first], "probs", where)
    rows /= sums[:, None].astype(rows.dtype)
    return values


def result_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float64 stays float64; everything else is computed and returned in float32."""
    return np.dtype(np.float64 if dtype.kind == "f" and dtype.itemsize >= 8 else np.float32)


def check_labels(labels: Any, n_samples: int, n_classes: int) -> npt.NDArray[np.int64]:
    """Integer labels in 0..n_classes-1, one per sample."""
    try:
        array = as_array(labels, "labels", "give one integer per sample").copy()  # the caller may change theirs
    except InvalidInputError as error:
        raise LabelError(str(error)) from None
    if array.ndim != 1:
        raise LabelError(f"labels have shape {array.shape}; give one integer per sample, shape ({n_samples},).")
    if array.shape[0] != n_samples:
        raise LabelError(f"there are {array.shape[0]} labels for {n_samples} samples; give one label per sample.")
    if array.dtype.kind == "f":
        odd = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < np.float64(2**53))))
        if odd.size:
            raise LabelError(
                f"the label of sample {odd[0]} is {array[odd[0]]} (dtype {array.dtype}); give integers from 0 to "
                f"{n_classes - 1}."
            )
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise LabelError(f"labels have dtype {array.dtype}; give integers from 0 to {n_classes - 1}.")
    outside = np.flatnonzero((array < 0) | (array >= n_classes))
    if outside.size:
        first = int(outside[0])
        raise LabelError(
            f"the label of sample {first} is {array[first]}; with {n_classes} classes labels go from 0 to "
            f"{n_classes - 1}."
        )
    return array.astype(np.int64, copy=False)


def entries_of(names: Any, what: str, needed: str = "a list of names") -> Iterator[Any]:
    """The entries of a sequence; ``what`` begins the message.

    One text is not a list of its letters, and sets have no order.
    """
    try:
        if not isinstance(names, (str, bytes, set, frozenset)):
            return iter(names)
    except Exception:  # an array without axes, or an object that raises anything
        pass
    raise ParameterError(f"{what} {shown(names)}; give {needed}.")


def check_names(names: Any, expected: int, what: str) -> tuple[str, ...] | None:
    """Names as a tuple of strings, one per ``what``; numbers and paths are names, too."""
    if names is None:
        return None
    many = f"{what}es" if what == "class" else f"{what}s"
    # No more than shows that there are too many, however long the names go on.
    listed = list(islice(entries_of(names, f"{what} names are", f"a list of {expected} strings"), expected + 1))
    if len(listed) != expected:
        too_many = len(names) if isinstance(names, (list, tuple, np.ndarray)) else f"more than {expected}"
        count = too_many if listed[expected:] else len(listed)
        raise ShapeError(f"there are {count} {what} names for {expected} {many}; give one name each.")
    for place, name in enumerate(listed):
        if not isinstance(name, (str, Number, os.PathLike)):
            raise ParameterError(f"the name of {what} {place} is {shown(name)}; give a string.")
    result = tuple(map(str, listed))
    if len(set(result)) < expected:
        twice = next(name for name, count in Counter(result).items() if count > 1)
        raise ParameterError(f"two {many} are called {twice!r}; give each its own name.")
    return result


def reject_row(
    row: Array, kind: Kind, where: str, tolerance: float | None = None, *, for_scores: str = _FOR_SCORES
) -> NoReturn:
    """Raise the error for a row of scores that is not a distribution; ``where`` names the row, as in "sample 7".

    ``for_scores`` is the advice for scores that look unnormalised.
    """
    values = np.asarray(row, dtype=np.float64)
    noun = {"probs": "probability", "logits": "logit", "log_probs": "log-probability"}[kind]
    wrong = np.isnan(values) | (values == np.inf)
    if kind != "log_probs":  # a log-probability of minus infinity is a probability of zero
        wrong |= values == -np.inf
    if wrong.any():
        l = int(np.flatnonzero(wrong)[0])
        raise NotFiniteError(f"{where}: the {noun} of class {l} is {values[l]}; replace it by a finite number.")
    if kind == "probs" and (values < 0).any():
        l = int(np.flatnonzero(values < 0)[0])
        raise NegativeProbabilityError(
            f"{where}: the probability of class {l} is {values[l]:g}; {_hint(values, for_scores)}."
        )
    with np.errstate(over="ignore"):
        total = float(values.sum() if kind == "probs" else np.exp(values).sum())
    dtype = np.asarray(row).dtype
    usual = tolerance_of(dtype, len(values))
    tolerance = usual if tolerance is None else tolerance
    of_what = "the probabilities" if kind == "probs" else "the exponentials of the log-probabilities"
    advice = _hint(values, for_scores) if kind == "probs" else for_scores
    raise NotNormalisedError(
        f"{where}: {of_what} sum to {total:.6g}, further from 1 than {tolerance:g} (the tolerance for "
        f"{dtype}{' of so few digits' if dtype == np.float64 and tolerance > usual else ''}); {advice}."
    )


def _hint(values: Array, for_scores: str) -> str:
    """Advice for numbers that are not probabilities: a guess, which is only printed."""
    with np.errstate(over="ignore", invalid="ignore"):
        lowest, total = float(values.min()), float(values.sum())
    if -1e-3 < lowest < 0 and abs(total - 1) < 1e-2:
        return "this looks like rounding: clip at 0 and divide each row by its sum"
    divide = _TO_DIVIDE if for_scores == _FOR_SCORES else "divide each row by its sum"
    if lowest >= 0 and any(abs(total - usual) < 0.02 * usual for usual in _USUAL_SUMS):
        return divide
    if lowest < 0 or values.max() > 1.01 or not 0.5 < total < 2:
        return for_scores
    return divide


def reject_missing_prediction(source: str, sample: int) -> NoReturn:
    """Raise the error for a source without a prediction for a sample."""
    raise MissingSourceError(
        f'{source} has no prediction for sample {sample} (its row is all NaN); give one, or pass missing="skip" to '
        "leave the source out for that sample."
    )


def reject_sample_without_sources(sample: int) -> NoReturn:
    """Raise the error for a sample that no source has a prediction for."""
    raise MissingSourceError(
        f"no source has a prediction for sample {sample} (all rows are NaN); leave the sample out."
    )


def check_distributions(probs: Any, what: str = "probs") -> Array:
    """(N, L) probabilities, checked row by row; kept in float32 or float64, rows renormalised where they need it."""
    array = as_numbers(probs, what)
    if array.ndim != 2:
        dimensions = f"{array.ndim} dimension{'s' * (array.ndim != 1)}"
        raise ShapeError(f"{what} has {dimensions} (shape {array.shape}); give shape (samples, classes).")
    if array.shape[1] < 2:
        raise ShapeError(
            f"{what} has {array.shape[1]} class{'es' * (array.shape[1] != 1)} (shape {array.shape}); at least two are "
            "needed: for a binary problem give both columns, 1 - p and p."
        )
    tolerance = tolerance_of(array.dtype, array.shape[1], "bfloat16" if holds_bfloat16(probs) else None)
    result = array.astype(result_dtype(array.dtype), copy=False)
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # numbers that are not finite are reported below, without a warning
        sums = _row_sums(result)
        off = np.abs(sums - 1.0)
        bad = ~(off <= tolerance)
        if result.size:
            bad |= ~(result.min(axis=1) >= 0)
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            reject_row(
                array[first],
                "probs",
                f"{what}, sample {first}",
                tolerance,
                for_scores="if these are unnormalised scores, take their softmax first",
            )
    uneven = np.flatnonzero(off > 16 * np.finfo(result.dtype).eps)
    if uneven.size:  # row by row, so that a row does not depend on the others
        result = result.copy()
        result[uneven] = result[uneven] / sums[uneven, None]
    return result


def _row_sums(values: Array) -> npt.NDArray[np.float64]:
    """Sums of the rows in float64; a row's sum does not depend on the other rows, to the last bit."""
    if values.dtype == np.float64 and values.flags.c_contiguous:
        return values.sum(axis=1)  # type: ignore[no-any-return]
    n_rows = max(1, (1 << 17) // max(values.shape[1], 1))
    starts = range(0, len(values), n_rows)
    parts = [np.ascontiguousarray(values[start : start + n_rows], np.float64).sum(axis=1) for start in starts]
    return np.concatenate([np.empty(0), *parts])


def all_probabilities(values: npt.NDArray[np.float64]) -> bool:
    """Whether all values lie from 0 to 1; NaN, which minimum and maximum propagate, fails."""
    return bool(values.min() >= 0 and values.max() <= 1)


def check_confidences(
    values: Any, what: str = "confidence", are_fine: Callable[[npt.NDArray[np.float64]], bool] = all_probabilities
) -> npt.NDArray[np.float64]:
    """Finite numbers from 0 to 1, one per sample, at least one; ``are_fine`` may be a faster check."""
    array = as_numbers(values, what)
    if array.ndim != 1:
        raise ShapeError(f"{what} has shape {array.shape}; give one number per sample, shape (samples,).")
    if array.shape[0] == 0:
        raise ShapeError(f"{what} is empty; at least one sample is needed.")
    confidence = np.ascontiguousarray(array, dtype=np.float64)
    if not are_fine(confidence):
        first = int(np.flatnonzero(~((confidence >= 0) & (confidence <= 1)))[0])
        if not np.isfinite(confidence[first]):
            raise NotFiniteError(
                f"{what} of sample {first} is {confidence[first]}; replace it by a number from 0 to 1."
            )
        raise ConfidenceError(
            f"{what} of sample {first} is {confidence[first]:g}; confidences are probabilities, from 0 to 1."
        )
    return confidence


def check_outcomes(values: Any, what: str = "y_true") -> npt.NDArray[np.bool_]:
    """Booleans, one per sample: whether the prediction was right.  Integers are refused: they could be labels."""
    array = as_array(values, what, "give one boolean per sample")
    if array.dtype.kind != "b":
        raise LabelError(
            f"{what} has dtype {array.dtype} beside one confidence per sample; give booleans: whether each "
            "prediction was right (labels == predicted), or probabilities of shape (samples, classes)."
        )
    if array.ndim != 1:
        raise ShapeError(f"{what} has shape {array.shape}; give one boolean per sample, shape (samples,).")
    return array


def check_same_length(**arrays: Array) -> int:
    """The common length of one-dimensional inputs."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ShapeError(f"lengths differ: {listed}; give one entry per sample in each.")
    return next(iter(lengths.values()))


def check_weights(sample_weight: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Finite weights of at least zero, one per sample, not all zero."""
    weights = np.asarray(as_numbers(sample_weight, "sample_weight"), dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ShapeError(f"sample_weight has shape {weights.shape}; give one weight per sample, shape ({n_samples},).")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if wrong.size:
        raise InvalidInputError(
            f"the weight of sample {wrong[0]} is {weights[wrong[0]]:g}; weights are finite and at least 0."
        )
    if n_samples and not weights.any():
        raise InvalidInputError("all sample weights are zero; at least one must be positive.")
    return weights
