"""``.pt``: tensors saved by PyTorch, loaded with ``weights_only`` and mapped."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from veridical._lazy import require
from veridical.errors import CorruptFileError, FileFormatError
from veridical.predictions.arrays import check_texts, is_tensor, tensor_to_array
from veridical.predictions.contents import Contents
from veridical.predictions.files.contents import (
    BESIDE_SCORES,
    Format,
    Request,
    choose_scores,
    declared_kind,
    kind_of_name,
)
from veridical.predictions.files.file_checks import check_claim, check_is_file, not_an_archive, reading
from veridical.predictions.files.labels import labels_in
from veridical.predictions.validation import Array

_WHAT = "a .pt file of tensors"
#: Names of classes and sources, tensors and lists in one file.
_MOST_VALUES = 1_000_000


def _read(path: Path, request: Request) -> Contents:
    """Scores from a tensor, a list of tensors (one per source), or a dictionary of named tensors."""
    loaded = load_tensors(path)
    if not isinstance(loaded, dict):
        return Contents(_scores(loaded, path), kind=declared_kind(path))
    named = {str(name): value for name, value in loaded.items()}
    chosen = choose_scores(named, request.kind, path)
    for name in ("labels", "sample_ids", "groups"):  # which may be lists
        check_texts(named.get(name), f"the {name} in {path}")
    beside: dict[str, Any] = {name: named.get(name) for name in BESIDE_SCORES if name != "sample_shape"}
    return Contents(_scores(named[chosen], path), kind=kind_of_name(chosen), **beside)


def load_tensors(path: Path) -> Any:
    """What is in a ``.pt`` file, with NumPy arrays in place of tensors.

    The file is mapped, which also bounds the tensors: otherwise PyTorch allocates the size that the file claims.
    """
    require("torch", "torch")
    check_is_file(path, _WHAT)
    with reading(path, _WHAT):
        if not zipfile.is_zipfile(path):
            raise not_an_archive(path, ".pt", f"{_WHAT} as torch.save writes it since PyTorch 1.6")
        with zipfile.ZipFile(path) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise FileFormatError(f"{path} is compressed, which torch.save never does; write it again.")
        return _Arrays(path).of(load_weights_only(path, mmap=True))


def load_weights_only(path: Path, *, mmap: bool = False) -> Any:
    """What ``torch.load`` gives of tensors and plain values."""
    torch = require("torch", "torch")
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except pickle.UnpicklingError:  # whose message advises to load it nevertheless
        raise CorruptFileError(
            f"{path} cannot be read as tensors and plain values: it is damaged, or holds more and could run programs; "
            "convert it where you trust it: torch.save(tensor, path), or a dictionary of tensors, such as "
            "{'logits': tensor, 'labels': labels} or a state dict; safetensors files are safer still."
        ) from None


class _Arrays:
    """Replaces tensors by NumPy arrays, if together they are not larger than the file can hold.

    A tensor may claim any shape with strides of zero, and a list may contain the same list many times.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, path.stat().st_size
        self._n_bytes = self._n_values = 0

    def of(self, value: Any) -> Any:
        """``value`` with arrays."""
        self._n_values += 1
        if self._n_values > _MOST_VALUES:
            raise FileFormatError(f"{self._path} holds more than {_MOST_VALUES:,} values; save one tensor.")
        if is_tensor(value):
            self._n_bytes += 0 if value.is_meta else value.numel() * value.element_size()
            check_claim(self._path, self._n_bytes, self._size)
            return tensor_to_array(value, f"{self._path}: the tensor")
        if isinstance(value, dict):
            return {name: self.of(entry) for name, entry in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of(entry) for entry in value]
        return value


def _scores(value: Any, path: Path) -> Array | list[Array]:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, list) and value and all(isinstance(entry, np.ndarray) and entry.ndim == 2 for entry in value):
        return value
    raise FileFormatError(
        f"{path} holds a {type(value).__name__}; save a tensor (sources, samples, classes) or a list of tensors "
        "(samples, classes)."
    )


TORCH = Format((".pt", ".pth"), read=_read, read_labels=lambda path: labels_in(load_tensors(path), path), extra="torch")
