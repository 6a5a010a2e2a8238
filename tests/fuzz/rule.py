"""The rule that every public function and every command keeps, whatever it is given.

A call returns a result without NaN, or raises an error of ``veridical.errors`` whose message is one line that ends as a
sentence does.  A command ends with exit code 0, 1, 2 or 130, without a traceback, and changes none of its inputs.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from veridical.backends.foreign import library_of, to_host
from veridical.calibrate import Calibrator
from veridical.errors import VeridicalError, VeridicalWarning
from veridical.predictions import Predictions

#: Results whose documentation says where they hold NaN, as in empty bins and intervals of undefined metrics.
MAY_HOLD_NAN = frozenset(
    (
        "AbstentionThreshold", "BinsBeforeAfter", "Bootstrap", "Calibration", "Comparison", "DisagreementByScore",
        "Evaluation", "Inspection", "JuryResult", "NoiseFloor", "ReliabilityCurve", "Report", "StateSummary", "Summary",
    )
)  # fmt: skip
#: Metrics that are undefined for some samples, as their documentation says, and what only gives numbers another shape.
MAY_BE_UNDEFINED = frozenset(("error_auroc", "in_sample_shape", "answer"))

#: How many calls returned a result and how many were rejected, by area; printed after a hunt.
counts: Counter[str] = Counter()


def check_call(name: str, call: Any, /, *arguments: Any, **options: Any) -> Any:
    """What ``call`` returns, or None if it rejects its arguments as the rule demands."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What is odd about the input may be worth a warning of ours; nobody else has one to give.
        warnings.simplefilter("ignore", VeridicalWarning)
        try:
            result = call(*arguments, **options)
        except VeridicalError as error:
            check_sentence(str(error))
            counts["rejected"] += 1
            return None
    counts["returned"] += 1
    if name.rpartition(".")[2] not in MAY_BE_UNDEFINED:
        for place in places_of_nan(result):
            raise AssertionError(f"{name} returned NaN: {place or 'the result'}")
    check_json(result)
    return result


def check_sentence(message: str) -> None:
    """A message is one line that ends in a full stop, and says more than a word."""
    assert "\n" not in message, f"more than one line: {message!r}"
    assert len(message.split()) >= 3, f"no sentence: {message!r}"
    assert message.rstrip().endswith((".", "?", "!")), f"the end is missing: {message!r}"
    assert not re.search(r"object at 0x[0-9a-f]+", message), f"an address in memory: {message!r}"


def places_of_nan(value: Any, place: str = "") -> Iterator[str]:
    """Where a result holds NaN; predictions hold what they were given, and calibrators what they fitted."""
    if value is None or isinstance(value, (str, bytes, bool, Predictions)) or type(value).__name__ in MAY_HOLD_NAN:
        return
    if isinstance(value, Calibrator):  # its parameters are what it was given, which fit checks
        value = {name: entry for name, entry in vars(value).items() if name.endswith("_")}
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            yield place
    elif isinstance(value, np.ndarray):
        if value.dtype.kind == "f" and np.isnan(value).any():
            yield place
    elif library_of(value) is not None:
        yield from places_of_nan(to_host(value.detach() if hasattr(value, "detach") else value), place)
    elif is_dataclass(value):
        for field in fields(value):
            yield from places_of_nan(getattr(value, field.name), f"{place}.{field.name}")
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from places_of_nan(entry, f"{place}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, entry in enumerate(value):
            yield from places_of_nan(entry, f"{place}[{index}]")


def check_json(result: Any) -> None:
    """A result that can be a dictionary can be JSON, in which NaN does not exist."""
    to_dict = getattr(result, "to_dict", None)
    if callable(to_dict):
        from veridical._json import to_json

        json.loads(to_json(to_dict()), parse_constant=_reject_constant)


def _reject_constant(name: str) -> None:
    raise AssertionError(f"{name} in JSON")


def check_command(done: Any, as_json: bool) -> None:
    """The rule for a finished command."""
    counts[f"exit code {done.returncode}"] += 1
    assert done.returncode in (0, 1, 2, 130), done
    assert "Traceback" not in done.stderr, done.stderr
    assert "failed unexpectedly" not in done.stderr, done.stderr
    if done.returncode == 2:
        assert done.stdout == "", done.stdout
    if done.returncode == 2 and not done.stderr.startswith("Usage: "):  # that is click's, about options
        *notes, last = done.stderr.strip().split("\n")
        assert last.startswith("Error: "), done.stderr
        assert all(note.startswith("Note: ") for note in notes), done.stderr
        check_sentence(last)
    if done.returncode == 0 and as_json and done.stdout:
        json.loads(done.stdout, parse_constant=_reject_constant)
