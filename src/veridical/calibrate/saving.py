"""Calibrators in files: JSON with a schema version, and arrays beside it where they are large.

Nothing that is read is ever executed: a file names a method of the registry, and holds numbers.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from veridical._atomic import atomic_file, write_atomically
from veridical._version import __version__
from veridical.calibrate.base import Calibrator
from veridical.calibrate.pooling import COMBINATIONS, Pooling
from veridical.errors import InvalidInputError, ParameterError, SavedFileError
from veridical.predictions.validation import Array

FORMAT = "veridical calibrator"
#: Raised whenever older readers would misunderstand a file; older versions stay readable.
SCHEMA_VERSION = 1
#: With more numbers than this, arrays go to an npz file beside the JSON.
LARGE = 100_000
#: No file makes us believe in more sources or classes than this.
_MOST = 10_000_000


def save_calibrator(calibrator: Calibrator, path: str | Path) -> None:
    """Write a fitted calibrator; see :meth:`veridical.calibrate.Calibrator.save`."""
    target = Path(path)
    document = describe(calibrator)
    arrays = {f"a{i}": array for i, array in enumerate(_arrays_in(document))}
    if sum(array.size for array in arrays.values()) > LARGE:
        beside = target.with_name(target.name + ".npz")
        names = iter(arrays)
        encode: Callable[[Array], Any] = lambda array: {"npz": next(names), "shape": list(array.shape)}  # noqa: E731
        document["arrays"] = beside.name
        with atomic_file(beside) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
    else:
        encode = lambda array: {"shape": list(array.shape), "values": array.ravel().tolist()}  # noqa: E731
    text = json.dumps(_encoded(document, encode), indent=1, allow_nan=False)
    write_atomically(target, text.encode())


def describe(calibrator: Calibrator) -> dict[str, Any]:
    """A fitted calibrator as plain values and arrays."""
    if not hasattr(calibrator, "n_classes_"):
        raise ParameterError("this calibrator is not fitted; call fit before saving it.")
    parameters = calibrator.get_params(deep=False)
    for name, value in parameters.items():
        if isinstance(value, np.random.Generator) or callable(value):
            parameters[name] = None  # it decided the fit, which is over
    pooling = calibrator.pooling_
    return {
        "format": FORMAT,
        "schema": SCHEMA_VERSION,
        "veridical": __version__,
        "method": calibrator.name,
        "parameters": _plain(parameters),
        "n_sources": calibrator.n_sources_,
        "n_classes": calibrator.n_classes_,
        "pooling": {"name": pooling.name, "weights": pooling.weights, "floor": pooling.floor},
        "state": {name: _described(getattr(calibrator, name)) for name in calibrator._state},
    }


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
    source = Path(path)
    try:
        document = json.loads(source.read_bytes())
    except FileNotFoundError:
        raise SavedFileError(f"there is no file {source}; give the path that save wrote to.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SavedFileError(f"{source} cannot be read as a saved calibrator ({error}); save it again.") from None
    try:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError("it is no calibrator")
        schema = document.get("schema")
        if not isinstance(schema, int) or schema not in _READERS:
            raise ValueError(f"schema version {schema!r} is none of {[*_READERS]}")
        beside = _arrays_beside(source, document)
        return _READERS[schema](_decoded(document, beside))
    except SavedFileError:
        raise
    except (InvalidInputError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SavedFileError(f"{source} is not a calibrator that veridical saved: {reason}.") from None


def _arrays_beside(source: Path, document: dict[str, Any]) -> dict[str, Array]:
    """The arrays that lie in an npz file in the same directory."""
    name = document.pop("arrays", None)
    if name is None:
        return {}
    if name != f"{source.name}.npz" and (not isinstance(name, str) or Path(name).name != name):
        raise ValueError(f"its arrays are said to be in {name!r}, which is not beside it")
    try:
        with np.load(source.with_name(name), allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise SavedFileError(f"the arrays of {source} cannot be read from {name} ({error}); save it again.") from None


def _read_v1(document: dict[str, Any]) -> Calibrator:
    """Schema 1: every value is checked before a calibrator is made of it."""
    from veridical.calibrate.registry import calibrators

    method, parameters = document["method"], document["parameters"]
    if method not in calibrators():
        raise ValueError(f"no method is called {method!r}")
    unknown = set(parameters) - set(calibrators()[method]._get_param_names())
    if unknown:
        raise ValueError(f"{method} has no parameter {sorted(unknown)[0]!r}")
    calibrator = calibrators()[method](**parameters)
    calibrator.n_sources_ = _count(document["n_sources"], 1)
    calibrator.n_classes_ = _count(document["n_classes"], 2)
    calibrator.classes_ = np.arange(calibrator.n_classes_)
    calibrator.pooling_ = _read_pooling(document["pooling"], calibrator)
    state = document["state"]
    if set(state) != set(calibrator._state):
        raise ValueError(f"{method} is made of {sorted(calibrator._state)}, not of {sorted(state)}")
    for name, value in state.items():
        nested = isinstance(value, dict) and "method" in value
        setattr(calibrator, name, _read_v1(value) if nested else _finite(name, value))
    calibrator._check_state()
    return calibrator


_READERS: dict[int, Callable[[dict[str, Any]], Calibrator]] = {1: _read_v1}


def _read_pooling(stored: dict[str, Any], calibrator: Calibrator) -> Pooling:
    name, weights, floor = stored["name"], stored["weights"], stored["floor"]
    if name not in COMBINATIONS or name != calibrator.combine:
        raise ValueError(f"its sources are combined by {name!r}")
    if (name in ("linear-pool", "log-pool")) != (weights is not None):
        raise ValueError(f"{name} with weights {weights!r}")
    if weights is not None and (_finite("weights", weights).shape != (calibrator.n_sources_,)):
        raise ValueError(f"{len(weights)} weights for {calibrator.n_sources_} sources")
    if name == "linear-pool" and not ((weights >= 0).all() and abs(weights.sum() - 1) < 1e-6):
        raise ValueError("the linear pool's weights are no shares")
    if (name == "log-pool") != (floor is not None) or (floor is not None and not 0 < _finite("floor", floor) < 1):
        raise ValueError(f"{name} with floor {floor!r}")
    return Pooling(name, weights, floor)


def _count(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise ValueError(f"{value!r} is no number of sources or classes")
    return value


def _finite(name: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        fine = value.dtype.kind == "f" and bool(np.isfinite(value).all())
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        fine = math.isfinite(value)
    else:
        fine = isinstance(value, (str, list))
    if not fine:
        raise ValueError(f"{name} is not made of finite numbers")
    return value


def _arrays_in(node: Any) -> list[Array]:
    """All arrays, in the order that encoding meets them."""
    if isinstance(node, np.ndarray):
        return [node]
    children = node.values() if isinstance(node, dict) else node if isinstance(node, (list, tuple)) else ()
    return [array for child in children for array in _arrays_in(child)]


def _encoded(node: Any, encode: Callable[[Array], Any]) -> Any:
    if isinstance(node, np.ndarray):
        return encode(node)
    if isinstance(node, dict):
        return {key: _encoded(value, encode) for key, value in node.items()}
    return [_encoded(value, encode) for value in node] if isinstance(node, (list, tuple)) else node


def _decoded(node: Any, beside: dict[str, Array]) -> Any:
    if isinstance(node, dict) and "shape" in node:
        shape = tuple(node["shape"])
        if "npz" in node:
            array = beside[node["npz"]]
        else:
            array = np.array(node["values"], dtype=np.float64)
            array = array.reshape(shape)
        if array.shape != shape or array.dtype != np.float64:
            raise ValueError(f"an array has shape {array.shape} and dtype {array.dtype} where {shape} was promised")
        return array
    if isinstance(node, dict):
        return {key: _decoded(value, beside) for key, value in node.items()}
    return [_decoded(value, beside) for value in node] if isinstance(node, list) else node


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's own, recursively."""
    if isinstance(value, dict):
        return {key: _plain(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(child) for child in value]
    return value.item() if isinstance(value, np.generic) else value
