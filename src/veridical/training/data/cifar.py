"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), from the published python or binary files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DatasetError
from veridical.predictions.safe_pickle import load_plain_pickle
from veridical.training.data.images import ImageSet, Normalisation, Pixels, md5_of

_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class _Form:
    """The files of one of the two data sets."""

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
    label_bytes: int  # labels before each image in the binary form; the last is the one we want


_FORMS = {
    "cifar10": _Form(
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
    "cifar100": _Form(
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

WANTED = {
    name: f"unpack {form.archive} (or the binary version) there, so that it holds {form.python_folder}/ or "
    f"{form.binary_folder}/"
    for name, form in _FORMS.items()
}


def read(name: str, directory: Path, split: str, verify: bool) -> ImageSet:
    """One split, from whichever of the two published forms is there."""
    form = _FORMS[name]
    folder = _find(directory, form.python_folder, list(form.python_files[split]))
    if folder is not None:
        return _read_python(form, folder, split, verify)
    folder = _find(directory, form.binary_folder, list(form.binary_files[split]))
    if folder is not None:
        return _read_binary(form, folder, split)
    raise DatasetError(f"{directory} holds no {name} {split} files; {WANTED[name]}.")


def _find(directory: Path, folder: str, files: list[str]) -> Path | None:
    """The folder with the files: the directory itself, or the folder that the archive unpacks to."""
    for candidate in (directory / folder, directory):
        present = [name for name in files if (candidate / name).is_file()]
        if present and len(present) < len(files):
            missing = next(name for name in files if name not in present)
            raise DatasetError(f"{candidate / missing} is missing, while {present[0]} is there; unpack all files.")
        if present:
            return candidate
    return None


def _read_python(form: _Form, folder: Path, split: str, verify: bool) -> ImageSet:
    images, labels, published = [], [], {}
    for name, md5 in form.python_files[split].items():
        path = folder / name
        published[name] = md5_of(path) == md5
        if verify and not published[name]:
            raise CorruptFileError(
                f"{path} is not the published file (its MD5 sum is not {md5}); fetch it again, or switch verification "
                "off if it was changed on purpose."
            )
        batch = load_plain_pickle(path)
        batch_images, batch_labels = _batch_arrays(batch, form, path)
        images.append(batch_images)
        labels.append(batch_labels)
    return ImageSet.of(
        _as_images(np.concatenate(images)),
        _check_labels(np.concatenate(labels), form, folder),
        n_classes=form.n_classes,
        normalisation=form.normalisation,
        class_names=_python_names(form, folder / form.python_meta),
        published=published,
    )


def _batch_arrays(batch: Any, form: _Form, path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    data = batch.get(b"data") if isinstance(batch, dict) else None
    labels = batch.get(form.label_key) if isinstance(batch, dict) else None
    shaped = isinstance(data, np.ndarray) and data.dtype == np.uint8 and data.ndim == 2 and data.shape[1] == _PIXELS
    whole = isinstance(labels, list) and all(type(label) is int for label in labels)
    if not shaped or not whole or data is None or len(data) != len(labels or ()):
        raise CorruptFileError(
            f"{path} holds no images of {_PIXELS} bytes with as many {form.label_key.decode()}; fetch it again."
        )
    return data, np.asarray(labels, dtype=np.int64)


def _read_binary(form: _Form, folder: Path, split: str) -> ImageSet:
    record = form.label_bytes + _PIXELS
    rows = []
    for name in form.binary_files[split]:
        path = folder / name
        size = path.stat().st_size
        if size == 0 or size % record:
            raise CorruptFileError(
                f"{path} has {size} bytes, which is no whole number of images ({record} bytes each); fetch it again."
            )
        rows.append(np.fromfile(path, dtype=np.uint8).reshape(-1, record))
    stored = np.concatenate(rows)
    names = folder / form.binary_names
    return ImageSet.of(
        _as_images(stored[:, form.label_bytes :]),
        _check_labels(stored[:, form.label_bytes - 1].astype(np.int64), form, folder),
        n_classes=form.n_classes,
        normalisation=form.normalisation,
        class_names=_checked_names(names.read_text().split(), form, names) if names.is_file() else None,
    )


def _as_images(rows: npt.NDArray[np.uint8]) -> Pixels:
    """Stored plane by plane (red, green, blue), 32 rows each; wanted pixel by pixel."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _check_labels(labels: npt.NDArray[np.int64], form: _Form, folder: Path) -> npt.NDArray[np.int64]:
    outside = np.flatnonzero((labels < 0) | (labels >= form.n_classes))
    if outside.size:
        raise CorruptFileError(
            f"image {outside[0]} in {folder} has label {labels[outside[0]]}, and there are {form.n_classes} classes; "
            "fetch the files again."
        )
    return labels


def _python_names(form: _Form, path: Path) -> list[str] | None:
    if not path.is_file():
        return None
    meta = load_plain_pickle(path)
    names = meta.get(form.names_key, ()) if isinstance(meta, dict) else ()
    return _checked_names([name.decode() if isinstance(name, bytes) else str(name) for name in names], form, path)


def _checked_names(names: list[str], form: _Form, path: Path) -> list[str]:
    if len(names) != form.n_classes:
        raise CorruptFileError(f"{path} names {len(names)} classes instead of {form.n_classes}; fetch it again.")
    return names
