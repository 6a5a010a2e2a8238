"""Checks shared by all readers and writers, and the errors for files that are missing, damaged or misnamed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from veridical.errors import CorruptFileError, FileFormatError, ParameterError, VeridicalError
from veridical.predictions.container import Predictions

#: Deflate packs at most 1,032 bytes into one; a file that claims to unpack to more than this many times its size is
#: damaged.
_LARGEST_RATIO = 1100
_ALWAYS_ALLOWED = 512 << 20

#: A pattern of halves of characters, which UTF-8 cannot encode.
SURROGATES = "[\ud800-\udfff]"

_ZIP_START = b"PK\x03\x04"

#: First bytes of a file -> its format, for files with the wrong suffix.
_SIGNATURES = {
    b"\x93NUMPY": "a .npy array",
    _ZIP_START: "a zip archive (.npz or .pt)",
    b"PAR1": "a .parquet table",
    b"\x80": "a pickle",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
}


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn any exception of a parser into one sentence that names the file.

    A damaged file can fail in any line of any parser, with any exception, so all are caught; our own pass.
    """
    try:
        yield
    except VeridicalError:
        raise
    except FileNotFoundError as error:
        raise FileFormatError(f"{path} does not exist; check the name.") from error
    except PermissionError as error:
        raise FileFormatError(f"{path} cannot be read ({error.strerror}); check its permissions.") from error
    except MemoryError as error:
        raise FileFormatError(
            f"{path} does not fit into memory; save it as .npy, or with veridical.save as .npz, which are mapped."
        ) from error
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        reason = f"{type(error).__name__}: {lines[0][:200]}".rstrip(" :.")
        raise CorruptFileError(
            f"{path} cannot be read as {what} ({reason}); it may be truncated or damaged: write it again."
        ) from error


def check_is_file(path: Path, what: str) -> int:
    """The size of a regular file that is not empty."""
    with reading(path, what):
        path.stat()
        if not path.is_file():
            raise FileFormatError(f"{path} is not a regular file; give {what}.")
        size = path.stat().st_size
    if size == 0:
        raise CorruptFileError(f"{path} is empty; write it again.")
    return size


def wrong_content(path: Path, what: str) -> CorruptFileError:
    """The error for a file that does not begin like ``what``; it names the format that the file seems to have."""
    with path.open("rb") as file:
        start = file.read(8)
    likely = next((name for signature, name in _SIGNATURES.items() if start.startswith(signature)), None)
    advice = f"it looks like {likely}: give it the suffix that fits" if likely else "it may be damaged: write it again"
    return CorruptFileError(f"{path} is not {what}; {advice}.")


def not_an_archive(path: Path, suffix: str, what: str) -> CorruptFileError:
    """The error for a file that is not a zip archive, or was truncated: an archive's directory is at its end."""
    with path.open("rb") as file:
        is_truncated = file.read(len(_ZIP_START)) == _ZIP_START
    if is_truncated:
        return CorruptFileError(f"{path} begins as a {suffix} and is truncated; write it again.")
    return wrong_content(path, what)


def missing_column(path: Path, column: str, names: Iterable[str]) -> FileFormatError:
    """The error for a column, or an array of an archive, that a file has not."""
    return FileFormatError(f"{path} has no column {column!r}; it has: {', '.join(names)[:200] or 'none'}.")


def check_claim(path: Path, claimed: int, stored: int) -> None:
    """Refuse content that claims to unpack to far more than its stored bytes can hold, before memory is allocated."""
    if claimed > _LARGEST_RATIO * stored + _ALWAYS_ALLOWED:
        raise CorruptFileError(
            f"{path} claims {claimed:,} bytes of content, far more than its {stored:,} bytes can hold; it is damaged: "
            "write it again."
        )


def check_writable_names(predictions: Predictions, refused: str, suffix: str, instead: str) -> None:
    """Refuse names that a format would change: those that match the pattern ``refused`` anywhere."""
    names = {"source": predictions.source_names, "class": predictions.class_names}
    reject_names({**names, "sample": predictions.sample_ids, "group": predictions.groups}, refused, suffix, instead)


def reject_names(names: Mapping[str, Any], refused: str, suffix: str, instead: str) -> None:
    """Refuse names that match the pattern ``refused`` anywhere; ``names`` are those of sources, classes and so on."""
    for what, entries in names.items():
        if entries is None or (isinstance(entries, np.ndarray) and entries.dtype.kind != "U"):
            continue  # without names, or with numbers
        name = next((name for name in entries if re.search(refused, name)), None)
        if name is not None:
            raise ParameterError(
                f"a {what} is called {str(name)!r}, which a {suffix} cannot hold; rename it or save a {instead}."
            )
