"""What a reader hands on, and what all readers say when a file is not what it should be."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from veridical.errors import CorruptFileError, FileFormatError, ParameterError, VeridicalError
from veridical.predictions.container import Predictions
from veridical.predictions.validation import KINDS, Array, Kind

#: Deflate packs at most 1,032 bytes into one; what claims to unpack to more than this many times its size is broken.
_LARGEST_RATIO = 1100
_ALWAYS_ALLOWED = 64 << 20

#: Arrays that stand beside the scores in a .npz, .pt or .zarr.
BESIDE_SCORES = ("labels", "source_names", "class_names")

_ZIP_START = b"PK\x03\x04"

#: First bytes of a file -> what it is, for files with the wrong suffix.
_SIGNATURES = {
    b"\x93NUMPY": "a .npy array",
    _ZIP_START: "a zip archive (.npz or .pt)",
    b"PAR1": "a .parquet table",
    b"\x80": "a pickle",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
}


@dataclass
class Contents:
    """What is in a file: scores, and what the file itself says about them."""

    values: Array | Sequence[Array]
    labels: Array | None = None
    kind: Kind | None = None
    source_names: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    #: The samples' names in a table of one source, to be compared between the files of an ensemble.
    samples: tuple[str, ...] | None = None
    #: The files that were read; the file that a reader was asked for, where it says nothing else.
    files: tuple[Path, ...] = ()


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into one sentence that names the file.

    A damaged file can fail in any line of any parser, with any exception, so all are caught; our own, which say more,
    pass through.
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
            raise FileFormatError(f"{path} is no regular file; give {what}.")
        size = path.stat().st_size
    if size == 0:
        raise CorruptFileError(f"{path} is empty; write it again.")
    return size


def wrong_content(path: Path, what: str) -> CorruptFileError:
    """The error for a file that does not start as ``what`` does; it says what the file seems to be instead."""
    with path.open("rb") as file:
        start = file.read(8)
    found = next((name for signature, name in _SIGNATURES.items() if start.startswith(signature)), None)
    advice = f"it looks like {found}: give it the suffix that fits" if found else "it may be damaged: write it again"
    return CorruptFileError(f"{path} is not {what}; {advice}.")


def not_an_archive(path: Path, suffix: str, what: str) -> CorruptFileError:
    """The error for a file that is no zip archive, or no longer: an archive's directory stands at its end."""
    with path.open("rb") as file:
        is_cut_off = file.read(len(_ZIP_START)) == _ZIP_START
    if is_cut_off:
        return CorruptFileError(f"{path} begins as a {suffix} and is truncated; write it again.")
    return wrong_content(path, what)


def check_claim(path: Path, claimed: int, stored: int) -> None:
    """Refuse content that claims to unpack to far more than its stored bytes can hold, before room is made for it."""
    if claimed > _LARGEST_RATIO * stored + _ALWAYS_ALLOWED:
        raise CorruptFileError(
            f"{path} claims {claimed:,} bytes of content, far more than its {stored:,} bytes can hold; it is damaged: "
            "write it again."
        )


def check_writable_names(predictions: Predictions, refused: str, suffix: str, instead: str) -> None:
    """Refuse names that a format would change: those in which the pattern ``refused`` is found."""
    for what, names in (("source", predictions.source_names), ("class", predictions.class_names)):
        for name in names or ():
            if re.search(refused, name):
                raise ParameterError(
                    f"a {what} is called {name!r}, which a {suffix} cannot hold; rename it or save a {instead}."
                )


def declared_kind(path: str | os.PathLike[str]) -> Kind | None:
    """The kind that a file's name declares, as in ``logits_CIFAR100-PreResNet110-deepens-100-1.pkl.npy``."""
    name = Path(path).name
    return next((kind for kind in KINDS if re.match(rf"{kind}([_.-]|$)", name)), None)


def settle_kind(asked: Kind | None, declared: Kind | None, where: object) -> Kind | None:
    """What was asked for or declared; both, if they agree."""
    if asked is not None and declared is not None and asked != declared:
        raise ParameterError(f"kind={asked!r} contradicts {where}, which holds {declared!r}; leave kind out.")
    return asked or declared


def choose_scores(names: Collection[str], kind: Kind | None, path: Path) -> str:
    """Which of a file's named arrays holds the scores: the one named by its kind."""
    present = [name for name in KINDS if name in names]
    if kind in present:
        return str(kind)
    if len(present) == 1:
        return present[0]
    if present:
        raise ParameterError(f"{path} holds {' and '.join(present)}; say which to take, as in kind={present[0]!r}.")
    others = [name for name in names if name not in BESIDE_SCORES]
    if kind is not None and len(others) == 1:
        return others[0]
    found = ", ".join(sorted(others)) or "none"
    raise FileFormatError(
        f"{path} holds no array called {', '.join(KINDS[:-1])} or {KINDS[-1]} (found: {found}); name the scores by "
        "what they are, or say kind= where there is only one array."
    )


def kind_of_name(name: str) -> Kind | None:
    """The kind that an array's name declares, if it does."""
    return next((kind for kind in KINDS if kind == name), None)
