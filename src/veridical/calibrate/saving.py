"""Calibrators in files: JSON with a schema version, and arrays beside it where they are large.

Nothing that is read is ever executed: a file names a method of the registry, and holds numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from veridical._atomic import as_path, write_atomically
from veridical._json import reject_constant
from veridical._version import __version__
from veridical.calibrate.base import Calibrator
from veridical.calibrate.fitting_data import FittingData
from veridical.calibrate.registry import calibrators, check_calibrator
from veridical.calibrate.stored_arrays import count_numbers, decode, encode_beside, encode_inline
from veridical.combine.base import Combiner
from veridical.combine.registry import COMBINERS
from veridical.errors import FileFormatError, ParameterError, SavedFileError
from veridical.predictions.validation import INPUT_KINDS, InputKind, check_choice, check_names

FORMAT = "veridical calibrator"
#: Raised whenever older readers would misunderstand a file; older versions stay readable.
SCHEMA_VERSION = 1
#: With more numbers than this, arrays go to an npz file beside the JSON.
LARGE = 100_000
#: The most sources or classes that a file may state.
_MOST = 10_000_000
#: Larger arrays are beside the document.
_MOST_BYTES = 64 << 20
#: What a document says, no more and no less; the outermost one may also name its arrays and carry checksums.
_ENTRIES = frozenset(
    ("format", "schema", "veridical", "method", "parameters", "n_sources", "n_classes", "pooling", "state")
)

#: Entries that the first files did not have.
_LATER_ENTRIES = frozenset(("source_names", "kind", "class_names", "fitting_data"))


def save_calibrator(calibrator: Calibrator, path: str | Path) -> None:
    """Write a fitted calibrator; see :meth:`veridical.calibrate.Calibrator.save`."""
    target = check_target(path)
    check_replaced_file(target)
    document = describe(calibrator)
    for own, known in ((calibrator, calibrators()), (calibrator.combiner_, COMBINERS)):
        name, kind = own.name, type(own)
        if name not in known or known[name] is not kind:
            raise ParameterError(
                f"{kind.__name__} is not registered, so that its file could not be read again; call "
                f"veridical.register({kind.__name__}) where it is defined."
            )
    before = _arrays_of(target)
    is_large = count_numbers(document) > LARGE
    encoded, beside = encode_beside(document, target) if is_large else (encode_inline(document), None)
    encoded["sha256"] = checksum_of(encoded)
    try:
        write_atomically(target, json.dumps(encoded, indent=1, allow_nan=False).encode())
    except BaseException:
        if beside not in (None, before):
            beside.unlink(missing_ok=True)
        raise
    if before not in (None, beside):
        before.unlink(missing_ok=True)


def check_target(path: str | Path) -> Path:
    """Where a calibrator may be saved; commands ask before they spend time on fitting one."""
    target = as_path(path)
    if target.suffix != ".json":
        raise FileFormatError(f"calibrators are saved as .json, not as {str(path)!r}; use the extension .json.")
    return target


def check_replaced_file(path: str | Path) -> None:
    """Refuse to replace a file that is not a calibrator."""
    target = as_path(path)
    if target.exists() and _saved_document(target) is None:
        raise FileFormatError(f"{target} exists and is not a saved calibrator; choose another name.")


def files_of(path: str | Path) -> tuple[Path, ...]:
    """The files of a saved calibrator: the document, and its arrays where they are beside it."""
    source = as_path(path)
    arrays = _arrays_of(source)
    return (source,) if arrays is None else (source, arrays)


def _saved_document(path: Path) -> dict[str, Any] | None:
    """What a file says that looks like a saved calibrator; an empty file says nothing."""
    try:
        content = _read_bytes(path)
        document = json.loads(content) if content.strip() else {"format": FORMAT, "schema": SCHEMA_VERSION}
        _check_format(document)
    except (OSError, ValueError, RecursionError):
        return None
    return cast(dict[str, Any], document)


def _arrays_of(path: Path) -> Path | None:
    """The file with the arrays of the calibrator that is saved at ``path``, if one is and has such a file."""
    name = (_saved_document(path) or {}).get("arrays")
    if isinstance(name, str) and re.fullmatch(rf"{re.escape(path.name)}\.[0-9a-f]{{12}}\.npz", name):
        return path.with_name(name)
    return None


def checksum_of(document: dict[str, Any]) -> str:
    """SHA-256 of an encoded document without its own checksum: keys sorted, no white space, so layout is free."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def fingerprint(calibrator: Calibrator) -> str:
    """SHA-256 of everything that a fitted calibrator's predictions depend on."""
    return checksum_of(encode_inline(describe(calibrator)))


def describe(calibrator: Calibrator) -> dict[str, Any]:
    """A fitted calibrator as plain values and arrays."""
    check_calibrator(calibrator).check_fitted()
    calibrator.check_parameters()  # they may have been set since the fit, and a file with bad ones would not load
    if calibrator.combine != calibrator.combiner_.name:
        raise ParameterError(
            f"combine was set to {calibrator.combine!r} after a fit with {calibrator.combiner_.name!r}; fit again."
        )
    parameters = calibrator.get_params(deep=False)
    for name, value in parameters.items():
        if isinstance(value, np.random.Generator):
            parameters[name] = None  # it decided the fit, which is over
    return {
        "format": FORMAT,
        "schema": SCHEMA_VERSION,
        "veridical": __version__,
        "method": calibrator.name,
        "parameters": _plain(parameters),
        "n_sources": calibrator.n_sources_,
        "n_classes": calibrator.n_classes_,
        **_remembered(calibrator),
        "source_names": None if calibrator.source_names_ is None else list(calibrator.source_names_),
        "pooling": calibrator.combiner_.described(),
        "state": {name: _described(getattr(calibrator, name)) for name in calibrator._state},
    }


