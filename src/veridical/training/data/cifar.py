"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), from the published python or binary files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DatasetError
from veridical.predictions.files.cifar_batches import PIXELS, read_batch
from veridical.predictions.safe_pickle import load_plain_pickle
from veridical.training.data.images import ImageSet, Normalisation, Pixels, md5_of


@dataclass(frozen=True)
class _DatasetFiles:
    """The published files of one of the two data sets."""

    n_classes: int
    normalisation: Normalisation
    archive: str
    python_folder: str
    python_files: dict[str, dict[str, str]]  # split -> file name -> published MD5 sum
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
        python_files={
            "train": {
                "data_batch_1": "c99cafc152244af753f735de768cd75f",
                "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                "data_batch_4": "634d18415352ddfa80567beed471001a",
                "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            },
            "test": {"test_batch": "40351d587109b95175f43aff81a1287e"},
        },
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
        python_files={
            "train": {"train": "16019d7e3df5f24257cddd939b257f8d"},
            "test": {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
        },
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


def read(name: str, directory: Path, split: str, verify: bool) -> ImageSet:
    """One split, from the python files, or else from the binary ones."""
    files = _DATASETS[name]
    folder = _folder_of(directory, files.python_folder, list(files.python_files[split]))
    if folder is not None:
        return _read_python(files, folder, split, verify)
    folder = _folder_of(directory, files.binary_folder, list(files.binary_files[split]))
    if folder is not None:
        return _read_binary(files, folder, split)
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


def _read_python(files: _DatasetFiles, folder: Path, split: str, verify: bool) -> ImageSet:
    images, labels, published = [], [], {}
    for name, md5 in files.python_files[split].items():
        path = folder / name
        published[name] = md5_of(path) == md5
        if verify and not published[name]:
            raise CorruptFileError(
                f"{path} is not the published file (its MD5 sum is not {md5}); download it again, or pass "
                "--no-verify (verify=False) if it was changed on purpose."
            )
        batch = load_plain_pickle(path)
        batch_images, batch_labels = _batch_arrays(batch, files, path)
        images.append(batch_images)
        labels.append(batch_labels)
    return ImageSet.of(
        _as_images(np.concatenate(images)),
        _check_labels(np.concatenate(labels), files, folder),
        n_classes=files.n_classes,
        normalisation=files.normalisation,
        class_names=_python_names(files, folder / files.python_meta),
        published=published,
    )


def _batch_arrays(batch: Any, files: _DatasetFiles, path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    data = batch.get(b"data") if isinstance(batch, dict) else None
    labels = batch.get(files.label_key) if isinstance(batch, dict) else None
    has_images = isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 2 and data.shape[1] == PIXELS
    has_labels = isinstance(labels, list) and all(type(label) is int and abs(label) < 1 << 31 for label in labels)
    if not has_images or not has_labels or data is None or len(data) != len(labels or ()):
        raise CorruptFileError(
            f"{path} does not hold images of {PIXELS} bytes with as many {files.label_key.decode()}; download it again."
        )
    return data, np.asarray(labels, dtype=np.int64)


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
    meta = load_plain_pickle(path)
    names = meta.get(files.names_key) if isinstance(meta, dict) else None
    names = names if isinstance(names, list) else []
    texts = [name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in names]
    return _checked_names(texts, files, path)


def _checked_names(names: list[str], files: _DatasetFiles, path: Path) -> list[str]:
    if len(names) != files.n_classes:
        raise CorruptFileError(f"{path} lists {len(names)} classes instead of {files.n_classes}; download it again.")
    return names
