"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), from the published python or binary files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DatasetError, UnsafePickleError
from veridical.predictions.files.cifar_batches import read_batch, read_published_pickle
from veridical.training.data.images import ImageSet, Normalisation, Pixels


@dataclass(frozen=True)
class _DatasetFiles:
    """The published files of one of the two data sets."""

    n_classes: int
    normalisation: Normalisation
    archive: str
    python_folder: str
    python_files: dict[str, tuple[str, ...]]
    python_meta: str
    label_key: bytes
    names_key: bytes
    binary_folder: str
    binary_files: dict[str, tuple[str, ...]]
    binary_names: str
    label_bytes: int  # labels before each image in the binary files; the last is the fine one


_DATASETS = {
    "cifar10": _DatasetFiles(
        n_classes=10,
        normalisation=Normalisation((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
        archive="cifar-10-python.tar.gz",
        python_folder="cifar-10-batches-py",
        python_files={"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)},
        python_meta="batches.meta",
        label_key=b"labels",
        names_key=b"label_names",
        binary_folder="cifar-10-batches-bin",
        binary_files={"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)},
        binary_names="batches.meta.txt",
        label_bytes=1,
    ),
    "cifar100": _DatasetFiles(
        n_classes=100,
        normalisation=Normalisation((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
        archive="cifar-100-python.tar.gz",
        python_folder="cifar-100-python",
        python_files={"train": ("train",), "test": ("test",)},
        python_meta="meta",
        label_key=b"fine_labels",
        names_key=b"fine_label_names",
        binary_folder="cifar-100-binary",
        binary_files={"train": ("train.bin",), "test": ("test.bin",)},
        binary_names="fine_label_names.txt",
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
    folder = _folder_of(directory, files.python_folder, files.python_files[split])
    if folder is not None:
        return _read_python(files, folder, split)
    folder = _folder_of(directory, files.binary_folder, files.binary_files[split])
    if folder is not None:
        return _read_binary(files, folder, split)
    raise DatasetError(f"{directory} has no {name} {split} files; {REQUIRED[name]}.")


def _folder_of(directory: Path, folder: str, names: tuple[str, ...]) -> Path | None:
    """The folder that holds the files: the one that the archive unpacks to, or the directory itself."""
    for candidate in (directory / folder, directory):
        present = [name for name in names if (candidate / name).is_file()]
        if present and len(present) < len(names):
            missing = next(name for name in names if name not in present)
            raise DatasetError(f"{candidate / missing} is missing, while {present[0]} exists; unpack all files.")
        if present:
            return candidate
    return None


def _read_python(files: _DatasetFiles, folder: Path, split: str) -> ImageSet:
    """The published files, which are pickles and are loaded because their content is known by its MD5 sum."""
    names = files.python_files[split]
    batches = [_load(folder / name) for name in names]
    images = np.concatenate([batch[b"data"] for batch in batches])
    labels = np.concatenate([np.asarray(batch[files.label_key], np.int64) for batch in batches])
    return ImageSet.of(
        _as_images(images),
        _check_labels(labels, files, folder),
        n_classes=files.n_classes,
        normalisation=files.normalisation,
        class_names=_python_names(files, folder / files.python_meta),
        published=dict.fromkeys(names, True),
    )


def _load(path: Path) -> dict[bytes, Any]:
    try:
        return read_published_pickle(path)
    except UnsafePickleError:
        raise UnsafePickleError(
            f"{path} is not the published file (its MD5 sum is another), and a pickle can run programs, so it is not "
            "loaded; download it again, or give the binary version or a .npz."
        ) from None


def _read_binary(files: _DatasetFiles, folder: Path, split: str) -> ImageSet:
    batches = [read_batch(folder / name, (files.label_bytes,)) for name in files.binary_files[split]]
    labels, images = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    names = folder / files.binary_names
    return ImageSet.of(
        _as_images(images),
        _check_labels(labels, files, folder),
        n_classes=files.n_classes,
        normalisation=files.normalisation,
        class_names=_checked_names(names.read_text(errors="replace").split(), files, names)
        if names.is_file()
        else None,
    )


def _as_images(rows: npt.NDArray[np.uint8]) -> Pixels:
    """Images (N, 32, 32, 3) of rows that hold a red, a green and a blue plane."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _check_labels(labels: npt.NDArray[np.int64], files: _DatasetFiles, folder: Path) -> npt.NDArray[np.int64]:
    outside = np.flatnonzero((labels < 0) | (labels >= files.n_classes))
    if outside.size:
        raise CorruptFileError(
            f"image {outside[0]} in {folder} has label {labels[outside[0]]}, and there are {files.n_classes} classes; "
            "download the files again."
        )
    return labels


def _python_names(files: _DatasetFiles, path: Path) -> list[str] | None:
    if not path.is_file():
        return None
    return [name.decode() for name in _load(path)[files.names_key]]


def _checked_names(names: list[str], files: _DatasetFiles, path: Path) -> list[str]:
    if len(names) != files.n_classes:
        raise CorruptFileError(f"{path} lists {len(names)} classes instead of {files.n_classes}; download it again.")
    return names