def _remembered(calibrator: Calibrator) -> dict[str, Any]:
    """What is known about the data of the fit."""
    fitting_data = getattr(calibrator, "fitting_data_", None)
    class_names = getattr(calibrator, "class_names_", None)
    entries = {
        "kind": getattr(calibrator, "kind_", None),
        "class_names": None if class_names is None else list(class_names),
        "fitting_data": None if fitting_data is None else fitting_data.to_dict(),
    }
    return {name: entry for name, entry in entries.items() if entry is not None}


def _described(value: Any) -> Any:
    return describe(value) if isinstance(value, Calibrator) else value


def load_calibrator(path: str | Path) -> Calibrator:
    """Read a calibrator that :meth:`~veridical.calibrate.Calibrator.save` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Calibrator

    Raises
    ------
    SavedFileError
        If the file is truncated, was tampered with, or is something else.  Nothing in it is run.

    Examples
    --------
    >>> import os, tempfile
    >>> import veridical as vd
    >>> path = os.path.join(tempfile.mkdtemp(), "calibrator.json")
    >>> vd.Temperature().fit([[0.6, 0.4], [0.7, 0.3], [0.6, 0.4]], [0, 0, 1]).save(path)
    >>> vd.load_calibrator(path)
    Temperature()
    """
    source = as_path(path)
    try:
        document = json.loads(_read_bytes(source), parse_constant=reject_constant)
    except FileNotFoundError:
        raise SavedFileError(f"there is no file {source}; give the path that save wrote to.") from None
    except (OSError, ValueError, RecursionError) as error:
        if source.suffix != ".json" and isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
            raise SavedFileError(
                f"{source} is not a calibrator file, which is a .json that save or 'veridical calibrate' wrote."
            ) from None
        raise SavedFileError(f"{source} cannot be read as a saved calibrator ({error}); save it again.") from None
    try:
        _check_format(document)
        checksum = document.pop("sha256", None)
        if checksum is not None and checksum != checksum_of(document):
            raise ValueError("its checksum is wrong, so that it was changed or damaged since it was saved")
        name, sum_beside = document.pop("arrays", None), document.pop("arrays_sha256", None)
        return _read(decode(document, source, name, sum_beside))
    except SavedFileError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SavedFileError(f"{source} is not a calibrator that veridical saved: {reason}.") from None


def _read_bytes(path: Path) -> bytes:
    """The content of a regular file that is not larger than any calibrator; devices and pipes may have no end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        raise ValueError(f"it is not a regular file of at most {_MOST_BYTES >> 20} MB")
    return path.read_bytes()


def _check_format(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError("its format is not that of a calibrator")
    schema = document.get("schema")
    if type(schema) is not int or schema not in _READERS:  # True is an int, and equal to 1
        raise ValueError(f"schema version {schema!r} is none of {[*_READERS]}")


def _read(document: Any) -> Calibrator:
    """A document, the outermost or one within it, by the reader of its schema."""
    _check_format(document)
    return _READERS[document["schema"]](document)


def _read_v1(document: dict[str, Any]) -> Calibrator:
    """Schema 1: every value is checked before a calibrator is made of it."""
    entries = set(document) - _LATER_ENTRIES
    if entries != _ENTRIES:
        raise ValueError(f"it has missing or unknown entries: {sorted(entries ^ _ENTRIES)}")
    if not isinstance(document["veridical"], str):
        raise ValueError(f"it was written by version {document['veridical']!r}")
    method, parameters = document["method"], document["parameters"]
    if method not in calibrators():
        raise ValueError(f"no method is called {method!r}")
    known = set(calibrators()[method]._get_param_names())
    if set(parameters) != known:
        unknown, absent = sorted(set(parameters) - known), sorted(known - set(parameters))
        difference = f"has no parameter {unknown[0]!r}" if unknown else f"needs the parameter {absent[0]!r}"
        raise ValueError(f"{method} {difference}")
    calibrator = calibrators()[method](**parameters)
    calibrator.check_parameters()
    calibrator.n_sources_ = _count(document["n_sources"], 1)
    calibrator.n_classes_ = _count(document["n_classes"], 2)
    calibrator.classes_ = np.arange(calibrator.n_classes_)
    calibrator.source_names_ = check_names(document.get("source_names"), calibrator.n_sources_, "source")
    calibrator.class_names_ = check_names(document.get("class_names"), calibrator.n_classes_, "class")
    if document.get("kind") is not None:
        calibrator.kind_ = cast("InputKind", check_choice(document["kind"], INPUT_KINDS, "kind"))
    if document.get("fitting_data") is not None:
        calibrator.fitting_data_ = FittingData.from_dict(document["fitting_data"])
    calibrator.combiner_ = _read_combiner(document["pooling"], calibrator)
    state = document["state"]
    if set(state) != set(calibrator._state):
        raise ValueError(f"{method} is made of {sorted(calibrator._state)}, not of {sorted(state)}")
    for name, value in state.items():
        setattr(calibrator, name, _read(value) if isinstance(value, dict) else value)
    calibrator._check_state()
    return calibrator


_READERS: dict[int, Callable[[dict[str, Any]], Calibrator]] = {1: _read_v1}


def _read_combiner(stored: dict[str, Any], calibrator: Calibrator) -> Combiner:
    name = stored["name"]
    if name not in COMBINERS or name != calibrator.combine:
        raise ValueError(f"its sources are combined by {name!r}")
    return COMBINERS[name].from_described(stored, calibrator.n_sources_)


def _count(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise ValueError(f"{value!r} is not a number of sources or classes")
    return value


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's own, recursively."""
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(child) for child in value]
    return value.item() if isinstance(value, np.generic) else value
