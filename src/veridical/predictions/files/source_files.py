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
from veridical.errors import CorruptFileError, FileFormatError, LabelError, ShapeError
from veridical.predictions.classes import UNKNOWN, ClassIndices, order_of_columns
from veridical.predictions.files.contents import Contents, Request
from veridical.predictions.files.file_checks import reading
from veridical.predictions.files.formats import FORMATS, format_of, format_with, read_labels, suffixes_with
from veridical.predictions.labels import Samples, resolve_labels
from veridical.predictions.sample_ids import places_of
from veridical.predictions.validation import KINDS, Array

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
    _reject_labels(members, files)
    _check_kinds(members, files)
    class_names = _match_classes(members, files)
    _match_samples(members, files)
    for file, member in zip(files, members, strict=True):
        if member.values.shape != first.values.shape:
            raise ShapeError(
                f"{file} has shape {member.values.shape} and {files[0]} has shape {first.values.shape}; all sources "
                "must predict the same samples and classes."
            )
    return Contents(
        [member.values for member in members],
        read_labels(labels[0]) if labels else _common_labels(members, files, class_names),
        first.kind,
        _names(files),
        class_names,
        first.sample_ids,
        first.groups,
        rounding=max(member.rounding for member in members),
        was_sorted=any(member.was_sorted for member in members),
        is_table=any(member.is_table for member in members),
        files=(*files, *labels),
    )


def _one_source(contents: Contents, file: Path) -> Any:
    """The content of a file with one source, its scores of shape (N, L), or (N,) if they are binary."""
    values = contents.values
    values = np.asarray(values[0]) if len(values) == 1 and np.ndim(values[0]) == 2 else values
    n_dims = 1 if contents.kind == "binary" or np.ndim(values) == 1 else 2
    if not isinstance(values, np.ndarray) or values.ndim != n_dims:
        raise ShapeError(
            f"{file} has shape {np.shape(contents.values)}; in a set of files each holds one source, (samples, "
            "classes); load a file with all sources by itself."
        )
    contents.values = values
    if contents.class_names is None and isinstance(contents.labels, ClassIndices):
        contents.labels = contents.labels.indices
    return contents


def _reject_labels(members: Sequence[Any], files: Sequence[Path]) -> None:
    """Refuse whole numbers, one per sample, among files of scores."""
    scores = [member.values.ndim > 1 or member.values.dtype.kind == "f" for member in members]
    suspect = next((file for file, is_score in zip(files, scores, strict=True) if not is_score), None)
    if suspect is not None and any(scores):
        raise FileFormatError(
            f"{suspect} has one whole number per sample and looks like labels; give it as labels=, which "
            "is not read as a source."
        )


def _check_kinds(members: Sequence[Contents], files: Sequence[Path]) -> None:
    """All files must declare the same kind, or none."""
    first = members[0]
    for file, member in zip(files, members, strict=True):
        if member.kind != first.kind:
            kinds = [
                f"{name} holds {kind or 'an undeclared kind'}"
                for name, kind in ((files[0], first.kind), (file, member.kind))
            ]
            raise FileFormatError(f"{' and '.join(kinds)}; all sources must be of the same kind.")


def _match_classes(members: Sequence[Any], files: Sequence[Path]) -> Sequence[str] | None:
    """Put the columns of all files, and their labels, into the order of the first file with class names; these."""
    wanted: Sequence[str] | None = next((member.class_names for member in members if member.class_names), None)
    if wanted is None:
        return None
    for file, member in zip(files, members, strict=True):
        names, n_classes = member.class_names, member.values.shape[-1]
        if names is None and n_classes != len(wanted):
            continue  # its shape differs from that of others
        order = order_of_columns(names, wanted, str(file))
        if member.labels is not None:
            samples = Samples((len(member.values),), None, n_classes, names or wanted)
            indices = resolve_labels(member.labels, samples)
            member.labels = indices if order is None else np.append(np.argsort(order), UNKNOWN)[indices]
        if order is not None:
            member.values = member.values[:, order]
    return wanted


def _match_samples(members: Sequence[Any], files: Sequence[Path]) -> None:
    """Put the samples of all files into the order of the first, by their ids."""
    first = members[0]
    if all(member.sample_ids is None for member in members):
        return
    ids = _ids_or_count(first)
    for file, member in zip(files, members, strict=True):
        others = _ids_or_count(member)
        member.sample_ids = ids
        if np.array_equal(others, ids):
            continue
        places = places_of(ids, others, str(files[0]), str(file), FileFormatError)
        member.values = member.values[places]
        member.labels = None if member.labels is None else np.asarray(member.labels)[places]
        member.groups = None if member.groups is None else np.asarray(member.groups)[places]


def _ids_or_count(member: Contents) -> Array:
    """The ids of samples; a reader leaves out those that only count."""
    return np.arange(len(member.values)) if member.sample_ids is None else np.asarray(member.sample_ids)


def _common_labels(members: Sequence[Contents], files: Sequence[Path], class_names: Sequence[str] | None) -> Any:
    """The labels that files contain, which must agree; places of classes where these have names."""
    labelled = [(file, member.labels) for file, member in zip(files, members, strict=True) if member.labels is not None]
    for file, labels in labelled:
        if not np.array_equal(labels, labelled[0][1]):
            raise LabelError(
                f"{file} has labels that differ from those in {labelled[0][0]}; all sources need the same samples."
            )
    labels = labelled[0][1] if labelled else None
    return labels if class_names is None or labels is None else ClassIndices(np.asarray(labels))


def _names(files: Sequence[Path]) -> list[str]:
    """Names of the sources: those of their files without suffix, or with it if they would be equal."""
    for names in ([file.stem for file in files], [file.name for file in files]):
        if len(set(names)) == len(names):
            return names
    return [str(file) for file in files]
