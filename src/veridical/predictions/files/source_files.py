"""Ensembles with one file per source: a directory, or the files that match a pattern."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from veridical._json import read_json
from veridical._names import natural_order
from veridical.errors import CorruptFileError, FileFormatError, ShapeError
from veridical.predictions.classes import ClassIndices
from veridical.predictions.contents import Contents, common_labels, match_classes, match_samples
from veridical.predictions.files.contents import Request
from veridical.predictions.files.file_checks import reading
from veridical.predictions.files.formats import FORMATS, format_of, format_with, read_labels, suffixes_with
from veridical.predictions.validation import KINDS

_RUN = "run.json"


def _suffixes() -> list[str]:
    """Of files that hold one source."""
    return [suffix for suffix in suffixes_with("read") if not FORMATS[suffix].is_directory]


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern: it has wildcards, and no file has this name."""
    return glob.has_magic(path) and not Path(path).exists()


def read_directory(path: Path, request: Request, label_file: Path | None = None) -> Contents:
    """The files of a directory, in natural order; ``labels.*`` has the labels, ``run.json`` may give the kind.

    ``label_file``, which the caller reads, is not a source.
    """
    with reading(path, "a directory"):
        files = [file for file in path.iterdir() if file.is_file() and not file.name.startswith(".")]
    files = _without(label_file, files)
    sources = [file for file in files if file.suffix.lower() in _suffixes() and not _is_labels(file)]
    suffixes = sorted({file.suffix.lower() for file in sources})
    if len(suffixes) > 1:
        raise FileFormatError(
            f"{path} holds {' and '.join(suffixes)} files; choose one of them by a pattern, as in "
            f"{path / ('*' + suffixes[0])}."
        )
    contents = _read_sources(sources, [file for file in files if _is_labels(file)], str(path), request)
    if contents.kind is None:
        run = _described_run(path)
        contents.kind, contents.class_names = run.get("kind"), contents.class_names or run.get("class_names")
    contents.files += (path / _RUN,) if (path / _RUN).is_file() else ()  # which no output may replace
    return contents


def _described_run(path: Path) -> dict[str, Any]:
    """The content of a training run's ``run.json``; a file without a kind belongs to another program and is ignored."""
    described = None
    with suppress(CorruptFileError):
        described = read_json(path / _RUN)
    return described if isinstance(described, dict) and described.get("kind") in KINDS else {}


def read_pattern(pattern: str, request: Request, label_file: Path | None = None) -> Contents:
    """The files that match a pattern, in natural order; a file ``labels.*`` has the labels."""
    names = glob.glob(pattern)
    if not names:
        raise FileFormatError(f"no file matches {pattern}; check the name.")
    return read_files([Path(name) for name in names], request, pattern, label_file)


def read_files(files: Sequence[Path], request: Request, where: str, label_file: Path | None = None) -> Contents:
    """Several files, in natural order; a file ``labels.*`` has the labels."""
    files = _without(label_file, files)
    return _read_sources(
        [file for file in files if not _is_labels(file)], [file for file in files if _is_labels(file)], where, request
    )


def _without(label_file: Path | None, files: Sequence[Path]) -> list[Path]:
    """The files other than the one that the caller reads labels from."""
    if label_file is None:
        return list(files)
    return [file for file in files if file.resolve() != label_file.resolve()]


def _is_labels(path: Path) -> bool:
    return path.stem.lower() == "labels" and format_with("read_labels", path) is not None


def _read_sources(sources: Sequence[Path], labels: Sequence[Path], where: str, request: Request) -> Contents:
    if not sources:
        raise FileFormatError(f"{where} has no prediction files; give one file per source ({', '.join(_suffixes())}).")
    if len(labels) > 1:
        raise FileFormatError(f"{where} has {' and '.join(sorted(file.name for file in labels))}; keep one of them.")
    files = sorted(sources, key=lambda path: natural_order(path.name))
    members = [_one_source(format_of(file).read(file, request), file) for file in files]
    first = members[0]
    _reject_labels(members)
    _check_kinds(members)
    class_names = match_classes(members)
    ids = match_samples(members, FileFormatError)
    return Contents(
        [member.values for member in members],
        read_labels(labels[0]) if labels else common_labels(members, class_names),
        first.kind,
        _names(files),
        class_names,
        ids,
        first.groups,
        rounding=max(member.rounding for member in members),
        order=next((member.order for member in members if member.order), ""),
        is_table=any(member.is_table for member in members),
        files=(*files, *labels),
    )


def _one_source(contents: Contents, file: Path) -> Contents:
    """The content of a file with one source, its scores of shape (N, L), or (N,) if they are binary."""
    values = contents.values
    values = np.asarray(values[0]) if len(values) == 1 and np.ndim(values[0]) == 2 else values
    n_dims = 1 if contents.kind == "binary" or np.ndim(values) == 1 else 2
    if not isinstance(values, np.ndarray) or values.ndim != n_dims:
        raise ShapeError(
            f"{file} has shape {np.shape(contents.values)}; in a set of files each holds one source, (samples, "
            "classes); load a file with all sources by itself."
        )
    contents.values, contents.where = values, str(file)
    if contents.class_names is None and isinstance(contents.labels, ClassIndices):
        contents.labels = contents.labels.indices
    return contents


def _reject_labels(members: Sequence[Contents]) -> None:
    """Refuse whole numbers, one per sample, among files of scores."""
    suspects = [member.where for member in members if member.values.ndim == 1 and member.values.dtype.kind != "f"]
    if 0 < len(suspects) < len(members):
        raise FileFormatError(
            f"{suspects[0]} has one whole number per sample and looks like labels; give it as labels=, which is not "
            "read as a source."
        )


def _check_kinds(members: Sequence[Contents]) -> None:
    """All files must declare the same kind, or none."""
    other = next((member for member in members if member.kind != members[0].kind), None)
    if other is not None:
        kinds = [f"{member.where} holds {member.kind or 'an undeclared kind'}" for member in (members[0], other)]
        raise FileFormatError(f"{' and '.join(kinds)}; all sources must be of the same kind.")


def _names(files: Sequence[Path]) -> list[str]:
    """Names of the sources: those of their files without suffix, or with it if they would be equal."""
    for names in ([file.stem for file in files], [file.name for file in files]):
        if len(set(names)) == len(names):
            return names
    return [str(file) for file in files]
