"""An ensemble of one file per source: a directory, or the files that a pattern matches."""

from __future__ import annotations

import glob
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from veridical._names import natural_order
from veridical.errors import FileFormatError, LabelError, ShapeError
from veridical.predictions.files.contents import Contents, reading
from veridical.predictions.files.formats import FORMATS, format_of
from veridical.predictions.files.labels import READERS, read_labels
from veridical.predictions.validation import KINDS, Array, Kind

#: Files that hold one source; a .zarr is a directory of its own.
_SUFFIXES = tuple(suffix for suffix in FORMATS if suffix != ".zarr")
_RUN = "run.json"


def is_pattern(path: str) -> bool:
    """Whether a name is a pattern: it has wildcards, and no file is called so."""
    return glob.has_magic(path) and not Path(path).exists()


def read_directory(path: Path, kind: Kind | None) -> Contents:
    """The files of a directory, in natural order; one called ``labels`` holds the labels, and a run says its kind."""
    with reading(path, "a directory"):
        found = [file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")]
    sources = [file for file in found if file.suffix.lower() in _SUFFIXES and not _is_labels(file)]
    suffixes = sorted({file.suffix.lower() for file in sources})
    if len(suffixes) > 1:
        raise FileFormatError(
            f"{path} holds {' and '.join(suffixes)} files; say which to take by a pattern, as in "
            f"{path / ('*' + suffixes[0])}."
        )
    contents = _read_members(sources, [file for file in found if _is_labels(file)], str(path), kind)
    if contents.kind is None:
        run = _described_run(path)
        contents.kind, contents.class_names = run.get("kind"), contents.class_names or run.get("class_names")
        contents.files += (path / _RUN,) if run else ()
    return contents


def _described_run(path: Path) -> dict[str, Any]:
    """What the ``run.json`` of a training run says; one that declares no kind is somebody else's, and left alone."""
    described = None
    with suppress(OSError, ValueError):
        described = json.loads((path / _RUN).read_text(encoding="utf-8"))
    return described if isinstance(described, dict) and described.get("kind") in KINDS else {}


def read_pattern(pattern: str, kind: Kind | None) -> Contents:
    """The files that a pattern matches, in natural order; one called ``labels`` holds the labels."""
    found = [Path(name) for name in glob.glob(pattern)]
    return _read_members(
        [file for file in found if not _is_labels(file)], [file for file in found if _is_labels(file)], pattern, kind
    )


def _is_labels(path: Path) -> bool:
    return path.stem.lower() == "labels" and path.suffix.lower() in READERS


def _read_members(sources: Sequence[Path], labels: Sequence[Path], where: str, kind: Kind | None) -> Contents:
    if not sources:
        raise FileFormatError(f"{where} has no prediction files; give one file per source ({', '.join(_SUFFIXES)}).")
    if len(labels) > 1:
        raise FileFormatError(f"{where} has {' and '.join(sorted(file.name for file in labels))}; keep one of them.")
    files = sorted(sources, key=lambda path: natural_order(path.name))
    first, *rest = (format_of(file).read(file, kind) for file in files)
    values = [_one_source(first.values, files[0])]
    labels_from = files[0] if first.labels is not None else None
    for file, member in zip(files[1:], rest, strict=True):
        values.append(_one_source(member.values, file))
        if values[-1].shape != values[0].shape:
            raise ShapeError(
                f"{file} has shape {values[-1].shape} and {files[0]} has shape {values[0].shape}; all sources must "
                "predict the same samples and classes."
            )
        _check_alike(file, member, files[0], first)
        if member.labels is not None:
            if first.labels is None:
                first.labels, labels_from = member.labels, file
            elif not np.array_equal(member.labels, first.labels):
                raise LabelError(
                    f"{file} has other labels than {labels_from}; all sources must predict the same samples."
                )
    if labels:
        first.labels = read_labels(labels[0])
    return Contents(values, first.labels, first.kind, _names(files), first.class_names, files=(*files, *labels))


def _one_source(values: Array | Sequence[Array], file: Path) -> Array:
    """The scores (N, L) of a file."""
    array = np.asarray(values[0]) if len(values) == 1 and np.ndim(values[0]) == 2 else values
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise ShapeError(
            f"{file} has shape {np.shape(values)}; among several files each holds one source, (samples, classes), and "
            "a file with all sources is given by itself."
        )
    return array


def _check_alike(file: Path, member: Contents, first_file: Path, first: Contents) -> None:
    """What files say about themselves must agree; classes need not have names in all of them."""
    if member.kind != first.kind:
        said = [
            f"{name} holds {kind or 'what is not said'}"
            for name, kind in ((first_file, first.kind), (file, member.kind))
        ]
        raise FileFormatError(f"{' and '.join(said)}; all sources must be of the same kind.")
    first.class_names = first.class_names or member.class_names
    if member.class_names and list(member.class_names) != list(first.class_names or ()):
        raise FileFormatError(
            f"{file} has other classes than {first_file}; give all the same columns in the same order."
        )
    if member.samples != first.samples:
        raise FileFormatError(f"{file} lists other samples than {first_file}, or in another order; write them alike.")


def _names(files: Sequence[Path]) -> list[str]:
    """Sources are called by their files' names without suffix, or with it where that tells them apart."""
    for names in ([file.stem for file in files], [file.name for file in files]):
        if len(set(names)) == len(names):
            return names
    return [str(file) for file in files]
