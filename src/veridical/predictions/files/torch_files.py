"""``.pt``: tensors saved by PyTorch, loaded with ``weights_only`` and mapped."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from veridical._extras import require
from veridical.errors import FileFormatError
from veridical.predictions.arrays import is_tensor, tensor_to_array
from veridical.predictions.files.contents import (
    Contents,
    check_claim,
    check_is_file,
    choose_scores,
    declared_kind,
    kind_of_name,
    not_an_archive,
    reading,
)
from veridical.predictions.validation import Array, Kind

_WHAT = "a .pt file of tensors"


def read_torch(path: Path, kind: Kind | None) -> Contents:
    """Scores from a tensor, a list of tensors (one per source), or a dictionary of named tensors."""
    loaded = load_tensors(path)
    if not isinstance(loaded, dict):
        return Contents(_scores(loaded, path), kind=declared_kind(path))
    named = {str(name): value for name, value in loaded.items()}
    chosen = choose_scores(named, kind, path)
    return Contents(
        _scores(named[chosen], path),
        labels=np.asarray(named["labels"]) if "labels" in named else None,
        kind=kind_of_name(chosen),
        source_names=named.get("source_names"),
        class_names=named.get("class_names"),
    )


def load_tensors(path: Path) -> Any:
    """What is in a ``.pt`` file, with NumPy arrays in place of tensors.

    The file is mapped, which is also what keeps tensors within it: read the other way, PyTorch believes the size that
    the file claims for a tensor.
    """
    torch = require("torch", "torch")
    check_is_file(path, _WHAT)
    with reading(path, _WHAT):
        if not zipfile.is_zipfile(path):
            raise not_an_archive(path, ".pt", f"{_WHAT} as torch.save writes it since PyTorch 1.6")
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:
            if "weights_only" not in str(error).lower() and "Unsupported" not in str(error):
                raise
            raise FileFormatError(
                f"{path} holds more than tensors, and unpickling it could run programs; convert it where it comes "
                "from: torch.save(tensor, path) or torch.save({'logits': tensor, 'labels': labels}, path)."
            ) from error
        return _without_tensors(loaded, torch, path)


def _without_tensors(value: Any, torch: Any, path: Path) -> Any:
    if is_tensor(value):
        # A tensor may claim any shape with strides of zero.
        if value.layout == torch.strided and not value.is_meta:
            check_claim(path, value.numel() * value.element_size(), value.untyped_storage().nbytes())
        return tensor_to_array(value, f"{path}: the tensor")
    if isinstance(value, dict):
        return {name: _without_tensors(entry, torch, path) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_tensors(entry, torch, path) for entry in value]
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
