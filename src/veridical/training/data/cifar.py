"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), from the published python or binary files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DatasetError, UnsafePickleError
from veridical.predictions.files.cifar_batches import read_batch, read_published_pickle
from veridical.training.data.images import ImageSet, Normalisation, check_label_range

_Arrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class _Published:
    """What is published of one of the two data sets; a binary file is called as the python one, with ``.bin``."""

    n_classes: int
    normalisation: Normalisation
    files: dict[str, tuple[str, ...]]
    archive: str
    python_folder: str
    python_names: str
    binary_folder: str
    binary_names: str
    key: str  # before "labels" and "label_names" in the python files
    label_bytes: int  # before each image in the binary files; the last is the fine label


_DATASETS = {
    "cifar10": _Published(
        n_classes=10,
        normalisation=Normalisation((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        files={"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)},
        archive="cifar-10-python.tar.gz",
        python_folder="cifar-10-batches-py",
        python_names="batches.meta",
        binary_folder="cifar-10-batches-bin",
        binary_names="batches.meta.txt",
        key="",
        label_bytes=1,
    ),
    "cifar100": _Published(
        n_classes=100,
        normalisation=Normalisation((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
        files={"train": ("train",), "test": ("test",)},
        archive="cifar-100-python.tar.gz",
        python_folder="cifar-100-python",
        python_names="meta",
        binary_folder="cifar-100-binary",
        binary_names="fine_label_names.txt",
        key="fine_",
        label_bytes=2,
    ),
}

REQUIRED = {
    name: f"unpack {files.archive} (or the binary version) there, so that it holds {files.python_folder}/ or "
    f"{files.binary_folder}/"
    for name, files in _DATASETS.items()
}


def read(name: str, directory: Path, split: str) -> ImageSet:
    """One split, from the python files, or else from the binary ones."""
    files = _DATASETS[name]
    for folder, suffix, read_file, read_names in (
        (files.python_folder, "", _python_batch, _python_names),
        (files.binary_folder, ".bin", _binary_batch, _binary_names),
    ):
        names = [f"{stem}{suffix}" for stem in files.files[split]]
        place = _folder_of(directory, folder, names)
        if place is None:
            continue
        batches = [read_file(files, place / name) for name in names]
        labels, rows = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
        check_label_range(labels, files.n_classes, place)
        return ImageSet.of(
            # Rows hold a red, a green and a blue plane.
            np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)),
            labels,
            n_classes=files.n_classes,
            normalisation=files.normalisation,
            class_names=read_names(files, place),
            published=None if suffix else dict.fromkeys(names, True),
        )
    raise DatasetError(f"{directory} has no {name} {split} files; {REQUIRED[name]}.")


def _folder_of(directory: Path, folder: str, names: list[str]) -> Path | None:
    """The folder that holds the files: the one that the archive unpacks to, or the directory itself."""
    for candidate in (directory / folder, directory):
        present = [name for name in names if (candidate / name).is_file()]
        if present and len(present) < len(names):
            missing = next(name for name in names if name not in present)
            raise DatasetError(f"{candidate / missing} is missing, while {present[0]} exists; unpack all files.")
        if present:
            return candidate
    return None


def _python_batch(files: _Published, path: Path) -> _Arrays:
    """A published file, which is a pickle and is loaded because its content is known by its MD5 sum."""
    batch = _load(path)
    return np.asarray(batch[f"{files.key}labels".encode()], np.int64), batch[b"data"]


def _load(path: Path) -> dict[bytes, Any]:
    try:
        return read_published_pickle(path)
    except UnsafePickleError:
        raise UnsafePickleError(
            f"{path} is not the published file (its MD5 sum is another), and a pickle can run programs, so it is not "
            "loaded; download it again, or give the binary version or a .npz."
        ) from None


def _python_names(files: _Published, folder: Path) -> list[str] | None:
    path = folder / files.python_names
    return [name.decode() for name in _load(path)[f"{files.key}label_names".encode()]] if path.is_file() else None


def _binary_batch(files: _Published, path: Path) -> _Arrays:
    return read_batch(path, (files.label_bytes,))


def _binary_names(files: _Published, folder: Path) -> list[str] | None:
    path = folder / files.binary_names
    if not path.is_file():
        return None
    names = path.read_text(errors="replace").split()
    if len(names) != files.n_classes:
        raise CorruptFileError(f"{path} lists {len(names)} classes instead of {files.n_classes}; download it again.")
    return names
