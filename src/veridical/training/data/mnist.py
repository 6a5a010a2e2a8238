"""MNIST (LeCun et al., 1998) and Fashion-MNIST (Xiao et al., 2017): idx files, compressed or not."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from veridical.errors import CorruptFileError, DatasetError
from veridical.predictions.files.file_checks import check_claim
from veridical.training.data.images import ImageSet, Normalisation, check_label_range

#: idx files begin with two zeros, the element type (8: unsigned byte), and the number of dimensions.
_UNSIGNED_BYTE = 8

_STEMS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}

_NORMALISATION = {
    "mnist": Normalisation((0.1307,), (0.3081,)),
    "fashion-mnist": Normalisation((0.2860,), (0.3530,)),
}
_CLASS_NAMES = {
    "mnist": tuple("0123456789"),
    "fashion-mnist": (
        "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
    ),
}  # fmt: skip

#: MD5 sums of the published compressed files.  Distributions compress them again, which changes the sum and not the
#: images, and gzip checks its content: so a different sum is recorded, not rejected.
_MD5 = {
    "mnist": {
        "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte": "bb300cfdad3c16e7a12a480ee83cd310",
    },
}

REQUIRED = dict.fromkeys(
    _NORMALISATION,
    "put train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte there "
    "(with or without .gz)",
)


def read(name: str, directory: Path, split: str) -> ImageSet:
    """One split."""
    paths = [_path_of(name, directory, stem) for stem in _STEMS[split]]
    images, labels = (_read_idx(path, dimensions) for path, dimensions in zip(paths, (3, 1), strict=True))
    if len(images) != len(labels):
        raise CorruptFileError(f"{paths[0]} has {len(images)} images and {paths[1].name} has {len(labels)} labels.")
    check_label_range(labels, len(_CLASS_NAMES[name]), paths[1])
    return ImageSet.of(
        images,
        labels.astype(np.int64),
        normalisation=_NORMALISATION[name],
        class_names=_CLASS_NAMES[name],
        published={path.name: _md5_of(path) == _MD5[name][path.stem] for path in paths if path.suffix == ".gz"},
    )


def _path_of(name: str, directory: Path, stem: str) -> Path:
    for candidate in (directory / f"{stem}.gz", directory / stem):
        if candidate.is_file():
            return candidate
    raise DatasetError(f"{directory / stem}.gz is missing; {REQUIRED[name]}.")


def _md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    start = bytes((0, 0, _UNSIGNED_BYTE, dimensions))
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(4 + 4 * dimensions)
            if len(header) < 4 + 4 * dimensions or not header.startswith(start):
                raise CorruptFileError(
                    f"{path} does not begin as an idx file of bytes in {dimensions} dimensions does; download it again."
                )
            shape = tuple(np.frombuffer(header, ">u4", offset=4).tolist())
            n_bytes = math.prod(shape)
            check_claim(path, n_bytes, path.stat().st_size)
            content = file.read(n_bytes + 1)  # no more than shows that there is too much
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptFileError(f"{path} cannot be decompressed ({error}); download it again.") from error
    if len(content) != n_bytes:
        stored = len(content) if len(content) < n_bytes else "more"
        raise CorruptFileError(
            f"{path} declares shape {shape} and has {stored} bytes; it is truncated or damaged: download it again."
        )
    return np.frombuffer(content, np.uint8).reshape(shape)
